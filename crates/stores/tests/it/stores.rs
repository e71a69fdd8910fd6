//! Each store returns a secret, reports a missing one, and refuses unknown credentials.

use api::Secret;
use cloud::{aws::Credentials, azure, gcp};
use stores::{Ambient, Client, Error, Settings, TrustedToken};
use url::Url;

use crate::fake::{Fake, aws_keys};

fn client() -> Client {
    Client::new(Settings::default()).unwrap()
}

fn words(found: Result<String, impl Into<Error>>) -> String {
    let words = match found.map_err(Into::into) {
        Ok(text) => text,
        Err(Error::Missing(words)) => format!("missing: {words}"),
        Err(error) => error.to_string(),
    };
    assert!(!words.contains("s3cret"), "{words}");
    words
}

#[tokio::test]
async fn vault_secrets_are_read_and_refusals_reported() {
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
async fn aws_secrets_are_read_and_refusals_reported() {
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
    // Neither a region nor an ARN names the host that receives a session.
    let host = format!("{}/", fake.address);
    let arn = format!("arn:aws:secretsmanager:x@{host}");
    for (region, name, why) in [
        (Some(host.as_str()), "there", "the region is none"),
        (None, arn.as_str(), "must be a valid ARN"),
    ] {
        let elsewhere = words(client.aws(&keys, region, name, None).await);
        assert!(elsewhere.ends_with(why), "{elsewhere}");
    }
    let gone = Url::parse(&fake.url("/proxy")).unwrap();
    let gone = words(
        client
            .aws(&keys, Some("eu-central-1"), "there", Some(&gone))
            .await,
    );
    assert_eq!(
        gone,
        "AWS Secrets Manager answers with status 502: it gives no reason"
    );
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
async fn google_secrets_are_read_and_refusals_reported() {
    let (fake, client) = (Fake::start().await, client());
    let at = fake.url("/");
    let known = user(&fake, "s3cretrefresh");
    let version = |name: &str| format!("projects/p/secrets/{name}/versions/1");
    let get = async |known: &gcp::Credentials, name: &str| {
        let found = match known.token(client.http()).await {
            Ok(token) => client.gcp(&token, name, Some(&at)).await,
            Err(error) => Err(error.into()),
        };
        words(found)
    };
    assert_eq!(get(&known, &version("there")).await, "a: 1");
    assert!(get(&known, &version("nope")).await.starts_with("missing: "));
    assert!(get(&known, "projects/../x").await.contains("is not projects/"));
    let refused = get(&user(&fake, "other"), &version("there")).await;
    assert!(refused.contains("invalid_client: who are you?"), "{refused}");
}

#[tokio::test]
async fn azure_secrets_are_read_and_refusals_reported() {
    let (fake, client) = (Fake::start().await, client());
    let application = |secret: &str| azure::Client {
        tenant: "tenant".to_owned(),
        client_id: "me".to_owned(),
        proof: azure::Proof::Secret(Secret::new(secret.to_owned())),
        authority: Some(Url::parse(&fake.url("/")).unwrap()),
    };
    let known = application("s3cretapp");
    let vault = "https://v.vault.azure.net";
    let scope = Client::azure_scope(vault).unwrap();
    let get = async |known: &azure::Client, name: &str| {
        let found = match known.token(client.http(), scope, "id").await {
            Ok(token) => client.azure(&token, vault, name, Some(&fake.url("/"))).await,
            Err(error) => Err(error.into()),
        };
        words(found)
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
    let token = known.token(client.http(), scope, "id").await.unwrap();
    let elsewhere = words(client.azure(&token, &fake.url("/"), "there", None).await);
    assert!(elsewhere.contains("is no host of Azure Key Vault"), "{elsewhere}");
}

fn ambient(pairs: &[(&str, &str)]) -> Ambient {
    Ambient::new(pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())))
}

#[tokio::test]
async fn credentials_are_read_from_the_environment() {
    let (fake, client) = (Fake::start().await, client());
    let keys = ambient(&[
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "s3cretkey"),
        ("AWS_SESSION_TOKEN", "s3cretsession"),
        ("AWS_DEFAULT_REGION", "eu-central-1"),
        ("VAULT_TOKEN", "t"),
        ("AZURE_TENANT_ID", "tenant"),
        ("AZURE_CLIENT_ID", "me"),
        ("AZURE_CLIENT_SECRET", "s3cretapp"),
        ("AZURE_AUTHORITY_HOST", &fake.url("/")),
    ]);
    assert_eq!(keys.aws(client.http(), None, None).await.unwrap(), aws_keys());
    assert_eq!(keys.aws_region(), Some("eu-central-1"));
    assert_eq!(keys.aws_secrets().unwrap(), None);
    let private = ambient(&[("AWS_ENDPOINT_URL", "https://aws.test/")]);
    let at = private.aws_secrets().unwrap().map(String::from);
    assert_eq!(at.as_deref(), Some("https://aws.test/"));
    assert_eq!(keys.vault("https://any.test").unwrap().expose(), "t");
    let pinned = ambient(&[
        ("VAULT_TOKEN", "s3cret"),
        ("VAULT_ADDR", "https://vault.test:443/"),
    ]);
    assert!(pinned.vault("https://vault.test/x").is_ok());
    for other in [
        "http://vault.test",
        "https://vault.test.evil.test",
        "https://vault.test:8200",
    ] {
        let error = pinned.vault(other).unwrap_err().to_string();
        assert!(error.contains("VAULT_ADDR names another server"), "{error}");
    }
    let none = ambient(&[("VAULT_TOKEN", "s3cret"), ("VAULT_ADDR", "vault")]);
    assert!(
        none.vault("https://vault.test").is_err(),
        "an address that is none pins the token, too"
    );
    let token = keys.azure(client.http(), azure::VAULT_SCOPE, "id").await.unwrap();
    assert_eq!(token.access.expose(), "s3crettoken");
}

