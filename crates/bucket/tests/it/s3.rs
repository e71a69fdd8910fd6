//! A real S3-compatible server.

use api::Secret;
use bucket::{Bucket, Entry, Service, s3};
use cloud::aws::LdapIdentity;
use net::{Need, Roots, Tls};
use testkit::{
    Authority, CloudStorage, HttpProxy, S3Options, S3Server,
    s3::{ACCESS_KEY, SECRET_KEY},
    storage::{LDAP_PASSWORD, LDAP_USER},
};

use crate::{connect, context, keys, list, read, refusal, secret, settings};

fn login() -> s3::Login {
    s3::keys(ACCESS_KEY, secret(SECRET_KEY))
}

fn location(server: &S3Server, login: s3::Login) -> Service {
    let insecure = server.authority().is_none();
    Service::S3(s3::Location::new(&server.endpoint(), login, insecure).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_listed_and_read_with_signed_requests() {
    let server = S3Server::start().await.unwrap();
    let odd = "deploy/ü b+c&d=e%2f'(1)~.yaml";
    let objects = [
        ("a.yaml", "a: 1\n"),
        (odd, "odd\n"),
        ("deploy/", ""),
        ("deploy//x", "double\n"),
    ];
    server.put("shop", &objects).await.unwrap();
    let mut bucket = connect(&settings("shop", location(&server, login()))).await;
    assert!(bucket.exists("").await.unwrap());

    let entries = list(&bucket, "").await;
    let mut found = keys(&entries);
    found.sort_unstable();
    assert_eq!(found, ["a.yaml", "deploy/", "deploy//x", odd]);
    let first = entries.iter().find(|entry| entry.key == "a.yaml").unwrap();
    assert_eq!(
        (first.etag.as_str(), first.size),
        ("e0ccdaf42c593022e15b18cc0e96d201", 5)
    );
    for (key, content) in objects {
        let (etag, found) = read(&bucket, &Entry::named(key)).await.unwrap();
        assert_eq!(found, content);
        assert_eq!(etag, entries.iter().find(|entry| entry.key == key).unwrap().etag);
    }
    assert_eq!(keys(&list(&bucket, "deploy/ü").await), [odd]);
    assert_eq!(read(&bucket, &Entry::named("none")).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn listings_have_pages() {
    let server = S3Server::start().await.unwrap();
    let names: Vec<String> = (0..2100).map(|number| format!("d/{number:05} x")).collect();
    let objects: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
    server.put("many", &objects).await.unwrap();
    server.take_requests().await.unwrap();
    let bucket = connect(&settings("many", location(&server, login()))).await;
    assert_eq!(keys(&list(&bucket, "d/").await), names);
    assert_eq!(server.take_requests().await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_have_the_words_of_the_service() {
    let server = S3Server::start().await.unwrap();
    server.put("shop", &[("a", "b")]).await.unwrap();
    let at = |login| settings("shop", location(&server, login));
    let message = refusal(&at(s3::keys(ACCESS_KEY, secret("s3cret-wrong")))).await;
    assert!(message.contains("SignatureDoesNotMatch, status 403"), "{message}");
    let message = refusal(&at(s3::keys("canary", secret("s3cret")))).await;
    assert!(message.contains("InvalidAccessKeyId, status 403"), "{message}");
    let message = refusal(&at(s3::Login::Anonymous)).await;
    assert!(message.contains("status 403"), "{message}");
    let mut missing = connect(&settings("none", location(&server, login()))).await;
    assert!(!missing.exists("").await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn public_buckets_need_no_credentials() {
    let options = S3Options {
        anonymous: true,
        ..S3Options::default()
    };
    let server = S3Server::start_with(options).await.unwrap();
    server.put("public", &[("a", "b")]).await.unwrap();
    let mut bucket = connect(&settings("public", location(&server, s3::Login::Anonymous))).await;
    assert!(bucket.exists("").await.unwrap());
    assert_eq!(keys(&list(&bucket, "").await), ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_verified_and_may_want_a_client_certificate() {
    let options = S3Options {
        authority: Some(Authority::new(&["127.0.0.1"]).unwrap()),
        client_certificates: true,
        ..S3Options::default()
    };
    let server = S3Server::start_with(options).await.unwrap();
    server.put("shop", &[("a", "b")]).await.unwrap();
    let authority = server.authority().unwrap();
    let plain = settings("shop", location(&server, login()));
    let need = async |tls: Tls| {
        let settings = bucket::Settings { tls, ..plain.clone() };
        match Bucket::connect(&settings, &context()).await {
            Err(error) => Err(error.need()),
            Ok(mut bucket) => bucket.exists("").await.map_err(|error| error.need()),
        }
    };
    let roots = || Roots::Only(authority.ca_pem.clone().into_bytes());
    let pem = format!("{}{}", authority.server_pem, authority.server_key_pem);
    let with = |roots, identity: Option<&str>| Tls {
        roots,
        identity: identity.map(|pem| Secret::new(pem.as_bytes().to_vec())),
        ..Tls::default()
    };
    assert_eq!(need(with(Roots::System, None)).await, Err(Some(Need::CaBundle)));
    assert_eq!(
        need(with(Roots::Only(b"x".to_vec()), None)).await,
        Err(Some(Need::ValidCaBundle))
    );
    assert_eq!(
        need(with(roots(), Some("x"))).await,
        Err(Some(Need::ValidClientCertificate))
    );
    assert_eq!(
        need(with(roots(), None)).await,
        Err(Some(Need::ClientCertificate))
    );
    assert_eq!(need(with(roots(), Some(&pem))).await, Ok(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn temporary_keys_come_from_a_token_service_through_the_proxy() {
    let server = S3Server::start().await.unwrap();
    server.put("shop", &[("a", "b")]).await.unwrap();
    let clouds = CloudStorage::start().unwrap();
    let proxy = HttpProxy::start("me", "s3cret-proxy").unwrap();
    let ldap = |password: &str| s3::Login::Ldap {
        endpoint: clouds.sts().parse().unwrap(),
        identity: LdapIdentity {
            username: LDAP_USER.to_owned(),
            password: secret(password),
        },
        tls: Tls::default(),
    };
    let through = |password: &str| bucket::Settings {
        proxy: Some(net::Proxy {
            protocol: net::ProxyProtocol::Http,
            url: proxy.url().parse().unwrap(),
            auth: Some(("me".to_owned(), secret("s3cret-proxy"))),
        }),
        ..settings("shop", location(&server, ldap(password)))
    };
    let mut bucket = connect(&through(LDAP_PASSWORD)).await;
    assert!(bucket.exists("").await.unwrap());
    assert_eq!(keys(&list(&bucket, "").await), ["a"]);
    let asked = proxy.asked();
    assert!(
        asked.contains(&server.endpoint()) && asked.contains(&clouds.host()),
        "{asked:?}"
    );
    let message = refusal(&through("s3cret")).await;
    assert_eq!(
        message,
        "AWS STS refused the credentials: InvalidParameterValue: LDAP server error: wrong password"
    );
}
