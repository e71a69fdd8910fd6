//! Keys from the environment and from Secrets, and key services that look at what they are asked.

mod services;

use std::{collections::BTreeMap, fs, path::Path};

use super::*;
use crate::{
    Format, decrypt,
    tests::{fixture, wait},
};

fn text(name: &str) -> String {
    String::from_utf8(fixture(name)).unwrap()
}

fn from(variables: &[(&str, &str)]) -> Keys {
    let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
    Keys::from_environment(&|name| variables.get(name).map(|value| (*value).to_owned()))
}

fn outcome(file: &str, keys: &Keys) -> Result<(), String> {
    let found = wait(decrypt(
        Format::Yaml,
        &fixture(file),
        keys,
        &tree::Budget::default(),
    ));
    found.map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn keys_are_found_where_sops_looks() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().to_str().unwrap();
    let error = outcome("secret.yaml", &from(&[("HOME", home)])).unwrap_err();
    let place = dir.path().join(".config/sops/age/keys.txt");
    assert!(
        error.contains(&format!("{}: no such file", place.display())),
        "{error}"
    );

    assert_eq!(
        outcome("secret.yaml", &from(&[("SOPS_AGE_KEY", &text("age.txt"))])),
        Ok(())
    );
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(&place, fixture("age.txt")).unwrap();
    assert_eq!(outcome("secret.yaml", &from(&[("HOME", home)])), Ok(()));
    let named = place.to_str().unwrap();
    assert_eq!(
        outcome("secret.yaml", &from(&[("SOPS_AGE_KEY_FILE", named)])),
        Ok(())
    );

    fs::create_dir(dir.path().join(".ssh")).unwrap();
    fs::write(dir.path().join(".ssh/id_rsa"), fixture("ssh-rsa")).unwrap();
    assert_eq!(outcome("ssh-rsa.yaml", &from(&[("HOME", home)])), Ok(()));
    fs::create_dir(dir.path().join(".gnupg")).unwrap();
    fs::write(dir.path().join(".gnupg/secring.gpg"), fixture("ecc.asc")).unwrap();
    assert_eq!(outcome("ecc.yaml", &from(&[("HOME", home)])), Ok(()));
}

#[test]
fn what_cannot_be_used_is_told_when_nothing_opens_the_file() {
    let keys = from(&[
        ("SOPS_AGE_KEY", "AGE-SECRET-KEY-1HUNTER2"),
        ("SOPS_AGE_KEY_CMD", "rm"),
        ("SOPS_AGE_KEY_FILE", "/nonexistent"),
        ("GOOGLE_CREDENTIALS", "{\"type\": \"hunter2\"}"),
    ]);
    let error = outcome("secret.yaml", &keys).unwrap_err();
    for part in [
        "SOPS_AGE_KEY: age identities: line 1: it is no identity",
        "SOPS_AGE_KEY_CMD: commands are not run",
        "/nonexistent: no such file",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert!(!error.contains("HUNTER2"), "{error}");
}

#[test]
fn credentials_of_clouds_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path();
    fs::create_dir(home.join(".aws")).unwrap();
    fs::write(
        home.join(".aws/credentials"),
        "[default]\naws_access_key_id = a\naws_secret_access_key = s\n[other]\naws_access_key_id=b\n\
         aws_secret_access_key=t\n",
    )
    .unwrap();
    fs::write(home.join(".vault-token"), "tok\n").unwrap();
    let home = home.to_str().unwrap();
    let id = |keys: &Keys| keys.aws.as_ref().map(|aws| aws.credentials.access_key_id.clone());
    let keys = from(&[
        ("HOME", home),
        ("AZURE_TENANT_ID", "t"),
        ("AZURE_CLIENT_ID", "c"),
        ("AZURE_CLIENT_SECRET", "s"),
        ("GOOGLE_OAUTH_ACCESS_TOKEN", "g"),
        ("VAULT_ADDR", "https://vault.example"),
    ]);
    assert_eq!(id(&keys).as_deref(), Some("a"));
    assert!(keys.azure.is_some() && keys.gcp.is_some());
    let vault = keys.vault.unwrap();
    assert_eq!(vault.token.expose(), "tok");
    assert_eq!(vault.server.unwrap().as_str(), "https://vault.example/");
    assert_eq!(
        id(&from(&[("HOME", home), ("AWS_PROFILE", "other")])).as_deref(),
        Some("b")
    );
    assert_eq!(id(&from(&[("HOME", home), ("AWS_PROFILE", "none")])), None);
    fs::write(
        Path::new(home).join(".aws/config"),
        "[profile third]\naws_access_key_id = c\naws_secret_access_key = u\n[profile role]\nrole_arn = r\nsource_profile = third\n",
    )
    .unwrap();
    assert_eq!(
        id(&from(&[("HOME", home), ("AWS_PROFILE", "third")])).as_deref(),
        Some("c")
    );
    assert_eq!(id(&from(&[("HOME", home), ("AWS_PROFILE", "role")])), None);
    let set = [("AWS_ACCESS_KEY_ID", "e"), ("AWS_SECRET_ACCESS_KEY", "x")];
    assert_eq!(id(&from(&set)).as_deref(), Some("e"));
}

