use ring::{
    rand::SystemRandom,
    rsa,
    signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    },
};

use super::*;

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

/// A signer of each type, and its public key.
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
