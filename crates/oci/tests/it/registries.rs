//! OCI registries.

use oci::{Access, ChartSource, Client, Credentials, Limits, Reference, Registry as Repository, Wanted};
use testkit::{
    Authority, Page, Registry, WebServer,
    registry::{IDENTITY, Login, PASSWORD, USER},
};

use crate::support::{basic, chart, client, client_with, said, version_of};

fn plain() -> Access {
    Access {
        plain_http: true,
        ..Access::default()
    }
}

fn source(client: &Client, registry: &Registry, chart: &str) -> ChartSource {
    ChartSource::new(client, &format!("oci://{}/charts", registry.host()), chart).unwrap()
}

#[tokio::test]
async fn charts_are_found_by_their_tags() {
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    for version in ["1.0.0", "1.1.0", "1.2.0-rc.1", "1.1.1+b"] {
        let tag = version.replace('+', "_");
        registry
            .push_chart("charts/shop", &tag, &chart("shop", version))
            .await
            .unwrap();
    }
    registry
        .push_chart("charts/shop", "latest", &chart("shop", "9.9.9"))
        .await
        .unwrap();
    let client = client(plain());
    let shop = source(&client, &registry, "shop");
    assert_eq!(
        shop.versions().await.unwrap(),
        ["1.2.0-rc.1", "1.1.1+b", "1.1.0", "1.0.0"]
    );
    for (range, expected) in [
        ("", "1.1.1+b"),
        ("~1.0", "1.0.0"),
        ("1.1.1+b", "1.1.1+b"),
        (">0.0.0-0", "1.2.0-rc.1"),
    ] {
        assert_eq!(version_of(&shop.pull(range).await.unwrap()), expected, "{range}");
    }
    let error = said(shop.pull("3.0.0").await);
    assert!(error.contains("/manifests/3.0.0' was not found"), "{error}");
    let error = said(shop.pull(">=3").await);
    assert!(
        error.contains("chart \"shop\" version \">=3\" not found in oci://"),
        "{error}"
    );
    said(source(&client, &registry, "nothing").versions().await);
    let whole = format!("oci://{}/charts/shop:1.0.0", registry.host());
    let whole = ChartSource::new(&client, &whole, "").unwrap();
    assert_eq!(version_of(&whole.pull("").await.unwrap()), "1.0.0");
    assert!(said(whole.pull("2.0.0").await).contains("2.0.0 is not 1.0.0"));
    // https is the default.
    let secure = source(&crate::support::client(Access::default()), &registry, "shop");
    said(secure.pull("1.0.0").await);
}

#[tokio::test]
async fn a_digest_means_exactly_that() {
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    let first = registry
        .push_chart("charts/shop", "1.0.0", &chart("shop", "1.0.0"))
        .await
        .unwrap();
    registry
        .push_chart("charts/shop", "1.0.0", &chart("shop", "6.6.6"))
        .await
        .unwrap();
    let url = format!("oci://{}/charts/shop:1.0.0@{first}", registry.host());
    let pinned = ChartSource::new(&client(plain()), &url, "").unwrap();
    assert_eq!(version_of(&pinned.pull("").await.unwrap()), "1.0.0");
}

#[tokio::test]
async fn tags_come_in_pages() {
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    let archive = chart("shop", "1.0.0");
    for patch in 0..7 {
        registry
            .push_chart("charts/shop", &format!("1.0.{patch}"), &archive)
            .await
            .unwrap();
    }
    let reference = Reference::parse(&format!("{}/charts/shop", registry.host())).unwrap();
    let limits = Limits {
        page: 3,
        ..Limits::default()
    };
    let tags = Repository::new(&client_with(plain(), limits.clone()), reference.clone())
        .tags()
        .await
        .unwrap();
    assert_eq!(tags.len(), 7);
    let limits = Limits { tags: 5, ..limits };
    let error = said(
        Repository::new(&client_with(plain(), limits), reference)
            .tags()
            .await,
    );
    assert!(error.contains("larger than the limit of 5 tags"), "{error}");
}

#[tokio::test]
async fn users_are_known_by_password_or_token() {
    for login in [Login::Basic, Login::Token] {
        let registry = Registry::start(login, None).await.unwrap();
        registry
            .push_chart("charts/shop", "1.0.0", &chart("shop", "1.0.0"))
            .await
            .unwrap();
        let with = |credentials| {
            let access = Access {
                credentials,
                ..plain()
            };
            source(&client(access), &registry, "shop")
        };
        let shop = with(basic(USER, PASSWORD));
        assert_eq!(shop.versions().await.unwrap(), ["1.0.0"]);
        assert_eq!(version_of(&shop.pull("").await.unwrap()), "1.0.0");
        // One token is enough for tags, manifest and blob.
        assert_eq!(registry.tokens_given(), usize::from(login == Login::Token));
        let identity = |token: &str| Some(Credentials::Identity(api::Secret::new(token.to_owned())));
        if login == Login::Token {
            let version = with(identity(IDENTITY)).pull("").await.unwrap();
            assert_eq!(version_of(&version), "1.0.0");
            let error = said(with(identity("wr0ng")).pull("").await);
            assert!(error.contains("refused the credentials"), "{error}");
        } else {
            let error = said(with(identity(IDENTITY)).pull("").await);
            assert!(error.contains("refused the credentials"), "{error}");
        }
        for (credentials, why) in [
            (None, "asks for credentials, and none are given"),
            (basic(USER, "wr0ng"), "refused the credentials"),
        ] {
            let error = said(with(credentials).pull("").await);
            assert!(error.contains(why), "{login:?}: {error}");
        }
    }
}

