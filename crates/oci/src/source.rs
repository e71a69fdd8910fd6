//! Where charts are, whatever kind of place that is.

use versions::Version;

use crate::{
    Archive, Client, Entry, Error, Reference, Registry, Repository, Wanted,
    reference::tag_of,
    version::{newest, sort},
};

/// Where charts are: a Helm repository, or a registry.
#[derive(Debug, Clone)]
pub struct Charts {
    client: Client,
    place: Of<Repository, Reference>,
}

/// Where one chart is: in a Helm repository, or in a registry.
#[derive(Debug)]
pub struct Source {
    chart: String,
    place: Of<Repository, Registry>,
}

/// One kind of place or the other.
#[derive(Debug, Clone)]
enum Of<H, R> {
    Repository(H),
    Registry(R),
}

impl Charts {
    /// The charts at an address.
    ///
    /// # Errors
    /// When the address is none.
    pub fn at(client: &Client, address: &str) -> Result<Self, Error> {
        let place = match address.starts_with("oci://") {
            true => Of::Registry(Reference::parse(address)?),
            false => Of::Repository(Repository::new(client, address)?),
        };
        Ok(Self {
            client: client.clone(),
            place,
        })
    }

    /// The same, for who asks for many of its charts: the index of a Helm repository is read once and kept as it was sent,
    /// unless it is too large for that.
    #[must_use]
    pub fn keeping_index(self) -> Self {
        let place = match self.place {
            Of::Repository(repository) => Of::Repository(repository.keeping_index()),
            registry => registry,
        };
        Self { place, ..self }
    }

    /// One of them. In a registry, `chart` is one level deeper than the address, or the address names it whole and `chart` is
    /// empty.
    ///
    /// # Errors
    /// When that is no name.
    pub fn chart(&self, chart: &str) -> Result<Source, Error> {
        let place = match &self.place {
            Of::Repository(repository) => Of::Repository(repository.clone()),
            Of::Registry(reference) => {
                let reference = match chart {
                    "" => reference.clone(),
                    chart => reference.child(chart)?,
                };
                Of::Registry(Registry::new(&self.client, reference))
            }
        };
        let chart = chart.to_owned();
        Ok(Source { chart, place })
    }
}

impl Source {
    /// The place of a chart; see [`Charts::chart`].
    ///
    /// # Errors
    /// When the address is none.
    pub fn new(client: &Client, address: &str, chart: &str) -> Result<Self, Error> {
        Charts::at(client, address)?.chart(chart)
    }

    /// All versions, the newest first.
    ///
    /// # Errors
    /// When they can't be had.
    pub async fn versions(&self) -> Result<Vec<String>, Error> {
        match &self.place {
            Of::Repository(repository) => {
                let entries = repository.entries(&self.chart).await?;
                Ok(entries.into_iter().map(|entry| entry.version).collect())
            }
            Of::Registry(registry) => Ok(of_tags(registry.tags().await?)),
        }
    }

    /// Gets the version of that name, or the newest in a range; without either, the newest that is no pre-release.
    ///
    /// # Errors
    /// When there is none, or it can't be had.
    pub async fn pull(&self, range: &str) -> Result<Archive, Error> {
        match &self.place {
            Of::Repository(repository) => {
                let entries = repository.entries(&self.chart).await?;
                let entry = newest(entries, |entry: &Entry| &entry.version, range)?;
                let entry = entry.ok_or_else(|| self.no_version(range))?;
                repository.fetch(&entry).await
            }
            Of::Registry(registry) => {
                let wanted = self.wanted(registry, range).await?;
                registry.chart(&wanted).await
            }
        }
    }

    /// What is meant in a registry: the address may say it; a whole version is a tag without looking.
    async fn wanted(&self, registry: &Registry, range: &str) -> Result<Wanted, Error> {
        let reference = registry.reference();
        let tag = reference.tag();
        if tag.is_some_and(|tag| !range.is_empty() && tag != tag_of(range)) {
            return Err(Error::InvalidUrl {
                url: reference.to_string(),
                why: format!(
                    "chart reference and version mismatch: {range} is not {}",
                    tag.unwrap_or_default()
                ),
            });
        }
        if tag.is_some() || matches!(reference.wanted(), Wanted::Digest(_)) {
            return Ok(reference.wanted());
        }
        if Version::parse(range).is_ok() {
            return Ok(Wanted::Tag(tag_of(range)));
        }
        let found = newest(of_tags(registry.tags().await?), |version| version, range)?;
        found
            .map(|version| Wanted::Tag(tag_of(&version)))
            .ok_or_else(|| self.no_version(range))
    }

    fn no_version(&self, range: &str) -> Error {
        let (chart, url) = match &self.place {
            Of::Repository(repository) => (self.chart.clone(), repository.shown()),
            Of::Registry(registry) => {
                let reference = registry.reference();
                let name = reference.repository().rsplit('/').next().unwrap_or_default();
                (name.to_owned(), reference.to_string())
            }
        };
        Error::NoVersion {
            chart,
            range: range.to_owned(),
            url,
        }
    }
}

/// The tags that are whole versions, the newest first. A tag can't hold the `+` of a version.
fn of_tags(tags: Vec<String>) -> Vec<String> {
    let whole = |version: &String| {
        let numbers = version.split(['-', '+']).next().unwrap_or_default();
        !version.starts_with('v') && numbers.split('.').count() == 3
    };
    let versions = tags.into_iter().map(|tag| tag.replace('_', "+")).filter(whole);
    sort(versions.collect(), |version| version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_versions_when_they_are_whole() {
        let tags = [
            "latest",
            "1.0.0",
            "1.10.0_b.1",
            "v2.0.0",
            "1",
            "1.2",
            "1.2.0-rc.1",
            "sha256-00.sig",
        ];
        assert_eq!(
            of_tags(tags.map(str::to_owned).to_vec()),
            ["1.10.0+b.1", "1.2.0-rc.1", "1.0.0"]
        );
    }
}
