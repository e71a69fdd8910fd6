//! S3-compatible services.

mod endpoint;
mod listing;
mod store;

use api::Secret;
use cloud::aws::{self, Credentials, LdapIdentity};
use jiff::Timestamp;
use net::{Proxy, Tls};
use reqwest::{Method, Response, StatusCode};
use url::Url;

use self::endpoint::Address;
pub(crate) use self::endpoint::parse as parse_endpoint;
#[cfg(test)]
pub(crate) use self::listing::page;
pub use self::store::{Stat, Store, Upload};
use crate::{
    Context, Error, ListPage,
    encode::{check, etag, percent, url},
    http::{self, Headers},
};

const PAGE: &str = "1000";
const REGION: &str = "us-east-1";

#[derive(Debug, Clone)]
pub enum Login {
    Anonymous,
    Keys(Credentials),
    /// Temporary keys from a token service for an LDAP user.
    Ldap {
        endpoint: Url,
        identity: LdapIdentity,
        tls: Tls,
    },
    /// The process's credentials for AWS.
    Own {
        /// URL of the token service; default the environment's, or the region's.
        sts: Option<Url>,
    },
    /// A role of AWS, for a web identity token.
    Role {
        token: cloud::TrustedToken,
        sts: Option<Url>,
    },
}

#[derive(Debug, Clone)]
pub struct Location {
    base: Url,
    region: Option<String>,
    login: Login,
}

impl Location {
    /// Creates the location of a service by its host (and port). It is asked by https, unless `insecure`.
    ///
    /// # Errors
    /// Fails when the endpoint is not a host and port.
    pub fn new(endpoint: &str, login: Login, insecure: bool) -> Result<Self, Error> {
        Ok(Self {
            base: endpoint::parse(endpoint, insecure)?,
            region: None,
            login,
        })
    }

    /// Sets the region of the bucket; default the endpoint's, or the one that the service names.
    #[must_use]
    pub fn with_region(self, region: &str) -> Self {
        Self {
            region: Some(region.to_owned()).filter(|region| !region.is_empty()),
            ..self
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
        let own = context.ambient.aws_region().map(str::to_owned);
        let region = self.region.clone().or_else(|| endpoint::region(&self.base));
        let region = match &self.login {
            Login::Own { .. } | Login::Role { .. } => region.or(own),
            _ => region,
        };
        let region = region.unwrap_or_else(|| REGION.to_owned());
        if !aws::is_region(&region) {
            return Err(Error::Endpoint {
                endpoint: http::host(&self.base),
                why: "the region has other characters than lower case letters, digits and '-'",
            });
        }
        let credentials = self.credentials(context, proxy, &region).await?;
        Ok(Client {
            http: client,
            address: Address::new(&self.base, &region, bucket),
            base: self.base.clone(),
            bucket: bucket.to_owned(),
            region,
            credentials,
        })
    }

    async fn credentials(
        &self,
        context: &Context,
        proxy: Option<&Proxy>,
        region: &str,
    ) -> Result<Option<Credentials>, Error> {
        Ok(Some(match &self.login {
            Login::Anonymous => return Ok(None),
            Login::Keys(keys) => keys.clone(),
            Login::Ldap {
                endpoint,
                identity,
                tls,
            } => {
                let client = context.tokens(tls.clone(), proxy)?;
                identity.send(&client, endpoint.clone()).await?
            }
            Login::Own { sts } => {
                let client = context.tokens(Tls::default(), proxy)?;
                let ambient = context.ambient.clone().with_aws_sts(sts.as_ref());
                ambient.aws(&client, None, None).await?
            }
            Login::Role { token, sts } => {
                let client = context.tokens(Tls::default(), proxy)?;
                let ambient = context.ambient.clone().with_aws_sts(sts.as_ref());
                ambient.aws_role(&client, token, region).await?
            }
        }))
    }
}

#[derive(Debug)]
pub(crate) struct Client {
    http: net::Client,
    base: Url,
    address: Address,
    bucket: String,
    region: String,
    credentials: Option<Credentials>,
}

impl Client {
    pub(crate) async fn exists(&mut self, prefix: &str) -> Result<bool, Error> {
        match self.head(prefix).await {
            Head::Region(region) => {
                self.address = Address::new(&self.base, &region, &self.bucket);
                self.region = region;
            }
            Head::Is(result) => return result,
        }
        match self.head(prefix).await {
            Head::Region(_) => Err(http::not_understood(
                &self.base,
                "it names one region after the other",
            )),
            Head::Is(result) => result,
        }
    }

