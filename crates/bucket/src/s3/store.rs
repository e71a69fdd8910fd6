//! Buckets that are written to.

use bytes::Bytes;
use futures::TryStream;
use jiff::fmt::rfc2822::DateTimeParser;
use net::{ClientOptions, Timeouts, Tls};
use reqwest::{Body, Method, Response, StatusCode};

use super::{Client, Location, words};
use crate::{
    Context, Error, ListPage,
    client::{IDLE_CONNECTIONS, Object},
    encode::{check, etag, percent},
    http,
};

const DIGEST: &str = "x-amz-meta-digest";

/// A bucket of an S3-compatible service to read and write. Its credentials last for an hour at least, or until they are
/// revoked.
#[derive(Debug)]
pub struct Store {
    client: Client,
    /// Has no timeout for uploads.
    uploads: net::Client,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    pub size: u64,
    /// Seconds since 1970; 0 if unknown.
    pub modified: i64,
    /// Digest of the upload; `None` if unknown.
    pub digest: Option<String>,
}

#[derive(Debug)]
pub struct Upload<S> {
    pub content: S,
    pub size: u64,
    /// SHA-256 of the content in hexadecimal.
    pub sha256: String,
    pub digest: String,
    pub content_type: &'static str,
}

impl Store {
    /// Obtains the credentials, and asks the service for the bucket `name` and its region. Uses the environment's proxy.
    ///
    /// # Errors
    /// Fails when credentials are missing or refused, the bucket is missing, or the service doesn't answer.
    pub async fn connect(
        name: &str,
        location: &Location,
        tls: &Tls,
        context: &Context,
    ) -> Result<Self, Error> {
        let client = |timeouts| {
            let options = ClientOptions {
                tls: tls.clone(),
                idle_per_host: IDLE_CONNECTIONS,
                http1_only: true,
                timeouts,
                ..ClientOptions::new(context.addresses.clone())
            };
            options.build().map_err(|source| Error::Request {
                host: http::host(location.base()),
                source,
            })
        };
        let uploads = client(Timeouts {
            read: None,
            ..Timeouts::default()
        })?;
        let reads = client(Timeouts::default())?;
        let mut client = location.connect(reads, name, context, None).await?;
        if !client.exists("").await? {
            return Err(Error::Refused {
                status: 404,
                code: "NoSuchBucket".to_owned(),
                message: format!("the bucket '{name}' is missing"),
            });
        }
        Ok(Self { client, uploads })
    }

    pub async fn stat(&self, key: &str) -> Result<Option<Stat>, Error> {
        let response = self.client.send(Method::HEAD, &path(key)?, &[]).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => Ok(Some(stat(&response))),
            _ => Err(http::refused(response, words).await),
        }
    }

    /// Opens an object, or a part of it (position and length); `None` if it is missing.
    pub async fn get(&self, key: &str, part: Option<(u64, u64)>) -> Result<Option<(Stat, Object)>, Error> {
        let url = self.client.url(&path(key)?, &[]);
        let range = part.map(|(first, len)| {
            let last = first.saturating_add(len).saturating_sub(1);
            format!("bytes={first}-{last}")
        });
        let own: Vec<_> = range.iter().map(|range| ("range", range.as_str())).collect();
        let headers = self.client.signed(&Method::GET, &url, &own)?;
        let response = http::send(&self.client.http, Method::GET, url, &headers).await?;
        let is_whole = response.status() == StatusCode::OK;
        match response.status() {
            status if status.is_success() && is_whole == range.is_none() => {
                let etag = etag(&http::header(&response, "etag"));
                Ok(Some((stat(&response), Object { response, etag })))
            }
            status if status.is_success() => Err(http::not_understood(
                &self.client.base,
                "it has another part of the object than the one that was asked for",
            )),
            _ => match http::refused(response, words).await {
                Error::Refused {
                    status: 404, code, ..
                } if code == "NoSuchKey" => Ok(None),
                error => Err(error),
            },
        }
    }

    /// Writes an object, replacing one of the same name. It appears whole, or not at all. There is no timeout.
    ///
    /// # Errors
    /// Fails when the content ends early, the service refuses it or doesn't answer, or the name can't be requested.
    pub async fn put<S>(&self, key: &str, upload: Upload<S>) -> Result<(), Error>
    where
        S: TryStream<Ok = Bytes> + Send + 'static,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let url = self.client.url(&path(key)?, &[]);
        let size = upload.size.to_string();
        let own = [
            ("content-length", size.as_str()),
            ("content-type", upload.content_type),
            ("x-amz-content-sha256", upload.sha256.as_str()),
            (DIGEST, upload.digest.as_str()),
        ];
        let headers = self.client.signed(&Method::PUT, &url, &own)?;
        let body = Some(Body::wrap_stream(upload.content));
        let response = http::send_body(&self.uploads, Method::PUT, url, &headers, body).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            _ => Err(http::refused(response, words).await),
        }
    }

    pub async fn delete(&self, key: &str) -> Result<(), Error> {
        let response = self.client.send(Method::DELETE, &path(key)?, &[]).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(()),
            status if status.is_success() => Ok(()),
            _ => Err(http::refused(response, words).await),
        }
    }

    /// Returns a page of the objects with `prefix`, as [`crate::Bucket::list`] does.
    pub async fn list(&self, prefix: &str, token: Option<&str>) -> Result<ListPage, Error> {
        self.client.list(prefix, token).await
    }
}

