//! Google Cloud Storage and Azure Blob Storage.

use bucket::{Bucket, Context, Entry, Service, Settings, azure, gcs};
use cloud::{Ambient, azure::Proof, gcp};
use testkit::{
    CloudStorage,
    storage::{ACCOUNT, ACCOUNT_KEY, CLIENT_ID, CLIENT_SECRET, SAS, TENANT},
};

use crate::{connect, context, keys, list, read, refusal, secret, settings};

const OBJECTS: [(&str, &str); 4] = [
    ("a.yaml", "a"),
    ("deploy/b c+%2f.yaml", "b"),
    ("deploy/d", "d"),
    ("deploy/ü", "e"),
];

async fn check(settings: &Settings, etag: &str) {
    let mut bucket = connect(settings).await;
    assert!(bucket.exists("").await.unwrap());
    let entries = list(&bucket, "").await;
    assert_eq!(keys(&entries), OBJECTS.map(|(key, _)| key));
    assert_eq!((entries[0].etag.as_str(), entries[0].size), (etag, 1));
    assert_eq!(keys(&list(&bucket, "deploy/d").await), ["deploy/d"]);
    for (entry, (_, content)) in entries.iter().zip(OBJECTS) {
        let found = read(&bucket, entry).await;
        assert_eq!(found, Some((entry.etag.clone(), content.to_owned())));
    }
    assert_eq!(read(&bucket, &Entry::named("none")).await, None);
    let missing = Settings {
        name: "none".to_owned(),
        ..settings.clone()
    };
    assert!(!connect(&missing).await.exists("").await.unwrap());
}

fn google(clouds: &CloudStorage, bucket: &str) -> Settings {
    let key = gcp::Credentials::parse(clouds.service_account().as_bytes()).unwrap();
    let login = gcs::Login::Key(Box::new(key));
    settings(
        bucket,
        Service::Gcs(gcs::Location::new(&clouds.host(), login, true).unwrap()),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn google_gets_a_token_for_the_service_account() {
    let clouds = CloudStorage::start().unwrap();
    clouds.put("shop", &OBJECTS);
    check(&google(&clouds, "shop"), "CK1=").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn google_serves_the_newest_version_of_a_changed_object() {
    let clouds = CloudStorage::start().unwrap();
    clouds.put("shop", &[("a", "old")]);
    let bucket = connect(&google(&clouds, "shop")).await;
    let entries = list(&bucket, "").await;
    clouds.put("shop", &[("a", "new")]);
    let found = read(&bucket, &entries[0]).await;
    assert_eq!(found, Some(("CK2=".to_owned(), "new".to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn azure_takes_all_kinds_of_credentials() {
    let clouds = CloudStorage::start().unwrap();
    clouds.put("shop", &OBJECTS);
    let at = |login| {
        let location = azure::Location::new(&clouds.azure(), login).unwrap();
        settings("shop", Service::Azure(location))
    };
    let application = |password: &str| {
        azure::Login::Application(Box::new(cloud::azure::Client {
            tenant: TENANT.to_owned(),
            client_id: CLIENT_ID.to_owned(),
            proof: Proof::Secret(secret(password)),
            authority: Some(clouds.authority().parse().unwrap()),
        }))
    };
    let key = |key: &str| azure::Login::AccountKey(azure::AccountKey::new(ACCOUNT, key).unwrap());
    for login in [
        key(ACCOUNT_KEY),
        azure::Login::Sas(secret(SAS)),
        application(CLIENT_SECRET),
    ] {
        check(&at(login), "0x00000001").await;
    }
    for (login, expected) in [
        (key("czNjcmV0"), "AuthenticationFailed, status 403"),
        (
            azure::Login::Sas(secret("sig=s3cret")),
            "AuthenticationFailed, status 403",
        ),
        (
            application("s3cret"),
            "Microsoft Entra ID refused the credentials: invalid_client: AADSTS7000215",
        ),
    ] {
        let message = refusal(&at(login)).await;
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn own_credentials_are_those_of_the_environment() {
    let clouds = CloudStorage::start().unwrap();
    clouds.put("shop", &OBJECTS);
    let server = testkit::S3Server::start().await.unwrap();
    server.put("shop", &OBJECTS).await.unwrap();
    let login = bucket::s3::Login::Own { sts: None };
    let location = bucket::s3::Location::new(&server.endpoint(), login, true).unwrap();
    let settings = settings("shop", Service::S3(location));
    let keys = [
        ("AWS_ACCESS_KEY_ID", testkit::s3::ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", testkit::s3::SECRET_KEY),
    ];
    let variables = keys.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let context = Context {
        ambient: Ambient::new(variables),
        ..context()
    };
    let mut bucket = Bucket::connect(&settings, &context).await.unwrap();
    assert!(bucket.exists("").await.unwrap());
    let message = refusal(&settings).await;
    assert!(message.starts_with("AWS needs credentials"), "{message}");
}
