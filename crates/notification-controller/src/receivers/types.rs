//! The types of Receivers: verification of the sender, and the name of the event of a request.

use std::sync::Arc;

use api::notification::ReceiverSpec;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use cel::Value;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, header};
use limits::{compute, compute_sized};
use runtime::secret::SecretData;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::Value as Json;
use sha1::Sha1;
use sha2::{Sha256, Sha512};

use super::{
    keys::{KeyLocation, Keys},
    oidc,
    refused::Refused,
};

/// A request; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) headers: Arc<HeaderMap>,
    pub(super) body: Arc<Vec<u8>>,
}

impl Request {
    /// Returns a header; the empty string if it is missing or not ASCII.
    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }

    /// Returns the content type without parameters.
    pub(super) fn content_type(&self) -> String {
        let value = self.header(header::CONTENT_TYPE.as_str());
        value
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
    }

    fn bearer(&self) -> Result<&str, Refused> {
        let token = self
            .header(header::AUTHORIZATION.as_str())
            .strip_prefix("Bearer ");
        let token = token.map(str::trim).filter(|token| !token.is_empty());
        token.ok_or_else(|| Refused::said("there is no bearer token"))
    }

    fn json<T: DeserializeOwned>(&self) -> Result<T, Refused> {
        let parsed: Result<Object<T>, _> = serde_json::from_slice(&self.body);
        let object = parsed.map_err(|_| Refused::said("the body is not what this sender sends"))?;
        Ok(object.0)
    }
}

/// A struct that is a JSON object: serde also accepts arrays of its fields.
#[derive(Default)]
struct Object<T>(T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = serde_json::Map::deserialize(deserializer)?;
        T::deserialize(Json::Object(map))
            .map(Self)
            .map_err(D::Error::custom)
    }
}

#[derive(Debug, Default)]
pub(super) struct Verified {
    /// The body for filters, if it differs from the body of the request.
    pub(super) payload: Option<Arc<Vec<u8>>>,
    pub(super) claims: Option<Value>,
}

#[derive(Clone, Copy)]
enum Check {
    Token(fn(&Request, &[u8]) -> Result<(), Refused>),
    Google,
    Oidc,
}

pub(crate) struct Type {
    /// Its value of `spec.type`.
    pub(crate) name: &'static str,
    /// The header with the name of the event.
    event: Option<&'static str>,
    check: Check,
}

const fn typed(name: &'static str, event: Option<&'static str>, check: Check) -> Type {
    Type { name, event, check }
}

pub(crate) const ALL: &[Type] = &[
    typed("acr", None, Check::Token(acr)),
    typed("bitbucket", Some("X-Event-Key"), Check::Token(bitbucket)),
    typed("cdevents", Some("Ce-Type"), Check::Token(cdevents)),
    typed("dockerhub", None, Check::Token(dockerhub)),
    typed("gcr", None, Check::Google),
    typed("generic", None, Check::Token(|_, _| Ok(()))),
    typed("generic-hmac", None, Check::Token(generic_hmac)),
    typed("generic-oidc", None, Check::Oidc),
    typed("github", Some("X-GitHub-Event"), Check::Token(github)),
    typed("gitlab", Some("X-Gitlab-Event"), Check::Token(gitlab)),
    typed("harbor", None, Check::Token(harbor)),
    typed("nexus", None, Check::Token(nexus)),
    typed("quay", None, Check::Token(quay)),
];

/// The inputs of a verification besides the request.
pub(super) struct Checks<'a> {
    pub(super) keys: &'a Keys,
    pub(super) google_keys: &'a str,
    /// Namespace of the Receiver, whose share of the threads they take.
    pub(super) namespace: &'a str,
    /// Seconds since the epoch.
    pub(super) now: i64,
}

pub(crate) fn find(spec: &ReceiverSpec) -> Option<&'static Type> {
    ALL.iter().find(|known| known.name == spec.type_)
}

impl Type {
    pub(crate) fn needs_secret(&self) -> bool {
        !matches!(self.check, Check::Oidc)
    }

    /// Returns true if the body is parsed to verify its form.
    pub(super) fn parses(&self) -> bool {
        matches!(
            self.name,
            "acr" | "cdevents" | "dockerhub" | "gcr" | "nexus" | "quay"
        )
    }

    /// Verifies the sender of a request, and that the Receiver wants its event.
    pub(super) async fn verify(
        &self,
        spec: &ReceiverSpec,
        request: &Request,
        secret: &Arc<SecretData>,
        checks: &Checks<'_>,
    ) -> Result<Verified, Refused> {
        let verified = match self.check {
            Check::Token(check) => {
                let (request, secret) = (request.clone(), Arc::clone(secret));
                let size = request.body.len() + token(&secret)?.len();
                let checked = compute_sized(checks.namespace, size, move || check(&request, token(&secret)?));
                checked.await.ok_or_else(unfinished)??;
                Verified::default()
            }
            Check::Google => google(request, secret, checks).await?,
            Check::Oidc => Verified {
                claims: Some(oidc::claims(spec, request.bearer()?, checks).await?),
                payload: None,
            },
        };
        if let Some(header) = self.event
            && !spec.events.is_empty()
        {
            let event = request.header(header);
            if !spec.events.iter().any(|known| known.eq_ignore_ascii_case(event)) {
                return Err(Refused::new(format!(
                    "the event in {header} is none of spec.events"
                )));
            }
        }
        Ok(verified)
    }
}

