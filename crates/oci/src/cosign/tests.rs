use ring::{
    rand::SystemRandom,
    rsa,
    signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    },
};

use testkit::Sigstore;

use super::*;

mod rekor_2;

const RSA_KEY: &str = include_str!("../../../cloud/fixtures/rsa.pem");

type Sign = Box<dyn Fn(&[u8]) -> Vec<u8>>;

fn der(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[kind, 0x82][..], &length, &content].concat()
}

fn pem(algorithm: &[&[u8]], key: &[u8]) -> String {
    let identifier = der(0x30, algorithm);
    let whole = der(0x30, &[&identifier, &der(0x03, &[&[0], key])]);
    format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        STANDARD.encode(whole)
    )
}

fn signers() -> Vec<(Sign, String)> {
    let random = SystemRandom::new();
    let bytes = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
    let ec = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, bytes.as_ref(), &random).unwrap();
    let ec_oid = [0x06, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
    let p256 = [0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    let ec_pem = pem(&[&ec_oid, &p256], ec.public_key().as_ref());
    let bytes = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
    let ed = Ed25519KeyPair::from_pkcs8(bytes.as_ref()).unwrap();
    let ed_pem = pem(&[&[0x06, 3, 0x2b, 0x65, 0x70]], ed.public_key().as_ref());
    let body: String = RSA_KEY.lines().filter(|line| !line.starts_with('-')).collect();
    let rsa = rsa::KeyPair::from_pkcs8(&STANDARD.decode(body).unwrap()).unwrap();
    let rsa_oid = [0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
    let rsa_pem = pem(&[&rsa_oid, &[0x05, 0]], rsa.public_key().as_ref());
    vec![
        (
            Box::new(move |message: &[u8]| ec.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec())
                as Sign,
            ec_pem,
        ),
        (
            Box::new(move |message: &[u8]| ed.sign(message).as_ref().to_vec()),
            ed_pem,
        ),
        (
            Box::new(move |message: &[u8]| {
                let mut signature = vec![0; rsa.public().modulus_len()];
                rsa.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature)
                    .unwrap();
                signature
            }),
            rsa_pem,
        ),
    ]
}

fn payload(digest: &Digest, kind: &str) -> Vec<u8> {
    let value = serde_json::json!({
        "critical": {
            "identity": {"docker-reference": "h/a"},
            "image": {"docker-manifest-digest": digest.to_string()},
            "type": kind,
        },
        "optional": null,
    });
    value.to_string().into_bytes()
}

fn bundle(sign: &Sign, digest: &Digest, predicate: &str) -> Vec<u8> {
    let statement = serde_json::json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"digest": {"sha256": digest.hex()}}],
        "predicateType": predicate,
    })
    .to_string();
    let kind = "application/vnd.in-toto+json";
    let signed = format!("DSSEv1 {} {kind} {} {statement}", kind.len(), statement.len());
    serde_json::json!({
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {"publicKey": {"hint": "x"}},
        "dsseEnvelope": {
            "payload": STANDARD.encode(statement),
            "payloadType": kind,
            "signatures": [{"sig": STANDARD.encode(sign(signed.as_bytes()))}],
        },
    })
    .to_string()
    .into_bytes()
}

fn is_simple_signature(payload: &[u8], signature: &str, digest: &Digest, keys: &[PublicKey]) -> bool {
    let annotations = BTreeMap::from([(SIGNATURE.to_owned(), signature.to_owned())]);
    check_simple(payload, &annotations, digest, &Trust::Keys(keys)).is_ok()
}

fn is_bundle(bundle: &[u8], digest: &Digest, keys: &[PublicKey]) -> bool {
    check_bundle(bundle, digest, &Trust::Keys(keys)).is_ok()
}

