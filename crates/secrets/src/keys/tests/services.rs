//! Services of this process, which answer only to correctly signed requests.

use std::{collections::BTreeMap, net::SocketAddr};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::post,
};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use cloud::{aws, azure};
use serde_json::{Value, json};

use super::*;

const KEY: &[u8] = &[9; 32];
const ARN: &str = "arn:aws:kms:eu-central-1:1:key/k";
const ROLE: &str = "<Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>secret of ASIA</SecretAccessKey>\
                    <SessionToken>session</SessionToken></Credentials>";
const RESOURCE: &str = "projects/p/locations/global/keyRings/r/cryptoKeys/k";

async fn serve(answer: fn(&Uri, &HeaderMap, &[u8]) -> Option<Response>) -> SocketAddr {
    let handle = move |State(()): State<()>, uri: Uri, headers: HeaderMap, body: Bytes| async move {
        answer(&uri, &headers, &body).unwrap_or_else(|| {
            let body =
                json!({"message": "no\nmore", "errors": ["permission denied"], "error": "invalid_client"});
            (StatusCode::FORBIDDEN, body.to_string()).into_response()
        })
    };
    let router = Router::new()
        .route("/{*path}", post(handle))
        .route("/", post(handle));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router.with_state(())).await });
    address
}

pub(super) async fn sts() -> Url {
    let role = |_: &Uri, _: &HeaderMap, body: &[u8]| {
        let is_role = body.starts_with(b"Action=AssumeRole&RoleArn=r&");
        is_role.then(|| ROLE.into_response())
    };
    url(serve(role).await)
}

pub(super) async fn web_identity() -> Url {
    let role = |_: &Uri, _: &HeaderMap, body: &[u8]| {
        let is_role = body.starts_with(b"Action=AssumeRoleWithWebIdentity&RoleArn=r&")
            && body.windows(20).any(|part| part == b"WebIdentityToken=jwt");
        is_role.then(|| ROLE.into_response())
    };
    url(serve(role).await)
}

/// Exchanges a token of Kubernetes for one of each cloud.
pub(super) async fn exchange() -> Url {
    let answer = |_: &Uri, _: &HeaderMap, body: &[u8]| {
        let is_known = body.windows(3).any(|part| part == b"jwt");
        let token = json!({ "access_token": "exchanged", "expires_in": 3600 }).to_string();
        is_known.then(|| match body.starts_with(b"Action=") {
            true => ROLE.into_response(),
            false => token.into_response(),
        })
    };
    url(serve(answer).await)
}

