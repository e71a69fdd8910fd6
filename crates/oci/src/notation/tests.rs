use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use testkit::{
    NotarySigner,
    notation::{COSE, JWS, SUBJECT},
};

use super::*;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const HOUR: i64 = 3600;

fn target() -> Descriptor {
    Descriptor {
        media_type: MANIFEST.to_owned(),
        digest: Digest::of(b"manifest"),
        size: 8,
        annotations: Default::default(),
    }
}

fn named(target: &Descriptor) -> Value {
    json!({"mediaType": target.media_type, "digest": target.digest.to_string(), "size": target.size})
}

fn sign(signer: &NotarySigner, media_type: &str, request: &Value) -> Vec<u8> {
    signer.sign(media_type, &named(&target()), request).unwrap()
}

fn statement(level: &str) -> Value {
    json!({
        "name": "all", "registryScopes": ["*"], "signatureVerification": {"level": level},
        "trustStores": ["ca:own"], "trustedIdentities": ["*"],
    })
}

fn policy(statements: &[Value]) -> TrustPolicy {
    let text = json!({"version": "1.0", "trustPolicies": statements}).to_string();
    TrustPolicy::parse(text.as_bytes()).unwrap()
}

fn rules(statement: Value) -> Rules {
    let policy = policy(&[statement]);
    policy.statement("h/a").unwrap().rules.clone().unwrap()
}

