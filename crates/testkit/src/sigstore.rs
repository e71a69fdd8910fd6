//! A sigstore of its own: a certificate authority for identities, a log of certificates, logs of signatures of both versions of Rekor,
//! and a timestamp authority.

mod timestamp;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ED25519, PublicKeyData as _, SanType, SerialNumber,
    SigningKey as _, date_time_ymd,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use self::timestamp::TimestampAuthority;
use crate::registry::{
    Registry,
    signer::{self, SIGNATURE},
};

/// Time of all signatures: 2 January 2020, noon. Their certificates ended long ago.
const TIME: i64 = 1_577_966_400;
/// The same, as timestamps have it.
const TIME_IN_DER: &str = "20200102120000Z";
const LOG: &str = "log.example.com";
const LOG_2: &str = "log2.example.com";

#[derive(Debug)]
pub struct Sigstore {
    root: Vec<u8>,
    between: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
    /// The public key that signs certificates.
    issuer_key: Vec<u8>,
    certificates: KeyPair,
    signatures: KeyPair,
    /// Signs for Rekor 2, with Ed25519.
    signatures_2: KeyPair,
    timestamps: TimestampAuthority,
}

struct Identity {
    key: KeyPair,
    certificate: Certificate,
}

impl Sigstore {
    pub fn new() -> Result<Self> {
        let authority = |name: &str| -> Result<CertificateParams> {
            let mut ca = CertificateParams::new(Vec::new())?;
            ca.distinguished_name.push(DnType::CommonName, name);
            ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            ca.key_usages = vec![KeyUsagePurpose::KeyCertSign];
            Ok(ca)
        };
        let (root, root_key) = (authority("root of sigstore")?, KeyPair::generate()?);
        let root_der = root.self_signed(&root_key)?.der().to_vec();
        let root = Issuer::new(root, root_key);
        let mut between = authority("authority of sigstore")?;
        between.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        let key = KeyPair::generate()?;
        let between_der = between.signed_by(&key, &root)?.der().to_vec();
        Ok(Self {
            root: root_der,
            between: between_der,
            issuer_key: key.subject_public_key_info(),
            issuer: Issuer::new(between, key),
            certificates: KeyPair::generate()?,
            signatures: KeyPair::generate()?,
            signatures_2: KeyPair::generate_for(&PKCS_ED25519)?,
            timestamps: TimestampAuthority::new()?,
        })
    }

