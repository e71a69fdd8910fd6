//! Azure Blob Storage.

mod listing;
mod sign;

use api::Secret;
use cloud::{Token, azure};
use jiff::Timestamp;
use net::{Proxy, Tls};
use reqwest::{Method, Response, StatusCode};
use url::Url;

use crate::{
    Context, Error, ListPage,
    encode::{check, etag, percent, url},
    http::{self, Headers},
};

#[cfg(test)]
pub(crate) use self::listing::page;
pub use self::sign::AccountKey;

const VERSION: &str = "2021-12-02";
const PAGE: &str = "1000";
/// Domains of storage accounts, which may get tokens of the process.
const DOMAINS: [&str; 4] = [
    ".blob.core.windows.net",
    ".blob.core.chinacloudapi.cn",
    ".blob.core.usgovcloudapi.net",
    ".blob.storage.azure.net",
];

#[derive(Debug, Clone)]
pub enum Login {
    AccountKey(AccountKey),
    /// A shared access signature: the query of a URL, without `?`.
    Sas(Secret<String>),
    Application(Box<azure::Client>),
    /// The process's credentials, or a managed identity.
    Own {
        /// Client ID of the managed identity; default the environment's, or the machine's only one.
        client_id: Option<String>,
    },
}

#[derive(Debug, Clone)]
pub struct Location {
    base: Url,
    login: Login,
}

impl Location {
    /// Parses the URL of a storage account, as in `https://shop.blob.core.windows.net`.
    pub fn new(endpoint: &str, login: Login) -> Result<Self, Error> {
        let refused = |why| Error::Endpoint {
            endpoint: api::redact(endpoint),
            why,
        };
        let base = Url::parse(endpoint)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"));
        let base = base.ok_or_else(|| {
            refused("write the URL of the storage account, as in https://NAME.blob.core.windows.net")
        })?;
        let has_credentials = !base.username().is_empty() || base.password().is_some();
        if has_credentials || base.query().is_some() || base.fragment().is_some() {
            return Err(refused("write it without credentials and query"));
        }
        let is_azure = |host: &str| DOMAINS.iter().any(|domain| host.ends_with(domain));
        let is_safe = base.scheme() == "https" && base.host_str().is_some_and(is_azure);
        let is_workload = match &login {
            Login::Own { .. } => true,
            Login::Application(application) => matches!(application.proof, azure::Proof::Federated(_)),
            Login::AccountKey(_) | Login::Sas(_) => false,
        };
        if is_workload && !is_safe {
            return Err(refused(
                "tokens of a workload identity are sent to storage accounts of Azure by https only",
            ));
        }
        Ok(Self { base, login })
    }

    /// Returns the name of the storage account: the first label of the host, or the first segment of the path if the host is an
    /// IP address.
    #[must_use]
    pub fn account(endpoint: &str) -> Option<String> {
        let url = Url::parse(endpoint).ok()?;
        match url.host()? {
            url::Host::Domain(host) => host.split('.').next().map(str::to_owned),
            _ => url.path_segments()?.next().map(str::to_owned),
        }
    }

    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    pub(crate) async fn connect(
        &self,
        client: net::Client,
        bucket: &str,
        context: &Context,
        proxy: Option<&Proxy>,
    ) -> Result<Client, Error> {
        let bearer = |token: Token| Proof::Bearer(format!("Bearer {}", token.access.expose()).into());
        let proof = match &self.login {
            Login::AccountKey(key) => Proof::Key(key.clone()),
            Login::Sas(query) => Proof::Sas(query.clone()),
            Login::Application(application) => {
                let tokens = context.tokens(Tls::default(), proxy)?;
                let id = Timestamp::now().as_nanosecond().to_string();
                bearer(application.token(&tokens, azure::STORAGE_SCOPE, &id).await?)
            }
            Login::Own { client_id } => {
                let tokens = context.tokens(Tls::default(), proxy)?;
                let id = Timestamp::now().as_nanosecond().to_string();
                let ambient = context.ambient.clone().with_azure_client(client_id.as_deref());
                bearer(ambient.azure(&tokens, azure::STORAGE_SCOPE, &id).await?)
            }
        };
        let base_path = self.base.path().trim_end_matches('/');
        Ok(Client {
            http: client,
            base: self.base.clone(),
            path: format!("{base_path}/{}", percent(bucket, false)),
            proof,
        })
    }
}