fn store(signer: &NotarySigner) -> TrustStore {
    let mut store = TrustStore::default();
    store.add(signer.root_pem().unwrap().as_bytes()).unwrap();
    store
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

fn judge(media_type: &str, bytes: &[u8], rules: &Rules, store: &TrustStore) -> Result<Vec<Check>, Rejected> {
    let envelope = Envelope::parse(media_type, bytes)?;
    failed(check(&envelope, rules, store, &target(), now()))
}

fn failed(result: Result<Vec<Warning>, Rejected>) -> Result<Vec<Check>, Rejected> {
    result.map(|warnings| warnings.into_iter().map(|warning| warning.check).collect())
}

#[test]
fn signatures_of_all_keys_and_both_formats_are_verified() {
    let strict = rules(statement("strict"));
    for (kind, authorities) in [
        ("P-256", 2),
        ("P-384", 1),
        ("P-521", 2),
        ("2048", 1),
        ("3072", 0),
        ("4096", 0),
    ] {
        let signer = NotarySigner::with(&json!({"kind": kind, "authorities": authorities})).unwrap();
        let (own, other) = (store(&signer), store(&NotarySigner::new().unwrap()));
        for format in [JWS, COSE] {
            let mut bytes = sign(&signer, format, &json!({"expiry": now() + HOUR}));
            assert_eq!(
                judge(format, &bytes, &strict, &own),
                Ok(vec![]),
                "{kind} {format}"
            );
            assert_eq!(judge(format, &bytes, &strict, &other), Err(Rejected::Untrusted));
            // The last bytes of COSE belong to the signature; JWS ends with the signature in JSON.
            let at = bytes.len() - 8;
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let expected = Err(Rejected::Signature);
            assert_eq!(judge(format, &bytes, &strict, &own), expected, "{kind} {format}");
        }
    }
}

#[test]
fn signatures_are_of_their_artifact_and_their_content() {
    let signer = NotarySigner::new().unwrap();
    let (strict, store) = (rules(statement("strict")), store(&signer));
    for format in [JWS, COSE] {
        let bytes = sign(&signer, format, &json!({}));
        let envelope = Envelope::parse(format, &bytes).unwrap();
        let changes: [fn(&mut Descriptor); 3] = [
            |target| target.digest = Digest::of(b"other"),
            |target| target.size += 1,
            |target| target.media_type = "application/vnd.oci.image.index.v1+json".to_owned(),
        ];
        for change in changes {
            let mut other = target();
            change(&mut other);
            let result = check(&envelope, &strict, &store, &other, now());
            assert_eq!(result, Err(Rejected::Target));
        }
        let mut other = envelope.clone();
        other.algorithm = key::Algorithm::Ps256;
        let result = check(&other, &strict, &store, &target(), now());
        assert_eq!(result, Err(Rejected::OtherAlgorithm));
        assert_eq!(
            judge(
                format,
                &sign(&signer, format, &json!({"contentType": "text/plain"})),
                &strict,
                &store
            ),
            Err(Rejected::PayloadType("text/plain".to_owned()))
        );
        assert_eq!(
            judge("text/plain", &bytes, &strict, &store),
            Err(Rejected::MediaType("text/plain".to_owned()))
        );
    }
    // Another payload, and other attributes, with the first signature.
    let bytes = sign(&signer, JWS, &json!({}));
    let mut document: Value = serde_json::from_slice(&bytes).unwrap();
    let payload = json!({"targetArtifact": named(&target()), "x": 1}).to_string();
    document["payload"] = URL_SAFE_NO_PAD.encode(payload).into();
    let result = judge(JWS, document.to_string().as_bytes(), &strict, &store);
    assert_eq!(result, Err(Rejected::Signature));
    let mut document: Value = serde_json::from_slice(&bytes).unwrap();
    let protected = URL_SAFE_NO_PAD
        .decode(document["protected"].as_str().unwrap())
        .unwrap();
    let mut protected: Value = serde_json::from_slice(&protected).unwrap();
    protected["io.cncf.notary.signingTime"] = "2020-01-01T00:00:00Z".into();
    document["protected"] = URL_SAFE_NO_PAD.encode(protected.to_string()).into();
    let result = judge(JWS, document.to_string().as_bytes(), &strict, &store);
    assert_eq!(result, Err(Rejected::Signature));
}

#[test]
fn levels_decide_what_a_failed_check_means() {
    use Check::{AuthenticTimestamp, Authenticity, Expiry, Revocation};
    let signer = NotarySigner::new().unwrap();
    let (own, other) = (store(&signer), store(&NotarySigner::new().unwrap()));
    let revocable = json!({"authorities": 1, "own": {"ocsp": "http://ocsp.invalid"}});
    let revocable = NotarySigner::with(&revocable).unwrap();
    let listed = json!({"authorities": 2, "above": {"crl": "http://crl.invalid"}});
    let listed = NotarySigner::with(&listed).unwrap();
    let envelope =
        |signer: &NotarySigner, request| Envelope::parse(JWS, &sign(signer, JWS, &request)).unwrap();
    let plain = envelope(&signer, json!({}));
    let expiring = envelope(&signer, json!({"expiry": now() + HOUR}));
    let soon = now() + HOUR;
    let late = now() + 48 * HOUR;
    let expired = Rejected::Expired(Timestamp::from_second(soon).unwrap());
    let not_valid = Rejected::NotValid(Timestamp::from_second(late).unwrap());
    let mut expiring = expiring;
    expiring.attributes.expiry = Some(soon);
    let cases = [
        (&plain, &other, now(), Authenticity, Rejected::Untrusted),
        (&expiring, &own, soon, Expiry, expired),
        (&plain, &own, late, AuthenticTimestamp, not_valid),
        (
            &envelope(&revocable, json!({})),
            &store(&revocable),
            now(),
            Revocation,
            Rejected::Revocation,
        ),
        (
            &envelope(&listed, json!({})),
            &store(&listed),
            now(),
            Revocation,
            Rejected::Revocation,
        ),
    ];
    for (envelope, store, at, failing, why) in cases {
        let judge = |statement: Value| failed(check(envelope, &rules(statement), store, &target(), at));
        assert_eq!(judge(statement("strict")), Err(why.clone()));
        let permissive = match failing {
            Authenticity => Err(why.clone()),
            _ => Ok(vec![failing]),
        };
        assert_eq!(judge(statement("permissive")), permissive);
        assert_eq!(judge(statement("audit")), Ok(vec![failing]));
        let mut custom = statement("strict");
        custom["signatureVerification"]["override"] = json!({failing.to_string(): "log"});
        assert_eq!(judge(custom), Ok(vec![failing]));
        let mut custom = statement("audit");
        custom["signatureVerification"]["override"] = json!({failing.to_string(): "enforce"});
        assert_eq!(judge(custom), Err(why));
        if failing == Revocation {
            let mut custom = statement("strict");
            custom["signatureVerification"]["override"] = json!({"revocation": "skip"});
            assert_eq!(judge(custom), Ok(vec![]));
        }
    }
    // No level accepts a wrong signature, or a signature of another artifact.
    let mut wrong = plain.clone();
    wrong.message.push(b' ');
    let audit = rules(statement("audit"));
    assert_eq!(
        check(&wrong, &audit, &own, &target(), now()),
        Err(Rejected::Signature)
    );
    let elsewhere = Descriptor { size: 9, ..target() };
    assert_eq!(
        check(&plain, &audit, &own, &elsewhere, now()),
        Err(Rejected::Target)
    );
    let logged = |check| Warning {
        check,
        why: Rejected::Untrusted,
    };
    assert!(matches!(
        verdict(vec![logged(Authenticity)]),
        Verdict::Accepted(_)
    ));
    assert!(matches!(verdict(vec![logged(Expiry)]), Verdict::Signed(_)));
}

#[test]
fn signers_are_trusted_by_their_store_and_their_name() {
    let signer = NotarySigner::new().unwrap();
    let own = store(&signer);
    let bytes = sign(&signer, JWS, &json!({}));
    let judge_with = |bytes: &[u8], key: &str, value: Value| {
        let mut statement = statement("strict");
        statement[key] = value;
        judge(JWS, bytes, &rules(statement), &own)
    };
    let subject = format!("x509.subject: {SUBJECT}");
    for (identities, expected) in [
        (json!([subject]), Ok(vec![])),
        (
            json!([
                "x509.subject: O=Other,S=WA,C=US",
                r"x509.subject:O=Example\, Inc.,S=WA,C=US"
            ]),
            Ok(vec![]),
        ),
        (json!([format!("{subject}, OU=x")]), Err(Rejected::Identity)),
        (
            json!(["x509.subject: C=US, ST=WA, O=Example"]),
            Err(Rejected::Identity),
        ),
    ] {
        assert_eq!(judge_with(&bytes, "trustedIdentities", identities), expected);
    }
    let nameless = json!({"authorities": 0, "own": {"subject": "nobody"}});
    let nameless = NotarySigner::with(&nameless).unwrap();
    let mut statement = statement("strict");
    statement["trustedIdentities"] = json!([subject]);
    let result = judge(
        JWS,
        &sign(&nameless, JWS, &json!({})),
        &rules(statement),
        &store(&nameless),
    );
    assert_eq!(result, Err(Rejected::Subject(InvalidName::Incomplete)));
    let stores = |stores: Value| judge_with(&bytes, "trustStores", stores);
    assert_eq!(
        stores(json!(["signingAuthority:own"])),
        Err(Rejected::NoStore("ca"))
    );
    assert_eq!(stores(json!(["ca:own", "tsa:x"])), Err(Rejected::Timestamp));
    let authority = json!({"scheme": "notary.x509.signingAuthority"});
    for format in [JWS, COSE] {
        let bytes = sign(&signer, format, &authority);
        let envelope = Envelope::parse(format, &bytes).unwrap();
        let judge_at = |stores: Value, at: i64| {
            let mut statement = super::tests::statement("strict");
            statement["trustStores"] = stores;
            failed(check(&envelope, &rules(statement), &own, &target(), at))
        };
        // The authority states the time, so certificates may have expired since.
        let late = now() + 48 * HOUR;
        assert_eq!(judge_at(json!(["signingAuthority:own"]), late), Ok(vec![]));
        assert_eq!(
            judge_at(json!(["ca:own"]), now()),
            Err(Rejected::NoStore("signingAuthority"))
        );
    }
}

#[test]
fn timestamps_are_needed_as_the_policy_says() {
    let signer = NotarySigner::new().unwrap();
    let own = store(&signer);
    let envelope = Envelope::parse(JWS, &sign(&signer, JWS, &json!({}))).unwrap();
    let judge_at = |option: &str, at: i64| {
        let mut statement = statement("strict");
        statement["trustStores"] = json!(["ca:own", "tsa:x"]);
        statement["signatureVerification"]["verifyTimestamp"] = option.into();
        failed(check(&envelope, &rules(statement), &own, &target(), at))
    };
    let late = now() + 48 * HOUR;
    assert_eq!(judge_at("always", now()), Err(Rejected::Timestamp));
    assert_eq!(judge_at("afterCertExpiry", now()), Ok(vec![]));
    assert_eq!(judge_at("afterCertExpiry", late), Err(Rejected::Timestamp));
}

#[test]
fn certificates_without_the_right_usage_are_refused() {
    let signer = NotarySigner::new().unwrap();
    let envelope = Envelope::parse(JWS, &sign(&signer, JWS, &json!({}))).unwrap();
    let audit = rules(statement("audit"));
    let judge = |chain: Vec<Vec<u8>>, trusted: &NotarySigner| {
        let envelope = Envelope {
            chain,
            ..envelope.clone()
        };
        failed(check(&envelope, &audit, &store(trusted), &target(), now()))
    };
    let other = signer.again(&json!({"authorities": 1})).unwrap();
    assert_eq!(judge(other.chain().unwrap(), &other), Ok(vec![]));
    for (request, expected) in [
        (json!({"own": {"keyUsage": 0}}), BrokenRule::NoUsage),
        (json!({"own": {"keyUsage": 2}}), BrokenRule::SignerUsage),
        (json!({"own": {"keyUsage": 1 | 4}}), BrokenRule::SignerUsage),
        (json!({"own": {"keyUsage": 1 | 64}}), BrokenRule::SignerUsage),
        (
            json!({"own": {"usages": [3, 1]}}),
            BrokenRule::SignerExtendedUsage,
        ),
        (json!({"own": {"usages": [8]}}), BrokenRule::SignerExtendedUsage),
        (json!({"own": {"authority": true}}), BrokenRule::SignerAuthority),
        (json!({"own": {"critical": true}}), BrokenRule::Critical),
        (json!({"above": {"authority": false}}), BrokenRule::NoAuthority),
        (json!({"above": {"pathLength": 0}}), BrokenRule::NoAuthority),
        (json!({"above": {"keyUsage": 1}}), BrokenRule::AuthorityUsage),
        (json!({"above": {"keyUsage": 0}}), BrokenRule::NoUsage),
    ] {
        let mut request = request;
        request["authorities"] = 2.into();
        let other = signer.again(&request).unwrap();
        let result = judge(other.chain().unwrap(), &other);
        assert_eq!(result, Err(Rejected::Chain(expected)), "{request}");
    }
    let weak = NotarySigner::with(&json!({"kind": "2560", "authorities": 0})).unwrap();
    let result = judge(weak.chain().unwrap(), &weak);
    assert_eq!(result, Err(Rejected::Chain(BrokenRule::SignerKey)));
    let chain = signer.chain().unwrap();
    let alone = signer.again(&json!({"authorities": 0})).unwrap().chain().unwrap();
    let part = |order: &[usize]| order.iter().map(|at| chain[*at].clone()).collect::<Vec<_>>();
    for (chain, expected) in [
        (vec![], BrokenRule::Length),
        (part(&[0; 11]), BrokenRule::Length),
        (part(&[0, 1]), BrokenRule::Root),
        (part(&[0, 2]), BrokenRule::Issuer),
        (part(&[0, 2, 1]), BrokenRule::Issuer),
        (part(&[0, 1, 2, 2]), BrokenRule::SelfSigned),
        ([&alone[..], &chain[1..]].concat(), BrokenRule::SelfSigned),
        (vec![b"x".to_vec()], BrokenRule::Malformed),
    ] {
        assert_eq!(judge(chain, &signer), Err(Rejected::Chain(expected)));
    }
    let stranger = NotarySigner::new().unwrap();
    assert_eq!(
        judge(stranger.chain().unwrap(), &stranger),
        Err(Rejected::Signature)
    );
}

#[test]
fn unknown_critical_attributes_and_plugins_are_refused_by_name() {
    let signer = NotarySigner::new().unwrap();
    let (audit, store) = (rules(statement("audit")), store(&signer));
    for format in [JWS, COSE] {
        let with = |key: &str, critical: &str| {
            let attributes = json!([{"key": key, "value": "example", "critical": critical}]);
            let bytes = sign(&signer, format, &json!({"attributes": attributes}));
            judge(format, &bytes, &audit, &store)
        };
        assert_eq!(with("com.example.note", ""), Ok(vec![]));
        assert_eq!(
            with("com.example.note", "yes"),
            Err(Rejected::Critical("com.example.note".to_owned()))
        );
        for critical in ["", "yes"] {
            assert_eq!(
                with("io.cncf.notary.verificationPlugin", critical),
                Err(Rejected::Plugin("example".to_owned()))
            );
        }
    }
}

#[test]
fn attributes_must_be_complete_and_marked() {
    let envelope = |change: &dyn Fn(&mut Value)| {
        let mut protected = json!({
            "alg": "ES256", "cty": "x", "crit": ["io.cncf.notary.signingScheme", "io.cncf.notary.expiry"],
            "io.cncf.notary.signingScheme": "notary.x509",
            "io.cncf.notary.signingTime": "2026-01-01T00:00:00Z",
            "io.cncf.notary.expiry": "2026-01-02T00:00:00Z",
        });
        change(&mut protected);
        let document = json!({
            "payload": "", "signature": "", "header": {"x5c": []},
            "protected": URL_SAFE_NO_PAD.encode(protected.to_string()),
        });
        Envelope::parse(JWS, document.to_string().as_bytes()).map(drop)
    };
    assert_eq!(envelope(&|_| {}), Ok(()));
    type Change = fn(&mut Value);
    let changes: [(Change, &str); 8] = [
        (
            |p| p["io.cncf.notary.signingScheme"] = "x".into(),
            "scheme is missing or unknown",
        ),
        (
            |p| p["io.cncf.notary.signingTime"] = Value::Null,
            "signing time is missing",
        ),
        (
            |p| p["io.cncf.notary.authenticSigningTime"] = "2026-01-01T00:00:00Z".into(),
            "of another scheme",
        ),
        (
            |p| p["io.cncf.notary.expiry"] = "2026-01-01T00:00:00Z".into(),
            "expires before",
        ),
        (
            |p| p["crit"] = json!(["io.cncf.notary.signingScheme"]),
            "is not critical",
        ),
        (
            |p| p["crit"] = json!(["io.cncf.notary.expiry"]),
            "is not critical",
        ),
        (|p| p["crit"] = json!(["x"]), "critical attribute is missing"),
        (|p| p["crit"] = Value::Null, "no attribute is critical"),
    ];
    for (change, expected) in changes {
        let why = envelope(&change).unwrap_err();
        assert!(why.to_string().contains(expected), "{why}");
    }
    assert_eq!(
        envelope(&|p| p["alg"] = "none".into()),
        Err(Rejected::Algorithm("none".to_owned()))
    );
    assert_eq!(
        envelope(&|p| p["io.cncf.notary.expiry"] = "soon".into()),
        Err(Rejected::Malformed)
    );
}

#[test]
fn statements_are_chosen_by_their_scope() {
    let of = |name: &str, scopes: Value| {
        let mut statement = statement("strict");
        statement["name"] = name.into();
        statement["registryScopes"] = scopes;
        statement
    };
    let mut skip = of("skip", json!(["127.0.0.1:5000/org/open"]));
    skip["signatureVerification"] = json!({"level": "skip"});
    let all = policy(&[
        of("all", json!(["*"])),
        skip.clone(),
        of("app", json!(["h/org/app", "index.docker.io/library/nginx"])),
    ]);
    let chosen = |policy: &TrustPolicy, url: &str| {
        let reference = Reference::parse(url).unwrap();
        let statement = policy.statement(&scope(&reference));
        statement.map(|statement| (statement.name.clone(), statement.rules.is_some()))
    };
    for (url, expected) in [
        ("h/org/app", ("app", true)),
        ("h/org/other", ("all", true)),
        ("h/org", ("all", true)),
        ("127.0.0.1:5000/org/open", ("skip", false)),
        ("docker.io/nginx", ("app", true)),
        ("docker.io/org/nginx", ("all", true)),
    ] {
        assert_eq!(
            chosen(&all, url),
            Some((expected.0.to_owned(), expected.1)),
            "{url}"
        );
    }
    assert_eq!(chosen(&policy(&[skip]), "h/org/app"), None);
}

#[test]
fn invalid_policies_are_refused_with_the_reason() {
    type Change = fn(&mut Value);
    let changes: [(Change, &str); 26] = [
        (|p| p["version"] = "2.0".into(), "unsupported version"),
        (|p| p["trustPolicies"] = json!([]), "zero trust policy statements"),
        (|p| p["comment"] = "x".into(), "unknown field `comment`"),
        (
            |p| p["trustPolicies"][0]["trustStore"] = json!([]),
            "unknown field `trustStore`",
        ),
        (|p| p["trustPolicies"][0]["name"] = "".into(), "missing a name"),
        (
            |p| p["trustPolicies"] = json!([p["trustPolicies"][0], p["trustPolicies"][0]]),
            "same name",
        ),
        (
            |p| {
                p["trustPolicies"] = json!([p["trustPolicies"][0], p["trustPolicies"][0]]);
                p["trustPolicies"][1]["name"] = "other".into();
            },
            "\"*\" is present in multiple",
        ),
        (
            |p| p["trustPolicies"][0]["registryScopes"] = json!([]),
            "zero registry scopes",
        ),
        (
            |p| p["trustPolicies"][0]["registryScopes"] = json!(["*", "h/a"]),
            "wildcard",
        ),
        (
            |p| p["trustPolicies"][0]["registryScopes"] = json!(["h/*"]),
            "is not valid",
        ),
        (
            |p| p["trustPolicies"][0]["registryScopes"] = json!(["oci://h/a"]),
            "is not valid",
        ),
        (
            |p| p["trustPolicies"][0]["registryScopes"] = json!(["h/a:1"]),
            "is not valid",
        ),
        (
            |p| p["trustPolicies"][0]["registryScopes"] = json!(["h"]),
            "is not valid",
        ),
        (
            |p| p["trustPolicies"][0]["signatureVerification"] = json!({}),
            "invalid signature verification level",
        ),
        (
            |p| p["trustPolicies"][0]["signatureVerification"]["level"] = "lax".into(),
            "invalid signature verification level \"lax\"",
        ),
        (
            |p| p["trustPolicies"][0]["signatureVerification"]["override"] = json!({"integrity": "log"}),
            "integrity can not be overridden",
        ),
        (
            |p| p["trustPolicies"][0]["signatureVerification"]["override"] = json!({"expiry": "skip"}),
            "only revocation can be skipped",
        ),
        (
            |p| p["trustPolicies"][0]["signatureVerification"]["override"] = json!({"x": "log"}),
            "the types are",
        ),
        (
            |p| p["trustPolicies"][0]["signatureVerification"]["override"] = json!({"expiry": "ignore"}),
            "unknown variant `ignore`",
        ),
        (
            |p| p["trustPolicies"][0]["signatureVerification"]["verifyTimestamp"] = "never".into(),
            "verifyTimestamp must be",
        ),
        (
            |p| p["trustPolicies"][0]["trustStores"] = Value::Null,
            "both must be specified",
        ),
        (
            |p| p["trustPolicies"][0]["trustStores"] = json!(["own"]),
            "TYPE:NAME",
        ),
        (
            |p| p["trustPolicies"][0]["trustStores"] = json!(["ca:../own"]),
            "TYPE:NAME",
        ),
        (
            |p| p["trustPolicies"][0]["trustedIdentities"] = json!(["plugin:x"]),
            "is not supported",
        ),
        (
            |p| p["trustPolicies"][0]["trustedIdentities"] = json!(["x509.subject: C=US"]),
            "needs the attributes C, ST (or S) and O",
        ),
        (
            |p| {
                p["trustPolicies"][0]["trustedIdentities"] = json!([
                    "x509.subject: C=US,ST=WA,O=a",
                    "x509.subject: C=US,ST=WA,O=a,CN=b"
                ]);
            },
            "overlapping",
        ),
    ];
    for (change, expected) in changes {
        let mut document = json!({"version": "1.0", "trustPolicies": [statement("strict")]});
        change(&mut document);
        let why = TrustPolicy::parse(document.to_string().as_bytes()).unwrap_err();
        assert!(why.to_string().contains(expected), "{why}");
    }
    let skip = json!({"name": "a", "registryScopes": ["*"], "signatureVerification": {"level": "skip", "override": {"expiry": "log"}}});
    let text = json!({"version": "1.0", "trustPolicies": [skip]}).to_string();
    let why = TrustPolicy::parse(text.as_bytes()).unwrap_err();
    assert!(why.to_string().contains("can't be customized"), "{why}");
    let large = vec![b' '; (1 << 20) + 1];
    assert_eq!(
        TrustPolicy::parse(&large).unwrap_err(),
        InvalidTrustPolicy::TooLarge
    );
}

#[test]
fn trusted_certificates_are_read_from_pem_and_der() {
    let signer = NotarySigner::new().unwrap();
    let chain = signer.chain().unwrap();
    let root = signer.root_pem().unwrap();
    let read = |file: &[u8]| {
        let mut store = TrustStore::default();
        store.add(file).map(|()| store)
    };
    for file in [
        root.clone().into_bytes(),
        format!(
            "# root\n{}{root}",
            NotarySigner::new().unwrap().root_pem().unwrap()
        )
        .into_bytes(),
        chain.concat(),
    ] {
        let found = read(&file).unwrap();
        let certificate = certificate::Certificate::parse(&chain[2]).unwrap();
        assert!(found.has(&certificate));
    }
    let key = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";
    for file in [
        "",
        "x",
        key,
        "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n",
    ] {
        assert_eq!(read(file.as_bytes()).unwrap_err(), InvalidTrustStore::Malformed);
    }
    assert_eq!(
        read(root.repeat(101).as_bytes()).unwrap_err(),
        InvalidTrustStore::TooMany
    );
}

#[test]
fn certificate_with_a_longer_encoding_of_its_length_is_malformed() {
    let der = NotarySigner::new().unwrap().chain().unwrap().remove(0);
    assert!(certificate::Certificate::parse(&der).is_some());
    let longer = [&[0x30, 0x83, 0][..], der.strip_prefix(&[0x30, 0x82]).unwrap()].concat();
    assert!(certificate::Certificate::parse(&longer).is_none());
}

#[test]
fn fuzz_damaged_envelopes_and_policies_end_in_an_answer() {
    let signer = NotarySigner::new().unwrap();
    let (strict, store) = (rules(statement("strict")), store(&signer));
    let mut of_others = statement("strict");
    of_others["trustedIdentities"] = json!([format!("x509.subject: {SUBJECT}")]);
    let policy = json!({"version": "1.0", "trustPolicies": [of_others]}).to_string();
    let envelopes =
        [JWS, COSE].map(|format| (format, sign(&signer, format, &json!({"expiry": now() + HOUR}))));
    let chain = signer.chain().unwrap();
    testkit::fuzz::run("signatures of notation", |random| {
        let (format, whole) = random.pick(&envelopes);
        let mut bytes = whole.clone();
        random.damage(&mut bytes, 3);
        random.note("envelope", &String::from_utf8_lossy(&bytes));
        if let (Ok(_), Ok(read)) = (
            judge(format, &bytes, &strict, &store),
            Envelope::parse(format, &bytes),
        ) {
            // The unsigned part may differ; the signed part may not.
            let original = Envelope::parse(format, whole).unwrap();
            assert_eq!((read.message, read.payload), (original.message, original.payload));
        }
        let mut changed = Envelope::parse(format, whole).unwrap();
        let at = random.below(chain.len());
        random.damage(&mut changed.chain[at], 2);
        let is_same = changed.chain == chain;
        let result = check(&changed, &strict, &store, &target(), now());
        assert!(is_same || result.is_err(), "certificate {at}");
        let mut text = policy.clone().into_bytes();
        random.damage(&mut text, 3);
        let _ = TrustPolicy::parse(&text);
        let mut file = chain.concat();
        random.damage(&mut file, 3);
        let _ = TrustStore::default().add(&file);
    });
}