#[test]
fn signatures_are_accepted_for_their_digest_and_their_key_alone() {
    let digest = Digest::of(b"manifest");
    let signers = signers();
    let keys: Vec<PublicKey> = signers
        .iter()
        .map(|(_, pem)| PublicKey::from_pem(pem.as_bytes()).unwrap())
        .collect();
    let kind = "cosign container image signature";
    for (at, (sign, _)) in signers.iter().enumerate() {
        let (own, others): (Vec<_>, Vec<_>) = keys.iter().cloned().enumerate().partition(|(of, _)| *of == at);
        let plain = |keys: Vec<(usize, PublicKey)>| keys.into_iter().map(|(_, key)| key).collect::<Vec<_>>();
        let (own, others) = (plain(own), plain(others));
        let good = payload(&digest, kind);
        let signature = STANDARD.encode(sign(&good));
        assert!(is_simple_signature(&good, &signature, &digest, &own), "{at}");
        assert!(is_simple_signature(&good, &signature, &digest, &keys), "{at}");
        assert!(!is_simple_signature(&good, &signature, &digest, &others), "{at}");
        assert!(!is_simple_signature(&good, &signature, &digest, &[]), "{at}");
        assert!(
            !is_simple_signature(&good, &signature, &Digest::of(b"other"), &own),
            "{at}"
        );
        let changed = payload(&Digest::of(b"other"), kind);
        assert!(
            !is_simple_signature(&changed, &signature, &Digest::of(b"other"), &own),
            "{at}"
        );
        let odd = payload(&digest, "attestation");
        assert!(
            !is_simple_signature(&odd, &STANDARD.encode(sign(&odd)), &digest, &own),
            "{at}"
        );
        let whole = bundle(sign, &digest, PREDICATE);
        assert!(
            is_bundle(&whole, &digest, &own) && !is_bundle(&whole, &digest, &others),
            "{at}"
        );
        assert!(!is_bundle(&whole, &Digest::of(b"other"), &own), "{at}");
        let attestation = bundle(sign, &digest, "https://spdx.dev/Document");
        assert!(!is_bundle(&attestation, &digest, &own), "{at}");
    }
}

#[test]
fn keys_of_other_types_and_malformed_ones_are_refused() {
    let dsa = pem(&[&[0x06, 3, 0x2a, 0x03, 0x04]], b"key");
    assert_eq!(
        PublicKey::from_pem(dsa.as_bytes()).unwrap_err(),
        InvalidPublicKey::Unsupported
    );
    for text in [
        "",
        "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----",
        "-----BEGIN PUBLIC KEY-----\n!\n-----END PUBLIC KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----",
        "-----BEGIN PUBLIC KEY-----\nMIQAAAAA\n-----END PUBLIC KEY-----",
    ] {
        assert_eq!(
            PublicKey::from_pem(text.as_bytes()).unwrap_err(),
            InvalidPublicKey::Malformed,
            "{text}"
        );
    }
}

fn verdicts(
    root: &TrustedRoot,
    digest: &Digest,
    (payload, annotations): &Simple,
    bundle: &[u8],
) -> [Result<(), Rejected>; 2] {
    let matches = |signer: &Signer| signer.issuer == ISSUER && signer.subject == SUBJECT;
    let trust = Trust::Identities {
        root,
        matches: &matches,
    };
    [
        check_simple(payload, annotations, digest, &trust),
        check_bundle(bundle, digest, &trust),
    ]
}

type Simple = (Vec<u8>, BTreeMap<String, String>);

const ISSUER: &str = "https://token.actions.example.com";
const SUBJECT: &str = "https://git.example.com/org/app/.github/workflows/release.yaml@refs/tags/v1";

fn both(sigstore: &Sigstore, digest: &Digest, issuer: &str) -> (Simple, Vec<u8>) {
    let (digest, subject) = (digest.to_string(), SUBJECT);
    (
        sigstore.simple(&digest, issuer, subject).unwrap(),
        sigstore.bundle(&digest, issuer, subject).unwrap(),
    )
}

fn root_of(sigstore: &Sigstore, change: impl FnOnce(&mut serde_json::Value)) -> TrustedRoot {
    let mut root: serde_json::Value = serde_json::from_str(&sigstore.trusted_root()).unwrap();
    change(&mut root);
    TrustedRoot::parse(root.to_string().as_bytes()).unwrap()
}