fn url(address: SocketAddr) -> Url {
    format!("http://{address}/").parse().unwrap()
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

fn json_of(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_default()
}

fn master(kind: MasterKind, enc: &str) -> Master {
    Master {
        kind,
        enc: enc.to_owned(),
    }
}

fn credentials(id: &str) -> aws::Credentials {
    aws::Credentials {
        access_key_id: id.to_owned(),
        secret_access_key: Secret::new(format!("secret of {id}")),
        session_token: None,
    }
}

fn is_signed(headers: &HeaderMap, body: &[u8], known: &aws::Credentials, service: &str) -> bool {
    let at = Url::parse(&format!("http://{}/", header(headers, "host"))).unwrap();
    let covered: Vec<(&str, &str)> = ["content-type", "x-amz-target"]
        .into_iter()
        .map(|name| (name, header(headers, name)))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let time = header(headers, "x-amz-date");
    let time = jiff::fmt::strtime::parse("%Y%m%dT%H%M%SZ", time).and_then(|time| time.to_datetime());
    let Ok(now) = time.and_then(|time| time.in_tz("UTC")) else {
        return false;
    };
    let request = cloud::http::Request {
        method: "POST",
        url: &at,
        headers: &covered,
        body,
    };
    let signed = aws::sign(request, known, "eu-central-1", service, now.timestamp()).unwrap();
    signed
        .iter()
        .all(|(name, value)| header(headers, name) == value.expose())
}

fn as_aws(_: &Uri, headers: &HeaderMap, body: &[u8]) -> Option<Response> {
    let text = String::from_utf8_lossy(body);
    if text.starts_with("Action=AssumeRole&RoleArn=role&RoleSessionName=") {
        let ok = is_signed(headers, body, &credentials("AKIA"), "sts");
        return ok.then(|| ROLE.into_response());
    }
    let mut known = credentials("AKIA");
    if !header(headers, "x-amz-security-token").is_empty() {
        known = credentials("ASIA");
        known.session_token = Some(Secret::new("session".to_owned()));
    }
    let asked = json_of(body);
    let ok = is_signed(headers, body, &known, "kms")
        && header(headers, "x-amz-target") == "TrentService.Decrypt"
        && asked == json!({"KeyId": ARN, "CiphertextBlob": "AAAA", "EncryptionContext": {"app": "shop"}});
    ok.then(|| {
        json!({"Plaintext": BASE64_STANDARD.encode(KEY)})
            .to_string()
            .into_response()
    })
}

#[tokio::test]
async fn aws_is_asked_by_signed_requests() {
    let at = url(serve(as_aws).await);
    let with = |id: &str| {
        let mut keys = Keys::new();
        keys.set_aws(credentials(id));
        keys.set_endpoints(&Endpoints {
            aws: Some(at.clone()),
            sts: Some(at.clone()),
            ..Endpoints::default()
        });
        keys
    };
    let kind = |role: &str| MasterKind::Aws {
        arn: ARN.to_owned(),
        role: role.to_owned(),
        profile: String::new(),
        context: BTreeMap::from([("app".to_owned(), "shop".to_owned())]),
    };
    assert_eq!(*with("AKIA").open(&master(kind(""), "AAAA")).await.unwrap(), KEY);
    assert_eq!(
        *with("AKIA").open(&master(kind("role"), "AAAA")).await.unwrap(),
        KEY
    );
    let refused = with("OTHER")
        .open(&master(kind(""), "AAAA"))
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(refused, "the service answered with status 403: no");
    assert!(
        with("AKIA")
            .open(&master(kind(""), "%"))
            .await
            .unwrap_err()
            .to_string()
            .contains("no base64")
    );
    let refused = Keys::new()
        .open(&master(kind(""), "AAAA"))
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(refused, "no credentials for AWS are given");
}

fn as_google(uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Option<Response> {
    if uri.path() == "/token" {
        let ok = body == b"grant_type=refresh_token&client_id=c&client_secret=s&refresh_token=r";
        return ok.then(|| {
            json!({"access_token": "tok", "expires_in": 60})
                .to_string()
                .into_response()
        });
    }
    let ok = uri.path() == format!("/v1/{RESOURCE}:decrypt")
        && header(headers, "authorization") == "Bearer tok"
        && json_of(body) == json!({"ciphertext": "AAAA"});
    ok.then(|| {
        json!({"plaintext": BASE64_STANDARD.encode(KEY)})
            .to_string()
            .into_response()
    })
}

#[tokio::test]
async fn google_is_asked_with_a_token() {
    let at = url(serve(as_google).await);
    let with = |refresh: &str| {
        let text = json!({"type": "authorized_user", "client_id": "c", "client_secret": "s",
            "refresh_token": refresh, "token_uri": format!("{at}token")});
        let mut keys = Keys::new();
        keys.add_entry("sops.gcp-kms", text.to_string().as_bytes())
            .unwrap();
        keys.set_endpoints(&Endpoints {
            gcp: Some(at.clone()),
            ..Endpoints::default()
        });
        keys
    };
    let kind = |resource: &str| MasterKind::Gcp {
        resource: resource.to_owned(),
    };
    assert_eq!(
        *with("r").open(&master(kind(RESOURCE), "AAAA")).await.unwrap(),
        KEY
    );
    let refused = with("hunter2")
        .open(&master(kind(RESOURCE), "AAAA"))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("invalid_client") && !refused.contains("hunter2"),
        "{refused}"
    );
    assert!(with("r").open(&master(kind("x/../y"), "AAAA")).await.is_err());
}

fn as_azure(uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Option<Response> {
    if uri.path() == "/t/oauth2/v2.0/token" {
        let wanted = "grant_type=client_credentials&client_id=c&scope=https%3A%2F%2Fvault.azure.net%2F.default\
                      &client_secret=s";
        return (body == wanted.as_bytes())
            .then(|| json!({"access_token": "tok"}).to_string().into_response());
    }
    let ok = uri.path() == "/keys/k/v1/decrypt"
        && uri.query() == Some("api-version=7.4")
        && header(headers, "authorization") == "Bearer tok"
        && json_of(body) == json!({"alg": "RSA-OAEP-256", "value": "AAAA"});
    ok.then(|| {
        json!({"value": BASE64_URL_SAFE_NO_PAD.encode(KEY)})
            .to_string()
            .into_response()
    })
}

#[tokio::test]
async fn azure_is_asked_with_a_token_of_its_vault() {
    let at = url(serve(as_azure).await);
    let with = |secret: &str| {
        let mut keys = Keys::new();
        keys.set_azure(azure::Client {
            tenant: "t".to_owned(),
            client_id: "c".to_owned(),
            proof: azure::Proof::Secret(Secret::new(secret.to_owned())),
            authority: Some(at.clone()),
        });
        keys.set_endpoints(&Endpoints {
            azure: Some(at.clone()),
            ..Endpoints::default()
        });
        keys
    };
    let kind = |vault: &str| MasterKind::Azure {
        vault: vault.to_owned(),
        name: "k".to_owned(),
        version: "v1".to_owned(),
    };
    let own = "https://shop.vault.azure.net";
    assert_eq!(*with("s").open(&master(kind(own), "AAAA")).await.unwrap(), KEY);
    assert!(
        with("x")
            .open(&master(kind(own), "AAAA"))
            .await
            .unwrap_err()
            .to_string()
            .contains("invalid_client")
    );
    let elsewhere = with("s")
        .open(&master(kind("https://evil.example"), "AAAA"))
        .await;
    assert!(elsewhere.unwrap_err().to_string().contains("no host of Azure"));
}

fn as_vault(uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Option<Response> {
    let ok = uri.path() == "/v1/team/transit/decrypt/k"
        && header(headers, "x-vault-token") == "tok"
        && json_of(body) == json!({"ciphertext": "vault:v1:AAAA"});
    ok.then(|| {
        json!({"data": {"plaintext": BASE64_STANDARD.encode(KEY)}})
            .to_string()
            .into_response()
    })
}

#[tokio::test]
async fn vault_is_asked_with_the_token_that_is_for_it() {
    let at = url(serve(as_vault).await);
    let with = |token: &str, server: Option<Url>| {
        let mut keys = Keys::new();
        keys.set_vault(Secret::new(token.to_owned()), server);
        keys
    };
    let key = master(
        MasterKind::Vault {
            address: at.to_string(),
            engine: "team/transit".to_owned(),
            name: "k".to_owned(),
        },
        "vault:v1:AAAA\n",
    );
    assert_eq!(*with("tok", None).open(&key).await.unwrap(), KEY);
    assert_eq!(*with("tok", Some(at.clone())).open(&key).await.unwrap(), KEY);
    let elsewhere = with("tok", Some("https://vault.example".parse().unwrap()))
        .open(&key)
        .await;
    assert_eq!(
        elsewhere.unwrap_err().to_string(),
        "the token is for another server"
    );
    let refused = with("hunter2", None).open(&key).await.unwrap_err().to_string();
    assert!(
        refused.starts_with("the service answered with status 403: no"),
        "{refused}"
    );
}

#[derive(Debug)]
struct Account;

impl VaultAccount for Account {
    fn login<'a>(
        &'a self,
        address: &'a str,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<VaultLogin, RoleError>> + Send + 'a>> {
        let login = VaultLogin {
            path: "team/auth/kubernetes/login".to_owned(),
            role: "apps_deployer".to_owned(),
            token: Secret::new("jwt".to_owned()),
        };
        let found = match address.contains("refused") {
            true => Err(RoleError("it is not listed".to_owned())),
            false => Ok(login),
        };
        Box::pin(std::future::ready(found))
    }
}

fn as_vault_with_login(uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Option<Response> {
    if uri.path() == "/v1/team/auth/kubernetes/login" {
        let ok = json_of(body) == json!({"role": "apps_deployer", "jwt": "jwt"});
        return ok.then(|| {
            json!({"auth": {"client_token": "tok"}})
                .to_string()
                .into_response()
        });
    }
    as_vault(uri, headers, body)
}

#[tokio::test]
async fn accounts_log_in_to_vault_unless_a_token_is_given() {
    let at = url(serve(as_vault_with_login).await);
    let key = |address: &str| {
        let kind = MasterKind::Vault {
            address: address.to_owned(),
            engine: "team/transit".to_owned(),
            name: "k".to_owned(),
        };
        master(kind, "vault:v1:AAAA")
    };
    let mut keys = Keys::new();
    keys.set_vault_account(std::sync::Arc::new(Account));
    for _ in 0..2 {
        assert_eq!(*keys.open(&key(at.as_str())).await.unwrap(), KEY);
    }
    let refused = keys.open(&key("https://refused.example")).await.unwrap_err();
    assert_eq!(refused.to_string(), "it is not listed");
    keys.set_vault(Secret::new("other".to_owned()), None);
    let refused = keys.open(&key(at.as_str())).await.unwrap_err().to_string();
    assert!(
        refused.starts_with("the service answered with status 403"),
        "{refused}"
    );
}

#[tokio::test]
async fn vault_at_a_refused_address_is_not_asked() {
    let key = |address: &str| {
        let kind = MasterKind::Vault {
            address: address.to_owned(),
            engine: "e".to_owned(),
            name: "k".to_owned(),
        };
        master(kind, "x")
    };
    let mut keys = Keys::new();
    keys.set_vault(Secret::new("t".to_owned()), None);
    let error = keys
        .open(&key("http://169.254.169.254"))
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "its address is refused: link-local addresses are not allowed"
    );
    let mut keys = Keys::new();
    keys.set_vault(Secret::new("t".to_owned()), None);
    keys.set_addresses(AddressPolicy::controller(net::ClusterServices::default()));
    let error = keys
        .open(&key("http://127.0.0.1:8200"))
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "its address is refused: loopback addresses are not allowed"
    );
}