/// Returns the token of a Secret, which must not be empty: nothing would be secret then.
pub(crate) fn token(secret: &SecretData) -> Result<&[u8], Refused> {
    let token = secret.bytes(&["token"]).filter(|token| !token.is_empty());
    token.ok_or_else(|| {
        Refused::new(format!(
            "invalid '{}' secret data: required field 'token'",
            secret.name()
        ))
    })
}

fn unfinished() -> Refused {
    Refused::said("the request cannot be verified now")
}

/// Compares two secrets in constant time.
fn same(a: &[u8], b: &[u8]) -> bool {
    let keyed = |bytes: &[u8]| Hmac::<Sha256>::new_from_slice(b"compare").map(|mac| mac.chain_update(bytes));
    match (keyed(a), keyed(b)) {
        (Ok(a), Ok(b)) => a.verify(&b.finalize().into_bytes()).is_ok(),
        _ => false,
    }
}

fn wrong() -> Refused {
    Refused::said("the signature or token is missing or wrong")
}

fn signed<M: hmac::Mac + hmac::KeyInit>(key: &[u8], body: &[u8], signature: &str) -> Result<(), Refused> {
    let signature = hex::decode(signature).map_err(|_| wrong())?;
    let mac = <M as hmac::KeyInit>::new_from_slice(key).map_err(|_| wrong())?;
    mac.chain_update(body)
        .verify_slice(&signature)
        .map_err(|_| wrong())
}

/// Verifies a signature with the name of its algorithm, as in `sha256=<hex>`.
fn signed_by_name(key: &[u8], body: &[u8], signature: &str) -> Result<(), Refused> {
    match signature.split_once('=') {
        Some(("sha1", hex)) => signed::<Hmac<Sha1>>(key, body, hex),
        Some(("sha256", hex)) => signed::<Hmac<Sha256>>(key, body, hex),
        Some(("sha512", hex)) => signed::<Hmac<Sha512>>(key, body, hex),
        _ => Err(wrong()),
    }
}

fn generic_hmac(request: &Request, token: &[u8]) -> Result<(), Refused> {
    signed_by_name(token, &request.body, request.header("X-Signature"))
}

fn hub(request: &Request, token: &[u8], headers: &[&str]) -> Result<(), Refused> {
    let signatures = headers.iter().map(|name| request.header(name));
    let signature = signatures.into_iter().find(|signature| !signature.is_empty());
    signed_by_name(token, &request.body, signature.unwrap_or_default())?;
    match request.content_type().as_str() {
        "application/json" | "application/x-www-form-urlencoded" => Ok(()),
        _ => Err(Refused::said("the content type is neither JSON nor a form")),
    }
}

fn github(request: &Request, token: &[u8]) -> Result<(), Refused> {
    hub(request, token, &["X-Hub-Signature-256", "X-Hub-Signature"])
}

fn bitbucket(request: &Request, token: &[u8]) -> Result<(), Refused> {
    hub(request, token, &["X-Hub-Signature"])
}

fn gitlab(request: &Request, token: &[u8]) -> Result<(), Refused> {
    same(request.header("X-Gitlab-Token").as_bytes(), token)
        .then_some(())
        .ok_or_else(wrong)
}

