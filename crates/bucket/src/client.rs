//! Buckets of all services behind one type.

use bytes::Bytes;
use cloud::Ambient;
use net::{AddressPolicy, ClientOptions, Proxies, Proxy, Tls};
use reqwest::Response;
use url::Url;

use crate::{Entry, Error, ListPage, azure, gcs, http, s3};

/// Connections to a server that are kept for further requests.
pub(crate) const IDLE_CONNECTIONS: usize = 100;

/// A service, and the credentials for it.
#[derive(Debug, Clone)]
pub enum Service {
    /// An S3-compatible service, or AWS.
    S3(s3::Location),
    /// Google Cloud Storage.
    Gcs(gcs::Location),
    /// Azure Blob Storage.
    Azure(azure::Location),
}

/// A bucket, and everything that is needed to connect to it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Name of the bucket, or container.
    pub name: String,
    /// The service with the bucket.
    pub service: Service,
    /// Trusted authorities and client certificate for the service.
    pub tls: Tls,
    /// The proxy for all requests; default that of the environment.
    pub proxy: Option<Proxy>,
}

impl Settings {
    /// Returns host and port of the service.
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

/// The environment of requests.
#[derive(Debug, Clone)]
pub struct Context {
    /// The addresses that requests may lead to.
    pub addresses: AddressPolicy,
    /// Credentials of the process, for services that are to be used with these.
    pub ambient: Ambient,
}

impl Context {
    /// Returns an environment without credentials.
    #[must_use]
    pub fn new(addresses: AddressPolicy) -> Self {
        Self {
            addresses,
            ambient: Ambient::default(),
        }
    }

    /// Makes a client for token services.
    pub(crate) fn tokens(&self, tls: Tls, proxy: Option<&Proxy>) -> Result<cloud::http::Client, Error> {
        let settings = cloud::http::Settings {
            addresses: self.addresses.clone(),
            tls,
            proxies: proxies(proxy),
            ..cloud::http::Settings::default()
        };
        Ok(cloud::http::Client::new(settings)?)
    }
}

fn proxies(proxy: Option<&Proxy>) -> Proxies {
    proxy.map_or(Proxies::Environment, |proxy| Proxies::Only(proxy.clone()))
}

/// A bucket that requests can be made to. Its credentials last for an hour at least, or until they are revoked.
#[derive(Debug)]
pub struct Bucket(Inner);

#[derive(Debug)]
enum Inner {
    S3(s3::Client),
    Gcs(gcs::Client),
    Azure(azure::Client),
}

/// An object whose content is being read.
#[derive(Debug)]
pub struct Object {
    pub(crate) response: Response,
    pub(crate) etag: String,
}

impl Bucket {
    /// Obtains the credentials and makes the clients. The service isn't asked for anything yet.
    ///
    /// # Errors
    /// Fails when credentials are missing or refused, or certificates or the proxy can't be used.
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

    /// Returns true if the bucket exists. `prefix` is what will be listed: credentials may be for that alone. A service that
    /// names another region for the bucket is asked there from now on.
    ///
    /// # Errors
    /// Fails when the service refuses the request or doesn't answer.
    pub async fn exists(&mut self, prefix: &str) -> Result<bool, Error> {
        match &mut self.0 {
            Inner::S3(client) => client.exists(prefix).await,
            Inner::Gcs(client) => client.exists(prefix).await,
            Inner::Azure(client) => client.exists(prefix).await,
        }
    }

    /// Returns a page of the objects whose names begin with `prefix`: the first one, or that of the token of the page before.
    ///
    /// # Errors
    /// Fails when the service refuses the request or doesn't answer, or its answer is too large or not understood.
    pub async fn list(&self, prefix: &str, token: Option<&str>) -> Result<ListPage, Error> {
        match &self.0 {
            Inner::S3(client) => client.list(prefix, token).await,
            Inner::Gcs(client) => client.list(prefix, token).await,
            Inner::Azure(client) => client.list(prefix, token).await,
        }
    }

    /// Begins to read an object of a listing, or the newest one of its name; `None` if there is none (any more).
    ///
    /// # Errors
    /// Fails when the service refuses the request or doesn't answer, or the name can't be requested.
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
    /// Returns the tag of the content, without quotes.
    #[must_use]
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// Returns the next piece of the content; `None` at the end.
    ///
    /// # Errors
    /// Fails when the connection breaks off.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let chunk = self.response.chunk().await;
        chunk.map_err(|error| Error::Request {
            host: http::host(self.response.url()),
            source: error.into(),
        })
    }
}