    /// Asks if the bucket exists. Responses to HEAD have no message, so a refused one is followed by a listing, whose answer
    /// counts.
    async fn head(&self, prefix: &str) -> Head {
        let response = match self.send(Method::HEAD, "/", &[]).await {
            Ok(response) => response,
            Err(error) => return Head::Is(Err(error)),
        };
        match response.status() {
            status if status.is_success() => return Head::Is(Ok(true)),
            StatusCode::NOT_FOUND => return Head::Is(Ok(false)),
            _ => {}
        }
        let named = http::header(&response, "x-amz-bucket-region");
        if self.is_other(&named) {
            return Head::Region(named);
        }
        let query = [("list-type", "2"), ("max-keys", "1"), ("prefix", prefix)];
        let response = match self.send(Method::GET, "/", &query).await {
            Ok(response) if response.status().is_success() => return Head::Is(Ok(true)),
            Ok(response) => response,
            Err(error) => return Head::Is(Err(error)),
        };
        let mut named = http::header(&response, "x-amz-bucket-region");
        let error = http::refused(response, |body| {
            let words = listing::error(body);
            if let Some(region) = words.region {
                named = region;
            }
            (words.code, words.message)
        });
        let error = error.await;
        if self.is_other(&named) {
            return Head::Region(named);
        }
        match error {
            Error::Refused { status: 404, .. } => Head::Is(Ok(false)),
            error => Head::Is(Err(error)),
        }
    }

    fn is_other(&self, region: &str) -> bool {
        region != self.region && aws::is_region(region)
    }

    pub(crate) async fn list(&self, prefix: &str, token: Option<&str>) -> Result<ListPage, Error> {
        let by_marker = endpoint::is_google(&self.base);
        let mut query = vec![("encoding-type", "url"), ("max-keys", PAGE), ("prefix", prefix)];
        match (by_marker, token) {
            (true, token) => query.extend(token.map(|token| ("marker", token))),
            (false, token) => {
                query.push(("list-type", "2"));
                query.extend(token.map(|token| ("continuation-token", token)));
            }
        }
        query.sort_unstable();
        let response = self.send(Method::GET, "/", &query).await?;
        let body = http::document(response, async |response| http::refused(response, words).await).await?;
        listing::page(&body, by_marker).map_err(|why| http::not_understood(&self.base, why))
    }

    pub(crate) async fn get(&self, key: &str) -> Result<Option<(Response, String)>, Error> {
        check(key)?;
        let path = format!("/{}", percent(key, true));
        let response = self.send(Method::GET, &path, &[]).await?;
        if response.status().is_success() {
            let etag = etag(&http::header(&response, "etag"));
            return Ok(Some((response, etag)));
        }
        match http::refused(response, words).await {
            Error::Refused {
                status: 404, code, ..
            } if code == "NoSuchKey" => Ok(None),
            error => Err(error),
        }
    }

    async fn send(&self, method: Method, path: &str, query: &[(&str, &str)]) -> Result<Response, Error> {
        let url = self.url(path, query);
        let headers = self.signed(&method, &url, &[])?;
        http::send(&self.http, method, url, &headers).await
    }

    fn url(&self, path: &str, query: &[(&str, &str)]) -> Url {
        url(&self.address.url, &format!("{}{path}", self.address.path), query)
    }

    fn signed(&self, method: &Method, url: &Url, own: &[(&'static str, &str)]) -> Result<Headers, Error> {
        let mut headers: Headers = own
            .iter()
            .map(|(name, value)| (*name, Secret::new((*value).to_owned())))
            .collect();
        if let Some(credentials) = &self.credentials {
            let request = cloud::http::Request {
                method: method.as_str(),
                url,
                headers: own,
                body: b"",
            };
            headers.extend(aws::sign(
                request,
                credentials,
                &self.region,
                "s3",
                Timestamp::now(),
            )?);
        }
        Ok(headers)
    }
}

enum Head {
    Is(Result<bool, Error>),
    Region(String),
}

fn words(body: &[u8]) -> (String, String) {
    let words = listing::error(body);
    (words.code, words.message)
}

#[must_use]
pub fn keys(access_key: &str, secret_key: Secret<String>) -> Login {
    Login::Keys(Credentials {
        access_key_id: access_key.to_owned(),
        secret_access_key: secret_key,
        session_token: None,
    })
}
