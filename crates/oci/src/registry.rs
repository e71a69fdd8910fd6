//! OCI registries: tags, manifests and blobs.

mod auth;
mod manifest;
mod pull;
mod push;

use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::{
    StatusCode, Url,
    header::{HeaderMap, HeaderValue, LINK, WWW_AUTHENTICATE},
};
use serde::Deserialize;

use crate::{
    Archive, Client, Credentials, Digest, Error, Reference, Wanted,
    client::{Answer, Ask, safe_url},
    reference::{MAX_TAG, is_tag},
};

#[cfg(test)]
pub(crate) use auth::Challenge;
pub use manifest::{CHART_LAYER, Descriptor, Manifest};
pub use push::Artifact;

/// A repository in a registry. Caches its tokens.
#[derive(Debug)]
pub struct Registry {
    client: Client,
    reference: Reference,
    credentials: Option<Credentials>,
    authorization: Mutex<Option<HeaderValue>>,
}

#[derive(Deserialize)]
struct Tags {
    tags: Option<Vec<String>>,
}

impl Registry {
    #[must_use]
    pub fn new(client: &Client, reference: Reference) -> Self {
        let credentials = client.access().credentials.clone();
        Self::with(client, reference, credentials)
    }

    pub(crate) fn with(client: &Client, reference: Reference, credentials: Option<Credentials>) -> Self {
        Self {
            client: client.clone(),
            reference,
            credentials,
            authorization: Mutex::default(),
        }
    }

    #[must_use]
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    pub async fn tags(&self) -> Result<Vec<String>, Error> {
        let mut url = self.url(&format!("tags/list?n={}", self.client.limits().page))?;
        let (mut all, mut listed): (Vec<String>, usize) = (Vec::new(), 0);
        loop {
            let answer = self.get(&url, "application/json").await?;
            let next = next_page(&url, answer.response.headers())
                .map_err(|why| Error::malformed(safe_url(&url), why))?;
            let page: Tags = read_json(answer, self.client.limits().document_bytes).await?;
            let tags = page.tags.unwrap_or_default();
            let more = !tags.is_empty();
            listed += tags.len();
            // No longer one can be pulled, and all are held together.
            all.extend(tags.into_iter().filter(|tag| tag.len() <= MAX_TAG));
            if listed > self.client.limits().tags {
                return Err(Error::TooLarge {
                    url: safe_url(&url),
                    what: "tags",
                    limit: self.client.limits().tags as u64,
                });
            }
            match next {
                Some(next) if more => url = next,
                _ => return Ok(all),
            }
        }
    }

    /// Returns the URL of a manifest. An invalid tag is an error: it may lead to another path.
    fn manifest_url(&self, wanted: &Wanted) -> Result<Url, Error> {
        match wanted {
            Wanted::Tag(tag) if !is_tag(tag) => Err(Error::InvalidUrl {
                url: self.reference.to_string(),
                why: format!("{tag:?} is no tag"),
            }),
            _ => self.url(&format!("manifests/{wanted}")),
        }
    }

    /// Downloads a manifest and verifies it against the wanted digest, or the digest that the registry reports, which it
    /// returns with it.
    pub async fn manifest(&self, wanted: &Wanted) -> Result<Manifest, Error> {
        let url = self.manifest_url(wanted)?;
        let answer = self.get(&url, manifest::ACCEPT).await?;
        let promised = match wanted {
            Wanted::Digest(digest) => Some(digest.clone()),
            Wanted::Tag(_) => promised(answer.response.headers()),
        };
        let body = answer.bytes(self.client.limits().document_bytes).await?;
        // Nothing is parsed before it is verified.
        if let Some(promised) = &promised {
            promised.verify(&safe_url(&url), &body)?;
        }
        let manifest = Manifest::parse(&body, &safe_url(&url))?;
        let digest = promised.unwrap_or(manifest.digest);
        Ok(Manifest { digest, ..manifest })
    }

    /// Downloads a blob and verifies it against its descriptor.
    pub async fn blob(&self, descriptor: &Descriptor, limit: u64) -> Result<Bytes, Error> {
        let url = self.url(&format!("blobs/{}", descriptor.digest))?;
        if descriptor.size > limit {
            return Err(Error::TooLarge {
                url: safe_url(&url),
                what: "bytes",
                limit,
            });
        }
        let body = self.get(&url, "*/*").await?.bytes(descriptor.size).await?;
        descriptor.digest.verify(&safe_url(&url), &body)?;
        Ok(body)
    }

    pub async fn chart(&self, wanted: &Wanted) -> Result<Archive, Error> {
        let manifest = self.manifest(wanted).await?;
        let name = format!("{}:{wanted}", self.reference);
        let layer = manifest
            .chart_layer()
            .map_err(|why| Error::malformed(&name, why))?;
        let body = self.blob(layer, self.client.limits().archive_bytes).await?;
        Ok(Archive::new(name, body))
    }

    fn url(&self, rest: &str) -> Result<Url, Error> {
        self.address(&format!("{}/{rest}", self.reference.repository()))
    }

    /// Returns the address that tells if the server is a registry.
    fn base(&self) -> Result<Url, Error> {
        self.address("")
    }

    fn address(&self, path: &str) -> Result<Url, Error> {
        let scheme = if self.client.access().plain_http {
            "http"
        } else {
            "https"
        };
        let host = match self.reference.host() {
            "docker.io" | "index.docker.io" => "registry-1.docker.io",
            host => host,
        };
        let text = format!("{scheme}://{host}/v2/{path}");
        Url::parse(&text).map_err(|error| Error::InvalidUrl {
            url: self.reference.to_string(),
            why: error.to_string(),
        })
    }