fn path(key: &str) -> Result<String, Error> {
    check(key)?;
    Ok(format!("/{}", percent(key, true)))
}

fn stat(response: &Response) -> Stat {
    let parser = DateTimeParser::new();
    let modified = parser.parse_timestamp(http::header(response, "last-modified"));
    Stat {
        size: http::header(response, "content-length").parse().unwrap_or(0),
        modified: modified.map_or(0, |time| time.as_second()),
        digest: Some(http::header(response, DIGEST)).filter(|digest| !digest.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use sha2::{Digest as _, Sha256};
    use testkit::{
        S3Server,
        s3::{ACCESS_KEY, SECRET_KEY},
    };

    use super::*;
    use crate::s3::keys;

    async fn store(server: &S3Server, name: &str) -> Result<Store, Error> {
        let login = keys(ACCESS_KEY, api::Secret::new(SECRET_KEY.to_owned()));
        let location = Location::new(&server.endpoint(), login, true)?;
        let context = Context::new(net::AddressPolicy::command_line());
        Store::connect(name, &location, &Tls::default(), &context).await
    }

    fn upload(
        first: &'static [u8],
        second: &'static [u8],
    ) -> Upload<impl TryStream<Ok = Bytes, Error = std::io::Error>> {
        let pieces = [first, second].map(|piece| Ok(Bytes::from_static(piece)));
        Upload {
            content: stream::iter(pieces),
            size: (first.len() + second.len()) as u64,
            sha256: hex(&[first, second].concat()),
            digest: "sha256:own".to_owned(),
            content_type: "application/gzip",
        }
    }

    fn hex(content: &[u8]) -> String {
        let digest = Sha256::digest(content);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    async fn read(mut object: Object) -> Vec<u8> {
        let mut content = Vec::new();
        while let Some(chunk) = object.chunk().await.unwrap() {
            content.extend_from_slice(&chunk);
        }
        content
    }

    #[tokio::test]
    async fn objects_are_written_described_read_in_part_and_deleted() {
        let server = S3Server::start().await.unwrap();
        let missing = store(&server, "shop").await.unwrap_err().to_string();
        assert_eq!(missing, "the bucket 'shop' is missing (NoSuchBucket, status 404)");
        server.put("shop", &[("other", "x")]).await.unwrap();
        let store = store(&server, "shop").await.unwrap();
        let key = "artifacts/a b/1+2.tar.gz";
        assert_eq!(store.stat(key).await.unwrap(), None);
        assert!(store.get(key, None).await.unwrap().is_none());
        store.delete(key).await.unwrap();

        for content in ["before", "weir goes round"] {
            let (first, second) = content.as_bytes().split_at(4);
            store.put(key, upload(first, second)).await.unwrap();
        }
        let stat = store.stat(key).await.unwrap().unwrap();
        assert_eq!((stat.size, stat.digest.as_deref()), (15, Some("sha256:own")));
        assert!(stat.modified > 1_700_000_000, "{stat:?}");
        let (whole, object) = store.get(key, None).await.unwrap().unwrap();
        assert_eq!(
            (whole, read(object).await.as_slice()),
            (stat, &b"weir goes round"[..])
        );
        let (_, object) = store.get(key, Some((5, 4))).await.unwrap().unwrap();
        assert_eq!(read(object).await, b"goes");

        let page = store.list("artifacts/", None).await.unwrap();
        let keys: Vec<_> = page.entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!((keys, page.next), (vec![key], None));
        store.delete(key).await.unwrap();
        assert_eq!(store.stat(key).await.unwrap(), None);
    }

    #[tokio::test]
    async fn content_that_is_not_the_announced_one_is_refused() {
        let server = S3Server::start().await.unwrap();
        server.put("shop", &[("other", "x")]).await.unwrap();
        let store = store(&server, "shop").await.unwrap();
        let short = Upload {
            size: 9,
            ..upload(b"12", b"34")
        };
        store.put("a", short).await.unwrap_err();
        assert_eq!(store.stat("a").await.unwrap(), None);
        assert!(matches!(
            store.put("../a", upload(b"", b"")).await,
            Err(Error::Key)
        ));
    }
}