#[tokio::test]
async fn registries_show_certificates() {
    let authority = Authority::new(&["127.0.0.1"]).unwrap();
    let registry = Registry::start(Login::Basic, Some(authority)).await.unwrap();
    registry
        .push_chart("charts/shop", "1.0.0", &chart("shop", "1.0.0"))
        .await
        .unwrap();
    let strange = Access {
        credentials: basic(USER, PASSWORD),
        ..Access::default()
    };
    let known = Access {
        ca: Some(registry.ca_pem().as_bytes().to_vec()),
        ..strange.clone()
    };
    let error = said(source(&client(strange), &registry, "shop").pull("").await);
    assert!(error.contains("no trusted connection"), "{error}");
    assert_eq!(
        version_of(&source(&client(known), &registry, "shop").pull("").await.unwrap()),
        "1.0.0"
    );
}

#[tokio::test]
async fn other_artifacts_are_no_charts() {
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    let image = [
        "application/vnd.oci.image.config.v1+json",
        "application/vnd.oci.image.layer.v1.tar+gzip",
    ];
    registry.push("charts/image", "1.0.0", image, b"x").await.unwrap();
    let error = said(source(&client(plain()), &registry, "image").pull("1.0.0").await);
    assert!(error.contains("it is no chart: its config is"), "{error}");
    let limits = Limits {
        archive_bytes: 10,
        ..Limits::default()
    };
    registry
        .push_chart("charts/shop", "1.0.0", &chart("shop", "1.0.0"))
        .await
        .unwrap();
    let error = said(
        source(&client_with(plain(), limits), &registry, "shop")
            .pull("1.0.0")
            .await,
    );
    assert!(error.contains("larger than the limit of 10 bytes"), "{error}");
}

#[tokio::test]
async fn a_registry_that_lies_is_caught() {
    let server = WebServer::start().unwrap();
    let host = server.url("").replace("http://", "");
    let reference = Reference::parse(&format!("{host}charts/shop")).unwrap();
    let place = Repository::new(&client(plain()), reference);
    let digest = |text: &str| oci::Digest::of(text.as_bytes());
    let wanted = Wanted::Digest(digest("{}"));
    server.page(
        &format!("/v2/charts/shop/manifests/{wanted}"),
        Page::Content("{\"config\": 1}".into()),
    );
    let error = said(place.manifest(&wanted).await);
    assert!(error.contains("has digest sha256:"), "{error}");
    // A manifest has the wanted digest, by any algorithm.
    let manifest = format!(
        "{{\"config\": {{\"digest\": \"{}\", \"size\": 2}}}}",
        digest("{}")
    );
    let empty = format!("sha512:{}", "0".repeat(128));
    let long = oci::Digest::parse(&empty).unwrap().again(manifest.as_bytes());
    let wanted = Wanted::Digest(long.clone());
    server.page(
        &format!("/v2/charts/shop/manifests/{wanted}"),
        Page::Content(manifest.into()),
    );
    assert_eq!(place.manifest(&wanted).await.unwrap().digest, long);
    let descriptor = |text: &str, size| oci::Descriptor {
        media_type: "x".to_owned(),
        digest: digest(text),
        size,
        annotations: std::collections::BTreeMap::new(),
    };
    let blob = |text: &str| format!("/v2/charts/shop/blobs/{}", digest(text));
    server.page(&blob("a"), Page::Content("b".into()));
    let error = said(place.blob(&descriptor("a", 1), 10).await);
    assert!(error.contains("has digest sha256:"), "{error}");
    server.page(&blob("c"), Page::Endless("c".into()));
    let error = said(place.blob(&descriptor("c", 1), 10).await);
    assert!(error.contains("larger than the limit of 1 bytes"), "{error}");
    let tags = format!("{{\"tags\": [\"a\", \"{}\"]}}", "b".repeat(129));
    server.page("/v2/charts/shop/tags/list", Page::Content(tags.into()));
    assert_eq!(place.tags().await.unwrap(), ["a"], "no longer one can be pulled");
    server.page("/v2/charts/shop/tags/list", Page::Endless("{\"tags\": [".into()));
    let error = said(place.tags().await);
    assert!(error.contains("larger than the limit"), "{error}");
}
