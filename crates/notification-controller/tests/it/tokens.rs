//! Receivers whose senders have tokens of issuers: `generic-oidc` and `gcr`.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use testkit::WebhookSink;

use crate::{receivers::Hooks, setup::TestNamespace};

/// An issuer of tokens, whose keys are at any path of its server.
struct Issuer {
    server: WebhookSink,
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl Issuer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        let server = WebhookSink::start().unwrap();
        let point = pair.public_key().as_ref();
        let [x, y] = [&point[1..33], &point[33..]].map(|part| URL_SAFE_NO_PAD.encode(part));
        // One document is both the discovery and the keys.
        let document = json!({
            "issuer": server.url("issuer"), "jwks_uri": server.url("keys"),
            "keys": [{"kty": "EC", "crv": "P-256", "kid": "k", "x": x, "y": y}],
        });
        server.answer(testkit::Answer::Status(200, document.to_string()));
        Self { server, pair, random }
    }

    fn url(&self) -> String {
        self.server.url("issuer")
    }

    fn token(&self, claims: &Value) -> String {
        let header = json!({"alg": "ES256", "kid": "k"});
        let [header, claims] = [&header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let signature = self.pair.sign(&self.random, signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn asked(&self) -> usize {
        self.server.received().len()
    }
}

fn bearer(token: &str) -> Vec<(&'static str, String)> {
    vec![
        ("authorization", format!("Bearer {token}")),
        ("content-type", "application/json".to_owned()),
    ]
}

fn with(claims: &Value, name: &str, value: Value) -> Value {
    let mut claims = claims.clone();
    claims[name] = value;
    claims
}

const IN_2100: i64 = 4_102_444_800;

#[tokio::test]
async fn tokens_of_issuers_are_accepted_for_their_audience_and_validations() {
    let issuer = Issuer::new();
    let setup = TestNamespace::with("oidc", |launch| launch.flag("--allow-internal-addresses")).await;
    let hooks = Hooks::of(setup).await;
    hooks.source("shop", &json!({"branch": "main"})).await;
    let spec = json!({
        "type": "generic-oidc", "secretRef": null, "resourceFilter": "claims.branch == res.metadata.labels.branch",
        "oidcProviders": [{
            "issuerURL": issuer.url(), "audience": "weir",
            "variables": [{"name": "team", "expression": "claims.sub.split(':')[0]"}],
            "validations": [{"expression": "vars.team == 'ci' && has(claims.branch)", "message": "only CI"}],
        }],
    });
    let url = hooks.receiver("hook", &spec).await;
    let claims = json!({"iss": issuer.url(), "aud": "weir", "exp": IN_2100, "sub": "ci:1", "branch": "main"});
    for (claims, status, annotated) in [
        (claims.clone(), 200, true),
        (with(&claims, "branch", json!("dev")), 200, false),
        (with(&claims, "aud", json!("other")), 400, false),
        (with(&claims, "aud", json!("notification-controller")), 400, false),
        (with(&claims, "exp", json!(1_000_000)), 400, false),
        (with(&claims, "sub", json!("stranger")), 400, false),
        (
            with(&claims, "iss", json!("https://elsewhere.example")),
            400,
            false,
        ),
    ] {
        let before = hooks.requested("shop").await;
        assert_eq!(
            hooks.post(&url, &bearer(&issuer.token(&claims)), "{}").await,
            status,
            "{claims}"
        );
        assert_eq!(hooks.requested("shop").await != before, annotated, "{claims}");
    }
    let good = issuer.token(&claims);
    let (signed, _) = good.rsplit_once('.').unwrap();
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    let unsigned = format!("{none}.{}.", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let stranger = Issuer::new().token(&claims);
    for token in ["", "x", signed, &format!("{signed}."), &unsigned, &stranger] {
        assert_eq!(hooks.post(&url, &bearer(token), "{}").await, 400, "{token}");
    }
    assert_eq!(hooks.post(&url, &[], "{}").await, 400);
    assert_eq!(issuer.asked(), 2, "the keys are kept");
    assert!(!hooks.setup.controller.log().contains(signed));
}

#[tokio::test]
async fn issuers_are_asked_under_the_policy_of_addresses() {
    let issuer = Issuer::new();
    let hooks = Hooks::new("oidc-policy").await;
    let spec = json!({
        "type": "generic-oidc", "secretRef": null,
        "oidcProviders": [{"issuerURL": "http://169.254.169.254", "validations": [{"expression": "true", "message": "-"}]}],
    });
    let url = hooks.receiver("hook", &spec).await;
    let claims = json!({"iss": "http://169.254.169.254", "aud": "notification-controller", "exp": IN_2100});
    assert_eq!(hooks.post(&url, &bearer(&issuer.token(&claims)), "{}").await, 400);
    let refused = |entry: &Value| {
        entry["error"]
            .as_str()
            .is_some_and(|error| error.contains("invalid or refused"))
    };
    let patience = crate::setup::TIMEOUT;
    hooks
        .setup
        .controller
        .wait_log("the refusal", patience, refused)
        .await
        .unwrap();
}

#[tokio::test]
async fn pushes_of_google_need_its_token_for_this_account_and_audience() {
    let google = Issuer::new();
    let keys = google.server.url("keys");
    let setup = TestNamespace::with("gcr", |launch| {
        launch
            .flag("--allow-internal-addresses")
            .flag(&format!("--gcr-keys-url={keys}"))
    })
    .await;
    let hooks = Hooks::of(setup).await;
    hooks.source("shop", &json!({})).await;
    let data = json!({"token": "t", "email": "pusher@example.com", "audience": "https://hooks.example.com"});
    hooks.setup.secret("google", &data).await;
    let spec =
        json!({"type": "gcr", "secretRef": {"name": "google"}, "resourceFilter": "req.action == 'INSERT'"});
    let url = hooks.receiver("hook", &spec).await;
    let message = STANDARD.encode(r#"{"action": "INSERT", "digest": "d", "tag": "t"}"#);
    let body = json!({"message": {"data": message}}).to_string();
    let claims = json!({
        "iss": "https://accounts.google.com", "aud": "https://hooks.example.com", "exp": IN_2100,
        "email": "pusher@example.com", "email_verified": true,
    });
    for (claims, status) in [
        (claims.clone(), 200),
        (with(&claims, "iss", json!("accounts.google.com")), 200),
        (with(&claims, "iss", json!("https://elsewhere.example")), 400),
        (with(&claims, "aud", json!("https://other.example.com")), 400),
        (with(&claims, "email", json!("other@example.com")), 400),
        (with(&claims, "email_verified", json!(false)), 400),
        (with(&claims, "exp", json!(1)), 400),
    ] {
        let before = hooks.requested("shop").await;
        assert_eq!(
            hooks.post(&url, &bearer(&google.token(&claims)), &body).await,
            status,
            "{claims}"
        );
        assert_eq!(hooks.requested("shop").await != before, status == 200, "{claims}");
    }
    let good = bearer(&google.token(&claims));
    assert_eq!(hooks.post(&url, &good, "{}").await, 400);
    // Both keys are required.
    let url = hooks.receiver("incomplete", &json!({"type": "gcr"})).await;
    assert_eq!(hooks.post(&url, &good, &body).await, 400);
}
