//! `weir events`, `tree`, `trace`, `export`, `stats` and `debug`.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value as Json, json};

use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::{KUSTOMIZE, Objects, SOURCE, ready};
use crate::commands::stderr;

const REVISION: &str = "main@sha1:696f056df216eea4f9401adbee0ff744d4df390f";

fn kustomization(path: &str) -> Json {
    json!({
        "interval": "1m", "timeout": "90s", "prune": true, "path": path, "sourceRef": {"kind": "GitRepository", "name": "podinfo"},
    })
}

fn artifact() -> Json {
    json!({
        "revision": REVISION, "digest": format!("sha256:{}", "a".repeat(64)), "path": "p", "url": "http://x/a.tar.gz",
        "lastUpdateTime": "2026-01-01T00:00:00Z", "size": 1536,
    })
}

fn labels(objects: &Objects, name: &str) -> Json {
    json!({"kustomize.toolkit.fluxcd.io/name": name, "kustomize.toolkit.fluxcd.io/namespace": objects.namespace})
}

/// A GitRepository, and the Kustomization `apps`, which applied the ConfigMap `m` and the Kustomization `inner`.
pub(super) async fn delivered() -> Result<Objects> {
    let objects = Objects::new("look").await?;
    let namespace = &objects.namespace;
    let spec = json!({"interval": "1m", "url": "https://example.invalid/podinfo", "ref": {"branch": "main"}, "secretRef": {"name": "git"}});
    let status =
        json!({"artifact": artifact(), "conditions": [ready("True", "Succeeded", "stored artifact")]});
    let source = json!({"spec": spec, "status": status});
    objects.put(SOURCE, "GitRepository", "podinfo", source).await?;
    let entries = json!([
        {"id": format!("{namespace}_m__ConfigMap"), "v": "v1"},
        {"id": format!("{namespace}_inner_kustomize.toolkit.fluxcd.io_Kustomization"), "v": "v1"},
    ]);
    let status = json!({
        "lastAppliedRevision": REVISION, "inventory": {"entries": entries},
        "conditions": [ready("True", "ReconciliationSucceeded", "Applied revision")],
    });
    let apps = json!({"spec": kustomization("./apps"), "status": status});
    objects.put(KUSTOMIZE, "Kustomization", "apps", apps).await?;
    let status = json!({
        "inventory": {"entries": [{"id": "_x__Namespace", "v": "v1"}]},
        "conditions": [ready("False", "BuildFailed", "no such file")],
    });
    let inner =
        json!({"labels": labels(&objects, "apps"), "spec": kustomization("./inner"), "status": status});
    objects.put(KUSTOMIZE, "Kustomization", "inner", inner).await?;
    objects
        .put(
            "v1",
            "ConfigMap",
            "m",
            json!({"labels": labels(&objects, "apps")}),
        )
        .await?;
    Ok(objects)
}

