//! Each store gives a secret, says that there is none, and refuses who is not known.

use api::Secret;
use cloud::{azure, gcp};
use stores::{Ambient, Client, Error, Settings};
use url::Url;

use crate::fake::{Fake, aws_keys};

fn client() -> Client {
    Client::new(Settings::default()).unwrap()
}

/// The text, or the words of the error, none of which may be secret.
fn words(found: Result<String, Error>) -> String {
    let words = match found {
        Ok(text) => text,
        Err(Error::Missing(words)) => format!("missing: {words}"),
        Err(error) => error.to_string(),
    };
    assert!(!words.contains("s3cret"), "{words}");
    words
}

#[tokio::test]
async fn vault() {
    let (fake, client) = (Fake::start().await, client());
    let token = Secret::new("s3cret".to_owned());
    let get =
        async |path: &str, token: &Secret<String>| words(client.vault(&fake.url("/"), path, token).await);
    assert_eq!(get("kv/data/there", &token).await, "{\"a\":1}");
    assert_eq!(
        get("/kv/data/nope", &token).await,
        "missing: the specified vault secret was not found"
    );
    assert!(get("old/there", &token).await.contains("only the version 2"));
    let denied = get("kv/data/there", &Secret::new("other".to_owned())).await;
    assert_eq!(denied, "Vault answers with status 403: permission denied");
}

#[tokio::test]
async fn aws() {
    let (fake, client) = (Fake::start().await, client());
    let at = Url::parse(&fake.url("/")).unwrap();
    let region = Some("eu-central-1");
    let keys = aws_keys();
    assert_eq!(words(client.aws(&keys, region, "there", Some(&at)).await), "a: 1");
    let missing = words(client.aws(&keys, region, "nope", Some(&at)).await);
    assert_eq!(missing, "missing: the AWS secret nope was not found");
    let mut others = aws_keys();
    others.secret_access_key = Secret::new("other".to_owned());
    for (keys, region) in [(&others, region), (&keys, Some("us-east-1"))] {
        let refused = words(client.aws(keys, region, "there", Some(&at)).await);
        assert_eq!(
            refused,
            "AWS Secrets Manager answers with status 400: The signature is not right"
        );
    }
    let nowhere = words(client.aws(&keys, None, "there", Some(&at)).await);
    assert!(nowhere.contains("must be a valid ARN"), "{nowhere}");
}

fn user(fake: &Fake, refresh: &str) -> gcp::Credentials {
    let text = format!(
        "{{\"type\": \"authorized_user\", \"client_id\": \"me\", \"client_secret\": \"x\", \"refresh_token\": \
         \"{refresh}\", \"token_uri\": \"{}\"}}",
        fake.url("/token")
    );
    gcp::Credentials::parse(text.as_bytes()).unwrap()
}

#[tokio::test]
async fn google() {
    let (fake, client) = (Fake::start().await, client());
    let at = fake.url("/");
    let known = user(&fake, "s3cretrefresh");
    let version = |name: &str| format!("projects/p/secrets/{name}/versions/1");
    let get = async |known: &gcp::Credentials, name: &str| words(client.gcp(known, name, Some(&at)).await);
    assert_eq!(get(&known, &version("there")).await, "a: 1");
    assert!(get(&known, &version("nope")).await.starts_with("missing: "));
    assert!(get(&known, "projects/../x").await.contains("is no projects/"));
    let refused = get(&user(&fake, "other"), &version("there")).await;
    assert!(refused.contains("invalid_client: who are you?"), "{refused}");
}

#[tokio::test]
async fn azure() {
    let (fake, client) = (Fake::start().await, client());
    let application = |secret: &str| azure::Client {
        tenant: "tenant".to_owned(),
        client_id: "me".to_owned(),
        proof: azure::Proof::Secret(Secret::new(secret.to_owned())),
        authority: Some(Url::parse(&fake.url("/")).unwrap()),
    };
    let known = application("s3cretapp");
    let get = async |known: &azure::Client, name: &str| {
        words(client.azure(known, &fake.url("/"), name, "id").await)
    };
    assert_eq!(get(&known, "there").await, "a: 1");
    for name in ["nope", "empty"] {
        let missing = "missing: the specified azure-key-vault secret was not found";
        assert_eq!(get(&known, name).await, missing);
    }
    assert!(get(&known, "../x").await.contains("is no name of a secret"));
    assert!(
        get(&application("other"), "there")
            .await
            .contains("invalid_client")
    );
}

#[tokio::test]
async fn the_environment_says_who_asks() {
    let client = client();
    let ambient =
        |pairs: &[(&str, &str)]| Ambient::new(pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())));
    let keys = ambient(&[
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "s3cretkey"),
        ("AWS_SESSION_TOKEN", "s3cretsession"),
        ("AWS_DEFAULT_REGION", "eu-central-1"),
        ("VAULT_TOKEN", "t"),
        ("AZURE_TENANT_ID", "tenant"),
        ("AZURE_CLIENT_ID", "me"),
        ("AZURE_CLIENT_SECRET", "s"),
    ]);
    assert_eq!(keys.aws(&client, None).await.unwrap(), aws_keys());
    assert_eq!(keys.aws_region(), Some("eu-central-1"));
    assert_eq!(keys.vault().unwrap().expose(), "t");
    assert_eq!(keys.azure().unwrap().tenant, "tenant");
}
