//! Helm repositories: an index.yaml over http or https, and the archives that it names.

use std::{
    io::{Read, Write},
    sync::Arc,
};

use api::Secret;
use bytes::Bytes;
use reqwest::{
    StatusCode, Url,
    header::{CONTENT_ENCODING, ETAG, HeaderValue},
};
use tokio::sync::OnceCell;

use crate::{
    Archive, Client, Credentials, Digest, Entry, Error, IndexFile, Limits, Reference,
    client::{Answer, Ask, bare, safe_url},
    index::{Download, Stream, rewrite, stored_entries},
    registry,
    version::newest_created,
};

/// Bytes of an index that are parsed at once.
const PIECE: usize = 64 << 10;
/// Maximum length of an index's tag (ETag), in bytes.
const MAX_TAG_BYTES: usize = 512;

#[derive(Debug, Clone)]
pub struct Repository {
    client: Client,
    url: Url,
    credentials: Option<Credentials>,
    cached: Option<Arc<OnceCell<Option<Index>>>>,
}

#[derive(Debug)]
struct Index {
    url: String,
    packed: bool,
    bytes: Bytes,
}

impl Repository {
    pub fn new(client: &Client, url: &str) -> Result<Self, Error> {
        let parsed = parse(url)?;
        let credentials = client.access().credentials.clone();
        Ok(Self {
            client: client.clone(),
            credentials: credentials.or_else(|| of_url(&parsed)),
            url: bare(parsed),
            cached: None,
        })
    }

    pub(crate) fn caching_index(self) -> Self {
        let cached = Some(Arc::default());
        Self { cached, ..self }
    }

    pub async fn entries(&self, chart: &str) -> Result<Vec<Entry>, Error> {
        let cached = match &self.cached {
            Some(cached) => cached.get_or_try_init(|| self.index()).await?.as_ref(),
            None => None,
        };
        let entries = match cached {
            Some(index) => index.entries(chart, self.client.limits())?,
            None => self.read_index(chart).await?,
        };
        entries.ok_or_else(|| Error::NoChart {
            chart: chart.to_owned(),
            url: safe_url(&self.url),
        })
    }

    /// Downloads the whole index to a file, unpacked, as a stream. The caller removes the file after an error. A server doesn't
    /// send a `known` index again if it gave it a tag: nothing is written then, and `None` returned.
    ///
    /// # Errors
    /// Fails when the index cannot be downloaded or written, is larger than [`Limits::index_bytes`], or has no entries.
    pub async fn download_index(
        &self,
        file: impl Write,
        known: Option<&IndexFile>,
    ) -> Result<Option<IndexFile>, Error> {
        let known = known.and_then(|known| known.tag.as_ref());
        let url = index_url(&self.url);
        let asked = self.ask(Ask {
            packed: true,
            known,
            ..Ask::of(&url, "*/*")
        });
        let mut answer = asked.await?;
        if known.is_some() && answer.response.status() == StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        answer = answer.ok(self.credentials.is_some())?;
        let tag = answer.response.headers().get(ETAG);
        let tag = tag.filter(|tag| tag.len() <= MAX_TAG_BYTES).cloned();
        let mut download = Download::new(file, &answer.url, is_packed(&answer), self.client.limits());
        while let Some(piece) = answer.next().await? {
            download.push(&piece)?;
        }
        download.finish(tag).map(Some)
    }

    /// Rewrites an index of [`Repository::download_index`] as JSON, which is faster to read: chart by chart, the newest version
    /// first, without invalid versions. Returns the number of versions. Blocks.
    ///
    /// # Errors
    /// Fails when the index is malformed, or has no `apiVersion`, or one of its charts is larger than [`Limits::entry_bytes`].
    pub fn write_json(&self, index: impl Read, out: impl Write) -> Result<usize, Error> {
        rewrite(index, out, &safe_url(&index_url(&self.url)), self.client.limits())
    }