#[test]
fn places_that_are_none_leave_nobody_elsewhere_to_be_asked() {
    let keys = from(&[("VAULT_TOKEN", "hunter2"), ("VAULT_ADDR", "127.0.0.1:8200")]);
    assert!(keys.vault.is_none(), "the token would go wherever a file says");
    assert_eq!(keys.notes(), ["VAULT_ADDR: it is no URL"]);
    let keys = from(&[
        ("AZURE_TENANT_ID", "t"),
        ("AZURE_CLIENT_ID", "c"),
        ("AZURE_CLIENT_SECRET", "hunter2"),
        ("AZURE_AUTHORITY_HOST", "login.example"),
    ]);
    assert!(keys.azure.is_none(), "the secret would go to the usual authority");
    assert!(
        keys.notes()[0].ends_with("AZURE_AUTHORITY_HOST is no URL"),
        "{:?}",
        keys.notes()
    );
    let keys = from(&[
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "hunter2"),
        ("AWS_ENDPOINT_URL", "kms.example"),
    ]);
    assert!(keys.aws.is_none() && keys.notes() == ["AWS_ENDPOINT_URL: it is no URL"]);
}

#[test]
fn each_service_has_an_endpoint_of_its_own() {
    let both = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "s")];
    let endpoints = |more: &[(&str, &str)]| {
        let aws = from(&[&both, more].concat()).aws.unwrap();
        [aws.endpoint, aws.sts].map(|url| url.map(|url| url.to_string()).unwrap_or_default())
    };
    let (kms, all) = ("https://kms.test/", "https://all.test/");
    assert_eq!(endpoints(&[]), ["", ""]);
    assert_eq!(endpoints(&[("AWS_ENDPOINT_URL_KMS", kms)]), [kms, ""]);
    assert_eq!(
        endpoints(&[("AWS_ENDPOINT_URL_KMS", kms), ("AWS_ENDPOINT_URL", all)]),
        [kms, all]
    );
}

#[test]
fn entries_of_secrets_are_known_by_name() {
    let mut keys = Keys::new();
    for (name, value) in [
        ("a.agekey", fixture("age.txt")),
        ("a.asc", fixture("rsa.asc")),
        ("sops.vault-token", b"t\n".to_vec()),
        (
            "sops.aws-kms",
            b"aws_access_key_id: a\naws_secret_access_key: s\n".to_vec(),
        ),
        (
            "sops.azure-kv",
            b"tenantId: t\nclientId: c\nclientSecret: s\n".to_vec(),
        ),
        (
            "sops.gcp-kms",
            br#"{"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"}"#
                .to_vec(),
        ),
    ] {
        assert!(keys.add_entry(name, &value).unwrap(), "{name}");
    }
    assert!(!keys.add_entry("README", b"x").unwrap());
    assert_eq!(outcome("secret.yaml", &keys), Ok(()));
    assert_eq!(outcome("rsa.yaml", &keys), Ok(()));
    for name in [
        "a.agekey",
        "a.asc",
        "sops.aws-kms",
        "sops.azure-kv",
        "sops.gcp-kms",
    ] {
        let error = keys.add_entry(name, b"hunter2").unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
