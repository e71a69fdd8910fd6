//! Azure Blob Storage, with all kinds of credentials.

use std::collections::BTreeMap;

use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::Sha256;

use super::{Asked, Inner, escaped, page};

pub const ACCOUNT: &str = "weiraccount";
pub const BLOBS: &str = "weiraccount.blob.core.windows.net";
/// Key of the storage account, in base64.
pub const ACCOUNT_KEY: &str = "a2V5IG9mIHRoZSBhY2NvdW50";
pub const SAS: &str = "sv=2021-12-02&sp=rl&sig=c2lnbmF0dXJl%3D";
pub const TENANT: &str = "tenant";
pub const CLIENT_ID: &str = "application";
pub const CLIENT_SECRET: &str = "s3cret-of-the-application";
const TOKEN: &str = "token-of-azure";

pub(super) fn token(asked: &Asked) -> Response {
    let is_known = asked.path == format!("/entra/{TENANT}/oauth2/v2.0/token")
        && asked.form("client_id") == CLIENT_ID
        && asked.form("client_secret") == CLIENT_SECRET
        && asked.form("scope") == "https://storage.azure.com/.default";
    if !is_known {
        let error =
            json!({"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret."});
        return (StatusCode::UNAUTHORIZED, Json(error)).into_response();
    }
    Json(json!({"access_token": TOKEN, "expires_in": 3600})).into_response()
}

pub(super) fn answer(inner: &Inner, asked: &Asked) -> Response {
    if asked.header("x-ms-version").is_empty() || !is_allowed(inner, asked) {
        return refused(
            StatusCode::FORBIDDEN,
            "AuthenticationFailed",
            "Server failed to authenticate the request.",
        );
    }
    let path = asked.path.trim_start_matches(&format!("/{ACCOUNT}/"));
    let (container, key) = path.split_once('/').unwrap_or((path, ""));
    let buckets = inner.buckets.lock();
    let Some(objects) = buckets.get(container) else {
        return refused(
            StatusCode::NOT_FOUND,
            "ContainerNotFound",
            "The specified container does not exist.",
        );
    };
    if key.is_empty() {
        return listing(objects, asked);
    }
    match objects.get(key) {
        None => refused(
            StatusCode::NOT_FOUND,
            "BlobNotFound",
            "The specified blob does not exist.",
        ),
        Some(stored) => {
            let tag = format!("\"0x{:08X}\"", stored.generation);
            ([(header::ETAG, tag)], stored.content.clone()).into_response()
        }
    }
}

fn listing(objects: &BTreeMap<String, super::Stored>, asked: &Asked) -> Response {
    if asked.query("comp") != "list" || asked.query("restype") != "container" {
        return refused(
            StatusCode::BAD_REQUEST,
            "InvalidQueryParameterValue",
            "comp or restype",
        );
    }
    let (entries, next) = page(objects, asked.query("prefix"), asked.query("marker"));
    let blobs: String = entries
        .iter()
        .map(|(key, stored)| {
            format!(
                "<Blob><Name>{}</Name><Properties><Etag>0x{:08X}</Etag><Content-Length>{}</Content-Length></Properties></Blob>",
                escaped(key),
                stored.generation,
                stored.content.len()
            )
        })
        .collect();
    let next = escaped(&next.unwrap_or_default());
    format!(
        "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults><Blobs>{blobs}</Blobs><NextMarker>{next}</NextMarker>\
         </EnumerationResults>"
    )
    .into_response()
}

fn is_allowed(inner: &Inner, asked: &Asked) -> bool {
    if inner.knows(asked, TOKEN) {
        return true;
    }
    let authorization = asked.header(header::AUTHORIZATION);
    if let Some(signature) = authorization.strip_prefix(&format!("SharedKey {ACCOUNT}:")) {
        return signature == signed(asked);
    }
    asked.query("sig") == "c2lnbmF0dXJl=" && asked.query("sp") == "rl"
}

/// Returns the signature that the request should have.
fn signed(asked: &Asked) -> String {
    let mut lines = vec![asked.method.clone()];
    lines.extend(std::iter::repeat_n(String::new(), 11));
    let headers: BTreeMap<&str, &str> = asked
        .headers
        .iter()
        .filter(|(name, _)| name.as_str().starts_with("x-ms-"))
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    lines.extend(headers.iter().map(|(name, value)| format!("{name}:{value}")));
    lines.push(format!("/{ACCOUNT}{}", asked.raw_path));
    let query: BTreeMap<&String, &String> = asked.query.iter().collect();
    lines.extend(query.iter().map(|(name, value)| format!("{name}:{value}")));
    let key = BASE64_STANDARD.decode(ACCOUNT_KEY).unwrap_or_default();
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key) else {
        return String::new();
    };
    mac.update(lines.join("\n").as_bytes());
    BASE64_STANDARD.encode(mac.finalize().into_bytes())
}

fn refused(status: StatusCode, code: &str, message: &str) -> Response {
    let body = format!(
        "\u{feff}<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
    );
    (status, [("x-ms-error-code", code.to_owned())], body).into_response()
}
