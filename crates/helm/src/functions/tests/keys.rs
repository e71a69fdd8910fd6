//! Keys and certificates.

use std::cell::Cell;

use tree::Budget;

use super::render_in;
use crate::functions::{Environment, keys::decode_pem};

struct Counting(Cell<u64>);

impl Environment for Counting {
    fn now(&self) -> (i64, u32) {
        (1_700_000_000, 0)
    }

    fn fill(&self, bytes: &mut [u8]) {
        for byte in bytes {
            let next = self
                .0
                .get()
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            self.0.set(next);
            *byte = (next >> 56) as u8;
        }
    }
}

fn made(template: &str) -> String {
    render_in(template, &Budget::default(), || Counting(Cell::new(7))).unwrap()
}

#[test]
fn key_functions_print_pem() {
    let template = r#"
{{- $ca := genCA "my-ca" 3 }}
{{- $cert := genSignedCert "host" (list "10.0.0.1") (list "a.example" "*.b") 365 $ca }}
{{- $ec := genPrivateKey "ecdsa" }}
{{- $self := genSelfSignedCertWithKey "self" nil nil 1 $ec }}
{{- $again := genSignedCertWithKey "again" nil nil 1 (genCAWithKey "ec-ca" 1 (genPrivateKey "ecdsa")) (genPrivateKey "ed25519") }}
{{- $custom := buildCustomCert (b64enc $ca.Cert) (b64enc $ca.Key) -}}
{{ $ca.Cert }}{{ $ca.Key }}{{ $cert.Cert }}{{ $cert.Key }}{{ $ec }}{{ $self.Cert }}{{ $again.Cert }}{{ $again.Key }}
{{- eq $self.Key $ec }} {{ eq $custom.Cert $ca.Cert }} {{ typeOf $ca }}"#;
    let text = made(template);
    let labels: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("-----BEGIN "))
        .collect();
    let (cert, rsa) = ("CERTIFICATE-----", "RSA PRIVATE KEY-----");
    let others = ["EC PRIVATE KEY-----", cert, cert, "PRIVATE KEY-----"];
    assert_eq!(labels, [[cert, rsa, cert, rsa], others].concat());
    assert!(text.ends_with("true true sprig.certificate"), "{text}");
}

#[test]
fn only_ca_certificates_have_a_subject_key_identifier() {
    let template = r#"{{ $ca := genCA "x" 1 }}{{ $ca.Cert }}{{ (genSignedCert "y" nil nil 1 $ca).Cert }}"#;
    let text = made(template);
    let ends = |cert: &str| {
        let (_, der) = decode_pem(cert).unwrap();
        let has = |part: &[u8]| der.windows(part.len()).any(|found| found == part);
        // Basic constraints, critical; the identifiers of its own key and its issuer's.
        (
            has(&[0x55, 29, 19, 1, 1, 0xff, 4, 5, 0x30, 3, 1, 1, 0xff]),
            has(&[0x55, 29, 19, 1, 1, 0xff, 4, 2, 0x30, 0]),
            has(&[0x55, 29, 14]),
            has(&[0x55, 29, 35]),
        )
    };
    let (authority, leaf) = text.split_at(text.rfind("-----BEGIN").unwrap());
    assert_eq!(ends(authority), (true, false, true, false));
    assert_eq!(ends(leaf), (false, true, false, true));
}

#[test]
fn the_same_randomness_makes_the_same_keys() {
    let template = r#"{{ $ca := genCA "x" 1 }}{{ $ca.Cert }}{{ $ca.Key }}{{ genPrivateKey "ecdsa" }}"#;
    assert_eq!(made(template), made(template));
}

#[test]
fn key_functions_refuse_invalid_arguments() {
    for (template, error) in [
        (r#"{{ genPrivateKey "dsa" }}"#, "not supported"),
        (
            r#"{{ genCAWithKey "x" 1 "y" }}"#,
            "parsing private key: no PEM data in input",
        ),
        (
            r#"{{ genSelfSignedCert "x" (list 1) nil 1 }}"#,
            "error parsing ip: 1 is not a string",
        ),
        (
            r#"{{ genSelfSignedCert "x" (list "y") nil 1 }}"#,
            "error parsing ip: y",
        ),
        (
            r#"{{ genSelfSignedCert "x" nil (list 1) 1 }}"#,
            "error processing alternate dns name: 1 is not a string",
        ),
        (
            r#"{{ buildCustomCert "!" "" }}"#,
            "unable to decode base64 certificate",
        ),
        (r#"{{ buildCustomCert "" "" }}"#, "unable to decode certificate"),
    ] {
        let found = render_in(template, &Budget::default(), || Counting(Cell::new(7))).unwrap_err();
        assert!(found.contains(error), "{template}: {found}");
    }
}