    /// Sends a request, and repeats it with the authorization that the registry asks for.
    async fn get(&self, url: &Url, accept: &'static str) -> Result<Answer, Error> {
        self.request(url, accept, false).await
    }

    /// Asks for the headers alone, or for everything.
    async fn request(&self, url: &Url, accept: &'static str, head: bool) -> Result<Answer, Error> {
        let answer = self.ask(url, accept, head).await?;
        let Some(challenge) = challenge(&answer) else {
            return answer.ok(self.credentials.is_some());
        };
        let header = self.authorize(url, &challenge, "pull").await?;
        *self.authorization.lock() = header;
        self.ask(url, accept, head).await?.ok(self.credentials.is_some())
    }

    async fn ask(&self, url: &Url, accept: &'static str, head: bool) -> Result<Answer, Error> {
        let authorization = self.authorization();
        let ask = Ask {
            authorization: authorization.as_ref(),
            head,
            ..Ask::of(url, accept)
        };
        self.client.get(ask).await
    }

    fn authorization(&self) -> Option<HeaderValue> {
        self.authorization.lock().clone()
    }

    /// Returns the header for a challenge. Tokens are for `actions`, unless the registry names others.
    async fn authorize(
        &self,
        url: &Url,
        challenge: &auth::Challenge,
        actions: &str,
    ) -> Result<Option<HeaderValue>, Error> {
        let own = self.credentials.as_ref().and_then(Credentials::header);
        match challenge {
            auth::Challenge::Basic => Ok(own),
            auth::Challenge::Bearer(_) if matches!(self.credentials, Some(Credentials::Bearer(_))) => Ok(own),
            auth::Challenge::Bearer(bearer) => {
                let scope = format!("repository:{}:{actions}", self.reference.repository());
                if let Some(Credentials::Identity(identity)) = &self.credentials {
                    let exchange = bearer.exchange(url, &scope, identity);
                    let (realm, form) =
                        exchange.map_err(|error| Error::malformed(safe_url(url), error.to_string()))?;
                    return self.token(self.client.post(&realm, form).await?, true).await;
                }
                let realm = bearer
                    .address(url, &scope)
                    .map_err(|error| Error::malformed(safe_url(url), error.to_string()))?;
                let ask = Ask {
                    authorization: own.as_ref(),
                    ..Ask::of(&realm, "application/json")
                };
                self.token(self.client.get(ask).await?, own.is_some()).await
            }
        }
    }

    async fn token(&self, answer: Answer, has_credentials: bool) -> Result<Option<HeaderValue>, Error> {
        let answer = answer.ok(has_credentials)?;
        let url = answer.url.clone();
        let token: auth::Token = read_json(answer, self.client.limits().document_bytes).await?;
        let header = token.header().map(Some);
        header.ok_or_else(|| Error::malformed(url, "the answer holds no token that can be used"))
    }
}

fn challenge(answer: &Answer) -> Option<auth::Challenge> {
    if answer.response.status() != StatusCode::UNAUTHORIZED || !answer.trusted {
        return None;
    }
    let challenges = answer.response.headers().get_all(WWW_AUTHENTICATE);
    challenges
        .iter()
        .find_map(|value| auth::Challenge::parse(value.to_str().ok()?))
}

/// Parses an answer; errors don't repeat its content, which may be secret.
async fn read_json<T: for<'de> Deserialize<'de>>(answer: Answer, limit: u64) -> Result<T, Error> {
    let url = answer.url.clone();
    let body = answer.bytes(limit).await?;
    serde_json::from_slice(&body).map_err(|error| {
        let why = format!(
            "no JSON as expected at line {}, column {}",
            error.line(),
            error.column()
        );
        Error::malformed(url, why)
    })
}

fn promised(headers: &HeaderMap) -> Option<Digest> {
    Digest::parse(headers.get("docker-content-digest")?.to_str().ok()?)
}

/// Returns the address of the next page of tags, which must be on the same host.
fn next_page(url: &Url, headers: &HeaderMap) -> Result<Option<Url>, &'static str> {
    let Some(value) = headers.get(LINK) else {
        return Ok(None);
    };
    let text = value
        .to_str()
        .map_err(|_| "the link to the next page is no text")?;
    let Some((target, parameters)) = text.strip_prefix('<').and_then(|rest| rest.split_once('>')) else {
        return Err("the link to the next page can't be read");
    };
    if !parameters.contains("next") {
        return Ok(None);
    }
    let next = url
        .join(target)
        .map_err(|_| "the link to the next page is no address")?;
    if next.origin() != url.origin() || next == *url {
        return Err("the link to the next page leads elsewhere");
    }
    Ok(Some(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_stay_on_their_host() {
        let url = Url::parse("https://h/v2/a/tags/list?n=2").unwrap();
        let next = |link: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(LINK, link.parse().unwrap());
            next_page(&url, &headers).map(|next| next.map(String::from))
        };
        let page = "https://h/v2/a/tags/list?last=b&n=2";
        assert_eq!(
            next("</v2/a/tags/list?last=b&n=2>; rel=\"next\""),
            Ok(Some(page.to_owned()))
        );
        assert_eq!(next("<https://h/x>; rel=\"prev\""), Ok(None));
        assert_eq!(next_page(&url, &HeaderMap::new()), Ok(None));
        for link in [
            "<https://i/x>; rel=next",
            "<http://h/x>; rel=next",
            "x",
            "</v2/a/tags/list?n=2>; rel=next",
        ] {
            assert!(next(link).is_err(), "{link}");
        }
    }
}