    /// Returns a version of a chart in a stored index: the one with that name, or the newest in a range; without either, the
    /// newest that is not a pre-release. Of equal versions in a range, the one that was created last is meant.
    /// [`Repository::fetch`] downloads it. Blocks.
    ///
    /// # Errors
    /// Fails when the index cannot be read, does not list the chart, or has no matching version, and when the range is invalid.
    pub fn find_stored(&self, index: impl Read, chart: &str, range: &str) -> Result<Entry, Error> {
        let url = safe_url(&self.url);
        let Some(entries) = stored_entries(index, &url, chart, self.client.limits())? else {
            let chart = chart.to_owned();
            return Err(Error::NoChart { chart, url });
        };
        newest_created(entries, range)?.ok_or_else(|| Error::NoVersion {
            chart: chart.to_owned(),
            range: range.to_owned(),
            url,
        })
    }

    /// Checks that the server gives access to the index.
    pub(crate) async fn check(&self) -> Result<(), Error> {
        let url = index_url(&self.url);
        let asked = self.ask(Ask {
            packed: true,
            head: true,
            ..Ask::of(&url, "*/*")
        });
        asked.await?.ok(self.credentials.is_some()).map(drop)
    }

    /// Reads the index up to the chart.
    async fn read_index(&self, chart: &str) -> Result<Option<Vec<Entry>>, Error> {
        let mut answer = self.get(&index_url(&self.url), "*/*", true).await?;
        let mut stream = Stream::new(chart, &answer.url, is_packed(&answer), self.client.limits());
        while let Some(piece) = answer.next().await? {
            if !stream.push(&piece)? {
                break;
            }
        }
        stream.finish()
    }

