//! Files that sops encrypted, decrypted as it does. The keys in `fixtures` were made for these tests alone.

mod damage;

use std::{fs, future::Future, path::PathBuf};

use tree::{Budget, Limits};

use crate::{Decrypted, Error, File, Format, Keys, Mac, decrypt, is_encrypted};

pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn text(name: &str) -> String {
    String::from_utf8(fixture(name)).unwrap()
}

pub(crate) fn age_keys() -> Keys {
    let mut keys = Keys::new();
    keys.add_age(&text("age.txt").into()).unwrap();
    keys
}

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(future)
}

pub(crate) fn opened(name: &str, bytes: &[u8], keys: &Keys) -> Result<Option<Decrypted>, Error> {
    wait(decrypt(Format::of_name(name), bytes, keys, &Budget::default()))
}

fn check(name: &str, clear: &str, keys: &Keys) {
    let found = opened(name, &fixture(name), keys).unwrap().unwrap();
    let expected = fixture(clear);
    assert_eq!(
        String::from_utf8_lossy(&found.content),
        String::from_utf8_lossy(&expected),
        "{name}"
    );
    assert_eq!(
        (found.content == expected, found.mac),
        (true, Mac::Verified),
        "{name}"
    );
}

#[test]
fn every_format_is_printed_as_sops_prints_it() {
    for name in [
        "notes.yaml",
        "notes.json",
        "shop.env",
        "shop.ini",
        "blob.bin",
        "secret.yaml",
        "comments.yaml",
    ] {
        check(name, &format!("{name}.clear"), &age_keys());
    }
    check("mac-only.yaml", "secret.yaml.clear", &age_keys());
}

#[test]
fn pgp_and_ssh_keys_open_files() {
    for (name, file) in [("rsa", "rsa.asc"), ("ecc", "ecc.asc")] {
        let mut keys = Keys::new();
        keys.add_pgp(&fixture(file).into()).unwrap();
        check(&format!("{name}.yaml"), "secret.yaml.clear", &keys);
    }
    for name in ["ssh-ed25519", "ssh-rsa"] {
        let mut keys = Keys::new();
        keys.add_ssh(&text(name).into()).unwrap();
        check(&format!("{name}.yaml"), "secret.yaml.clear", &keys);
    }
}

/// Two of three groups are enough: one without keys here, one of RSA, and one of age or ECC.
#[test]
fn groups_of_keys_open_a_file_together() {
    let with = |files: &[&str], age: bool| {
        let mut keys = if age { age_keys() } else { Keys::new() };
        for file in files {
            keys.add_pgp(&fixture(file).into()).unwrap();
        }
        keys
    };
    check("shamir.yaml", "secret.yaml.clear", &with(&["rsa.asc"], true));
    check(
        "shamir.yaml",
        "secret.yaml.clear",
        &with(&["rsa.asc", "ecc.asc"], false),
    );
    let error = opened("shamir.yaml", &fixture("shamir.yaml"), &with(&["rsa.asc"], false)).unwrap_err();
    let message = error.to_string();
    assert!(
        message
            .starts_with("cannot get sops data key: 2 groups of keys have to open it, 1 did: group 0: age1"),
        "{message}"
    );
    assert!(message.contains("group 2: age1"), "{message}");
}

#[test]
fn without_a_key_each_one_says_why() {
    let error = opened("shop.env", &fixture("shop.env"), &Keys::new())
        .unwrap_err()
        .to_string();
    let expected = "cannot get sops data key: no key opens the file: group 0: age1";
    assert!(error.starts_with(expected), "{error}");
    assert_eq!(error.matches("no age identity is given").count(), 2, "{error}");
    let mut keys = Keys::new();
    keys.add_age(&text("age.txt").lines().last().unwrap().to_owned().into())
        .unwrap();
    let error = opened("notes.yaml", &fixture("notes.yaml"), &keys)
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("no age identity that is given matches"),
        "{error}"
    );
}

#[test]
fn changed_files_do_not_match_the_mac() {
    let changed = text("secret.yaml").replace("kind: Secret", "kind: ConfigMap");
    let found = opened("secret.yaml", changed.as_bytes(), &age_keys())
        .unwrap()
        .unwrap();
    assert_eq!(found.mac, Mac::Mismatch);
    assert!(
        String::from_utf8(found.content)
            .unwrap()
            .contains("kind: ConfigMap\n")
    );
    // With this option only encrypted values count.
    let changed = text("mac-only.yaml").replace("name: shop", "name: store");
    let found = opened("x.yaml", changed.as_bytes(), &age_keys())
        .unwrap()
        .unwrap();
    assert_eq!(found.mac, Mac::Verified);
    let without: String = text("secret.yaml")
        .lines()
        .filter(|line| !line.trim().starts_with("mac:"))
        .map(|line| format!("{line}\n"))
        .collect();
    let found = opened("x.yaml", without.as_bytes(), &age_keys())
        .unwrap()
        .unwrap();
    assert_eq!(found.mac, Mac::Absent);
}

