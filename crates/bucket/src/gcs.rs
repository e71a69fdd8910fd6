//! Google Cloud Storage, by its JSON interface.

use api::Secret;
use cloud::{
    GcpWorkload,
    gcp::{self, Credentials},
};
use net::{Proxy, Tls};
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use url::Url;

use crate::{
    Context, Entry, Error, ListPage,
    encode::{percent, url},
    http::{self, Headers},
    listing::Entries,
};

const PAGE: &str = "1000";
const LIST_FIELDS: &str = "nextPageToken,items(name,etag,size,generation)";
const OBJECT_FIELDS: &str = "name,etag,size,generation";

#[derive(Debug, Clone)]
pub enum Login {
    Key(Box<Credentials>),
    Own,
    Workload(GcpWorkload),
}

#[derive(Debug, Clone)]
pub struct Location {
    base: Url,
    login: Login,
}

impl Location {
    /// Creates the location of a host, mostly `storage.googleapis.com`. It is asked by https, unless `insecure`.
    pub fn new(endpoint: &str, login: Login, insecure: bool) -> Result<Self, Error> {
        let base = crate::s3::parse_endpoint(endpoint, insecure)?;
        let is_own = !matches!(login, Login::Key(_));
        if is_own && !is_google(&base) {
            return Err(Error::Endpoint {
                endpoint: endpoint.to_owned(),
                why: "tokens of a workload identity are sent to hosts of googleapis.com by https only",
            });
        }
        Ok(Self { base, login })
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
        let tokens = context.tokens(Tls::default(), proxy)?;
        let token = match &self.login {
            Login::Key(key) => key.token_for(&tokens, gcp::STORAGE_SCOPE).await?.access,
            Login::Own => context.ambient.gcp(&tokens).await?.access,
            Login::Workload(workload) => {
                let token = workload.token(&tokens, &context.ambient, gcp::STORAGE_SCOPE);
                token.await?.access
            }
        };
        Ok(Client {
            http: client,
            base: self.base.clone(),
            path: format!("/storage/v1/b/{}", percent(bucket, false)),
            headers: vec![("authorization", Secret::new(format!("Bearer {}", token.expose())))],
        })
    }
}

fn is_google(base: &Url) -> bool {
    let is_host = |host: &str| host == "googleapis.com" || host.ends_with(".googleapis.com");
    base.scheme() == "https" && base.host_str().is_some_and(is_host)
}

#[derive(Debug)]
pub(crate) struct Client {
    http: net::Client,
    base: Url,
    path: String,
    headers: Headers,
}

#[derive(Deserialize)]
struct Listing {
    #[serde(default)]
    items: Vec<Item>,
    #[serde(rename = "nextPageToken")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    name: String,
    #[serde(default)]
    etag: String,
    #[serde(default)]
    size: String,
    generation: Option<String>,
}

