//! Google Cloud Storage by its JSON interface.

use std::collections::BTreeMap;

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use super::{Asked, Inner, Stored, page};

pub const GOOGLE: &str = "storage.googleapis.com";
const TOKEN: &str = "token-of-gcs";

/// Returns the key of a service account with its token service at `origin`.
pub(super) fn service_account(origin: &str) -> String {
    json!({
        "type": "service_account",
        "client_email": "weir@project.iam.gserviceaccount.com",
        "private_key_id": "k1",
        "private_key": include_str!("../../fixtures/service-account.pem"),
        "token_uri": format!("{origin}/token"),
    })
    .to_string()
}

pub(super) fn token(asked: &Asked) -> Response {
    let parts = asked.form("assertion").split('.').count();
    if asked.form("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || parts != 3 {
        let error = json!({"error": "invalid_grant"});
        return (StatusCode::BAD_REQUEST, Json(error)).into_response();
    }
    Json(json!({"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"})).into_response()
}

pub(super) fn answer(inner: &Inner, asked: &Asked) -> Response {
    if !inner.knows(asked, TOKEN) {
        return refused(StatusCode::UNAUTHORIZED, "Invalid Credentials");
    }
    // Names have their slashes encoded.
    let parts: Vec<String> = asked.raw_path.split('/').skip(4).map(super::decoded).collect();
    let buckets = inner.buckets.lock();
    let Some(objects) = parts.first().and_then(|bucket| buckets.get(bucket)) else {
        return refused(StatusCode::NOT_FOUND, "The specified bucket does not exist.");
    };
    match parts.get(1..).unwrap_or_default() {
        [o] if o == "o" => Json(listing(objects, asked)).into_response(),
        [o, key] if o == "o" => object(objects, key, asked),
        _ => refused(StatusCode::BAD_REQUEST, "a slash isn't encoded"),
    }
}

fn listing(objects: &BTreeMap<String, Stored>, asked: &Asked) -> Value {
    let (entries, next) = page(objects, asked.query("prefix"), asked.query("pageToken"));
    let items: Vec<Value> = entries
        .iter()
        .map(|(key, stored)| description(key, stored))
        .collect();
    match next {
        Some(next) => json!({"kind": "storage#objects", "items": items, "nextPageToken": next}),
        None if items.is_empty() => json!({"kind": "storage#objects"}),
        None => json!({"kind": "storage#objects", "items": items}),
    }
}

fn object(objects: &BTreeMap<String, Stored>, key: &str, asked: &Asked) -> Response {
    let wanted = asked.query("generation");
    let found = objects.get(key);
    let found = found.filter(|stored| wanted.is_empty() || wanted == stored.generation.to_string());
    match found {
        None => refused(StatusCode::NOT_FOUND, "No such object"),
        Some(stored) if asked.query("alt") == "media" => stored.content.clone().into_response(),
        Some(stored) => Json(description(key, stored)).into_response(),
    }
}

fn description(key: &str, stored: &Stored) -> Value {
    json!({
        "name": key,
        "etag": format!("CK{}=", stored.generation),
        "generation": stored.generation.to_string(),
        "size": stored.content.len().to_string(),
    })
}

fn refused(status: StatusCode, message: &str) -> Response {
    let error = json!({"error": {"code": status.as_u16(), "message": message}});
    (status, Json(error)).into_response()
}
