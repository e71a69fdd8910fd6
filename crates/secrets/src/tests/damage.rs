//! Damaged and hostile files.

use super::*;

#[test]
fn odd_files_end_with_an_answer() {
    for (name, text) in [
        ("x.yaml", "sops: {lastmodified: x}\n"),
        ("x.yaml", "sops: [lastmodified]\n"),
        ("x.yaml", "sops: [lastmodified\n"),
        ("x.yaml", "sops: &a {age: *a, lastmodified: x}\n"),
        (
            "x.yaml",
            "sops: {age: [{enc: x}], lastmodified: 2020-01-01T00:00:00Z, mac: x}\n1: x\n",
        ),
        ("x.yaml", "a: 1\nsops: {lastmodified: x}\nsops: {}\n"),
        ("x.json", "{\"sops\": {\"lastmodified\": 1}, \"sops\": {}}"),
        (
            "x.json",
            "{\"sops\": {\"age\": [{\"enc\": 1}], \"lastmodified\": 1}}",
        ),
        ("x.json", "{\"sops\": {\"lastmodified\": 1}"),
        ("x.env", "sops_lastmodified=x\nx\n"),
        (
            "x.env",
            "sops_lastmodified=x\nsops_age__list_99999999999__map_enc=x\n",
        ),
        ("x.ini", "[sops]\nlastmodified=x\n"),
        ("x.ini", "[sops]\nlastmodified=x\n[sops]\n"),
        ("x.bin", "\u{0} sops lastmodified"),
    ] {
        assert!(
            opened(name, text.as_bytes(), &age_keys()).is_err(),
            "{name} {text}"
        );
    }
    assert!(opened("x.env", b"sops_lastmodified=\xff\n", &age_keys()).is_err());
}