impl Client {
    pub(crate) async fn exists(&self, prefix: &str) -> Result<bool, Error> {
        // Roles that may read objects may list them, but not always see the bucket itself.
        let query = [
            ("fields", "nextPageToken"),
            ("maxResults", "1"),
            ("prefix", prefix),
        ];
        match self.ask(&format!("{}/o", self.path), &query).await {
            Ok(_) => Ok(true),
            Err(Error::Refused { status: 404, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn list(&self, prefix: &str, token: Option<&str>) -> Result<ListPage, Error> {
        let mut query = vec![("fields", LIST_FIELDS), ("maxResults", PAGE), ("prefix", prefix)];
        query.extend(token.map(|token| ("pageToken", token)));
        let body = self.ask(&format!("{}/o", self.path), &query).await?;
        page(&body).map_err(|why| http::not_understood(&self.base, why))
    }

    /// Reads the version of the listing, or the newest if it is missing.
    pub(crate) async fn get(&self, entry: &Entry) -> Result<Option<(Response, String)>, Error> {
        let path = format!("{}/o/{}", self.path, percent(&entry.key, false));
        if let Some(version) = &entry.version
            && let Some(response) = self.media(&path, version).await?
        {
            return Ok(Some((response, entry.etag.clone())));
        }
        let newest = match self.ask(&path, &[("fields", OBJECT_FIELDS)]).await {
            Ok(body) => serde_json::from_slice::<Item>(&body),
            Err(Error::Refused { status: 404, .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let newest = newest.map_err(|_| http::not_understood(&self.base, "it describes no object"))?;
        let generation = newest.generation.unwrap_or_default();
        let response = self.media(&path, &generation).await?;
        Ok(response.map(|response| (response, newest.etag)))
    }

    async fn media(&self, path: &str, generation: &str) -> Result<Option<Response>, Error> {
        let query = [("alt", "media"), ("generation", generation)];
        let url = url(&self.base, path, &query);
        let response = http::send(&self.http, Method::GET, url, &self.headers).await?;
        match response.status() {
            status if status.is_success() => Ok(Some(response)),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(http::refused(response, words).await),
        }
    }

    async fn ask(&self, path: &str, query: &[(&str, &str)]) -> Result<Vec<u8>, Error> {
        let url = url(&self.base, path, query);
        let response = http::send(&self.http, Method::GET, url, &self.headers).await?;
        http::document(response, async |response| http::refused(response, words).await).await
    }
}

pub(crate) fn page(document: &[u8]) -> Result<ListPage, &'static str> {
    let listing: Listing = serde_json::from_slice(document).map_err(|_| "it is not a listing")?;
    let mut entries = Entries::default();
    for item in listing.items {
        entries.push(Entry {
            key: item.name,
            etag: item.etag,
            size: item.size.parse().unwrap_or(0),
            version: item.generation,
        });
    }
    let entries = entries.finish("an object in the listing has no name")?;
    let next = listing.next.filter(|next| !next.is_empty());
    Ok(ListPage { entries, next })
}

fn words(body: &[u8]) -> (String, String) {
    #[derive(Deserialize, Default)]
    struct Document {
        #[serde(default)]
        error: Description,
    }
    #[derive(Deserialize, Default)]
    struct Description {
        #[serde(default)]
        message: String,
        #[serde(default)]
        status: String,
    }
    let document: Document = serde_json::from_slice(body).unwrap_or_default();
    (document.error.status, document.error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_have_names_tags_and_versions() {
        let document = r#"{"nextPageToken":"n","items":[{"name":"a/b","etag":"CK=","size":"4","generation":"17"},{"name":"c"}]}"#;
        let found = page(document.as_bytes()).unwrap();
        assert_eq!(found.next.as_deref(), Some("n"));
        let first = &found.entries[0];
        assert_eq!(
            (
                first.key.as_str(),
                first.etag.as_str(),
                first.size,
                first.version.as_deref()
            ),
            ("a/b", "CK=", 4, Some("17"))
        );
        assert_eq!(page(b"{}"), Ok(ListPage::default()));
        assert_eq!(page(b"[]"), Err("it is not a listing"));
        assert_eq!(
            page(br#"{"items":[{"name":""}]}"#),
            Err("an object in the listing has no name")
        );
    }

    #[test]
    fn tokens_of_the_process_go_to_google_alone() {
        for (endpoint, insecure, allowed) in [
            ("storage.googleapis.com", false, true),
            ("storage.me-central2.rep.googleapis.com", false, true),
            ("storage.googleapis.com", true, false),
            ("evilgoogleapis.com", false, false),
            ("minio.test", false, false),
        ] {
            let found = Location::new(endpoint, Login::Own, insecure);
            assert_eq!(found.is_ok(), allowed, "{endpoint}");
        }
    }

    #[test]
    fn errors_have_the_words_of_the_service() {
        let body = br#"{"error":{"code":403,"message":"no access","status":"PERMISSION_DENIED"}}"#;
        assert_eq!(
            words(body),
            ("PERMISSION_DENIED".to_owned(), "no access".to_owned())
        );
        assert_eq!(words(b"Not Found"), (String::new(), String::new()));
    }
}
