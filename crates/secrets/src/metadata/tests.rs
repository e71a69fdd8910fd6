//! Tests of reading metadata.

use tree::Budget;

use super::*;

const TAIL: &str = "lastmodified: '2020-01-01T00:00:00.5Z'\nmac: m\n";

fn read(text: &str) -> Result<Metadata, String> {
    let value = yaml::read::kustomize(format!("{text}{TAIL}"), &Budget::default())
        .unwrap()
        .value;
    Metadata::read(&value).map_err(|error| error.to_string())
}

#[test]
fn keys_are_of_seven_kinds() {
    let text = "\
kms: [{arn: a, role: r, context: {k: v, n: null}, aws_profile: p, enc: e}]
gcp_kms: [{resource_id: a, enc: e}]
azure_kv: [{vault_url: u, name: n, version: v, enc: e}]
hc_vault: [{vault_address: a, engine_path: e, key_name: k, enc: e}]
pgp: [{fp: ABC, enc: e}]
age: [{recipient: age1, enc: e}]
hckms: [{key_id: 'r:k', enc: e}]
key_groups: [{age: [{recipient: no, enc: e}]}]
";
    let metadata = read(text).unwrap();
    assert_eq!(metadata.last_modified, "2020-01-01T00:00:00Z");
    assert_eq!(metadata.groups.len(), 1);
    let mut keys = metadata.groups[0].clone();
    keys.sort_by_key(Master::rank);
    let names: Vec<String> = keys.iter().map(Master::name).collect();
    assert_eq!(
        names,
        ["age1", "ABC", "a+r", "a", "r:k", "u/keys/n/v", "a/v1/e/keys/k"]
    );
    let MasterKind::Aws { context, .. } = &keys[2].kind else {
        panic!("{keys:?}");
    };
    assert_eq!(
        context.clone().into_iter().collect::<Vec<_>>(),
        [("k".to_owned(), "v".to_owned())]
    );
}

#[test]
fn groups_share_a_key() {
    let groups = "key_groups: [{age: [{recipient: a, enc: e}]}, {pgp: [{fp: b, enc: e}], hc_vault: null}]\n";
    for (threshold, expected) in [
        ("2", Some(2)),
        ("'2'", Some(2)),
        ("2.0", Some(2)),
        ("3", None),
        ("x", None),
    ] {
        let found = read(&format!("{groups}shamir_threshold: {threshold}\n"));
        assert_eq!(
            found.as_ref().ok().map(|found| found.threshold),
            expected,
            "{threshold} {found:?}"
        );
    }
    assert_eq!(read(groups).unwrap().threshold, 0);
}

#[test]
fn contradictory_metadata_is_refused() {
    let age = "age: [{recipient: a, enc: e}]\n";
    for (text, message) in [
        (String::new(), "sops metadata: no keys found in file"),
        ("age: {}\n".to_owned(), "sops metadata: `age` is no list of maps"),
        ("age: [x]\n".to_owned(), "sops metadata: `age` is no list of maps"),
        (
            format!("{age}encrypted_suffix: a\nencrypted_regex: b\n"),
            "sops metadata: more than one of the rules that select values: encrypted_suffix, encrypted_regex",
        ),
        (
            format!("{age}encrypted_regex: '('\n"),
            "sops metadata: `encrypted_regex` is no regular expression that can be used",
        ),
        (
            format!("age: [{}]\n", "{enc: e}, ".repeat(101)),
            "sops metadata: more than 100 keys in file",
        ),
        (
            format!("{age}version: []\nunencrypted_suffix: {{}}\n"),
            "sops metadata: `unencrypted_suffix` is no text",
        ),
    ] {
        assert_eq!(read(&text).unwrap_err(), message, "{text}");
    }
}
