//! The server that gives the tokens of a registry.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::Result;
use axum::{
    Json, Router,
    extract::{Query, State},
    http::HeaderMap,
    response::{IntoResponse as _, Response},
    routing::get,
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use http::{StatusCode, header};
use rcgen::{KeyPair, PKCS_ED25519, SigningKey as _};
use serde_json::{Value, json};

use super::{IDENTITY, PASSWORD, USER};
use crate::http::Server;

pub(super) const SERVICE: &str = "test-registry";
pub(super) const ISSUER: &str = "test-issuer";
const KEY: &str = "test-key";

#[derive(Debug)]
struct Inner {
    key: KeyPair,
    given: AtomicUsize,
}

#[derive(Debug)]
pub(super) struct Tokens {
    inner: Arc<Inner>,
    server: Server,
}

impl Tokens {
    pub(super) fn start() -> Result<Self> {
        let inner = Arc::new(Inner {
            key: KeyPair::generate_for(&PKCS_ED25519)?,
            given: AtomicUsize::new(0),
        });
        let router = Router::new()
            .route("/token", get(give).post(exchange))
            .with_state(Arc::clone(&inner));
        let server = Server::start(router, None)?;
        Ok(Self { inner, server })
    }

    pub(super) fn url(&self) -> String {
        format!("{}/token", self.server.origin())
    }

    pub(super) fn given(&self) -> usize {
        self.inner.given.load(Ordering::SeqCst)
    }

    /// The public key, as the registry reads it.
    pub(super) fn keys(&self) -> Value {
        let public = URL_SAFE_NO_PAD.encode(self.inner.key.public_key_raw());
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": KEY, "alg": "EdDSA", "use": "sig", "x": public}]})
    }

    pub(super) fn sign(&self, scope: &str) -> Result<String> {
        self.inner.sign(scope)
    }
}

impl Inner {
    /// A token for a scope such as `repository:a/b:pull,push`.
    fn sign(&self, scope: &str) -> Result<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let mut parts = scope.splitn(3, ':');
        let (kind, name) = (parts.next(), parts.next());
        let actions: Vec<&str> = parts.next().unwrap_or_default().split(',').collect();
        let header = json!({"alg": "EdDSA", "typ": "JWT", "kid": KEY});
        let claims = json!({
            "iss": ISSUER, "sub": USER, "aud": SERVICE, "exp": now + 300, "nbf": now - 10, "iat": now, "jti": "1",
            "access": [{"type": kind, "name": name, "actions": actions}],
        });
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", encode(&header), encode(&claims));
        let signature = self.key.sign(text.as_bytes())?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// Gives a token for the identity token of a login.
async fn exchange(State(inner): State<Arc<Inner>>, body: String) -> Response {
    let Ok(url) = reqwest::Url::parse(&format!("http://form/?{body}")) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let form: HashMap<String, String> = url.query_pairs().into_owned().collect();
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    if field("grant_type") != "refresh_token"
        || field("refresh_token") != IDENTITY
        || field("service") != SERVICE
    {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    inner.given.fetch_add(1, Ordering::SeqCst);
    match inner.sign(field("scope")) {
        Ok(token) => Json(json!({"access_token": token, "expires_in": 300})).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Gives a token for the password, and one without any right to anonymous clients.
async fn give(
    State(inner): State<Arc<Inner>>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let expected = format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")));
    let scope = match headers.get(header::AUTHORIZATION).map(|value| value.as_bytes()) {
        Some(value) if value == expected.as_bytes() => query.get("scope").map_or("", String::as_str),
        Some(_) => return StatusCode::UNAUTHORIZED.into_response(),
        None => "",
    };
    if query.get("service").map(String::as_str) != Some(SERVICE) {
        return StatusCode::BAD_REQUEST.into_response();
    }
    inner.given.fetch_add(1, Ordering::SeqCst);
    match inner.sign(scope) {
        Ok(token) => Json(json!({"token": token, "expires_in": 300})).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