#[tokio::test(flavor = "multi_thread")]
async fn inventories_are_drawn_as_trees() -> Result<()> {
    let objects = delivered().await?;
    let namespace = &objects.namespace;
    let tree = objects.succeeds("tree kustomization apps").await?;
    assert_eq!(
        tree,
        format!(
            "Kustomization/{namespace}/apps\n├── ConfigMap/{namespace}/m\n└── Kustomization/{namespace}/inner\n    └── Namespace/x\n\n"
        )
    );
    let compact = objects.succeeds("tree ks apps --compact").await?;
    assert_eq!(
        compact,
        format!("Kustomization/{namespace}/apps\n└── Kustomization/{namespace}/inner\n\n")
    );
    let document: Json = serde_json::from_str(&objects.succeeds("tree ks apps -o json").await?)?;
    let first = &document["resources"][0]["resource"];
    assert_eq!(
        *first,
        json!({"Namespace": namespace, "Name": "m", "GroupKind": {"Group": "", "Kind": "ConfigMap"}})
    );
    let missing = objects.fails("tree ks nothing").await?;
    assert_eq!(
        missing,
        "✗ kustomizations.kustomize.toolkit.fluxcd.io \"nothing\" not found\n"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn trees_of_kluctl_deployments_have_the_objects_with_their_label() -> Result<()> {
    let objects = Objects::new("look-kluctl").await?;
    let namespace = &objects.namespace;
    let discriminator = format!("d-{namespace}");
    let rest = json!({"labels": {"kluctl.io/discriminator": discriminator}});
    objects.put("v1", "ConfigMap", "m", rest).await?;
    let source = json!({"git": {"url": "https://example.invalid/shop"}});
    let rest = json!({
        "spec": {"interval": "1m", "source": source, "target": "prod"},
        "status": {
            "targetKey": {"targetName": "prod", "clusterId": "c", "discriminator": discriminator},
            "conditions": [ready("True", "ReconciliationSucceeded", "deployed")],
        },
    });
    objects
        .put("gitops.kluctl.io/v1beta1", "KluctlDeployment", "shop", rest)
        .await?;
    let tree = objects.succeeds("tree kluctldeployment shop").await?;
    assert_eq!(
        tree,
        format!("KluctlDeployment/{namespace}/shop\n└── ConfigMap/{namespace}/m\n\n")
    );
    let args = objects.succeeds("debug kd shop --show-args").await?;
    assert_eq!(args, "target: prod\n");
    let traced = objects.succeeds("trace configmap m").await?;
    ensure!(
        traced.contains("KluctlDeployment:shop\n") && traced.contains("Target:          prod\n"),
        "{traced}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_show_the_layers_of_a_delivery() -> Result<()> {
    let objects = delivered().await?;
    let namespace = &objects.namespace;
    let at = "2026-01-01 00:00:00 +0000 UTC";
    let rest = format!(
        "Namespace:       {namespace}\nStatus:          Managed by Flux\n---\n\
         Kustomization:   apps\nNamespace:       {namespace}\nPath:            ./apps\nRevision:        {REVISION}\n\
         Status:          Last reconciled at {at}\nMessage:         Applied revision\n---\n\
         GitRepository:   podinfo\nNamespace:       {namespace}\nURL:             https://example.invalid/podinfo\nBranch:          main\n\
         Revision:        {REVISION}\nStatus:          Last reconciled at {at}\nMessage:         stored artifact\n"
    );
    let map = format!("\nObject:          ConfigMap/m\n{rest}");
    for words in [
        "trace cm m",
        "trace configmap/m",
        "trace m --kind ConfigMap --api-version v1",
    ] {
        assert_eq!(objects.succeeds(words).await?, map, "{words}");
    }
    let both = objects.succeeds("trace cm/m ks/inner").await?;
    assert_eq!(
        both,
        format!("{map}---\n\nObject:          Kustomization/inner\n{rest}")
    );
    let unmanaged = objects.fails("trace ks apps").await?;
    ensure!(unmanaged.contains("object not managed by Flux"), "{unmanaged}");
    ensure!(
        objects
            .fails("trace nothing m")
            .await?
            .contains("the server doesn't have a resource type \"nothing\"")
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_about_objects_and_their_sources() -> Result<()> {
    let objects = delivered().await?;
    let namespace = &objects.namespace;
    let event = |name: &str, kind: &str, of: &str, type_: &str, second: u32| {
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {"kind": kind, "name": of, "namespace": namespace}, "type": type_, "reason": "R", "message": format!("about {of}"),
            "firstTimestamp": format!("2026-01-01T00:00:0{second}Z"), "lastTimestamp": format!("2026-01-01T00:00:0{second}Z"),
            "source": {"component": "test"},
        })
    };
    for object in [
        event("a", "Kustomization", "apps", "Warning", 3),
        event("b", "GitRepository", "podinfo", "Normal", 1),
        event("c", "Pod", "p", "Normal", 2),
        event("d", "Kustomization", "inner", "Normal", 2),
    ] {
        objects.plane.apply(object).await?;
    }
    for (words, expected) in [
        ("events", &["podinfo", "inner", "apps"][..]),
        ("events --for Kustomization", &["inner", "apps"]),
        ("events --for ks/apps", &["podinfo", "apps"]),
        ("events --types warning", &["apps"]),
    ] {
        let printed = objects.succeeds(words).await?;
        let mut lines = printed.lines();
        let head: Vec<&str> = lines
            .next()
            .unwrap_or_default()
            .split('\t')
            .map(str::trim)
            .collect();
        assert_eq!(head, ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]);
        let about: Vec<&str> = lines
            .filter_map(|line| line.split("about ").nth(1)?.split([' ', '\t']).next())
            .collect();
        assert_eq!(about, expected, "{words}: {printed}");
    }
    let unknown = objects.fails("events --for nothing").await?;
    ensure!(
        unknown
            .starts_with("✗ 'nothing' is not a recognized Flux kind: use one of Alert, ArtifactGenerator, "),
        "{unknown}"
    );
    // A watch goes on with later events.
    let mut watching = objects.start("events --for ks/apps --types Warning -w")?;
    let out = watching.stdout.take().context("no output")?;
    let mut lines = BufReader::new(out).lines();
    for expected in ["LAST SEEN", "about apps"] {
        let line = lines.next_line().await?.context("the watch ended")?;
        ensure!(line.contains(expected), "{line}");
    }
    let mut later = event("e", "Kustomization", "apps", "Warning", 5);
    later["message"] = json!("still about apps");
    objects.plane.apply(later).await?;
    let line = lines.next_line().await?.context("the watch ended")?;
    ensure!(line.contains("still about apps"), "{line}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_can_be_applied_again() -> Result<()> {
    let objects = delivered().await?;
    let namespace = &objects.namespace;
    let exported = objects.succeeds("export kustomization apps").await?;
    assert_eq!(
        exported,
        format!(
            "---\napiVersion: {KUSTOMIZE}\nkind: Kustomization\nmetadata:\n  name: apps\n  namespace: {namespace}\nspec:\n  \
             interval: 1m0s\n  path: ./apps\n  prune: true\n  sourceRef:\n    kind: GitRepository\n    name: podinfo\n  timeout: 1m30s\n"
        )
    );
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    objects.plane.kubectl_with(&apply, &exported).await?;
    let all = objects.succeeds("export ks --all").await?;
    assert_eq!(all.matches("---\n").count(), 2);
    let missing = objects
        .fails("export source git podinfo --with-credentials")
        .await?;
    ensure!(missing.contains("failed to retrieve secret git"), "{missing}");
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "git", "namespace": namespace, "labels": {"a": "b"}},
        "stringData": {"username": "u"},
    });
    objects.plane.apply(secret).await?;
    let with = objects
        .succeeds("export source git podinfo --with-credentials")
        .await?;
    let secret = format!(
        "---\napiVersion: v1\ndata:\n  username: dQ==\nkind: Secret\nmetadata:\n  name: git\n  namespace: {namespace}\ntype: Opaque\n"
    );
    ensure!(with.ends_with(&secret), "{with}");
    assert_eq!(objects.fails("export ks").await?, "✗ name is required\n");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn stats_count_objects_by_state() -> Result<()> {
    let objects = delivered().await?;
    let stats = objects.succeeds("stats").await?;
    let row = |name: &str| {
        let line = stats
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_default();
        line.split('\t').map(str::trim).collect::<Vec<_>>().join("|")
    };
    assert_eq!(
        row("RECONCILERS"),
        "RECONCILERS|RUNNING|FAILING|SUSPENDED|STORAGE"
    );
    assert_eq!(row("GitRepository"), "GitRepository|1|0|0|1.5 KiB|");
    assert_eq!(row("Kustomization"), "Kustomization|2|1|0|-|");
    assert_eq!(row("HelmRelease"), "HelmRelease|0|0|0|-|");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn debug_shows_status_history_and_variables() -> Result<()> {
    let objects = Objects::new("look-debug").await?;
    objects.put("v1", "ConfigMap", "vars", json!({})).await?;
    let namespace = &objects.namespace;
    let data = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vars", "namespace": namespace},
        "data": {"a": "1", "b": "two\nlines"},
    });
    objects.plane.apply(data).await?;
    let mut spec = kustomization("./");
    spec["postBuild"] = json!({
        "substitute": {"a": "inline"},
        "substituteFrom": [{"kind": "ConfigMap", "name": "vars"}, {"kind": "Secret", "name": "none", "optional": true}],
    });
    objects
        .put(KUSTOMIZE, "Kustomization", "apps", json!({"spec": spec}))
        .await?;
    assert_eq!(
        objects.succeeds("debug ks apps --show-vars").await?,
        "a=inline\nb=twolines\n"
    );
    let status = objects.succeeds("debug kustomization apps --show-status").await?;
    assert_eq!(
        status,
        "# Status documentation: https://fluxcd.io/flux/components/kustomize/kustomizations/#kustomization-status\nobservedGeneration: -1\n"
    );
    let history = objects
        .succeeds("debug kustomization apps --show-history")
        .await?;
    ensure!(history.ends_with("/#history\n[]\n"), "{history}");
    let both = objects.fails("debug ks apps --show-vars --show-status").await?;
    assert_eq!(
        both,
        "✗ exactly one of --show-status, --show-vars, or --show-history must be set\n"
    );
    Ok(())
}

/// Returns the commands of the code blocks of a page.
fn examples(page: &str) -> Vec<String> {
    let commands = page.lines().filter_map(|line| line.strip_prefix("weir "));
    let words = commands.map(|line| line.split(" #").next().unwrap_or_default().trim().to_owned());
    words.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_manual_are_understood() -> Result<()> {
    let objects = Objects::new("look-examples").await?;
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/weir-inspect.md");
    let examples = examples(&std::fs::read_to_string(page)?);
    ensure!(examples.len() > 5, "{examples:?}");
    for line in examples {
        if line.split(' ').any(|word| word == "-w" || word == "-f") {
            // Without objects it waits for the first one.
            let mut watching = objects.start(&line)?;
            let ended = tokio::time::timeout(super::PAUSE, watching.wait()).await;
            ensure!(ended.is_err(), "weir {line} ended");
            continue;
        }
        let output = objects.run(&line).await?;
        let messages = stderr(&output);
        ensure!(!messages.starts_with("Error:"), "weir {line}: {messages}");
    }
    Ok(())
}