#[test]
fn a_value_under_another_key_is_refused() {
    let moved = text("secret.yaml").replace("password:", "passwort:");
    let error = opened("secret.yaml", moved.as_bytes(), &age_keys()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "error decrypting sops tree: stringData.passwort: it was encrypted with another key, under another path, or \
         changed since"
    );
}

#[test]
fn files_without_metadata_are_not_encrypted() {
    let budget = Budget::default();
    for (name, text) in [
        ("x.yaml", "a: sops\n"),
        ("x.yaml", ""),
        ("x.json", "{\"a\": \"sops\"}"),
        ("x.env", "A=sops\n"),
        ("x.env", "sops_enabled=yes\n"),
        ("x.ini", "[a]\nb=sops\n"),
        // None of these is valid in its format, or could be encrypted.
        ("x.yaml", "- sops\n- lastmodified\n"),
        ("x.yaml", "1: sops lastmodified\n"),
        ("x.yaml", "sops: ["),
        ("x.json", "sops {"),
        ("x.env", "sops\n"),
        ("x.ini", "sops\n"),
    ] {
        assert!(
            !is_encrypted(Format::of_name(name), text.as_bytes(), &budget),
            "{text}"
        );
        assert_eq!(
            opened(name, text.as_bytes(), &Keys::new()).unwrap(),
            None,
            "{text}"
        );
    }
    assert!(is_encrypted(Format::Yaml, &fixture("notes.yaml"), &budget));
    assert!(!is_encrypted(Format::Binary, b"sops", &budget));
}

#[test]
fn formats_can_be_changed() {
    let file = |name: &str| {
        let read = File::read(Format::of_name(name), &fixture(name), &Budget::default());
        read.unwrap().unwrap()
    };
    let printed = |name: &str, format| {
        let key = wait(file(name).data_key(&age_keys())).unwrap();
        let found = file(name).decrypt_as(format, &key, &Budget::default());
        found.map(|found| String::from_utf8_lossy(&found.content).into_owned())
    };
    let json = printed("secret.yaml", Format::Json).unwrap();
    assert!(json.contains("\t\t\"password\": \"hunter2\"\n"), "{json}");
    let yaml = printed("shop.env", Format::Yaml).unwrap();
    assert!(
        yaml.starts_with("# the shop\nUSER: shop\nPASSWORD: |-\n    a b=c\n    d\n"),
        "{yaml}"
    );
    assert!(printed("secret.yaml", Format::Dotenv).is_err());
    assert!(printed("notes.yaml", Format::Json).is_err());
    assert!(printed("secret.yaml", Format::Binary).is_err());
}

#[test]
fn files_with_the_same_key_say_so() {
    let id = |name: &str| {
        let read = File::read(Format::of_name(name), &fixture(name), &Budget::default());
        read.unwrap().unwrap().key_id()
    };
    assert_eq!(id("notes.yaml"), id("notes.yaml"));
    assert_ne!(id("notes.yaml"), id("notes.json"));
}

#[test]
fn limits_are_errors() {
    let tight = |limits| Budget::new(limits);
    let bytes = fixture("notes.yaml");
    let read = |budget: &Budget| {
        wait(decrypt(Format::Yaml, &bytes, &age_keys(), budget))
            .unwrap_err()
            .to_string()
    };
    let size = tight(Limits {
        file_bytes: 100,
        ..Limits::default()
    });
    assert_eq!(
        read(&size),
        "the limit of 100 bytes of one encrypted file was reached"
    );
    let steps = tight(Limits {
        steps: 50,
        ..Limits::default()
    });
    assert_eq!(read(&steps), "the limit of 50 steps was reached");
    let depth = "[".repeat(500) + &"]".repeat(500);
    let deep = format!("{{\"sops\": \"lastmodified\", \"a\": {depth}}}");
    assert!(File::read(Format::Json, deep.as_bytes(), &Budget::default()).is_err());
}

#[test]
fn nothing_secret_is_printed() {
    let found = opened("secret.yaml", &fixture("secret.yaml"), &age_keys()).unwrap();
    let shown = format!("{found:?} {:?}", age_keys());
    assert!(
        !shown.contains("hunter2") && !shown.contains("AGE-SECRET"),
        "{shown}"
    );
}

/// The example in docs/kluctl/sops.md.
#[test]
fn the_example_of_the_documentation_is_true() {
    let page = include_str!("../../../docs/kluctl/sops.md");
    let blocks: Vec<&str> = page.split("```").skip(1).step_by(2).collect();
    let [key, encrypted, clear] = blocks[..] else {
        panic!("{} blocks", blocks.len());
    };
    let mut keys = Keys::new();
    keys.add_age(&key.to_owned().into()).unwrap();
    let bytes = encrypted.strip_prefix("yaml\n").unwrap();
    let found = opened("x.yaml", bytes.as_bytes(), &keys).unwrap().unwrap();
    assert_eq!(
        String::from_utf8(found.content).unwrap(),
        clear.strip_prefix("yaml\n").unwrap()
    );
    assert_eq!(found.mac, Mac::Verified);
}
