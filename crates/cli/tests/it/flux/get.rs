//! `weir get`.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value as Json, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::{KUSTOMIZE, Objects, SOURCE, git, ready};

const NOTIFICATION: &str = "notification.toolkit.fluxcd.io/v1beta3";
const HASH: &str = "696f056df216eea4f9401adbee0ff744d4df390f";

fn artifact() -> Json {
    json!({
        "revision": format!("main@sha1:{HASH}"), "digest": format!("sha256:{}", "a".repeat(64)), "path": "p", "url": "http://x/a.tar.gz",
        "lastUpdateTime": "2026-01-01T00:00:00Z", "size": 1000,
    })
}

fn kustomization(suspend: bool) -> Json {
    json!({
        "interval": "1m", "prune": true, "path": "./", "suspend": suspend, "sourceRef": {"kind": "GitRepository", "name": "podinfo"},
    })
}

/// Creates objects of several kinds.
async fn objects() -> Result<Objects> {
    let objects = Objects::new("get").await?;
    let message = format!("Fetched revision: main@sha1:{HASH}");
    let status = json!({"artifact": artifact(), "conditions": [ready("True", "Succeeded", &message)]});
    for name in ["podinfo", "podinfo-shard1"] {
        let spec = git("https://example.invalid/podinfo");
        let labels = json!({"shard": name});
        objects
            .put(
                SOURCE,
                "GitRepository",
                name,
                json!({"labels": labels, "spec": spec, "status": status}),
            )
            .await?;
    }
    let failed = json!({
        "lastAppliedRevision": format!("main@sha1:{HASH}"), "conditions": [ready("False", "BuildFailed", "no\nfile")],
    });
    let rest = json!({"spec": kustomization(false), "status": failed});
    objects.put(KUSTOMIZE, "Kustomization", "apps", rest).await?;
    let rest = json!({"spec": kustomization(true)});
    objects.put(KUSTOMIZE, "Kustomization", "infra", rest).await?;
    let spec = json!({"providerRef": {"name": "chat"}, "eventSources": [], "suspend": true});
    objects
        .put(NOTIFICATION, "Alert", "all", json!({"spec": spec}))
        .await?;
    let spec = json!({"type": "generic", "address": "https://example.invalid"});
    objects
        .put(NOTIFICATION, "Provider", "chat", json!({"spec": spec}))
        .await?;
    let source = json!({"interval": "1m", "source": {"git": {"url": "https://example.invalid/shop"}}});
    let rest = json!({"spec": source, "status": {"observedCommit": HASH, "conditions": [ready("True", "ReconciliationSucceeded", "ok")]}});
    objects
        .put("gitops.kluctl.io/v1beta1", "KluctlDeployment", "shop", rest)
        .await?;
    let spec = json!({"interval": "1m", "path": "./", "sourceRef": {"kind": "GitRepository", "name": "podinfo"}, "target": "t"});
    objects
        .put(
            "flux.kluctl.io/v1alpha1",
            "KluctlDeployment",
            "shop",
            json!({"spec": spec}),
        )
        .await?;
    Ok(objects)
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_have_the_layout_of_the_original() -> Result<()> {
    let objects = objects().await?;
    let namespace = &objects.namespace;
    let message = "Fetched revision: main@sha1:696f056d";
    let git = format!(
        "NAME          \tREVISION          \tSUSPENDED\tREADY\tMESSAGE                              \n\
         podinfo       \tmain@sha1:696f056d\tFalse    \tTrue \t{message}\t\n\
         podinfo-shard1\tmain@sha1:696f056d\tFalse    \tTrue \t{message}\t\n"
    );
    assert_eq!(objects.succeeds("get sources git").await?, git);
    let one = objects.succeeds("get source git podinfo --no-header").await?;
    assert_eq!(
        one,
        format!("podinfo\tmain@sha1:696f056d\tFalse\tTrue\t{message}\t\n")
    );
    assert_eq!(
        objects
            .succeeds("get source git -l shard=podinfo --no-header")
            .await?,
        one
    );
    let apps = "apps \tmain@sha1:696f056d\tFalse    \tFalse\tno                      \t\n     \t                  \t         \t     \tfile                    \t\n";
    let infra = "infra\t                  \tTrue     \tFalse\twaiting to be reconciled\t\n";
    let head = "NAME \tREVISION          \tSUSPENDED\tREADY\tMESSAGE                  \n";
    assert_eq!(objects.succeeds("get ks").await?, format!("{head}{apps}{infra}"));
    for (filter, names) in [
        ("--status-selector ready=false", "apps"),
        ("--status-selector ready!=true", "apps infra"),
        ("--suspended", "infra"),
        ("--suspended=false", "apps"),
    ] {
        let found = objects
            .succeeds(&format!("get kustomizations -o name {filter}"))
            .await?;
        let expected: Vec<String> = names
            .split(' ')
            .map(|name| format!("kustomization.kustomize.toolkit.fluxcd.io/{name}\n"))
            .collect();
        assert_eq!(found, expected.concat(), "{filter}");
    }
    let source = format!("GitRepository/{namespace}/podinfo");
    let shown = objects.succeeds("get ks --show-source --no-header infra").await?;
    assert_eq!(
        shown,
        format!("infra\t{source}\t\tTrue\tFalse\twaiting to be reconciled\t\n")
    );
    let kluctl = objects.succeeds("get kluctldeployments --no-header").await?;
    let gitops = "shop\tgitops.kluctl.io\t696f056d\tFalse\tTrue \tok                      \t\n";
    let flux = "shop\tflux.kluctl.io  \t        \tFalse\tFalse\twaiting to be reconciled\t\n";
    assert_eq!(kluctl, format!("{gitops}{flux}"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn all_kinds_are_printed_in_the_order_of_the_original() -> Result<()> {
    let objects = objects().await?;
    let printed = objects.succeeds("get all").await?;
    let first: Vec<&str> = printed
        .split("\n\n")
        .filter_map(|table| table.lines().nth(1)?.split(['\t', ' ']).next())
        .collect();
    let names = [
        "gitrepository/podinfo",
        "kustomization/apps",
        "kluctldeployment/shop",
        "provider/chat",
        "alert/all",
    ];
    assert_eq!(first, names, "{printed}");
    let sources = objects.succeeds("get sources all -A --no-header").await?;
    let own = sources
        .lines()
        .filter(|line| line.contains(&objects.namespace))
        .count();
    ensure!(own == 2 && sources.ends_with("\n\n"), "{sources}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_printed_as_json_and_yaml() -> Result<()> {
    let objects = objects().await?;
    let list: Json = serde_json::from_str(&objects.succeeds("get sources git -o json").await?)?;
    ensure!(
        list["kind"] == "List" && list["items"].as_array().is_some_and(|items| items.len() == 2),
        "{list}"
    );
    let item = &list["items"][0];
    ensure!(
        item["kind"] == "GitRepository" && item["metadata"]["managedFields"].is_null(),
        "{item}"
    );
    let one = objects.succeeds("get source git podinfo -o yaml").await?;
    ensure!(
        one.contains("\nkind: GitRepository\n") && one.contains("\n  name: podinfo\n"),
        "{one}"
    );
    let wide = objects.succeeds("get ks apps -o wide").await?;
    let head: Vec<&str> = wide
        .lines()
        .next()
        .context("no header")?
        .split('\t')
        .map(str::trim)
        .collect();
    assert_eq!(
        head,
        [
            "NAME",
            "SOURCE",
            "REVISION",
            "SUSPENDED",
            "READY",
            "MESSAGE",
            "SUSPENSION",
            "AGE"
        ]
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_objects_and_wrong_flags_are_named() -> Result<()> {
    let objects = Objects::new("get-none").await?;
    let namespace = &objects.namespace;
    for (words, expected) in [
        (
            "get ks nothing",
            format!("✗ Kustomization object 'nothing' not found in \"{namespace}\" namespace\n"),
        ),
        (
            "get ks nothing -A",
            "✗ Kustomization object 'nothing' not found in any namespace\n".to_owned(),
        ),
        (
            "get sources git",
            format!("✗ no GitRepository objects found in \"{namespace}\" namespace\n"),
        ),
        (
            "get all --watch",
            "✗ expected a single resource type, but found all\n".to_owned(),
        ),
        (
            "get sources git --show-source",
            "✗ --show-source is for kustomizations, helmreleases and kluctldeployments\n".to_owned(),
        ),
    ] {
        assert_eq!(objects.fails(words).await?, expected, "{words}");
    }
    let missing = objects.fails("get helmreleases").await?;
    ensure!(
        missing.starts_with("✗ no matches for kind \"HelmRelease\""),
        "{missing}"
    );
    let selector = objects.fails("get ks -l =x").await?;
    ensure!(
        selector.starts_with("✗ unable to parse label selector: found '='"),
        "{selector}"
    );
    let output = objects.run("get ks --status-selector ready").await?;
    ensure!(!output.status.success());
    assert_eq!(objects.succeeds("get all").await?, "");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn more_objects_than_a_page_are_printed_in_order() -> Result<()> {
    let objects = Objects::new("get-many").await?;
    let names: Vec<String> = (0..1001).map(|number| format!("a{number:04}")).collect();
    let yaml = names.iter().map(|name| {
        format!(
            "---\napiVersion: {SOURCE}\nkind: GitRepository\nmetadata: {{name: {name}, namespace: {}}}\nspec: {{interval: 1m, url: https://example.invalid}}\n",
            objects.namespace
        )
    });
    objects.plane.apply_yaml(&yaml.collect::<String>()).await?;
    let printed = objects.succeeds("get sources git --no-header").await?;
    let found: Vec<&str> = printed
        .lines()
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert_eq!(found, names);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_printed_as_they_happen() -> Result<()> {
    let objects = objects().await?;
    let mut watching = objects.start("get ks -w")?;
    let out = watching.stdout.take().context("no output")?;
    let mut lines = BufReader::new(out).lines();
    let mut next = async || -> Result<String> {
        let line = lines.next_line().await?.context("the watch ended")?;
        Ok(line.split('\t').map(str::trim).collect::<Vec<_>>().join("|"))
    };
    for expected in [
        "NAME|REVISION|SUSPENDED|READY|MESSAGE",
        "apps|main@sha1:696f056d|False|False|no|",
        "||||file|",
        "infra||True|False|waiting to be reconciled|",
    ] {
        assert_eq!(next().await?, expected);
    }
    let status = json!({"conditions": [ready("True", "ReconciliationSucceeded", "ok")]});
    objects
        .put_status(KUSTOMIZE, "Kustomization", "infra", &status)
        .await?;
    assert_eq!(next().await?, "infra||True|True|ok|");
    let namespace = &objects.namespace;
    objects
        .plane
        .kubectl(&["delete", "kustomization", "infra", "-n", namespace])
        .await?;
    assert_eq!(next().await?, "infra||True|True|deleted|");
    Ok(())
}
