//! Helm repositories.

use api::Secret;
use oci::{Access, ChartSource, Charts, Digest, Identity, Limits, Repository};
use testkit::{
    Authority, Page, Registry, WebServer,
    archive::{gzip, tar_gz},
    registry::Login,
};

use crate::support::{basic, chart, client, client_with, said, version_of};

fn stock(server: &WebServer) {
    let (one, two) = (chart("shop", "1.0.0"), chart("shop", "1.1.0"));
    let index = format!(
        "apiVersion: v1\nentries:\n  other:\n  - name: a\n    version: 9.0.0\n  shop:\n  - name: a\n    version: 1.0.0\n    digest: {}\n    urls: \
         [charts/shop-1.0.0.tgz]\n  - name: a\n    version: 1.1.0\n    urls: [charts/shop-1.1.0.tgz]\n  - name: a\n    version: 2.0.0-rc.1\n    \
         urls: [charts/no.tgz]\n",
        Digest::of(&one).hex()
    );
    server.page("/stable/index.yaml", Page::Content(index.into()));
    server.page("/stable/charts/shop-1.0.0.tgz", Page::Content(one.into()));
    server.page("/stable/charts/shop-1.1.0.tgz", Page::Content(two.into()));
}

fn shop(server: &WebServer, access: Access) -> ChartSource {
    ChartSource::new(&client(access), &server.url("stable"), "shop").unwrap()
}

#[tokio::test]
async fn versions_are_listed_and_pulled() {
    let server = WebServer::start().unwrap();
    stock(&server);
    let shop = shop(&server, Access::default());
    assert_eq!(shop.versions().await.unwrap(), ["2.0.0-rc.1", "1.1.0", "1.0.0"]);
    for (range, expected) in [
        ("", "1.1.0"),
        ("1.0.0", "1.0.0"),
        ("~1.0", "1.0.0"),
        ("^1", "1.1.0"),
    ] {
        assert_eq!(version_of(&shop.pull(range).await.unwrap()), expected, "{range}");
    }
    let error = said(shop.pull(">=3").await);
    assert!(
        error.contains("chart \"shop\" version \">=3\" not found in"),
        "{error}"
    );
    let nothing = ChartSource::new(&client(Access::default()), &server.url("stable/"), "nothing").unwrap();
    let error = said(nothing.versions().await);
    assert!(error.contains("chart \"nothing\" not found in"), "{error}");
    let error = said(shop.pull("2.0.0-rc.1").await);
    assert!(error.contains("was not found"), "{error}");
}

#[tokio::test]
async fn an_index_is_kept_for_further_charts() {
    let server = WebServer::start().unwrap();
    stock(&server);
    for (cached_index_bytes, requests) in [(1 << 20, 1), (10, 4)] {
        let limits = Limits {
            cached_index_bytes,
            ..Limits::default()
        };
        let charts = Charts::at(&client_with(Access::default(), limits), &server.url("stable")).unwrap();
        let charts = charts.caching_index();
        let before = server.asked().len();
        let versions = async |chart: &str| charts.chart(chart).unwrap().versions().await;
        assert_eq!(versions("shop").await.unwrap().len(), 3);
        assert_eq!(versions("other").await.unwrap(), ["9.0.0"]);
        let error = said(versions("nothing").await);
        assert!(error.contains("chart \"nothing\" not found in"), "{error}");
        // An index that is too large for the cache is read each time.
        assert_eq!(server.asked().len() - before, requests);
    }
}

#[tokio::test]
async fn an_archive_is_the_one_that_the_index_means() {
    let server = WebServer::start().unwrap();
    stock(&server);
    server.page(
        "/stable/charts/shop-1.0.0.tgz",
        Page::Content(chart("shop", "6.6.6").into()),
    );
    let error = said(shop(&server, Access::default()).pull("1.0.0").await);
    assert!(error.contains("shop-1.0.0.tgz' has digest sha256:"), "{error}");
}

