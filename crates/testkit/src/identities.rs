//! Clouds that know service accounts of Kubernetes: their token services, and their registries. They check each request.

use std::sync::Arc;

use anyhow::Result;
use axum::{
    Json, Router,
    body::to_bytes,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    http::Server,
    s3::SECRET_KEY,
    storage::{Pairs, pairs},
    tls::Authority,
};

pub const ROLE: &str = "arn:aws:iam::123456789012:role/weir";
/// The access key of the role, which an S3 server knows.
pub const ROLE_KEY: &str = crate::s3::ACCESS_KEY;
/// The access key of the controller itself.
pub const OWN_KEY: &str = "AKIDOWN";
pub const APPLICATION: &str = "application";
pub const GOOGLE_ACCOUNT: &str = "weir@project.iam.gserviceaccount.com";
pub const GOOGLE_PROVIDER: &str = "projects/1/locations/global/workloadIdentityPools/pool/providers/kind";

pub const GOOGLE_TOKEN: &str = "canary-google";
/// The token of the machine in Google Cloud.
pub const GOOGLE_MACHINE_TOKEN: &str = "canary-google-machine";
/// The token of [`APPLICATION`] for storage accounts.
pub const AZURE_STORAGE_TOKEN: &str = "canary-https://storage.azure.com/.default";
pub const AZURE_MACHINE_TOKEN: &str = "canary-azure-machine";
pub const AZURE_MACHINE: &str = "managed";

/// Host of the token service of AWS in the region eu-west-1.
pub const STS: &str = "sts.eu-west-1.amazonaws.com";
pub const ECR: &str = "123456789012.dkr.ecr.eu-west-1.amazonaws.com";
pub const ACR: &str = "shop.azurecr.io";
pub const GAR: &str = "europe-docker.pkg.dev";

/// Token services of AWS, Azure and Google Cloud on one port, for one service account, and the metadata services of their machines.
#[derive(Debug)]
pub struct CloudIdentities {
    server: Server,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    subject: String,
    asked: Mutex<Vec<String>>,
}

impl CloudIdentities {
    /// Starts the services, which trust tokens of this service account alone.
    pub fn start(namespace: &str, account: &str) -> Result<Self> {
        Self::start_with(namespace, account, None)
    }

    /// Starts them by TLS with the certificate of an authority, which may be for [`STS`].
    pub fn start_tls(namespace: &str, account: &str, authority: Authority) -> Result<Self> {
        Self::start_with(namespace, account, Some(authority))
    }

    fn start_with(namespace: &str, account: &str, authority: Option<Authority>) -> Result<Self> {
        let inner = Arc::new(Inner {
            subject: format!("system:serviceaccount:{namespace}:{account}"),
            asked: Mutex::default(),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&inner));
        Ok(Self {
            server: Server::start(router, authority)?,
            inner,
        })
    }

    #[must_use]
    pub fn url(&self) -> String {
        self.server.origin()
    }

    #[must_use]
    pub fn host(&self) -> String {
        self.server.host()
    }

    /// Returns the exchanges so far, each by its purpose.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.inner.asked.lock().clone()
    }
}

async fn answer(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap_or_default();
    let form = pairs(&String::from_utf8_lossy(&body));
    let field = |name: &str| form.get(name).map_or("", String::as_str);
    let trusts = |token: &str, audience: &str| {
        let claims = token
            .split('.')
            .nth(1)
            .and_then(|part| BASE64_URL_SAFE_NO_PAD.decode(part).ok());
        let claims: Value = serde_json::from_slice(&claims.unwrap_or_default()).unwrap_or_default();
        let text = |path: &str| claims.pointer(path).and_then(Value::as_str).unwrap_or_default();
        text("/sub") == inner.subject && text("/aud/0") == audience
    };
    let head = |name: HeaderName| text(&parts.headers, &name);
    let path = parts.uri.path();
    let target = head(HeaderName::from_static("x-amz-target"));
    let note = |what: &str| inner.asked.lock().push(what.to_owned());
    let google = format!("//iam.googleapis.com/{GOOGLE_PROVIDER}");
    if field("Action") == "AssumeRoleWithWebIdentity"
        && field("RoleArn") == ROLE
        && trusts(field("WebIdentityToken"), "sts.amazonaws.com")
    {
        note("role");
        return format!(
            "<R><AccessKeyId>{ROLE_KEY}</AccessKeyId><SecretAccessKey>{SECRET_KEY}</SecretAccessKey><SessionToken>session</SessionToken></R>"
        )
        .into_response();
    }
    if target == "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken" {
        let signed = head(header::AUTHORIZATION);
        let by = |key: &str| signed.starts_with(&format!("AWS4-HMAC-SHA256 Credential={key}/"));
        if signed.contains("/eu-west-1/ecr/aws4_request") && (by(ROLE_KEY) || by(OWN_KEY)) {
            note(if by(ROLE_KEY) {
                "ecr by the role"
            } else {
                "ecr by the controller"
            });
            let token = BASE64_STANDARD.encode("AWS:canary-ecr");
            return Json(json!({"authorizationData": [{"authorizationToken": token}]})).into_response();
        }
    }
    if path == "/tenant/oauth2/v2.0/token"
        && field("client_id") == APPLICATION
        && trusts(field("client_assertion"), "api://AzureADTokenExchange")
    {
        let scope = field("scope");
        note(scope);
        return Json(json!({"access_token": format!("canary-{scope}"), "expires_in": 3600})).into_response();
    }
    if path == "/v1/token"
        && field("audience") == google
        && trusts(field("subject_token"), &format!("https:{google}"))
    {
        note("federation");
        return Json(json!({"access_token": "canary-federated", "expires_in": 3600})).into_response();
    }
    if path == format!("/v1/projects/-/serviceAccounts/{GOOGLE_ACCOUNT}:generateAccessToken")
        && head(header::AUTHORIZATION) == "Bearer canary-federated"
    {
        note("account");
        return Json(json!({"accessToken": GOOGLE_TOKEN})).into_response();
    }
    let query = pairs(parts.uri.query().unwrap_or_default());
    if let Some((what, token)) = machine(path, &query, &parts.headers) {
        note(&what);
        return Json(json!({"access_token": token, "expires_in": "3600"})).into_response();
    }
    (StatusCode::FORBIDDEN, Json(json!({"error": "access_denied"}))).into_response()
}