#[test]
fn keyless_signatures_need_the_authority_the_logs_and_the_identity() {
    let (sigstore, other) = (Sigstore::new().unwrap(), Sigstore::new().unwrap());
    let digest = Digest::of(b"manifest");
    let (simple, bundle) = both(&sigstore, &digest, ISSUER);
    let root = root_of(&sigstore, |_| {});
    assert_eq!(verdicts(&root, &digest, &simple, &bundle), [Ok(()), Ok(())]);
    let elsewhere = Digest::of(b"other");
    assert_eq!(
        verdicts(&root, &elsewhere, &simple, &bundle),
        [Err(Rejected::Other); 2]
    );
    let stranger = both(&sigstore, &digest, "https://token.evil.example.com");
    assert_eq!(
        verdicts(&root, &digest, &stranger.0, &stranger.1),
        [Err(Rejected::Identity); 2]
    );
    let of_other: serde_json::Value = serde_json::from_str(&other.trusted_root()).unwrap();
    for (part, expected) in [
        ("certificateAuthorities", Rejected::Chain),
        ("tlogs", Rejected::Log),
        ("ctlogs", Rejected::Unlogged),
    ] {
        let root = root_of(&sigstore, |root| root[part] = of_other[part].clone());
        assert_eq!(
            verdicts(&root, &digest, &simple, &bundle),
            [Err(expected); 2],
            "{part}"
        );
    }
    let ended = serde_json::json!({"start": "2000-01-01T00:00:00Z", "end": "2001-01-01T00:00:00Z"});
    let late = root_of(&sigstore, |root| {
        root["certificateAuthorities"][0]["validFor"] = ended.clone();
    });
    assert_eq!(
        verdicts(&late, &digest, &simple, &bundle),
        [Err(Rejected::Chain); 2]
    );
    let late = root_of(&sigstore, |root| {
        root["tlogs"][0]["publicKey"]["validFor"] = ended;
    });
    assert_eq!(
        verdicts(&late, &digest, &simple, &bundle),
        [Err(Rejected::Log); 2]
    );
    // A root without logs of certificates needs no proof of them.
    let unlogged = root_of(&sigstore, |root| root["ctlogs"] = serde_json::json!([]));
    assert_eq!(verdicts(&unlogged, &digest, &simple, &bundle), [Ok(()), Ok(())]);
}

#[test]
fn keyless_signatures_are_those_of_their_entry_and_their_time() {
    let sigstore = Sigstore::new().unwrap();
    let digest = Digest::of(b"manifest");
    let root = root_of(&sigstore, |_| {});
    let (simple, bundle) = both(&sigstore, &digest, ISSUER);
    let (again, _) = both(&sigstore, &digest, ISSUER);
    let check = |annotations: &BTreeMap<String, String>, bundle: &serde_json::Value| {
        let simple = (simple.0.clone(), annotations.clone());
        verdicts(&root, &digest, &simple, bundle.to_string().as_bytes())
    };
    let parsed: serde_json::Value = serde_json::from_slice(&bundle).unwrap();
    // The entry of another signature, by another certificate.
    let mut mixed = simple.1.clone();
    let entry = "dev.sigstore.cosign/bundle".to_owned();
    mixed.insert(entry.clone(), again.1[&entry].clone());
    let mut unsigned = parsed.clone();
    unsigned["dsseEnvelope"]["signatures"][0]["sig"] = "AAAA".into();
    assert_eq!(check(&mixed, &unsigned), [Err(Rejected::Entry); 2]);
    // A time that the log has not signed.
    let mut old: serde_json::Value = serde_json::from_str(&simple.1[&entry]).unwrap();
    old["Payload"]["integratedTime"] = 1_577_980_801.into();
    mixed.insert(entry.clone(), old.to_string());
    let mut moved = parsed.clone();
    moved["verificationMaterial"]["tlogEntries"][0]["integratedTime"] = "1577980801".into();
    assert_eq!(check(&mixed, &moved), [Err(Rejected::Log); 2]);
    // No entry, or an entry without a time.
    mixed.remove(&entry);
    let mut timeless = parsed.clone();
    timeless["verificationMaterial"]["tlogEntries"][0]
        .as_object_mut()
        .unwrap()
        .remove("inclusionPromise");
    assert_eq!(
        check(&mixed, &timeless),
        [Err(Rejected::Unproven), Err(Rejected::Timeless)]
    );
    // A proof with another root.
    let mut wrong = parsed;
    let proof = &mut wrong["verificationMaterial"]["tlogEntries"][0]["inclusionProof"];
    proof["hashes"] = serde_json::json!([STANDARD.encode([0u8; 32])]);
    assert_eq!(check(&simple.1, &wrong), [Ok(()), Err(Rejected::Log)]);
}