#[tokio::test]
async fn credentials_are_sent_to_their_own_host_alone() {
    let (server, cdn) = (WebServer::start().unwrap(), WebServer::start().unwrap());
    stock(&server);
    server.login("me", "s3cret");
    cdn.page("/shop.tgz", Page::Content(chart("shop", "1.0.0").into()));
    let index = format!(
        "entries:\n  shop:\n  - name: a\n    version: 1.0.0\n    urls: [\"{}\"]\n",
        cdn.url("shop.tgz")
    );
    server.page("/away/index.yaml", Page::Content(index.into()));
    server.page("/gone/index.yaml", Page::Redirect(cdn.url("index.yaml")));

    let error = said(shop(&server, Access::default()).pull("").await);
    assert!(
        error.contains("asks for credentials, and none are given"),
        "{error}"
    );
    let with = |user: &str, password: &str, pass_credentials| Access {
        credentials: basic(user, password),
        pass_credentials,
        ..Access::default()
    };
    let error = said(shop(&server, with("me", "wr0ng", false)).pull("").await);
    assert!(error.contains("refused the credentials"), "{error}");
    let access = with("me", "s3cret", false);
    assert_eq!(
        version_of(&shop(&server, access.clone()).pull("").await.unwrap()),
        "1.1.0"
    );
    // In the address, too.
    let url = server.url("stable").replace("://", "://me:s3cret@");
    let source = ChartSource::new(&client(Access::default()), &url, "shop").unwrap();
    assert_eq!(version_of(&source.pull("").await.unwrap()), "1.1.0");

    let away = |access| ChartSource::new(&client(access), &server.url("away"), "shop").unwrap();
    away(access.clone()).pull("").await.unwrap();
    let gone = ChartSource::new(&client(access), &server.url("gone"), "shop").unwrap();
    said(gone.pull("").await);
    assert!(
        cdn.asked().iter().all(|asked| asked.authorization.is_none()),
        "{:?}",
        cdn.asked()
    );
    away(with("me", "s3cret", true)).pull("").await.unwrap();
    assert!(cdn.asked().last().unwrap().authorization.is_some());
}

#[tokio::test]
async fn redirects_are_followed_but_not_for_ever() {
    let server = WebServer::start().unwrap();
    stock(&server);
    server.page(
        "/moved/index.yaml",
        Page::Redirect("/stable/index.yaml".to_owned()),
    );
    server.page(
        "/circle/index.yaml",
        Page::Redirect("/circle/index.yaml".to_owned()),
    );
    server.page(
        "/cloud/index.yaml",
        Page::Redirect("http://169.254.169.254/latest".to_owned()),
    );
    server.page(
        "/file/index.yaml",
        Page::Redirect("file:///etc/passwd".to_owned()),
    );
    let entries = async |path: &str| {
        let repository = Repository::new(&client(Access::default()), &server.url(path)).unwrap();
        repository.entries("shop").await
    };
    assert_eq!(entries("moved").await.unwrap().len(), 3);
    for (path, why) in [
        ("circle", "more than 10"),
        ("cloud", "link-local"),
        ("file", "only http and https"),
    ] {
        let error = said(entries(path).await);
        assert!(error.contains(why), "{path}: {error}");
    }
    assert_eq!(server.asked().len(), 2 + 11 + 1 + 1);
    let client = client(Access::default());
    let metadata = Repository::new(&client, "http://169.254.169.254/charts").unwrap();
    let error = said(metadata.entries("shop").await);
    assert!(error.contains("link-local"), "{error}");
}

