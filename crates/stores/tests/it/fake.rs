//! A server that is all of the stores at once, and checks credentials as they do.

use std::{net::SocketAddr, sync::Arc};

use api::Secret;
use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{IntoResponse as _, Response},
};
use cloud::aws::{Credentials, Request as Signed, sign};
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use serde_json::{Value, json};
use url::Url;

/// The keys that the fake of AWS knows.
pub(crate) fn aws_keys() -> Credentials {
    Credentials {
        access_key_id: "AKIDEXAMPLE".to_owned(),
        secret_access_key: Secret::new("s3cretkey".to_owned()),
        session_token: Some(Secret::new("s3cretsession".to_owned())),
    }
}

/// The fake.
pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
}

impl Fake {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new().fallback(answer).with_state(Arc::new(address));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

async fn answer(State(address): State<Arc<SocketAddr>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let path = parts.uri.path().to_owned();
    let (status, json) = match path.as_str() {
        "/" => aws(&parts.method, *address, &parts.headers, &body),
        "/token" | "/tenant/oauth2/v2.0/token" => token(&body),
        path if path.starts_with("/v1/projects/") => google(&parts.headers, path),
        path if path.starts_with("/v1/") => vault(&parts.headers, path),
        path if path.starts_with("/secrets/") => azure(&parts.headers, &parts.uri),
        _ => (404, json!({})),
    };
    let status = StatusCode::from_u16(status).unwrap();
    (status, json.to_string()).into_response()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// Signs what arrived once more, and compares.
fn aws(method: &Method, address: SocketAddr, headers: &HeaderMap, body: &Bytes) -> (u16, Value) {
    let url = Url::parse(&format!("http://{address}/")).unwrap();
    let own = ["content-type", "x-amz-target"].map(|name| (name, header(headers, name)));
    let request = Signed {
        method: method.as_str(),
        url: &url,
        headers: &own,
        body,
    };
    let time: DateTime = DateTime::strptime("%Y%m%dT%H%M%SZ", header(headers, "x-amz-date")).unwrap();
    let time: Timestamp = time.to_zoned(TimeZone::UTC).unwrap().timestamp();
    let expected = sign(request, &aws_keys(), "eu-central-1", "secretsmanager", time).unwrap();
    for (name, value) in expected {
        if header(headers, name) != value.expose().as_str() {
            return (
                400,
                json!({"__type": "InvalidSignatureException", "message": "The signature is not right"}),
            );
        }
    }
    let asked: Value = serde_json::from_slice(body).unwrap();
    match asked["SecretId"].as_str() {
        Some("there") => (200, json!({"SecretString": "a: 1"})),
        _ => (
            400,
            json!({"__type": "com.amazonaws#ResourceNotFoundException", "message": "no such secret"}),
        ),
    }
}

/// Gives a token to who proves to be somebody.
fn token(body: &Bytes) -> (u16, Value) {
    let form = String::from_utf8_lossy(body);
    let known = form.contains("client_secret=s3cretapp") || form.contains("refresh_token=s3cretrefresh");
    match known {
        true => (200, json!({"access_token": "s3crettoken", "expires_in": 3600})),
        false => (
            401,
            json!({"error": "invalid_client", "error_description": "who are you?"}),
        ),
    }
}

fn is_known(headers: &HeaderMap) -> bool {
    header(headers, "authorization") == "Bearer s3crettoken"
}

fn google(headers: &HeaderMap, path: &str) -> (u16, Value) {
    match (is_known(headers), path) {
        (false, _) => (401, json!({"error": {"message": "no token"}})),
        (_, "/v1/projects/p/secrets/there/versions/1:access") => {
            (200, json!({"payload": {"data": "YTogMQ=="}}))
        }
        _ => (404, json!({"error": {"status": "NOT_FOUND"}})),
    }
}

fn azure(headers: &HeaderMap, uri: &Uri) -> (u16, Value) {
    match (is_known(headers), uri.path(), uri.query()) {
        (false, ..) => (401, json!({"error": {"message": "no token"}})),
        (_, "/secrets/there", Some("api-version=7.4")) => (200, json!({"value": "a: 1"})),
        (_, "/secrets/empty", _) => (200, json!({"value": ""})),
        _ => (404, json!({"error": {"code": "SecretNotFound"}})),
    }
}

fn vault(headers: &HeaderMap, path: &str) -> (u16, Value) {
    match (header(headers, "x-vault-token"), path) {
        ("s3cret", "/v1/kv/data/there") => (200, json!({"data": {"data": {"a": 1}, "metadata": {}}})),
        ("s3cret", "/v1/old/there") => (200, json!({"data": {"a": 1}})),
        ("s3cret", _) => (404, json!({"errors": []})),
        _ => (403, json!({"errors": ["permission denied"]})),
    }
}