fn harbor(request: &Request, token: &[u8]) -> Result<(), Refused> {
    let value = request.headers.get(header::AUTHORIZATION);
    let value = value.map(http::HeaderValue::as_bytes).unwrap_or_default();
    same(value, token).then_some(()).ok_or_else(wrong)
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
#[allow(dead_code, reason = "only the form of a request counts")]
struct DockerHub {
    push_data: Object<DockerHubPush>,
    repository: Object<DockerHubRepository>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[allow(dead_code, reason = "only the form of a request counts")]
struct DockerHubPush {
    tag: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[allow(dead_code, reason = "only the form of a request counts")]
struct DockerHubRepository {
    repo_url: String,
}

fn dockerhub(request: &Request, _: &[u8]) -> Result<(), Refused> {
    request.json::<DockerHub>().map(drop)
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[allow(dead_code, reason = "only the form of a request counts")]
struct Quay {
    docker_url: String,
    updated_tags: Vec<String>,
}

fn quay(request: &Request, _: &[u8]) -> Result<(), Refused> {
    request.json::<Quay>().map(drop)
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[allow(dead_code, reason = "only the form of a request counts")]
struct Acr {
    action: String,
    target: Object<AcrTarget>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[allow(dead_code, reason = "only the form of a request counts")]
struct AcrTarget {
    repository: String,
    tag: String,
}

fn acr(request: &Request, _: &[u8]) -> Result<(), Refused> {
    request.json::<Acr>().map(drop)
}

fn nexus(request: &Request, token: &[u8]) -> Result<(), Refused> {
    #[derive(Deserialize, Default)]
    #[serde(default, rename_all = "camelCase")]
    #[allow(dead_code, reason = "only the form of a request counts")]
    struct Nexus {
        action: String,
        repository_name: String,
    }
    signed::<Hmac<Sha1>>(token, &request.body, request.header("X-Nexus-Webhook-Signature"))?;
    request.json::<Nexus>().map(drop)
}

fn cdevents(request: &Request, _: &[u8]) -> Result<(), Refused> {
    #[derive(Deserialize)]
    struct CdEvent {
        context: Object<Context>,
        subject: Object<Subject>,
    }
    #[derive(Deserialize)]
    struct Context {
        version: String,
        id: String,
        source: String,
        #[serde(rename = "type")]
        type_: String,
        timestamp: String,
    }
    #[derive(Deserialize)]
    struct Subject {
        id: String,
        content: serde_json::Map<String, Json>,
    }
    let event: CdEvent = request.json()?;
    let invalid = || Err(Refused::said("the body is no valid CDEvent"));
    let (Object(context), Object(subject)) = (event.context, event.subject);
    let texts = [&context.version, &context.id, &context.source, &subject.id];
    if texts.into_iter().any(String::is_empty) || context.timestamp.parse::<jiff::Timestamp>().is_err() {
        return invalid();
    }
    // dev.cdevents.<subject>.<predicate>.<major>.<minor>.<patch>, maybe with a suffix as -draft.
    let parts: Vec<_> = context.type_.splitn(7, '.').collect();
    let [dev, cdevents, about, done, major, minor, patch] = parts.as_slice() else {
        return invalid();
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let patch = patch.split('-').next().unwrap_or_default();
    let named = *dev == "dev" && *cdevents == "cdevents" && !about.is_empty() && !done.is_empty();
    // Its content may be anything; the Receiver's filters check it.
    let _ = subject.content;
    match named && digits(major) && digits(minor) && digits(patch) {
        true => Ok(()),
        false => invalid(),
    }
}

const GOOGLE: [&str; 2] = ["https://accounts.google.com", "accounts.google.com"];

/// Verifies a push of Pub/Sub, whose token names the service account that pushes, and returns the notification of the registry.
async fn google(request: &Request, secret: &SecretData, checks: &Checks<'_>) -> Result<Verified, Refused> {
    token(secret)?;
    let required = |key: &str| {
        let value = secret.string(key).ok().flatten();
        value.ok_or_else(|| {
            Refused::new(format!(
                "invalid '{}' secret data: required field '{key}'",
                secret.name()
            ))
        })
    };
    let (email, audience) = (required("email")?, required("audience")?);
    let location = KeyLocation::Keys(checks.google_keys.to_owned());
    let expected = oidc::Expected {
        issuers: GOOGLE.map(str::to_owned).into(),
        audience,
    };
    let claims = oidc::verified(request.bearer()?, &location, expected, checks).await?;
    let verified = claims
        .get("email_verified")
        .is_some_and(|value| *value == true || value == "true");
    let own = claims.get("email").and_then(Json::as_str) == Some(&email);
    if !verified || !own {
        return Err(Refused::said("the token is of another service account"));
    }
    let request = request.clone();
    let payload = compute(checks.namespace, move |_| notification(&request));
    Ok(Verified {
        payload: Some(payload.await.ok_or_else(unfinished)??),
        claims: None,
    })
}

/// Returns the notification of a registry in a message of Pub/Sub.
fn notification(request: &Request) -> Result<Arc<Vec<u8>>, Refused> {
    #[derive(Deserialize)]
    struct Envelope {
        message: Message,
    }
    #[derive(Deserialize)]
    struct Message {
        data: String,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    #[allow(dead_code, reason = "only the form of a request counts")]
    struct Notification {
        action: String,
        digest: String,
        tag: String,
    }
    let envelope: Envelope = request.json()?;
    let data = STANDARD.decode(envelope.message.data);
    let data = data.map_err(|_| Refused::said("the body is not what this sender sends"))?;
    let inner = Request {
        headers: Arc::clone(&request.headers),
        body: Arc::new(data),
    };
    inner.json::<Notification>()?;
    Ok(inner.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_with_rules_is_implemented() {
        let implemented: Vec<_> = ALL.iter().map(|known| known.name).collect();
        assert_eq!(implemented, notification_specs::receiver::TYPES);
    }
}