fn who(found: Result<Credentials, cloud::Error>) -> String {
    words(found.map(|keys| keys.access_key_id))
}

const CONFIG: &str = "\
[profile keys]
[profile chain]
role_arn = second
external_id = x1
source_profile = one
[profile one]
role_arn = first
source_profile = keys
[profile dev]
sso_session = corp
sso_account_id = 12
sso_role_name = dev
[profile behind]
role_arn = first
source_profile = dev
[profile ops]
sso_session = corp
sso_account_id = 13
sso_role_name = ops
[sso-session corp]
sso_region = eu-central-1
sso_start_url = https://corp.example.com/start
[profile machine]
role_arn = first
credential_source = Ec2InstanceMetadata
[profile process]
credential_process = x
";
const KEYS: &str = "[keys]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = s3cretkey\naws_session_token = s3cretsession\n";

fn home(until: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(".aws/config", CONFIG);
    write(".aws/credentials", KEYS);
    let login = format!("{{\"accessToken\": \"s3cretlogin\", \"expiresAt\": \"{until}\"}}");
    // The SHA-1 of `corp`.
    write(
        ".aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json",
        &login,
    );
    write("jwt", "s3cretjwt\n");
    home
}

#[tokio::test]
async fn profiles_lead_to_roles() {
    let (fake, client) = (Fake::start().await, client());
    let home = home("2999-01-01T00:00:00Z");
    let path = home.path().display().to_string();
    let (sts, all) = (fake.url("/sts"), fake.url("/"));
    let common = [
        ("HOME", path.as_str()),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ENDPOINT_URL_STS", &sts),
        ("AWS_ENDPOINT_URL_SSO", &all),
    ];
    let with = |more: &[(&str, &str)]| ambient(&[&common[..], more].concat());
    for (profile, expected) in [
        ("keys", "AKIDEXAMPLE"),
        ("one", "ASIAfirst"),
        ("chain", "ASIAsecond"),
        ("dev", "ASIAsso"),
        ("behind", "ASIAfirst"),
        (
            "ops",
            "AWS SSO refused the credentials: Session token not found or invalid",
        ),
        (
            "machine",
            "AWS needs credentials: the machine that the profile relies on says nothing of a role",
        ),
    ] {
        assert_eq!(
            who(with(&[]).aws(client.http(), Some(profile), None).await),
            expected
        );
        assert_eq!(
            who(with(&[("AWS_PROFILE", profile)])
                .aws(client.http(), Some("keys"), None)
                .await),
            expected
        );
    }
    let machine = with(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &all)]);
    assert_eq!(
        who(machine.aws(client.http(), Some("machine"), None).await),
        "ASIAfirst"
    );
    // A missing profile is skipped, unless the environment names it.
    assert!(who(with(&[]).aws(client.http(), Some("nope"), None).await).contains("needs credentials"));
    let named = with(&[("AWS_PROFILE", "nope")])
        .aws(client.http(), None, None)
        .await;
    assert!(who(named).contains("none of the name nope"));
    assert!(
        who(with(&[("AWS_PROFILE", "process")])
            .aws(client.http(), None, None)
            .await)
        .contains("no programs are run")
    );
    let over = self::home("2020-01-01T00:00:00Z");
    let over = ambient(&[("HOME", &over.path().display().to_string())]);
    assert!(
        who(over.aws(client.http(), Some("dev"), None).await).contains("log in again with 'aws sso login'")
    );
}

