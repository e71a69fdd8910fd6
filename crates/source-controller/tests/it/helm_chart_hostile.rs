//! HelmChart: charts of many repositories, and malicious charts.

use api::source::{HelmChart, HelmRepository};
use serde_json::json;
use testkit::{GitServer, WebServer, archive::tar_gz, web::Page};

use super::{
    TestNamespace,
    objects::{Objects, artifact},
};

/// Serves a Helm repository with archives of one chart by their versions.
fn serve(chart: &str, archives: &[(&str, Vec<u8>)]) -> WebServer {
    let server = WebServer::start().unwrap();
    let mut index = format!("apiVersion: v2\nentries:\n  {chart}:\n");
    for (version, archive) in archives {
        let path = format!("/{chart}-{version}.tgz");
        server.page(&path, Page::Content(archive.clone().into()));
        index.push_str(&format!(
            "  - {{name: {chart}, version: {version}, urls: [{chart}-{version}.tgz]}}\n"
        ));
    }
    server.page("/index.yaml", Page::Content(index.into()));
    server
}

fn metadata(chart: &str, version: &str) -> String {
    format!("apiVersion: v2\nname: {chart}\nversion: {version}\n")
}

fn packed(chart: &str, version: &str) -> Vec<u8> {
    let path = format!("{chart}/Chart.yaml");
    tar_gz(&[(path.as_str(), metadata(chart, version).as_bytes())])
}

#[tokio::test(flavor = "multi_thread")]
async fn dependencies_of_several_repositories_list_the_helm_repositories_once() {
    let setup = TestNamespace::start().await;
    let git = GitServer::start().unwrap();
    let repo = git.repo("apps").unwrap();
    let servers =
        ["one", "two", "three"].map(|name| (name, serve(name, &[(("1.0.0"), packed(name, "1.0.0"))])));
    let mut chart = metadata("app", "0.1.0");
    chart.push_str("dependencies:\n");
    for (name, server) in &servers {
        chart.push_str(&format!(
            "- {{name: {name}, version: 1.x, repository: '{}'}}\n",
            server.url("")
        ));
    }
    let plain = metadata("plain", "0.1.0");
    repo.commit(
        "first",
        &[("app/Chart.yaml", &chart), ("plain/Chart.yaml", &plain)],
    )
    .unwrap();
    setup.apply("apps", &repo.url(), json!({})).await;
    let charts = Objects::<HelmChart>::of(&setup).await;
    let source = json!({"kind": "GitRepository", "name": "apps"});
    // Then all kinds are watched.
    charts
        .apply("plain", json!({"chart": "plain", "sourceRef": source}))
        .await;
    charts.wait_ready("plain").await;
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    let (_, server) = &servers[1];
    repositories.apply("two", json!({"url": server.url("")})).await;
    repositories.wait_ready("two").await;
    let mark = setup.plane.audit_mark();
    charts
        .apply("app", json!({"chart": "app", "sourceRef": source}))
        .await;
    charts.wait_ready("app").await;
    let entries = setup.plane.audit_since(mark).unwrap().into_iter();
    let lists: Vec<String> = entries
        .filter(|entry| {
            entry.verb == "list" && entry.resource == "helmrepositories" && entry.namespace == setup.namespace
        })
        .map(|entry| entry.uri)
        .filter(|uri| uri.contains("limit=500"))
        .collect();
    let (_, server) = &servers[0];
    let asked = server.asked().into_iter();
    let builds = asked.filter(|asked| asked.path.ends_with("/index.yaml")).count();
    assert!(builds > 0);
    assert_eq!(lists.len(), builds, "{lists:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_charts_fail_alone_and_say_why() {
    let setup = TestNamespace::start().await;
    let level = |number: usize| {
        let before = format!("*x{}", number.saturating_sub(1));
        let list = [if number == 0 { "lol" } else { before.as_str() }; 10].join(", ");
        format!("x{number}: &x{number} [{list}]\n")
    };
    let bomb = metadata("shop", "2.0.0") + &(0..12).map(level).collect::<String>();
    let archives = [
        ("1.0.0", packed("shop", "1.0.0")),
        ("2.0.0", tar_gz(&[("shop/Chart.yaml", bomb.as_bytes())])),
        ("3.0.0", b"not an archive".to_vec()),
        ("4.0.0", tar_gz(&[("shop/values.yaml", b"a: 1\n")])),
        (
            "5.0.0",
            tar_gz(&[
                ("shop/Chart.yaml", metadata("shop", "5.0.0").as_bytes()),
                ("shop/../../evil", b"x"),
            ]),
        ),
    ];
    let server = serve("shop", &archives);
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    repositories.apply("charts", json!({"url": server.url("")})).await;
    let charts = Objects::<HelmChart>::of(&setup).await;
    let source = json!({"kind": "HelmRepository", "name": "charts"});
    for (version, _) in &archives {
        let spec = json!({"chart": "shop", "version": version, "sourceRef": source});
        charts.apply(&format!("v{}", &version[..1]), spec).await;
    }
    let object = charts.wait_ready("v1").await;
    assert_eq!(artifact(&object).revision, "1.0.0");
    let why = "chart pull error: failed to load chart metadata from written chart: ";
    for (name, text) in [
        ("v2", "cannot load Chart.yaml: error converting YAML to JSON"),
        (
            "v3",
            "file 'shop-3.0.0.tgz' does not appear to be a gzipped archive",
        ),
        ("v4", "Chart.yaml file is missing"),
        (
            "v5",
            "chart illegally references parent directory: \"shop/../../evil\"",
        ),
    ] {
        let text = format!("{why}{text}");
        charts.wait_failed(name, "ChartPullError", &text).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_the_artifact_server_are_refused_as_urls_of_users() {
    let setup = TestNamespace::start().await;
    let server = serve("app", &[("1.0.0", packed("app", "1.0.0"))]);
    let repositories = Objects::<HelmRepository>::of(&setup).await;
    repositories.apply("victim", json!({"url": server.url("")})).await;
    let charts = Objects::<HelmChart>::of(&setup).await;
    let spec = |repository: &str| json!({"chart": "app", "version": "1.x", "sourceRef": {"kind": "HelmRepository", "name": repository}});
    charts.apply("victim", spec("victim")).await;
    let private = artifact(&charts.wait_ready("victim").await).url.clone();
    let latest = private.rsplit_once('/').unwrap().0.to_owned() + "/latest.tar.gz";
    let hostile = WebServer::start().unwrap();
    hostile.page("/moved.tgz", Page::Redirect(latest.clone()));
    let index = |url: &str| {
        format!("apiVersion: v1\nentries:\n  app:\n  - {{name: app, version: 1.0.0, urls: ['{url}']}}\n")
    };
    let named = latest.replace("127.0.0.1", "localhost");
    for (number, url) in [&latest, &named, &hostile.url("/moved.tgz")]
        .into_iter()
        .enumerate()
    {
        let (name, path) = (format!("thief-{number}"), format!("/{number}/index.yaml"));
        hostile.page(&path, Page::Content(index(url).into()));
        repositories
            .apply(&name, json!({"url": hostile.url(&format!("/{number}"))}))
            .await;
        repositories.wait_ready(&name).await;
        charts.apply(&name, spec(&name)).await;
        charts
            .wait_failed(&name, "ChartPullError", "the controller itself is not allowed")
            .await;
    }
}