    async fn index(&self) -> Result<Option<Index>, Error> {
        let answer = self.get(&index_url(&self.url), "*/*", true).await?;
        let (url, packed) = (answer.url.clone(), is_packed(&answer));
        match answer.bytes(self.client.limits().cached_index_bytes).await {
            Ok(bytes) => Ok(Some(Index { url, packed, bytes })),
            Err(Error::TooLarge { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Downloads the archive of a version.
    pub async fn fetch(&self, entry: &Entry) -> Result<Archive, Error> {
        let first = entry.urls.first().ok_or_else(|| {
            let why = format!("version {} has no address in the index", entry.version);
            Error::malformed(safe_url(&self.url), why)
        })?;
        let archive = if first.starts_with("oci://") {
            self.fetch_from_registry(first).await?
        } else {
            self.download(&archive_url(&self.url, first)?).await?
        };
        match Digest::parse(&entry.digest) {
            Some(wanted) => archive.verify(&wanted)?,
            None if entry.digest.is_empty() => {}
            None => {
                let why = format!("the digest of version {} in the index is none", entry.version);
                return Err(Error::malformed(safe_url(&self.url), why));
            }
        }
        Ok(archive)
    }

    /// Downloads the archive at the address itself, which is the address of an archive.
    pub async fn archive(&self) -> Result<Archive, Error> {
        self.download(&self.url).await
    }

    async fn download(&self, url: &Url) -> Result<Archive, Error> {
        let answer = self
            .get(url, "application/gzip,application/octet-stream", false)
            .await?;
        let url = answer.url.clone();
        let bytes = answer.bytes(self.client.limits().archive_bytes).await?;
        Ok(Archive::new(url, bytes))
    }

    /// Downloads an archive from a registry. Credentials of the repository go there only if they are passed on.
    async fn fetch_from_registry(&self, url: &str) -> Result<Archive, Error> {
        let reference = Reference::parse(url)?;
        let passed = self.client.access().pass_credentials;
        let credentials = self.credentials.clone().filter(|_| passed);
        let registry = registry::Registry::with(&self.client, reference, credentials);
        registry.chart(&registry.reference().wanted()).await
    }

    pub(crate) fn safe_url(&self) -> String {
        safe_url(&self.url)
    }

    async fn get(&self, url: &Url, accept: &'static str, packed: bool) -> Result<Answer, Error> {
        let ask = Ask {
            packed,
            ..Ask::of(url, accept)
        };
        self.ask(ask).await?.ok(self.credentials.is_some())
    }

    /// Asks for a file with the credentials of the repository. Any status is an answer.
    async fn ask(&self, ask: Ask<'_>) -> Result<Answer, Error> {
        let authorization: Option<HeaderValue> = match &self.credentials {
            Some(credentials) => Some(credentials.header().ok_or(Error::InvalidAccess {
                what: "the credentials",
                why: "a header can't hold them".to_owned(),
            })?),
            None => None,
        };
        let ask = Ask {
            home: &self.url,
            authorization: authorization.as_ref(),
            ..ask
        };
        self.client.get(ask).await
    }
}

impl Index {
    fn entries(&self, chart: &str, limits: &Limits) -> Result<Option<Vec<Entry>>, Error> {
        let mut stream = Stream::new(chart, &self.url, self.packed, limits);
        for piece in self.bytes.chunks(PIECE) {
            if !stream.push(piece)? {
                break;
            }
        }
        stream.finish()
    }
}

fn is_packed(answer: &Answer) -> bool {
    let encoding = answer.response.headers().get(CONTENT_ENCODING);
    encoding.is_some_and(|encoding| encoding == "gzip")
}

fn parse(url: &str) -> Result<Url, Error> {
    let invalid = |why: String| Error::InvalidUrl {
        url: api::UrlText::from(url).to_string(),
        why,
    };
    let parsed = Url::parse(url).map_err(|error| invalid(error.to_string()))?;
    match parsed.scheme() {
        "http" | "https" => Ok(parsed),
        scheme => Err(invalid(format!(
            "{scheme} is not spoken, only http, https and oci"
        ))),
    }
}

fn of_url(url: &Url) -> Option<Credentials> {
    let decoded = |text: &str| {
        let pairs = format!("x={}", text.replace('+', "%2B"));
        url::form_urlencoded::parse(pairs.as_bytes())
            .next()
            .map(|(_, value)| value.into_owned())
    };
    let password = url.password()?;
    Some(Credentials::Basic {
        username: decoded(url.username())?,
        password: Secret::new(decoded(password)?),
    })
}

fn below(repository: &Url) -> Url {
    let mut base = repository.clone();
    base.set_fragment(None);
    let path = format!("{}/", base.path().trim_end_matches('/'));
    base.set_path(&path);
    base
}

fn index_url(repository: &Url) -> Url {
    let mut url = below(repository);
    let path = format!("{}index.yaml", url.path());
    url.set_path(&path);
    url
}

/// Returns the address of an archive: a relative one gets the query of the repository.
fn archive_url(repository: &Url, text: &str) -> Result<Url, Error> {
    if let Ok(absolute) = Url::parse(text) {
        return Ok(absolute);
    }
    let joined = below(repository).join(text);
    let mut url = joined.map_err(|error| Error::InvalidUrl {
        url: api::UrlText::from(text).to_string(),
        why: error.to_string(),
    })?;
    url.set_query(repository.query());
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_helm() {
        for (repository, text, expected) in [
            ("https://h/stable", "x-1.tgz", "https://h/stable/x-1.tgz"),
            (
                "https://h/stable/",
                "charts/x-1.tgz",
                "https://h/stable/charts/x-1.tgz",
            ),
            ("https://h/stable?t=1", "x-1.tgz", "https://h/stable/x-1.tgz?t=1"),
            ("https://h/stable", "/x-1.tgz", "https://h/x-1.tgz"),
            ("https://h/stable", "../x-1.tgz", "https://h/x-1.tgz"),
            (
                "https://h/stable?t=1",
                "https://i/x-1.tgz?s=2",
                "https://i/x-1.tgz?s=2",
            ),
        ] {
            let url = archive_url(&parse(repository).unwrap(), text).unwrap();
            assert_eq!(url.as_str(), expected, "{repository} {text}");
        }
        let url = index_url(&parse("https://h/a/?t=1").unwrap());
        assert_eq!(url.as_str(), "https://h/a/index.yaml?t=1");
    }

    #[test]
    fn invalid_repositories_are_refused_without_their_secrets() {
        for text in ["file:///etc", "ftp://u:s3cret@h/x", "https://u:s3cret@", "x"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
        let basic = of_url(&parse("https://me:s3%40c+ret@h/x").unwrap());
        let expected = Credentials::Basic {
            username: "me".to_owned(),
            password: Secret::new("s3@c+ret".to_owned()),
        };
        assert_eq!(basic, Some(expected));
        assert_eq!(of_url(&parse("https://h/x").unwrap()), None);
    }
}