#[test]
fn trusted_roots_are_read_or_refused() {
    let sigstore = Sigstore::new().unwrap();
    let root: serde_json::Value = serde_json::from_str(&sigstore.trusted_root()).unwrap();
    let changed = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut root = root.clone();
        change(&mut root);
        TrustedRoot::parse(root.to_string().as_bytes()).unwrap_err()
    };
    let many = serde_json::Value::Array(vec![root["tlogs"][0].clone(); 33]);
    for (error, expected) in [
        (
            TrustedRoot::parse(b"{").unwrap_err(),
            InvalidTrustedRoot::Malformed,
        ),
        (
            TrustedRoot::parse(&vec![b' '; 2 << 20]).unwrap_err(),
            InvalidTrustedRoot::TooLarge,
        ),
        (
            changed(&|root| root["tlogs"] = serde_json::json!([])),
            InvalidTrustedRoot::Incomplete,
        ),
        (
            changed(&|root| root["tlogs"] = many.clone()),
            InvalidTrustedRoot::TooLarge,
        ),
        (
            changed(&|root| root["tlogs"][0]["publicKey"]["rawBytes"] = "AAAA".into()),
            InvalidTrustedRoot::Key,
        ),
        (
            changed(&|root| root["tlogs"][0]["publicKey"]["validFor"]["start"] = "soon".into()),
            InvalidTrustedRoot::Malformed,
        ),
    ] {
        assert_eq!(error, expected);
    }
}

#[test]
fn fuzz_keyless_signatures_are_never_made_by_nobody() {
    let sigstore = Sigstore::new().unwrap();
    let digest = Digest::of(b"manifest");
    let root = root_of(&sigstore, |_| {});
    let (simple, bundle) = both(&sigstore, &digest, ISSUER);
    let material: serde_json::Value = serde_json::from_slice(&bundle).unwrap();
    let certificate = material["verificationMaterial"]["certificate"]["rawBytes"]
        .as_str()
        .unwrap();
    let certificate = STANDARD.decode(certificate).unwrap();
    testkit::fuzz::run("keyless", |random| {
        let mut changed = certificate.clone();
        let at = random.below(changed.len());
        changed[at] ^= 1 << random.below(8);
        let mut odd = material.clone();
        odd["verificationMaterial"]["certificate"]["rawBytes"] = STANDARD.encode(&changed).into();
        let found = verdicts(&root, &digest, &simple, odd.to_string().as_bytes());
        assert!(
            found[0].is_ok() && found[1].is_err(),
            "byte {at} of the certificate"
        );
        let mut cut = bundle.clone();
        cut.truncate(random.below(bundle.len()));
        assert_eq!(verdicts(&root, &digest, &simple, &cut)[1], Err(Rejected::Other));
        let mut text = sigstore.trusted_root().into_bytes();
        let at = random.below(text.len());
        text[at] = b'!';
        let _ = TrustedRoot::parse(&text);
    });
}

#[test]
fn keys_times_signatures_are_charged_before_they_are_checked() {
    let key = PublicKey::from_pem(signers()[0].1.as_bytes()).unwrap();
    let charges = |keys: usize, body: &[u8]| {
        let keys = vec![key.clone(); keys];
        let mut work = CheckBudget::default();
        (0..SIGNATURES).all(|_| work.charge(body, &Trust::Keys(&keys)).is_ok())
    };
    assert!(charges(100, &[b'a'; 4096]));
    assert!(!charges(100, &[b'a'; 1 << 20]));
    assert!(!charges(6000, b"a"));
    let bundle = format!("[{}]", "{\"sig\": \"\"},".repeat(64));
    assert!(charges(5, bundle.as_bytes()));
    assert!(!charges(100, bundle.as_bytes()));
}