/// Returns the purpose of a request to the metadata service of a machine, and the token that it gets.
fn machine(path: &str, query: &Pairs, headers: &HeaderMap) -> Option<(String, &'static str)> {
    let has = |name: &'static str, value: &str| text(headers, &HeaderName::from_static(name)) == value;
    let field = |name: &str| query.get(name).map_or("", String::as_str);
    match path {
        "/computeMetadata/v1/instance/service-accounts/default/token" if has("metadata-flavor", "Google") => {
            Some(("google machine".to_owned(), GOOGLE_MACHINE_TOKEN))
        }
        "/metadata/identity/oauth2/token"
            if has("metadata", "true") && field("resource") == "https://storage.azure.com" =>
        {
            let what = format!("azure machine {}", field("client_id"));
            Some((what.trim_end().to_owned(), AZURE_MACHINE_TOKEN))
        }
        _ => None,
    }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// The registries [`ECR`], [`ACR`] and [`GAR`] on one port by TLS, each with the credentials of its cloud, before a registry without
/// authentication.
#[derive(Debug)]
pub struct CloudRegistries {
    server: Server,
}

#[derive(Clone)]
struct Behind {
    origin: String,
    client: reqwest::Client,
}

impl CloudRegistries {
    /// Starts the registries before the one at `host`, which speaks HTTP.
    pub fn start(host: &str) -> Result<Self> {
        let behind = Behind {
            origin: format!("http://{host}"),
            client: crate::http::client(None)?,
        };
        let router = Router::new().fallback(pass).with_state(behind);
        Ok(Self {
            server: Server::start(router, Some(Authority::new(&[ECR, ACR, GAR])?))?,
        })
    }

    /// Returns host and port that the names of the registries have to lead to.
    #[must_use]
    pub fn address(&self) -> String {
        self.server.host()
    }

    #[must_use]
    pub fn ca_pem(&self) -> String {
        self.server.ca_pem().unwrap_or_default().to_owned()
    }
}

async fn pass(State(behind): State<Behind>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap_or_default();
    let form: Pairs = pairs(&String::from_utf8_lossy(&body));
    let is = |name: &str, value: &str| form.get(name).is_some_and(|found| found == value);
    let host = text(&parts.headers, &header::HOST);
    match parts.uri.path() {
        "/oauth2/exchange" if host == ACR => {
            let token = "canary-https://management.azure.com/.default";
            return match is("service", ACR) && is("grant_type", "access_token") && is("access_token", token) {
                true => Json(json!({"refresh_token": "canary-refresh"})).into_response(),
                false => StatusCode::UNAUTHORIZED.into_response(),
            };
        }
        "/oauth2/token" if host == ACR => {
            return match is("grant_type", "refresh_token") && is("refresh_token", "canary-refresh") {
                true => Json(json!({"access_token": "canary-acr"})).into_response(),
                false => StatusCode::UNAUTHORIZED.into_response(),
            };
        }
        _ => {}
    }
    let basic = |pair: &str| format!("Basic {}", BASE64_STANDARD.encode(pair));
    let (wanted, challenge) = match host.as_str() {
        ACR => (
            "Bearer canary-acr".to_owned(),
            format!("Bearer realm=\"https://{ACR}/oauth2/token\",service=\"{ACR}\""),
        ),
        GAR => (
            basic(&format!("oauth2accesstoken:{GOOGLE_TOKEN}")),
            "Basic realm=\"x\"".to_owned(),
        ),
        _ => (basic("AWS:canary-ecr"), "Basic realm=\"x\"".to_owned()),
    };
    if text(&parts.headers, &header::AUTHORIZATION) != wanted {
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
    }
    let url = format!("{}{}", behind.origin, parts.uri.path());
    let sent = behind.client.request(parts.method, url);
    let sent = sent
        .header(header::ACCEPT, text(&parts.headers, &header::ACCEPT))
        .send()
        .await;
    let Ok(answer) = sent else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let (status, headers) = (answer.status(), answer.headers().clone());
    (status, headers, answer.bytes().await.unwrap_or_default()).into_response()
}