    #[must_use]
    pub fn trusted_root(&self) -> String {
        let period = json!({"start": "2019-01-01T00:00:00Z"});
        let log = |key: &KeyPair, details: &str, id: &[u8]| {
            let der = key.subject_public_key_info();
            json!({
                "baseUrl": "https://log.example.com",
                "hashAlgorithm": "SHA2_256",
                "publicKey": {"rawBytes": STANDARD.encode(&der), "keyDetails": details, "validFor": period},
                "logId": {"keyId": STANDARD.encode(id)},
            })
        };
        let ecdsa = |key: &KeyPair| {
            let id = Sha256::digest(key.subject_public_key_info());
            log(key, "PKIX_ECDSA_P256_SHA_256", &id)
        };
        let second = log(&self.signatures_2, "PKIX_ED25519", &self.log_2_id());
        let chain = |chain: [&Vec<u8>; 2]| chain.map(|der| json!({"rawBytes": STANDARD.encode(der)}));
        let [leaf, root] = &self.timestamps.chain;
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [ecdsa(&self.signatures), second],
            "certificateAuthorities": [{
                "uri": "https://ca.example.com",
                "certChain": {"certificates": chain([&self.between, &self.root])},
                "validFor": period,
            }],
            "ctlogs": [ecdsa(&self.certificates)],
            "timestampAuthorities": [{"certChain": {"certificates": chain([leaf, root])}, "validFor": period}],
        })
        .to_string()
    }

    /// Signs the artifact with this digest for an identity; returns the payload and the annotations of its layer.
    pub fn simple(
        &self,
        digest: &str,
        issuer: &str,
        subject: &str,
    ) -> Result<(Vec<u8>, BTreeMap<String, String>)> {
        let identity = self.identity(issuer, subject)?;
        let payload = signer::payload(digest);
        let signature = STANDARD.encode(identity.key.sign(payload.as_bytes())?);
        let pem = identity.certificate.pem();
        let body = STANDARD.encode(
            json!({
                "apiVersion": "0.0.1",
                "kind": "hashedrekord",
                "spec": {
                    "data": {"hash": {"algorithm": "sha256", "value": hex::encode(Sha256::digest(&payload))}},
                    "signature": {"content": signature, "publicKey": {"content": STANDARD.encode(&pem)}},
                },
            })
            .to_string(),
        );
        let entry = json!({
            "SignedEntryTimestamp": self.promise(&body)?,
            "Payload": {"body": body, "integratedTime": TIME, "logIndex": 7, "logID": hex::encode(self.log_id())},
        });
        let annotations = [
            (SIGNATURE, signature),
            ("dev.sigstore.cosign/certificate", pem),
            ("dev.sigstore.cosign/bundle", entry.to_string()),
        ];
        let annotations = annotations.map(|(name, value)| (name.to_owned(), value));
        Ok((payload.into_bytes(), BTreeMap::from(annotations)))
    }

    /// Signs the artifact with this digest for an identity in the form of newer releases; returns the bundle.
    pub fn bundle(&self, digest: &str, issuer: &str, subject: &str) -> Result<Vec<u8>> {
        let identity = self.identity(issuer, subject)?;
        let (statement, signed) = signer::statement(digest)?;
        let signature = identity.key.sign(&signed)?;
        let body = json!({
            "apiVersion": "0.0.1",
            "kind": "dsse",
            "spec": {
                // The log has it of the envelope as it was sent, so that nobody can compare it.
                "envelopeHash": {"algorithm": "sha256", "value": hex::encode(Sha256::digest(&signed))},
                "payloadHash": {"algorithm": "sha256", "value": hex::encode(Sha256::digest(&statement))},
                "signatures": [{
                    "signature": STANDARD.encode(&signature),
                    "verifier": STANDARD.encode(identity.certificate.pem()),
                }],
            },
        })
        .to_string();
        let encoded = STANDARD.encode(&body);
        let material = json!({
            "certificate": {"rawBytes": STANDARD.encode(identity.certificate.der())},
            "tlogEntries": [{
                "logIndex": "7",
                "logId": {"keyId": STANDARD.encode(self.log_id())},
                "kindVersion": {"kind": "dsse", "version": "0.0.1"},
                "integratedTime": TIME.to_string(),
                "inclusionPromise": {"signedEntryTimestamp": self.promise(&encoded)?},
                "inclusionProof": self.proof(body.as_bytes())?,
                "canonicalizedBody": encoded,
            }],
        });
        Ok(signer::bundle(&statement, &signature, &material))
    }

    /// Signs the artifact with this digest for an identity as cosign 3 does with Rekor 2; returns the bundle, whose time is that in a
    /// timestamp: `time` (as `20200102120000Z`) or noon of 2 January 2020.
    pub fn bundle_with_timestamp(
        &self,
        digest: &str,
        issuer: &str,
        subject: &str,
        time: Option<&str>,
    ) -> Result<Vec<u8>> {
        let identity = self.identity(issuer, subject)?;
        let (statement, signed) = signer::statement(digest)?;
        let signature = identity.key.sign(&signed)?;
        let certificate = json!({"rawBytes": STANDARD.encode(identity.certificate.der())});
        let body = json!({
            "apiVersion": "0.0.2",
            "kind": "hashedrekord",
            "spec": {"hashedRekordV002": {
                "data": {"algorithm": "SHA2_256", "digest": STANDARD.encode(Sha256::digest(&signed))},
                "signature": {
                    "content": STANDARD.encode(&signature),
                    "verifier": {"keyDetails": "PKIX_ECDSA_P256_SHA_256", "x509Certificate": certificate},
                },
            }},
        })
        .to_string();
        let timestamp = self
            .timestamps
            .response(&signature, time.unwrap_or(TIME_IN_DER))?;
        let material = json!({
            "certificate": certificate,
            "tlogEntries": [{
                "logIndex": "1",
                "logId": {"keyId": STANDARD.encode(self.log_2_id())},
                "kindVersion": {"kind": "hashedrekord", "version": "0.0.2"},
                "inclusionProof": self.proof_of_two(body.as_bytes())?,
                "canonicalizedBody": STANDARD.encode(&body),
            }],
            "timestampVerificationData": {
                "rfc3161Timestamps": [{"signedTimestamp": STANDARD.encode(timestamp)}],
            },
        });
        Ok(signer::bundle(&statement, &signature, &material))
    }

    /// Signs the artifact with this digest for an identity: pushes the tag `sha256-<hex>.sig`.
    pub async fn sign(
        &self,
        registry: &Registry,
        repository: &str,
        digest: &str,
        issuer: &str,
        subject: &str,
    ) -> Result<()> {
        let (payload, annotations) = self.simple(digest, issuer, subject)?;
        signer::push_simple(registry, repository, digest, &payload, &annotations).await
    }

    /// Signs the artifact with this digest for an identity: pushes a bundle that refers to it.
    pub async fn attach(
        &self,
        registry: &Registry,
        repository: &str,
        digest: &str,
        issuer: &str,
        subject: &str,
    ) -> Result<()> {
        let bundle = self.bundle(digest, issuer, subject)?;
        signer::push_bundle(registry, repository, digest, &bundle).await
    }

    /// Signs the artifact with this digest for an identity as cosign 3 does with Rekor 2: pushes a bundle that refers to it.
    pub async fn attach_with_timestamp(
        &self,
        registry: &Registry,
        repository: &str,
        digest: &str,
        issuer: &str,
        subject: &str,
    ) -> Result<()> {
        let bundle = self.bundle_with_timestamp(digest, issuer, subject, None)?;
        signer::push_bundle(registry, repository, digest, &bundle).await
    }

    /// Returns the response of the timestamp authority for a signature, in base64.
    pub fn timestamp(&self, signature: &[u8]) -> Result<String> {
        Ok(STANDARD.encode(self.timestamps.response(signature, TIME_IN_DER)?))
    }

    fn log_id(&self) -> Vec<u8> {
        Sha256::digest(self.signatures.subject_public_key_info()).to_vec()
    }

    /// The signature of the log over an entry and its time.
    fn promise(&self, body: &str) -> Result<String> {
        let id = hex::encode(self.log_id());
        let signed = format!(r#"{{"body":"{body}","integratedTime":{TIME},"logID":"{id}","logIndex":7}}"#);
        Ok(STANDARD.encode(self.signatures.sign(signed.as_bytes())?))
    }

    /// The proof that an entry is in a log of its own.
    fn proof(&self, body: &[u8]) -> Result<Value> {
        let root = STANDARD.encode(Sha256::new().chain_update([0]).chain_update(body).finalize());
        let (id, key) = (self.log_id(), &self.signatures);
        Ok(json!({
            "logIndex": "0", "treeSize": "1", "rootHash": root, "hashes": [],
            "checkpoint": {"envelope": checkpoint(LOG, 1, &root, &id, key)?},
        }))
    }

    /// The proof that an entry is the second one of Rekor 2.
    fn proof_of_two(&self, body: &[u8]) -> Result<Value> {
        let [first, own] =
            [&b"first"[..], body].map(|body| Sha256::new().chain_update([0]).chain_update(body).finalize());
        let root = Sha256::new()
            .chain_update([1])
            .chain_update(first)
            .chain_update(own)
            .finalize();
        let root = STANDARD.encode(root);
        let (id, key) = (self.log_2_id(), &self.signatures_2);
        Ok(json!({
            "logIndex": "1", "treeSize": "2", "rootHash": root, "hashes": [STANDARD.encode(first)],
            "checkpoint": {"envelope": checkpoint(LOG_2, 2, &root, &id, key)?},
        }))
    }

    /// The ID of a key in signed notes, as Rekor 2 has it.
    fn log_2_id(&self) -> Vec<u8> {
        let key = self.signatures_2.public_key_raw();
        let id = Sha256::new()
            .chain_update(LOG_2)
            .chain_update([b'\n', 1])
            .chain_update(key);
        id.finalize().to_vec()
    }

    /// Makes a key with a certificate that the log of certificates has.
    fn identity(&self, issuer: &str, subject: &str) -> Result<Identity> {
        let mut leaf = CertificateParams::new(Vec::new())?;
        leaf.serial_number = Some(SerialNumber::from(vec![7]));
        leaf.not_before = date_time_ymd(2020, 1, 1);
        leaf.not_after = date_time_ymd(2020, 1, 3);
        leaf.distinguished_name = rcgen::DistinguishedName::new();
        leaf.subject_alt_names = vec![SanType::URI(subject.try_into()?)];
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        let text = [&[0x0c, u8::try_from(issuer.len())?], issuer.as_bytes()].concat();
        let id = [1, 3, 6, 1, 4, 1, 57264, 1, 8];
        leaf.custom_extensions = vec![CustomExtension::from_oid_content(&id, text)];
        let key = KeyPair::generate()?;
        let unlogged = leaf.clone().signed_by(&key, &self.issuer)?;
        let proofs = self.logged(unlogged.der())?;
        let id = [1, 3, 6, 1, 4, 1, 11129, 2, 4, 2];
        leaf.custom_extensions
            .push(CustomExtension::from_oid_content(&id, proofs));
        let certificate = leaf.signed_by(&key, &self.issuer)?;
        Ok(Identity { key, certificate })
    }

    /// The proof of the log of certificates for a certificate without it, as an extension has it.
    fn logged(&self, certificate: &[u8]) -> Result<Vec<u8>> {
        let (signed, _) = first(first(certificate).context("no certificate")?.1).context("no certificate")?;
        let time = u64::try_from(TIME * 1000)?.to_be_bytes();
        let length = u32::try_from(signed.len())?.to_be_bytes();
        let message = [
            &[0, 0][..],
            &time,
            &[0, 1],
            &Sha256::digest(&self.issuer_key),
            &length[1..],
            signed,
            &[0, 0],
        ]
        .concat();
        let signature = self.certificates.sign(&message)?;
        let id = Sha256::digest(self.certificates.subject_public_key_info());
        let sized = |bytes: &[u8]| -> Result<Vec<u8>> {
            Ok([&u16::try_from(bytes.len())?.to_be_bytes()[..], bytes].concat())
        };
        let proof = [&[0][..], &id, &time, &[0, 0, 4, 3], &sized(&signature)?].concat();
        let list = sized(&sized(&proof)?)?;
        Ok([&[0x04, u8::try_from(list.len())?], list.as_slice()].concat())
    }
}

/// The state of a log as a signed note.
fn checkpoint(origin: &str, size: u64, root: &str, id: &[u8], key: &KeyPair) -> Result<String> {
    let note = format!("{origin}\n{size}\n{root}\n");
    let hint = id.get(..4).context("an ID is a hash")?;
    let signature = [hint, &key.sign(note.as_bytes())?].concat();
    Ok(format!(
        "{note}\n\u{2014} {origin} {}\n",
        STANDARD.encode(signature)
    ))
}

/// Returns the first element of DER as it is written, and its content.
fn first(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::from(*der.get(1)?);
    let (head, length) = match length {
        0x81 => (3, usize::from(*der.get(2)?)),
        0x82 => (4, usize::from(u16::from_be_bytes([*der.get(2)?, *der.get(3)?]))),
        length => (2, length),
    };
    Some((der.get(..head + length)?, der.get(head..head + length)?))
}
