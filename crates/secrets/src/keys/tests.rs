//! Keys from the environment and from Secrets, and key services that check requests.

mod services;

use std::{
    fs,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
};

use cloud::{Cloud, TrustedToken, Workload, WorkloadIdentity};

use super::*;
use crate::{
    Format, decrypt,
    tests::{fixture, wait},
};

fn text(name: &str) -> String {
    String::from_utf8(fixture(name)).unwrap()
}

fn from(variables: &[(&str, &str)]) -> Keys {
    Keys::from_environment(ambient(variables))
}

fn ambient(variables: &[(&str, &str)]) -> Ambient {
    let variables = variables.iter();
    Ambient::new(variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
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
    let file = dir.path().join(".config/sops/age/keys.txt");
    assert!(
        error.contains(&format!("{}: no such file", file.display())),
        "{error}"
    );

    assert_eq!(
        outcome("secret.yaml", &from(&[("SOPS_AGE_KEY", &text("age.txt"))])),
        Ok(())
    );
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, fixture("age.txt")).unwrap();
    assert_eq!(outcome("secret.yaml", &from(&[("HOME", home)])), Ok(()));
    let named = file.to_str().unwrap();
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
fn unusable_keys_are_reported_if_no_key_opens_the_file() {
    let keys = from(&[
        ("SOPS_AGE_KEY", "AGE-SECRET-KEY-1HUNTER2"),
        ("SOPS_AGE_KEY_CMD", "rm"),
        ("SOPS_AGE_KEY_FILE", "/nonexistent"),
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

async fn aws(variables: &[(&str, &str)]) -> Result<Aws, OpenError> {
    let keys = from(variables);
    keys.aws(keys.http().await?, &kms("")).await
}

fn kms(profile: &str) -> MasterKind {
    MasterKind::Aws {
        arn: "arn:aws:kms:eu-central-1:1:key/k".to_owned(),
        role: String::new(),
        profile: profile.to_owned(),
        context: Default::default(),
    }
}

#[tokio::test]
async fn aws_credentials_of_the_environment_are_found_by_their_chain() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path();
    fs::create_dir(home.join(".aws")).unwrap();
    fs::write(
        home.join(".aws/credentials"),
        "[default]\naws_access_key_id = a\naws_secret_access_key = s\n[other]\naws_access_key_id=b\n\
         aws_secret_access_key=t\n",
    )
    .unwrap();
    fs::write(
        home.join(".aws/config"),
        "[profile third]\naws_access_key_id = c\naws_secret_access_key = u\n[profile role]\nrole_arn = r\nsource_profile = third\n",
    )
    .unwrap();
    let home = ("HOME", home.to_str().unwrap());
    let id = async |more: &[(&str, &str)]| {
        let found = aws(&[&[home], more].concat()).await;
        found.map(|aws| aws.credentials.access_key_id)
    };
    assert_eq!(id(&[]).await.unwrap(), "a");
    assert_eq!(id(&[("AWS_PROFILE", "other")]).await.unwrap(), "b");
    assert_eq!(id(&[("AWS_PROFILE", "third")]).await.unwrap(), "c");
    let error = id(&[("AWS_PROFILE", "none")]).await.unwrap_err().to_string();
    assert!(error.contains("none"), "{error}");
    let set = [("AWS_ACCESS_KEY_ID", "e"), ("AWS_SECRET_ACCESS_KEY", "x")];
    assert_eq!(id(&set).await.unwrap(), "e");

    // The profile in a key takes precedence over the environment, as in sops.
    let keys = from(&[&[home][..], &set].concat());
    let http = keys.http().await.unwrap();
    for (profile, expected) in [("other", "b"), ("third", "c"), ("", "e"), ("other", "b")] {
        let found = keys.aws(http, &kms(profile)).await.unwrap();
        assert_eq!(found.credentials.access_key_id, expected, "{profile}");
    }
    assert!(keys.aws(http, &kms("none")).await.is_err());

    // A role is assumed at the token service.
    let sts = services::sts().await;
    let role = [("AWS_PROFILE", "role"), ("AWS_ENDPOINT_URL_STS", sts.as_str())];
    assert_eq!(id(&role).await.unwrap(), "ASIA");
}

#[derive(Debug)]
struct CountedRole(Option<&'static str>, AtomicUsize);

impl AwsRole for CountedRole {
    fn find(&self) -> Pin<Box<dyn Future<Output = Result<Option<TrustedToken>, RoleError>> + Send + '_>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        let token = self.0.map(|role| TrustedToken {
            role_arn: role.to_owned(),
            token: Secret::new("jwt".to_owned()),
        });
        Box::pin(async move { Ok(token) })
    }
}

#[tokio::test]
async fn role_of_a_service_account_is_assumed_once_unless_credentials_are_given() {
    let sts = services::web_identity().await;
    let role = Arc::new(CountedRole(Some("r"), AtomicUsize::new(0)));
    let mut keys = from(&[("AWS_ENDPOINT_URL_STS", sts.as_str())]);
    keys.set_aws_role(role.clone());
    let http = keys.http().await.unwrap();
    for _ in 0..2 {
        let found = keys.aws(http, &kms("")).await.unwrap();
        assert_eq!(found.credentials.access_key_id, "ASIA");
    }
    assert_eq!(role.1.load(Ordering::Relaxed), 1);

    let nobody = Arc::new(CountedRole(None, AtomicUsize::new(0)));
    let mut keys = Keys::new();
    keys.set_aws_role(nobody);
    let error = keys.aws(http, &kms("")).await.unwrap_err().to_string();
    assert_eq!(error, "no credentials for AWS are given");

    let mut keys = from(&[("AWS_ENDPOINT_URL_STS", sts.as_str())]);
    keys.set_aws_role(role.clone());
    let given = b"aws_access_key_id: a\naws_secret_access_key: s\n";
    assert!(keys.add_entry("sops.aws-kms", given).unwrap());
    assert_eq!(
        keys.aws(http, &kms("")).await.unwrap().credentials.access_key_id,
        "a"
    );
    assert_eq!(role.1.load(Ordering::Relaxed), 1);
}

/// An account with the identities of all clouds, whose tokens a server at an address takes.
#[derive(Debug)]
struct Account(Url, AtomicUsize);

impl CloudAccount for Account {
    fn login(&self, cloud: Cloud) -> Pin<Box<dyn Future<Output = Result<Workload, RoleError>> + Send + '_>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        let identity = match cloud {
            Cloud::Aws => WorkloadIdentity::Aws {
                role_arn: "r".to_owned(),
            },
            Cloud::Azure => WorkloadIdentity::Azure {
                client_id: "app".to_owned(),
                tenant: "tenant".to_owned(),
                authority: Some(self.0.clone()),
            },
            Cloud::Gcp => WorkloadIdentity::Gcp {
                audience: "https://iam.test".to_owned(),
                provider: "//iam.test".to_owned(),
                email: None,
            },
        };
        Box::pin(async move { Ok(identity.with_token(Secret::new("jwt".to_owned()))) })
    }
}