#[derive(Debug)]
enum Proof {
    Key(AccountKey),
    Sas(Secret<String>),
    Bearer(Secret<String>),
}

#[derive(Debug)]
pub(crate) struct Client {
    http: net::Client,
    base: Url,
    path: String,
    proof: Proof,
}

impl Client {
    pub(crate) async fn exists(&self, prefix: &str) -> Result<bool, Error> {
        // A shared access signature may permit listing only.
        let query = [
            ("comp", "list"),
            ("maxresults", "1"),
            ("prefix", prefix),
            ("restype", "container"),
        ];
        let response = self.send("", &query).await?;
        match response.status() {
            status if status.is_success() => Ok(true),
            StatusCode::NOT_FOUND => Ok(false),
            _ => Err(refused(response).await),
        }
    }

    pub(crate) async fn list(&self, prefix: &str, token: Option<&str>) -> Result<ListPage, Error> {
        let mut query = vec![
            ("comp", "list"),
            ("maxresults", PAGE),
            ("prefix", prefix),
            ("restype", "container"),
        ];
        query.extend(token.map(|token| ("marker", token)));
        let response = self.send("", &query).await?;
        let body = http::document(response, refused).await?;
        listing::page(&body).map_err(|why| http::not_understood(&self.base, why))
    }

    pub(crate) async fn get(&self, key: &str) -> Result<Option<(Response, String)>, Error> {
        check(key)?;
        let response = self.send(&format!("/{}", percent(key, true)), &[]).await?;
        if response.status().is_success() {
            let etag = etag(&http::header(&response, "etag"));
            return Ok(Some((response, etag)));
        }
        match refused(response).await {
            Error::Refused {
                status: 404, code, ..
            } if code == "BlobNotFound" => Ok(None),
            error => Err(error),
        }
    }

    async fn send(&self, path: &str, query: &[(&str, &str)]) -> Result<Response, Error> {
        let mut url = url(&self.base, &format!("{}{path}", self.path), query);
        let mut headers: Headers = vec![("x-ms-version", Secret::new(VERSION.to_owned()))];
        match &self.proof {
            Proof::Bearer(value) => headers.push(("authorization", value.clone())),
            Proof::Sas(signature) => {
                let both = match url.query() {
                    Some(query) => format!("{query}&{}", signature.expose()),
                    None => signature.expose().clone(),
                };
                url.set_query(Some(&both));
            }
            Proof::Key(key) => {
                let date = Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
                headers.push(("x-ms-date", Secret::new(date)));
                let signed = key.authorization("GET", &url, query, &headers);
                headers.push(("authorization", signed));
            }
        }
        http::send(&self.http, Method::GET, url, &headers).await
    }
}

async fn refused(response: Response) -> Error {
    let code = http::header(&response, "x-ms-error-code");
    http::refused(response, |body| {
        let (named, message) = listing::error(body);
        (if code.is_empty() { named } else { code }, message)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_storage_accounts() {
        let own = || Login::Own { client_id: None };
        let sas = || Login::Sas(Secret::new("sig=canary".to_owned()));
        for (endpoint, login, allowed) in [
            ("https://shop.blob.core.windows.net", own(), true),
            ("https://shop.blob.core.windows.net/", own(), true),
            ("http://shop.blob.core.windows.net", own(), false),
            ("https://blob.core.windows.net.evil.test", own(), false),
            ("https://evil.test", own(), false),
            ("http://127.0.0.1:10000/devstoreaccount1", sas(), true),
            ("shop.blob.core.windows.net", sas(), false),
            ("https://u:canary@h", sas(), false),
            ("https://h?sig=canary", sas(), false),
        ] {
            match Location::new(endpoint, login) {
                Ok(_) => assert!(allowed, "{endpoint}"),
                Err(error) => assert!(!allowed && !error.to_string().contains("canary"), "{error}"),
            }
        }
        for (endpoint, account) in [
            ("https://shop.blob.core.windows.net", Some("shop")),
            (
                "http://127.0.0.1:10000/devstoreaccount1",
                Some("devstoreaccount1"),
            ),
            ("shop", None),
        ] {
            assert_eq!(Location::account(endpoint).as_deref(), account, "{endpoint}");
        }
    }
}