#[tokio::test]
async fn interrupted_and_endless_responses_are_errors() {
    let server = WebServer::start().unwrap();
    let limits = Limits {
        index_bytes: 1 << 20,
        archive_bytes: 1 << 20,
        ..Limits::default()
    };
    let index = "entries:\n  shop:\n  - name: a\n    version: 1.0.0\n    urls: [endless.tgz]\n  - name: a\n    version: 2.0.0\n    urls: [cut.tgz]\n";
    server.page("/a/index.yaml", Page::Content(index.into()));
    server.page("/a/endless.tgz", Page::Endless(vec![0; 1 << 16].into()));
    server.page("/a/cut.tgz", Page::Cut(vec![0x1f; 100].into()));
    server.page(
        "/endless/index.yaml",
        Page::Endless("entries:\n  other:\n  - name: a\n    version: 1.0.0\n".into()),
    );
    server.page(
        "/cut/index.yaml",
        Page::Cut("entries:\n  shop:\n  - name: a\n    version: 1.0.0\n".into()),
    );
    let bomb = gzip(&vec![b' '; 4 << 20]);
    server.page("/bomb/index.yaml", Page::Packed(bomb.into()));
    server.page("/html/index.yaml", Page::Content("<html></html>".into()));
    let client = client_with(Access::default(), limits);
    let pull = async |path: &str, range: &str| {
        let source = ChartSource::new(&client, &server.url(path), "shop").unwrap();
        source.pull(range).await
    };
    for (path, range, why) in [
        ("a", "1.0.0", "larger than the limit of 1048576 bytes"),
        ("a", "2.0.0", "network:"),
        ("endless", "", "limit of 1048576 bytes of an index"),
        ("bomb", "", "limit of 1048576 bytes of an index"),
        ("cut", "", "network:"),
        ("html", "", "it is no index"),
        ("none", "", "was not found"),
    ] {
        let error = said(pull(path, range).await);
        assert!(error.contains(why), "{path}: {error}");
    }
}

#[tokio::test]
async fn a_huge_index_is_read_up_to_the_chart() {
    let server = WebServer::start().unwrap();
    let mut index = "apiVersion: v1\nentries:\n".to_owned();
    for chart in 0..200 {
        index.push_str(&format!("  chart-{chart}:\n"));
        for version in 0..200 {
            index.push_str(&format!(
                "  - name: a\n    version: 1.{version}.0\n    description: \"{}\"\n    urls:\n    - c-{chart}-{version}.tgz\n",
                "words ".repeat(100)
            ));
        }
    }
    assert!(index.len() > 25 << 20);
    server.page("/packed/index.yaml", Page::Packed(gzip(index.as_bytes()).into()));
    server.page("/plain/index.yaml", Page::Content(index.into()));
    for path in ["packed", "plain"] {
        let repository = Repository::new(&client(Access::default()), &server.url(path)).unwrap();
        let entries = repository.entries("chart-150").await.unwrap();
        assert_eq!((entries.len(), entries[0].version.as_str()), (200, "1.199.0"));
        assert_eq!(entries[0].urls, ["c-150-199.tgz"]);
    }
}

#[tokio::test]
async fn servers_and_clients_show_certificates() {
    let names = ["127.0.0.1"];
    let (authority, clients) = (
        Authority::new(&names).unwrap(),
        Authority::new(&["client"]).unwrap(),
    );
    let server = WebServer::start_tls(authority.asking_for(&clients)).unwrap();
    stock(&server);
    let error = said(shop(&server, Access::default()).pull("").await);
    assert!(error.contains("no trusted connection"), "{error}");
    let ca = Some(server.ca_pem().as_bytes().to_vec());
    let identity = Some(Identity {
        certificate: clients.server_pem.clone().into_bytes(),
        key: Secret::new(clients.server_key_pem.clone().into_bytes()),
    });
    let trusting = Access {
        ca: ca.clone(),
        ..Access::default()
    };
    said(shop(&server, trusting).pull("").await);
    let known = Access {
        ca,
        identity: identity.clone(),
        ..Access::default()
    };
    assert_eq!(version_of(&shop(&server, known).pull("").await.unwrap()), "1.1.0");
    let careless = Access {
        identity,
        insecure_skip_verify: true,
        ..Access::default()
    };
    assert_eq!(
        version_of(&shop(&server, careless).pull("").await.unwrap()),
        "1.1.0"
    );
}