const OWN: [(&str, &str); 6] = [
    ("AWS_ACCESS_KEY_ID", "own"),
    ("AWS_SECRET_ACCESS_KEY", "own"),
    ("AZURE_TENANT_ID", "own"),
    ("AZURE_CLIENT_ID", "own"),
    ("AZURE_CLIENT_SECRET", "own"),
    ("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent"),
];

#[tokio::test]
async fn account_is_used_at_all_clouds_and_the_environment_is_not() {
    let at = services::exchange().await;
    let account = Arc::new(Account(at.clone(), AtomicUsize::new(0)));
    let endpoints = [
        ("AWS_ENDPOINT_URL_STS", at.as_str()),
        ("CLOUDSDK_API_ENDPOINT_OVERRIDES_STS", at.as_str()),
    ];
    let environment = Arc::new(ambient(&[&OWN[..], &endpoints].concat()));
    let mut keys = Keys::new();
    keys.set_cloud_account(account.clone(), environment);
    let http = keys.http().await.unwrap();
    for _ in 0..2 {
        let aws = keys.aws(http, &kms("other")).await.unwrap();
        assert_eq!(aws.credentials.access_key_id, "ASIA");
        let google = keys.gcp().unwrap().token(http).await.unwrap();
        assert_eq!(google.expose(), "exchanged");
    }
    assert_eq!(account.1.load(Ordering::Relaxed), 2, "each is asked once");
    let azure = keys.azure().unwrap().access;
    let token = azure.token(http, cloud::azure::VAULT_SCOPE, "id").await;
    assert_eq!(token.unwrap().access.expose(), "exchanged");

    let given = b"aws_access_key_id: a\naws_secret_access_key: s\n";
    keys.add_entry("sops.aws-kms", given).unwrap();
    let http = keys.http().await.unwrap();
    let aws = keys.aws(http, &kms("")).await.unwrap();
    assert_eq!(aws.credentials.access_key_id, "a", "given credentials come first");
}

