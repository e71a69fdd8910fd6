//! Files that nobody meant to be read.

use super::*;

/// Each is an error with a message, or no encrypted file.
#[test]
fn odd_files_end_with_an_answer() {
    for (name, text) in [
        ("x.yaml", "sops: {}\n"),
        ("x.yaml", "sops: [1]\n"),
        ("x.yaml", "- sops\n"),
        ("x.yaml", "sops: &a {age: *a}\n"),
        (
            "x.yaml",
            "sops: {age: [{enc: x}], lastmodified: 2020-01-01T00:00:00Z, mac: x}\n1: x\n",
        ),
        ("x.yaml", "a: 1\nsops: {}\nsops: {}\n"),
        ("x.json", "{\"sops\": {}, \"sops\": {}}"),
        ("x.json", "{\"sops\": {\"age\": [{\"enc\": 1}]}}"),
        ("x.env", "x\n"),
        ("x.env", "sops_mac=x\nsops_age__list_99999999999__map_enc=x\n"),
        ("x.ini", "[sops]\n"),
        ("x.ini", "[sops]\n[sops]\n"),
        ("x.bin", "\u{0}"),
    ] {
        assert!(
            opened(name, text.as_bytes(), &age_keys()).is_err(),
            "{name} {text}"
        );
    }
    assert!(opened("x.env", b"A=\xff\n", &age_keys()).is_err());
}