#[tokio::test]
async fn an_index_may_name_a_registry() {
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    registry
        .push_chart("charts/shop", "1.0.0", &chart("shop", "1.0.0"))
        .await
        .unwrap();
    let server = WebServer::start().unwrap();
    let index = format!(
        "entries:\n  shop:\n  - name: a\n    version: 1.0.0\n    urls: [oci://{}/charts/shop:1.0.0]\n",
        registry.host()
    );
    server.page("/index.yaml", Page::Content(index.into()));
    let access = Access {
        plain_http: true,
        credentials: basic("me", "s3cret"),
        ..Access::default()
    };
    let source = ChartSource::new(&client(access), &server.url(""), "shop").unwrap();
    assert_eq!(version_of(&source.pull("").await.unwrap()), "1.0.0");
}

#[tokio::test]
async fn invalid_archives_fail_to_unpack() {
    let server = WebServer::start().unwrap();
    server.page(
        "/index.yaml",
        Page::Content("entries:\n  shop:\n  - {name: a, version: 1.0.0, urls: [a.tgz]}\n".into()),
    );
    server.page("/a.tgz", Page::Content(tar_gz(&[]).into()));
    let source = ChartSource::new(&client(Access::default()), &server.url(""), "shop").unwrap();
    let pulled = source.pull("").await.unwrap();
    let error = said(pulled.tree(&tree::Budget::default()));
    assert!(error.contains("a.tgz' is no chart: no files"), "{error}");
}

#[tokio::test]
async fn stored_index_has_the_digest_of_its_content_and_finds_charts() {
    let server = WebServer::start().unwrap();
    stock(&server);
    let repository = Repository::new(&client(Access::default()), &server.url("stable")).unwrap();
    let mut file = Vec::new();
    let stored = repository.download_index(&mut file, None).await.unwrap().unwrap();
    assert!(file.starts_with(b"apiVersion: v1\nentries:\n"));
    assert_eq!(
        (stored.digest, stored.size),
        (Digest::of(&file), file.len() as u64)
    );
    for (range, expected) in [
        ("", "1.1.0"),
        ("1.0.0", "1.0.0"),
        ("~1.0", "1.0.0"),
        (">=2-0", "2.0.0-rc.1"),
    ] {
        let entry = repository.find_stored(file.as_slice(), "shop", range).unwrap();
        assert_eq!(entry.version, expected, "{range}");
    }
    let entry = repository.find_stored(file.as_slice(), "shop", "1.x").unwrap();
    assert_eq!(version_of(&repository.fetch(&entry).await.unwrap()), "1.1.0");
    for (chart, range, why) in [
        ("shop", ">=3", "chart \"shop\" version \">=3\" not found in"),
        ("shop", "no range", "is no range of versions"),
        ("nothing", "", "chart \"nothing\" not found in"),
        ("../shop", "", "chart \"../shop\" not found in"),
    ] {
        let error = said(repository.find_stored(file.as_slice(), chart, range));
        assert!(error.contains(why), "{chart} {range}: {error}");
    }
    // An invalid chart doesn't matter to the others.
    let odd = String::from_utf8(file.clone())
        .unwrap()
        .replace("  shop:", "  \"\": odd\n  shop:");
    server.page("/odd/index.yaml", Page::Content(odd.into()));
    let odd = Repository::new(&client(Access::default()), &server.url("odd")).unwrap();
    let mut kept = Vec::new();
    odd.download_index(&mut kept, None).await.unwrap();
    assert_eq!(
        odd.find_stored(kept.as_slice(), "shop", "").unwrap().version,
        "1.1.0"
    );
    // The digest is of the unpacked content.
    server.page("/packed/index.yaml", Page::Packed(gzip(&file).into()));
    let packed = Repository::new(&client(Access::default()), &server.url("packed")).unwrap();
    let mut unpacked = Vec::new();
    let stored = packed.download_index(&mut unpacked, None).await.unwrap().unwrap();
    assert_eq!((stored.digest, unpacked), (Digest::of(&file), file));
}