#[tokio::test]
async fn tokens_are_exchanged_for_roles() {
    let (fake, client) = (Fake::start().await, client());
    let home = home("2999-01-01T00:00:00Z");
    let file = home.path().join("jwt").display().to_string();
    let (sts, home) = (fake.url("/sts"), home.path().display().to_string());
    let place = ("AWS_ENDPOINT_URL_STS", sts.as_str());
    let of_file = ambient(&[
        place,
        ("AWS_ROLE_ARN", "eks"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", &file),
    ]);
    let trusted = |token: &str| TrustedToken {
        role_arn: "account".to_owned(),
        token: Secret::new(token.to_owned()),
    };
    let token = trusted("s3cretjwt");
    assert!(!format!("{token:?}").contains("s3cret"));
    assert_eq!(who(of_file.aws(client.http(), None, None).await), "ASIAeks");
    assert_eq!(
        who(of_file.aws(client.http(), None, Some(&token)).await),
        "ASIAeks",
        "the environment counts first"
    );
    let nobody = ambient(&[place]);
    assert_eq!(
        who(nobody.aws(client.http(), None, Some(&token)).await),
        "ASIAaccount"
    );
    let other = nobody.aws(client.http(), None, Some(&trusted("other"))).await;
    assert_eq!(
        who(other),
        "AWS STS refused the credentials: AccessDenied: who are you?"
    );
    let profiles = ambient(&[place, ("HOME", &home)]);
    assert_eq!(
        who(profiles.aws(client.http(), Some("keys"), Some(&token)).await),
        "AKIDEXAMPLE"
    );
    let missing = ambient(&[
        ("AWS_ROLE_ARN", "eks"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/s"),
    ]);
    assert!(who(missing.aws(client.http(), None, None).await).starts_with("/nowhere/s: "));
}

#[tokio::test]
async fn credentials_are_read_from_machine_metadata() {
    let (fake, client) = (Fake::start().await, client());
    let (all, own) = (fake.url(""), fake.url("/own"));
    let ec2 = ("AWS_EC2_METADATA_SERVICE_ENDPOINT", all.as_str());
    assert_eq!(
        who(ambient(&[ec2]).aws(client.http(), None, None).await),
        "ASIAmachine"
    );
    let off = ambient(&[ec2, ("AWS_EC2_METADATA_DISABLED", "true")]);
    assert!(who(off.aws(client.http(), None, None).await).contains("needs credentials"));
    let pod = |token| {
        ambient(&[
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", own.as_str()),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", token),
        ])
    };
    assert_eq!(
        who(pod("s3cretpod").aws(client.http(), None, None).await),
        "ASIAmachine"
    );
    assert!(who(pod("other").aws(client.http(), None, None).await).contains("tells no role"));
    let both = ambient(&[ec2, ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &own)]);
    assert!(
        who(both.aws(client.http(), None, None).await).contains("tells no role"),
        "the role of the machine is another one"
    );
    let foreign = ambient(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.com/")]);
    assert!(who(foreign.aws(client.http(), None, None).await).contains("by its own machine"));

    let host = fake.address.to_string();
    let gke = ambient(&[("GCE_METADATA_HOST", &host)]);
    let token = gke.gcp(client.http()).await.unwrap();
    let secret = client
        .gcp(&token, "projects/p/secrets/there/versions/1", Some(&all))
        .await;
    assert_eq!(words(secret), "a: 1");
    for known in [
        ambient(&[("AZURE_POD_IDENTITY_AUTHORITY_HOST", &all)]),
        ambient(&[
            ("IDENTITY_ENDPOINT", &fake.url("/msi")),
            ("IDENTITY_HEADER", "s3cretmsi"),
            ("AZURE_CLIENT_ID", "me"),
        ]),
    ] {
        let token = known
            .azure(client.http(), azure::VAULT_SCOPE, "id")
            .await
            .unwrap();
        let secret = client
            .azure(&token, "https://v.vault.azure.net", "there", Some(&all))
            .await;
        assert_eq!(words(secret), "a: 1");
    }
    let unknown = ambient(&[("IDENTITY_ENDPOINT", &fake.url("/msi")), ("IDENTITY_HEADER", "x")]);
    let refused = unknown
        .azure(client.http(), azure::VAULT_SCOPE, "id")
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("Azure needs credentials"),
        "{refused}"
    );
}
