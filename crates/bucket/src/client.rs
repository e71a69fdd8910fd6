//! Buckets of all services behind one type.

use bytes::Bytes;
use net::{ClientOptions, Proxy, Tls};
use reqwest::Response;
use url::Url;

use crate::{
    Entry, Error, ListPage, azure,
    context::{Context, proxies},
    gcs, http, s3,
};

pub(crate) const IDLE_CONNECTIONS: usize = 100;

#[derive(Debug, Clone)]
pub enum Service {
    S3(s3::Location),
    Gcs(gcs::Location),
    Azure(azure::Location),
}

#[derive(Debug, Clone)]
pub struct Settings {
    pub name: String,
    pub service: Service,
    pub tls: Tls,
    /// Proxy for all requests; default the environment's.
    pub proxy: Option<Proxy>,
}

impl Settings {
    #[must_use]
    pub fn server(&self) -> String {
        let base = self.service.base();
        let port = base.port_or_known_default().unwrap_or_default();
        format!("{}:{port}", base.host_str().unwrap_or_default())
    }
}

impl Service {
    fn base(&self) -> &Url {
        match self {
            Self::S3(location) => location.base(),
            Self::Gcs(location) => location.base(),
            Self::Azure(location) => location.base(),
        }
    }
}

/// A connected bucket. Its credentials last for an hour at least, or until they are revoked.
#[derive(Debug)]
pub struct Bucket(Inner);

#[derive(Debug)]
enum Inner {
    S3(s3::Client),
    Gcs(gcs::Client),
    Azure(azure::Client),
}

#[derive(Debug)]
pub struct Object {
    pub(crate) response: Response,
    pub(crate) etag: String,
}

impl Bucket {
    /// Obtains the credentials and creates the clients. Doesn't ask the service for anything yet.
    pub async fn connect(settings: &Settings, context: &Context) -> Result<Self, Error> {
        let options = ClientOptions {
            tls: settings.tls.clone(),
            proxies: proxies(settings.proxy.as_ref()),
            idle_per_host: IDLE_CONNECTIONS,
            http1_only: true,
            ..ClientOptions::new(context.addresses.clone())
        };
        let client = options.build().map_err(|source| Error::Request {
            host: http::host(settings.service.base()),
            source,
        })?;
        let (name, proxy) = (settings.name.as_str(), settings.proxy.as_ref());
        Ok(Self(match &settings.service {
            Service::S3(location) => Inner::S3(location.connect(client, name, context, proxy).await?),
            Service::Gcs(location) => Inner::Gcs(location.connect(client, name, context, proxy).await?),
            Service::Azure(location) => Inner::Azure(location.connect(client, name, context, proxy).await?),
        }))
    }

    /// Returns true if the bucket exists. `prefix` is the prefix of later listings, for which alone credentials may be valid.
    /// If the service names another region for the bucket, requests go there from now on.
    pub async fn exists(&mut self, prefix: &str) -> Result<bool, Error> {
        match &mut self.0 {
            Inner::S3(client) => client.exists(prefix).await,
            Inner::Gcs(client) => client.exists(prefix).await,
            Inner::Azure(client) => client.exists(prefix).await,
        }
    }

    /// Returns a page of the objects with `prefix`: the first one, or the page of a token.
    ///
    /// # Errors
    /// Fails when the service refuses the request or doesn't answer, or its answer is too large or invalid.
    pub async fn list(&self, prefix: &str, token: Option<&str>) -> Result<ListPage, Error> {
        match &self.0 {
            Inner::S3(client) => client.list(prefix, token).await,
            Inner::Gcs(client) => client.list(prefix, token).await,
            Inner::Azure(client) => client.list(prefix, token).await,
        }
    }

    /// Opens an object of a listing, or the newest one of its name; `None` if it is missing.
    pub async fn get(&self, entry: &Entry) -> Result<Option<Object>, Error> {
        let found = match &self.0 {
            Inner::S3(client) => client.get(&entry.key).await?,
            Inner::Gcs(client) => client.get(entry).await?,
            Inner::Azure(client) => client.get(&entry.key).await?,
        };
        Ok(found.map(|(response, etag)| Object { response, etag }))
    }
}

impl Object {
    #[must_use]
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// Returns the next piece of the content; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let chunk = self.response.chunk().await;
        chunk.map_err(|error| Error::Request {
            host: http::host(self.response.url()),
            source: error.into(),
        })
    }
}
