//! Bundles of cosign 3: an entry of Rekor 2, which has no time, and a timestamp (RFC 3161).

use serde_json::{Value, json};

use super::*;

fn bundle_of(sigstore: &Sigstore, digest: &Digest, time: Option<&str>) -> Value {
    let bundle = sigstore.bundle_with_timestamp(&digest.to_string(), ISSUER, SUBJECT, time);
    serde_json::from_slice(&bundle.unwrap()).unwrap()
}

fn verdict(root: &TrustedRoot, digest: &Digest, bundle: &Value) -> Result<(), Rejected> {
    let matches = |signer: &Signer| signer.issuer == ISSUER && signer.subject == SUBJECT;
    let trust = Trust::Identities {
        root,
        matches: &matches,
    };
    check_bundle(bundle.to_string().as_bytes(), digest, &trust)
}

const TIMESTAMPS: &str = "/verificationMaterial/timestampVerificationData/rfc3161Timestamps";
const ENTRIES: &str = "/verificationMaterial/tlogEntries";
const PROOF: &str = "/verificationMaterial/tlogEntries/0/inclusionProof";
const CERTIFICATE: &str = "/verificationMaterial/certificate";
const SIGNATURES: &str = "/dsseEnvelope/signatures";

#[test]
fn bundles_with_a_timestamp_need_the_log_the_authority_and_the_signature() {
    let (sigstore, other) = (Sigstore::new().unwrap(), Sigstore::new().unwrap());
    let digest = Digest::of(b"manifest");
    let root = root_of(&sigstore, |_| {});
    let good = bundle_of(&sigstore, &digest, None);
    assert_eq!(verdict(&root, &digest, &good), Ok(()));
    assert_eq!(verdict(&root, &Digest::of(b"other"), &good), Err(Rejected::Other));
    let again = bundle_of(&sigstore, &digest, None);
    let foreign = bundle_of(&other, &digest, None);
    let copied = |pointer: &str, from: &Value| {
        let mut bundle = good.clone();
        *bundle.pointer_mut(pointer).unwrap() = from.pointer(pointer).unwrap().clone();
        bundle
    };
    let with = |pointer: &str, value: Value| {
        let mut bundle = good.clone();
        *bundle.pointer_mut(pointer).unwrap() = value;
        bundle
    };
    let checkpoint = format!("{PROOF}/checkpoint/envelope");
    let note = good.pointer(&checkpoint).unwrap().as_str().unwrap();
    let body = format!("{ENTRIES}/0/canonicalizedBody");
    let changed = STANDARD
        .decode(good.pointer(&body).unwrap().as_str().unwrap())
        .unwrap();
    let changed = String::from_utf8(changed).unwrap().replace("P256", "P384");
    let five = vec![good.pointer(ENTRIES).unwrap()[0].clone(); 5];
    let lines = format!("{note}{}", "\u{2014} witness AAAAAAAAAAAA\n".repeat(1000));
    for (what, bundle, expected) in [
        ("no timestamp", with(TIMESTAMPS, json!([])), Rejected::Timeless),
        (
            "another authority",
            copied(TIMESTAMPS, &foreign),
            Rejected::Timestamp,
        ),
        (
            "a timestamp of another signature",
            copied(TIMESTAMPS, &again),
            Rejected::Timestamp,
        ),
        (
            "no timestamp in it",
            with(&format!("{TIMESTAMPS}/0/signedTimestamp"), json!("MAA=")),
            Rejected::Timestamp,
        ),
        (
            "another signature",
            copied(SIGNATURES, &again),
            Rejected::Timestamp,
        ),
        (
            "another certificate",
            copied(CERTIFICATE, &again),
            Rejected::Entry,
        ),
        (
            "a certificate of others",
            copied(CERTIFICATE, &foreign),
            Rejected::Chain,
        ),
        (
            "the entry of another signature",
            copied(ENTRIES, &again),
            Rejected::Entry,
        ),
        (
            "the entry of another log",
            copied(ENTRIES, &foreign),
            Rejected::Log,
        ),
        ("no entry", with(ENTRIES, json!([])), Rejected::Log),
        ("too many entries", with(ENTRIES, json!(five)), Rejected::Other),
        (
            "another body",
            with(&body, json!(STANDARD.encode(changed))),
            Rejected::Log,
        ),
        (
            "another hash",
            with(&format!("{PROOF}/hashes/0"), json!(STANDARD.encode([0; 32]))),
            Rejected::Log,
        ),
        ("no proof", with(PROOF, Value::Null), Rejected::Log),
        (
            "a larger log",
            with(&checkpoint, json!(note.replace("\n2\n", "\n3\n"))),
            Rejected::Log,
        ),
        (
            "a long checkpoint",
            with(&checkpoint, json!(lines)),
            Rejected::Other,
        ),
        (
            "before the certificate",
            bundle_of(&sigstore, &digest, Some("20191231120000Z")),
            Rejected::Chain,
        ),
        (
            "after the certificate",
            bundle_of(&sigstore, &digest, Some("20200201120000Z")),
            Rejected::Chain,
        ),
    ] {
        assert_eq!(verdict(&root, &digest, &bundle), Err(expected), "{what}");
    }
}