#[tokio::test]
async fn known_index_is_not_sent_again() {
    let server = WebServer::start().unwrap();
    let text = "apiVersion: v1\nentries:\n  shop:\n  - {name: a, version: 1.0.0, urls: [a.tgz]}\n";
    server.page("/index.yaml", Page::Tagged(text.into(), "\"one\"".to_owned()));
    let repository = Repository::new(&client(Access::default()), &server.url("")).unwrap();
    let mut file = Vec::new();
    let first = repository.download_index(&mut file, None).await.unwrap().unwrap();
    assert_eq!(file, text.as_bytes());
    let mut again = Vec::new();
    let known = repository.download_index(&mut again, Some(&first)).await.unwrap();
    assert!(known.is_none() && again.is_empty());
    server.page(
        "/index.yaml",
        Page::Tagged(text.replace('1', "2").into(), "\"two\"".to_owned()),
    );
    let changed = repository
        .download_index(&mut again, Some(&first))
        .await
        .unwrap()
        .unwrap();
    assert_ne!(changed.digest, first.digest);
    // A server without tags sends it each time.
    server.page("/index.yaml", Page::Content(text.into()));
    for known in [None, Some(&changed)] {
        let sent = repository.download_index(Vec::new(), known).await.unwrap();
        assert_eq!(sent.unwrap().digest, first.digest);
    }
}

#[tokio::test]
async fn hostile_indexes_are_stored_up_to_their_limit() {
    let (server, other) = (WebServer::start().unwrap(), WebServer::start().unwrap());
    let limits = Limits {
        index_bytes: 1 << 20,
        ..Limits::default()
    };
    let start = "entries:\n  other:\n  - name: a\n    version: 1.0.0\n";
    server.page("/endless/index.yaml", Page::Endless(start.into()));
    server.page(
        "/nameless/index.yaml",
        Page::Endless("entries:\n  \"\":\n  - name: a\n    version: 1.0.0\n".into()),
    );
    server.page("/cut/index.yaml", Page::Cut(start.into()));
    server.page("/html/index.yaml", Page::Content("<html></html>".into()));
    let bomb = gzip(format!("{start}# {}", " ".repeat(4 << 20)).as_bytes());
    server.page("/bomb/index.yaml", Page::Packed(bomb.into()));
    let whole = gzip(start.as_bytes());
    server.page(
        "/short/index.yaml",
        Page::Packed(whole[..whole.len() - 9].to_vec().into()),
    );
    server.page("/away/index.yaml", Page::Redirect(other.url("index.yaml")));
    other.page("/index.yaml", Page::Content(start.into()));
    let access = Access {
        credentials: basic("me", "s3cret"),
        ..Access::default()
    };
    let client = client_with(access, limits);
    for (path, why) in [
        ("endless", "limit of 1048576 bytes of an index"),
        ("nameless", "limit of 1048576 bytes of an index"),
        ("bomb", "limit of 1048576 bytes of an index"),
        ("cut", "network:"),
        ("short", "can't be unpacked"),
        ("html", "it is no index"),
        ("none", "was not found"),
    ] {
        let repository = Repository::new(&client, &server.url(path)).unwrap();
        let mut file = Vec::new();
        let error = said(repository.download_index(&mut file, None).await);
        assert!(
            error.contains(why) && !error.contains("s3cret"),
            "{path}: {error}"
        );
        assert!(file.len() <= 1 << 20, "{path}: {}", file.len());
    }
    let away = Repository::new(&client, &server.url("away")).unwrap();
    away.download_index(Vec::new(), None).await.unwrap();
    let asked = other.asked();
    assert!(asked.len() == 1 && asked[0].authorization.is_none(), "{asked:?}");
}
