//! Signature version 4.

use api::Secret;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use url::{Host, Url};

use super::Credentials;
use crate::{
    Error,
    http::{Answer, Client, Request},
};

/// Header with the SHA-256 of the body in hexadecimal.
const CONTENT_HASH: &str = "x-amz-content-sha256";
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Returns the headers to add to a request. If the request doesn't have its body, its header `x-amz-content-sha256` is the
/// hash.
///
/// # Errors
/// Fails when the address has no host.
pub fn sign(
    request: Request<'_>,
    credentials: &Credentials,
    region: &str,
    service: &str,
    now: Timestamp,
) -> Result<Vec<(&'static str, Secret<String>)>, Error> {
    let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let day = now.strftime("%Y%m%d").to_string();
    let own = request.headers.iter().find(|(name, _)| *name == CONTENT_HASH);
    let body_hash = own.map_or_else(
        || hex::encode(Sha256::digest(request.body)),
        |(_, hash)| (*hash).to_owned(),
    );
    let mut added = vec![("x-amz-date", Secret::new(time.clone()))];
    if let Some(token) = &credentials.session_token {
        added.push(("x-amz-security-token", token.clone()));
    }
    if service == "s3" && own.is_none() {
        added.push((CONTENT_HASH, Secret::new(body_hash.clone())));
    }
    let (names, lines) = canonical_headers(&request, &added)?;
    let canonical = format!(
        "{}\n{}\n{}\n{lines}\n{names}\n{body_hash}",
        request.method,
        canonical_path(request.url.path(), service != "s3"),
        canonical_query(request.url),
    );
    let scope = scope(&day, region, service);
    let text = text_to_sign(&time, &scope, &canonical);
    let signature = signature(credentials, &day, region, service, &text);
    let id = &credentials.access_key_id;
    let value = format!("{ALGORITHM} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}");
    added.push(("authorization", Secret::new(value)));
    Ok(added)
}

/// Returns the URL of a request without a body, with its signature as a part of it, valid for some seconds. Whoever sends the request adds its
/// headers, which are signed.
///
/// # Errors
/// Fails when the address has no host.
pub fn presign(
    request: Request<'_>,
    credentials: &Credentials,
    (region, service): (&str, &str),
    now: Timestamp,
    seconds: u64,
) -> Result<Secret<String>, Error> {
    let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let day = now.strftime("%Y%m%d").to_string();
    let scope = scope(&day, region, service);
    let (names, lines) = canonical_headers(&request, &[])?;
    let mut url = request.url.clone();
    url.query_pairs_mut()
        .append_pair("X-Amz-Algorithm", ALGORITHM)
        .append_pair(
            "X-Amz-Credential",
            &format!("{}/{scope}", credentials.access_key_id),
        )
        .append_pair("X-Amz-Date", &time)
        .append_pair("X-Amz-Expires", &seconds.to_string())
        .append_pair("X-Amz-SignedHeaders", &names);
    if let Some(token) = &credentials.session_token {
        url.query_pairs_mut()
            .append_pair("X-Amz-Security-Token", token.expose());
    }
    let query = canonical_query(&url);
    let canonical = format!(
        "{}\n{}\n{query}\n{lines}\n{names}\n{}",
        request.method,
        canonical_path(url.path(), service != "s3"),
        hex::encode(Sha256::digest(request.body)),
    );
    let text = text_to_sign(&time, &scope, &canonical);
    let signature = signature(credentials, &day, region, service, &text);
    url.set_query(Some(&format!("{query}&X-Amz-Signature={signature}")));
    Ok(Secret::new(url.into()))
}

fn text_to_sign(time: &str, scope: &str, canonical: &str) -> String {
    format!(
        "{ALGORITHM}\n{time}\n{scope}\n{}",
        hex::encode(Sha256::digest(canonical))
    )
}

pub(super) fn scope(day: &str, region: &str, service: &str) -> String {
    format!("{day}/{region}/{service}/aws4_request")
}

pub(super) fn signature(
    credentials: &Credentials,
    day: &str,
    region: &str,
    service: &str,
    text: &str,
) -> String {
    let first = format!("AWS4{}", credentials.secret_access_key.expose());
    let key = [day, region, service, "aws4_request"]
        .into_iter()
        .fold(first.into_bytes(), |key, part| mac(&key, part));
    hex::encode(mac(&key, text))
}