#[test]
fn timestamps_need_an_authority_of_the_root() {
    let sigstore = Sigstore::new().unwrap();
    let digest = Digest::of(b"manifest");
    let bundle = bundle_of(&sigstore, &digest, None);
    let none = root_of(&sigstore, |root| root["timestampAuthorities"] = json!([]));
    assert_eq!(verdict(&none, &digest, &bundle), Err(Rejected::Timestamp));
    let ended = root_of(&sigstore, |root| {
        root["timestampAuthorities"][0]["validFor"] =
            json!({"start": "2018-01-01T00:00:00Z", "end": "2019-01-01T00:00:00Z"});
    });
    assert_eq!(verdict(&ended, &digest, &bundle), Err(Rejected::Timestamp));
    let old_log = root_of(&sigstore, |root| {
        root["tlogs"].as_array_mut().unwrap().pop();
    });
    assert_eq!(verdict(&old_log, &digest, &bundle), Err(Rejected::Log));
    let unlogged = root_of(&sigstore, |root| root["ctlogs"] = json!([]));
    assert_eq!(verdict(&unlogged, &digest, &bundle), Ok(()));
}

#[test]
fn timestamps_beside_a_promise_of_the_log_may_be_of_others() {
    let (sigstore, other) = (Sigstore::new().unwrap(), Sigstore::new().unwrap());
    let digest = Digest::of(b"manifest");
    let root = root_of(&sigstore, |_| {});
    let none = root_of(&sigstore, |root| root["timestampAuthorities"] = json!([]));
    let (simple, bundle) = both(&sigstore, &digest, ISSUER);
    let bundle: Value = serde_json::from_slice(&bundle).unwrap();
    let signature = |encoded: &Value| STANDARD.decode(encoded.as_str().unwrap()).unwrap();
    let of_bundle = signature(&bundle["dsseEnvelope"]["signatures"][0]["sig"]);
    let of_simple = signature(&json!(simple.1[SIGNATURE]));
    for authority in [&sigstore, &other] {
        let mut annotations = simple.1.clone();
        let answer = json!({"SignedRFC3161Timestamp": authority.timestamp(&of_simple).unwrap()});
        annotations.insert(
            "dev.sigstore.cosign/rfc3161timestamp".to_owned(),
            answer.to_string(),
        );
        let mut bundle = bundle.clone();
        bundle["verificationMaterial"]["timestampVerificationData"] =
            json!({"rfc3161Timestamps": [{"signedTimestamp": authority.timestamp(&of_bundle).unwrap()}]});
        let (simple, bundle) = ((simple.0.clone(), annotations), bundle.to_string());
        for root in [&root, &none] {
            assert_eq!(
                verdicts(root, &digest, &simple, bundle.as_bytes()),
                [Ok(()), Ok(())]
            );
        }
    }
    let mut annotations = simple.1.clone();
    annotations.insert("dev.sigstore.cosign/rfc3161timestamp".to_owned(), "{}".to_owned());
    let simple = (simple.0, annotations);
    let found = verdicts(&root, &digest, &simple, bundle.to_string().as_bytes());
    assert_eq!(found, [Err(Rejected::Other), Ok(())]);
}

#[test]
fn roots_of_the_public_sigstore_and_without_empty_fields_are_read() {
    let public = sigstore_verify::trust_root::SIGSTORE_PRODUCTION_TRUSTED_ROOT;
    assert!(TrustedRoot::parse(public.as_bytes()).is_ok());
    let sigstore = Sigstore::new().unwrap();
    let digest = Digest::of(b"manifest");
    let (simple, bundle) = both(&sigstore, &digest, ISSUER);
    let root = root_of(&sigstore, |root| {
        root.as_object_mut().unwrap().remove("mediaType");
        root["tlogs"].as_array_mut().unwrap().pop();
        for list in ["tlogs", "ctlogs"] {
            let log = root[list][0].as_object_mut().unwrap();
            for field in ["baseUrl", "hashAlgorithm", "logId"] {
                log.remove(field);
            }
            log["publicKey"]["validFor"] = json!({});
        }
        let authority = root["certificateAuthorities"][0].as_object_mut().unwrap();
        authority.remove("uri");
        authority["validFor"] = json!({});
    });
    assert_eq!(verdicts(&root, &digest, &simple, &bundle), [Ok(()), Ok(())]);
}

#[test]
fn fuzz_bundles_with_a_timestamp_are_never_made_by_nobody() {
    let sigstore = Sigstore::new().unwrap();
    let digest = Digest::of(b"manifest");
    let root = root_of(&sigstore, |_| {});
    let good = bundle_of(&sigstore, &digest, None);
    let pointers = [
        format!("{CERTIFICATE}/rawBytes"),
        format!("{TIMESTAMPS}/0/signedTimestamp"),
        format!("{ENTRIES}/0/canonicalizedBody"),
        format!("{SIGNATURES}/0/sig"),
        "/dsseEnvelope/payload".to_owned(),
    ];
    testkit::fuzz::run("keyless of cosign 3", |random| {
        let mut bundle = good.clone();
        let place = bundle.pointer_mut(random.pick(&pointers).as_str()).unwrap();
        let mut bytes = STANDARD.decode(place.as_str().unwrap()).unwrap();
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
        *place = STANDARD.encode(&bytes).into();
        random.note("bundle", &bundle.to_string());
        let found = verdict(&root, &digest, &bundle);
        // Some bytes of a timestamp are not signed, such as versions.
        assert!(found.is_err() || bundle.pointer(TIMESTAMPS) != good.pointer(TIMESTAMPS));
    });
}
