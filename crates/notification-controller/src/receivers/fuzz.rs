//! Random requests of strangers: bodies, headers and signatures.

use std::sync::Arc;

use api::notification::ReceiverSpec;
use http::{HeaderMap, HeaderName, HeaderValue};
use net::AddressPolicy;
use runtime::secret::SecretData;
use testkit::fuzz;

use super::{
    ALL, Keys,
    types::{Checks, Request},
};

/// Types with no protection but the path: only the form of their bodies is checked.
const OPEN: [&str; 5] = ["generic", "dockerhub", "quay", "acr", "cdevents"];
const HEADERS: &[&str] = &[
    "authorization",
    "content-type",
    "x-signature",
    "x-hub-signature",
    "x-hub-signature-256",
    "x-gitlab-token",
    "x-nexus-webhook-signature",
    "x-github-event",
    "ce-type",
];
const VALUES: &[&str] = &[
    "sha256=",
    "sha1=",
    "sha512=",
    "=",
    "00",
    "ff",
    "é",
    "Bearer ",
    "a.b.c",
    "eyJhbGciOiJub25lIn0",
    ".",
    "application/json",
    "; charset=utf-8",
    "\u{0}",
    "s3cr3t",
    "",
];

#[test]
fn fuzz_requests_of_strangers_are_refused() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let secret = Arc::new(SecretData::of(
        "apps/token",
        &[("token", b"s3cr3t-t0ken"), ("email", b"a@b"), ("audience", b"x")],
    ));
    let keys = Keys::new(AddressPolicy::unrestricted()).unwrap();
    let checks = Checks {
        keys: &keys,
        google_keys: "no url",
        namespace: "apps",
        now: 0,
    };
    let spec = ReceiverSpec::default();
    fuzz::run("webhooks", |random| {
        let mut headers = HeaderMap::new();
        for _ in 0..3 {
            let value = random.text(VALUES, 0..4);
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                let name = random.pick(HEADERS).to_string();
                headers.insert(HeaderName::try_from(name).unwrap(), value);
            }
        }
        let mut body = br#"{"push_data": {"tag": "v1"}, "target": {"tag": "v1"}, "context": {"id": "1"}, "message": {"data": "e30="}}"#.to_vec();
        random.damage(&mut body, 4);
        random.note("headers", &format!("{headers:?}"));
        let request = Request {
            headers: Arc::new(headers),
            body: Arc::new(body),
        };
        for kind in ALL {
            let verified = runtime.block_on(kind.verify(&spec, &request, &secret, &checks));
            match verified {
                Ok(_) => assert!(OPEN.contains(&kind.name), "{}", kind.name),
                Err(why) => assert!(!why.to_string().contains("s3cr3t-t0ken"), "{why}"),
            }
        }
    });
}