#[tokio::test]
async fn environment_is_used_where_that_is_allowed_whatever_profile_a_file_names() {
    let mut keys = Keys::new();
    let http = service::client(AddressPolicy::command_line()).unwrap();
    assert!(keys.aws(&http, &kms("")).await.is_err());
    assert!(keys.gcp().is_err() && keys.azure().is_err());
    keys.set_cloud_environment(Arc::new(ambient(&OWN)));
    let aws = keys.aws(&http, &kms("other")).await.unwrap();
    assert_eq!(aws.credentials.access_key_id, "own");
    let google = keys.gcp().unwrap().token(&http).await.unwrap_err().to_string();
    assert!(google.contains("/nonexistent"), "{google}");
    assert!(keys.azure().is_ok() && keys.vault.is_none());
}

#[test]
fn vault_token_of_the_home_directory_is_found() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join(".vault-token"), "tok\n").unwrap();
    let home = ("HOME", home.path().to_str().unwrap());
    let vault = from(&[home, ("VAULT_ADDR", "https://vault.example")])
        .vault
        .unwrap();
    assert_eq!(vault.token.expose(), "tok");
    assert_eq!(vault.server.unwrap().as_str(), "https://vault.example/");
}

#[tokio::test]
async fn credentials_are_not_sent_elsewhere_if_an_address_is_invalid() {
    let keys = from(&[("VAULT_TOKEN", "hunter2"), ("VAULT_ADDR", "127.0.0.1:8200")]);
    assert!(
        keys.vault.is_none(),
        "the token would be sent to any server that a file names"
    );
    assert_eq!(keys.notes(), ["VAULT_ADDR: it is not a URL"]);
    let azure = MasterKind::Azure {
        vault: "https://v.vault.azure.net".to_owned(),
        name: "k".to_owned(),
        version: "v1".to_owned(),
    };
    let keys = from(&[
        ("AZURE_TENANT_ID", "t"),
        ("AZURE_CLIENT_ID", "c"),
        ("AZURE_CLIENT_SECRET", "hunter2"),
        ("AZURE_AUTHORITY_HOST", "login.example"),
    ]);
    let master = Master {
        kind: azure,
        enc: "AAAA".to_owned(),
    };
    let error = keys.open(&master).await.unwrap_err().to_string();
    assert!(error.ends_with("AZURE_AUTHORITY_HOST is not a URL"), "{error}");
    let error = aws(&[
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "hunter2"),
        ("AWS_ENDPOINT_URL", "kms.example"),
    ])
    .await
    .unwrap_err()
    .to_string();
    assert!(
        error.contains("kms.example") && !error.contains("hunter2"),
        "{error}"
    );
}

#[tokio::test]
async fn each_service_has_an_endpoint_of_its_own() {
    let both = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "s")];
    let endpoints = async |more: &[(&str, &str)]| {
        let aws = aws(&[&both, more].concat()).await.unwrap();
        [aws.endpoint, aws.sts].map(|url| url.map(|url| url.to_string()).unwrap_or_default())
    };
    let (kms, all) = ("https://kms.test/", "https://all.test/");
    assert_eq!(endpoints(&[]).await, ["", ""]);
    assert_eq!(endpoints(&[("AWS_ENDPOINT_URL_KMS", kms)]).await, [kms, ""]);
    assert_eq!(
        endpoints(&[("AWS_ENDPOINT_URL_KMS", kms), ("AWS_ENDPOINT_URL", all)]).await,
        [kms, all]
    );
}

#[tokio::test]
async fn google_token_of_the_environment_is_used() {
    let keys = from(&[("GOOGLE_OAUTH_ACCESS_TOKEN", "g")]);
    let http = keys.http().await.unwrap();
    assert_eq!(keys.gcp().unwrap().token(http).await.unwrap().expose(), "g");
    let keys = from(&[
        ("GOOGLE_CREDENTIALS", "{\"type\": \"hunter2\"}"),
        ("GOOGLE_OAUTH_ACCESS_TOKEN", "g"),
    ]);
    assert!(
        keys.gcp()
            .unwrap()
            .token(keys.http().await.unwrap())
            .await
            .is_err()
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