impl Client {
    /// Signs and sends a request.
    pub async fn send_signed(
        &self,
        request: Request<'_>,
        credentials: &Credentials,
        region: &str,
        service: &str,
    ) -> Result<Answer, Error> {
        let added = sign(request, credentials, region, service, Timestamp::now())?;
        let added = added.iter().map(|(name, value)| (*name, value.expose().as_str()));
        let headers: Vec<(&str, &str)> = request.headers.iter().copied().chain(added).collect();
        self.send(Request {
            headers: &headers,
            ..request
        })
        .await
    }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return Vec::new();
    };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Returns the lower-case names of all headers in order, joined by semicolons, and a line for each, with a value without needless spaces.
fn canonical_headers(
    request: &Request<'_>,
    added: &[(&'static str, Secret<String>)],
) -> Result<(String, String), Error> {
    let host = host(request.url).ok_or_else(|| Error::Endpoint {
        url: api::SafeUrl::from(request.url.clone()).to_string(),
        why: "it has no host",
    })?;
    let own = request.headers.iter().copied();
    let added = added.iter().map(|(name, value)| (*name, value.expose().as_str()));
    let mut headers: Vec<(String, String)> = own
        .chain(added)
        .chain([("host", host.as_str())])
        .map(|(name, value)| (name.to_ascii_lowercase(), spaced(value)))
        .collect();
    headers.sort();
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    let lines = headers.iter().map(|(name, value)| format!("{name}:{value}\n"));
    Ok((names.join(";"), lines.collect()))
}

fn spaced(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn host(url: &Url) -> Option<String> {
    let host = match url.host()? {
        Host::Ipv6(address) => format!("[{address}]"),
        other => other.to_string(),
    };
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host,
    })
}

/// Encodes each segment once more: all services but S3 require it.
fn canonical_path(path: &str, again: bool) -> String {
    if !again {
        return path.to_owned();
    }
    let parts: Vec<String> = path.split('/').map(encoded).collect();
    parts.join("/")
}

fn canonical_query(url: &Url) -> String {
    let mut pairs: Vec<(String, String)> = url
        .query_pairs()
        .map(|(name, value)| (encoded(&name), encoded(&value)))
        .collect();
    pairs.sort();
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("&")
}

/// Encodes all but the unreserved characters of RFC 3986 as `%XX`.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push_str(&hex::encode_upper([byte]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Credentials {
        Credentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned()),
            session_token: None,
        }
    }

    fn signature(method: &str, url: &str, service: &str, headers: &[(&str, &str)]) -> String {
        let url = Url::parse(url).unwrap();
        let request = Request {
            method,
            url: &url,
            headers,
            body: b"",
        };
        let now = "2015-08-30T12:36:00Z".parse().unwrap();
        let added = sign(request, &example(), "us-east-1", service, now).unwrap();
        let (_, value) = added.iter().find(|(name, _)| *name == "authorization").unwrap();
        value.expose().rsplit_once('=').unwrap().1.to_owned()
    }

    #[test]
    fn signatures_are_those_of_the_published_vectors() {
        let root = "https://example.amazonaws.com/";
        for (method, url, expected) in [
            (
                "GET",
                root.to_owned(),
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "POST",
                root.to_owned(),
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                "GET",
                format!("{root}?Param2=value2&Param1=value1"),
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
        ] {
            assert_eq!(
                signature(method, &url, "service", &[]),
                expected,
                "{method} {url}"
            );
        }
        let url = "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08";
        let kind = [(
            "Content-Type",
            "application/x-www-form-urlencoded;  charset=utf-8",
        )];
        assert_eq!(
            signature("GET", url, "iam", &kind),
            "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
        );
    }

    #[test]
    fn session_tokens_and_ports_are_covered() {
        let url = Url::parse("http://127.0.0.1:8080/a%20b/").unwrap();
        let request = Request {
            method: "POST",
            url: &url,
            headers: &[("X-Amz-Target", "TrentService.Decrypt")],
            body: b"{}",
        };
        let credentials = Credentials {
            session_token: Some(Secret::new("tok".to_owned())),
            ..example()
        };
        let added = sign(request, &credentials, "r", "kms", Timestamp::UNIX_EPOCH).unwrap();
        let all: Vec<(&str, &str)> = added
            .iter()
            .map(|(name, value)| (*name, value.expose().as_str()))
            .collect();
        assert_eq!(
            all[..2],
            [
                ("x-amz-date", "19700101T000000Z"),
                ("x-amz-security-token", "tok")
            ]
        );
        assert!(all[2].1.starts_with(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/19700101/r/kms/aws4_request, \
             SignedHeaders=host;x-amz-date;x-amz-security-token;x-amz-target, Signature="
        ));
        assert_eq!(host(&url).as_deref(), Some("127.0.0.1:8080"));
        assert_eq!(canonical_path(url.path(), true), "/a%2520b/");
    }
}
