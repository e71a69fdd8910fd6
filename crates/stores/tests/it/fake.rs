//! A server that acts as all stores, and checks credentials as they do.

use std::{net::SocketAddr, sync::Arc};

use api::Secret;
use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{IntoResponse as _, Response},
};
use cloud::{
    aws::{Credentials, sign},
    http::Request as Signed,
};
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use serde_json::{Value, json};
use url::Url;

pub(crate) fn aws_keys() -> Credentials {
    Credentials {
        access_key_id: "AKIDEXAMPLE".to_owned(),
        secret_access_key: Secret::new("s3cretkey".to_owned()),
        session_token: Some(Secret::new("s3cretsession".to_owned())),
    }
}

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
        "/proxy" => return (StatusCode::BAD_GATEWAY, "<html>".to_owned()).into_response(),
        "/sts" => return sts(*address, &parts.headers, &body).into_response(),
        "/federation/credentials" => sso(&parts.headers, &parts.uri),
        path if path.starts_with("/latest/") || path == "/own" => {
            return machine(&parts.method, &parts.headers, path).into_response();
        }
        path if path.starts_with("/computeMetadata/") || path.starts_with("/metadata/") || path == "/msi" => {
            managed(&parts.headers, &parts.uri)
        }
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

fn is_signed(
    url: &str,
    headers: &HeaderMap,
    own: &[&str],
    body: &Bytes,
    keys: &Credentials,
    service: &str,
) -> bool {
    let url = Url::parse(url).unwrap();
    let own: Vec<(&str, &str)> = own.iter().map(|name| (*name, header(headers, name))).collect();
    let request = Signed {
        method: "POST",
        url: &url,
        headers: &own,
        body,
    };
    let Ok(time) = DateTime::strptime("%Y%m%dT%H%M%SZ", header(headers, "x-amz-date")) else {
        return false;
    };
    let time: Timestamp = time.to_zoned(TimeZone::UTC).unwrap().timestamp();
    let expected = sign(request, keys, "eu-central-1", service, time).unwrap();
    expected
        .iter()
        .all(|(name, value)| header(headers, name) == value.expose().as_str())
}

fn aws(method: &Method, address: SocketAddr, headers: &HeaderMap, body: &Bytes) -> (u16, Value) {
    let own = ["content-type", "x-amz-target"];
    let url = format!("http://{address}/");
    let is_known = is_signed(&url, headers, &own, body, &aws_keys(), "secretsmanager");
    if method != Method::POST || !is_known {
        return (
            400,
            json!({"__type": "InvalidSignatureException", "message": "The signature is not right"}),
        );
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

pub(crate) fn role_keys(role: &str) -> Credentials {
    Credentials {
        access_key_id: format!("ASIA{role}"),
        secret_access_key: Secret::new(format!("s3cret{role}")),
        session_token: Some(Secret::new(format!("s3cretof{role}"))),
    }
}

/// Returns the keys of a role for a trusted token, or for a signature with the keys of AKIDEXAMPLE or of the role `first`.
fn sts(address: SocketAddr, headers: &HeaderMap, body: &Bytes) -> (StatusCode, String) {
    let form: std::collections::HashMap<String, String> =
        url::form_urlencoded::parse(body).into_owned().collect();
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let url = format!("http://{address}/sts");
    let signed_by = |keys: &Credentials| is_signed(&url, headers, &["content-type"], body, keys, "sts");
    let known = match field("Action") {
        "AssumeRoleWithWebIdentity" => field("WebIdentityToken") == "s3cretjwt",
        "AssumeRole" => match field("RoleArn") {
            "second" => signed_by(&role_keys("first")) && field("ExternalId") == "x1",
            _ => [aws_keys(), role_keys("sso"), role_keys("machine")]
                .iter()
                .any(signed_by),
        },
        _ => false,
    };
    if !known {
        let refused = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>who are you?</Message></Error></ErrorResponse>";
        return (StatusCode::FORBIDDEN, refused.to_owned());
    }
    let keys = role_keys(field("RoleArn"));
    let answer = format!(
        "<R><Credentials><AccessKeyId>{}</AccessKeyId><SecretAccessKey>{}</SecretAccessKey><SessionToken>{}</SessionToken></Credentials></R>",
        keys.access_key_id,
        keys.secret_access_key.expose(),
        keys.session_token.unwrap().expose(),
    );
    (StatusCode::OK, answer)
}

fn sso(headers: &HeaderMap, uri: &Uri) -> (u16, Value) {
    let known = header(headers, "x-amz-sso_bearer_token") == "s3cretlogin";
    match (known, uri.query()) {
        (true, Some("account_id=12&role_name=dev")) => {
            let keys = role_keys("sso");
            let secret = keys.secret_access_key.expose().clone();
            let token = keys.session_token.unwrap().expose().clone();
            let role =
                json!({"accessKeyId": keys.access_key_id, "secretAccessKey": secret, "sessionToken": token});
            (200, json!({"roleCredentials": role}))
        }
        _ => (401, json!({"message": "Session token not found or invalid"})),
    }
}

fn machine(method: &Method, headers: &HeaderMap, path: &str) -> (StatusCode, String) {
    let keys = role_keys("machine");
    let keys = json!({
        "Code": "Success",
        "AccessKeyId": keys.access_key_id,
        "SecretAccessKey": keys.secret_access_key.expose(),
        "Token": keys.session_token.unwrap().expose(),
    });
    let known = header(headers, "x-aws-ec2-metadata-token") == "s3cretmachine";
    let text = match (path, known) {
        ("/latest/api/token", _)
            if *method == Method::PUT
                && !header(headers, "x-aws-ec2-metadata-token-ttl-seconds").is_empty() =>
        {
            "s3cretmachine".to_owned()
        }
        ("/latest/meta-data/iam/security-credentials/", true) => "the-role\n".to_owned(),
        ("/latest/meta-data/iam/security-credentials/the-role", true) => keys.to_string(),
        ("/own", _) if header(headers, "authorization") == "s3cretpod" => keys.to_string(),
        _ => return (StatusCode::UNAUTHORIZED, String::new()),
    };
    (StatusCode::OK, text)
}

fn managed(headers: &HeaderMap, uri: &Uri) -> (u16, Value) {
    let query = uri.query().unwrap_or_default();
    let known = match uri.path() {
        "/computeMetadata/v1/instance/service-accounts/default/token" => {
            header(headers, "metadata-flavor") == "Google" && query.contains("cloud-platform")
        }
        "/metadata/identity/oauth2/token" => {
            header(headers, "metadata") == "true" && query.contains("resource=https%3A%2F%2Fvault.azure.net&")
        }
        "/msi" => header(headers, "x-identity-header") == "s3cretmsi" && query.contains("client_id=me"),
        _ => false,
    };
    match known {
        true => (200, json!({"access_token": "s3crettoken", "expires_in": "3600"})),
        false => (400, json!({"error": "invalid_request"})),
    }
}
