//! Locations of charts: Helm repositories or registries.

use versions::Version;

use crate::{
    Archive, Client, Entry, Error, Reference, Registry, Repository, Wanted,
    reference::tag_of,
    version::{newest_yielding, sort},
};

#[derive(Debug, Clone)]
pub struct Charts {
    client: Client,
    location: Location<Repository, Reference>,
}

#[derive(Debug)]
pub struct ChartSource {
    chart: String,
    location: Location<Repository, Registry>,
}

#[derive(Debug, Clone)]
enum Location<H, R> {
    Repository(H),
    Registry(R),
}

impl Charts {
    pub fn at(client: &Client, address: &str) -> Result<Self, Error> {
        let location = match address.starts_with("oci://") {
            true => Location::Registry(Reference::parse(address)?),
            false => Location::Repository(Repository::new(client, address)?),
        };
        Ok(Self {
            client: client.clone(),
            location,
        })
    }

    /// Caches the index of a Helm repository as it was sent, for callers that need many of its charts, unless it is larger than
    /// [`crate::Limits::cached_index_bytes`].
    #[must_use]
    pub fn caching_index(self) -> Self {
        let location = match self.location {
            Location::Repository(repository) => Location::Repository(repository.caching_index()),
            registry => registry,
        };
        Self { location, ..self }
    }

    /// Returns the location of a chart. In a registry, `chart` is one level deeper than the address, or the
    /// address includes the name of the chart and `chart` is empty.
    pub fn chart(&self, chart: &str) -> Result<ChartSource, Error> {
        let location = match &self.location {
            Location::Repository(repository) => Location::Repository(repository.clone()),
            Location::Registry(reference) => {
                let reference = match chart {
                    "" => reference.clone(),
                    chart => reference.child(chart)?,
                };
                Location::Registry(Registry::new(&self.client, reference))
            }
        };
        let chart = chart.to_owned();
        Ok(ChartSource { chart, location })
    }
}

impl ChartSource {
    pub fn new(client: &Client, address: &str, chart: &str) -> Result<Self, Error> {
        Charts::at(client, address)?.chart(chart)
    }

    pub async fn versions(&self) -> Result<Vec<String>, Error> {
        match &self.location {
            Location::Repository(repository) => {
                let entries = repository.entries(&self.chart).await?;
                Ok(entries.into_iter().map(|entry| entry.version).collect())
            }
            Location::Registry(registry) => Ok(versions_of_tags(registry.tags().await?)),
        }
    }

    /// Downloads the version with that name, or the newest in a range; without either, the newest that is not a pre-release.
    ///
    /// # Errors
    /// Fails when the range is invalid or no version matches it, or when the archive cannot be downloaded.
    pub async fn pull(&self, range: &str) -> Result<Archive, Error> {
        match &self.location {
            Location::Repository(repository) => {
                let entries = repository.entries(&self.chart).await?;
                let entry = newest_yielding(entries, |entry: &Entry| &entry.version, range).await?;
                let entry = entry.ok_or_else(|| self.no_version(range))?;
                repository.fetch(&entry).await
            }
            Location::Registry(registry) => {
                let wanted = self.wanted(registry, range).await?;
                registry.chart(&wanted).await
            }
        }
    }

    /// Checks that the server still gives access to a version that [`ChartSource::pull`] downloaded with the same range and
    /// credentials, without downloading the index of a Helm repository.
    ///
    /// # Errors
    /// Fails when the server refuses access, has no such version any more, or can't be asked.
    pub async fn check(&self, range: &str) -> Result<(), Error> {
        match &self.location {
            Location::Repository(repository) => repository.check().await,
            Location::Registry(registry) => {
                let wanted = self.wanted(registry, range).await?;
                registry.digest(&wanted).await.map(drop)
            }
        }
    }

    /// Returns the tag or digest to download from a registry: from the address if it has one, else the tag of a complete
    /// version, else the newest of the listed tags in the range.
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
        let versions = strict_versions(registry.tags().await?).collect();
        let found = newest_yielding(versions, |version: &String| version, range).await?;
        found
            .map(|version| Wanted::Tag(tag_of(&version)))
            .ok_or_else(|| self.no_version(range))
    }

    fn no_version(&self, range: &str) -> Error {
        let (chart, url) = match &self.location {
            Location::Repository(repository) => (self.chart.clone(), repository.safe_url()),
            Location::Registry(registry) => {
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

/// Returns the strict versions among a registry's tags, the newest first. Tags have `_` instead of `+`.
#[must_use]
pub fn versions_of_tags(tags: Vec<String>) -> Vec<String> {
    sort(strict_versions(tags).collect(), |version| version)
}

fn strict_versions(tags: Vec<String>) -> impl Iterator<Item = String> {
    let versions = tags.into_iter().map(|tag| tag.replace('_', "+"));
    versions.filter(|version| Version::strict(version).is_ok())
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
            versions_of_tags(tags.map(str::to_owned).to_vec()),
            ["1.10.0+b.1", "1.2.0-rc.1", "1.0.0"]
        );
    }
}
