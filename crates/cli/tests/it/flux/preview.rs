//! `weir build kustomization` and `weir diff kustomization`.

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::{KUSTOMIZE, Objects};
use crate::{commands::stderr, program::files};

const KUSTOMIZATION: &str = "\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: apps
spec:
  interval: 5m
  prune: true
  sourceRef: {kind: GitRepository, name: repo}
  commonMetadata:
    labels: {team: shop}
  postBuild:
    substitute: {greeting: hello}
    substituteFrom:
    - {kind: ConfigMap, name: vars}
";
const CHILD: &str = "\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: child
  namespace: NAMESPACE
spec:
  interval: 5m
  path: ./child
  prune: true
  sourceRef: {kind: GitRepository, name: repo}
";
const MAP: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  text: ${greeting} ${who:=nobody}
";
const SECRET: &str = "\
apiVersion: v1
kind: Secret
metadata:
  name: token
stringData:
  token: ENC[AES256_GCM,data:x]
sops:
  mac: ENC[AES256_GCM,data:y]
";

/// A repository with two directories of manifests and the file of a Kustomization.
fn repository(namespace: &str) -> TempDir {
    files(&[
        ("apps.yaml", KUSTOMIZATION),
        ("apps/settings.yaml", MAP),
        ("apps/token.yaml", SECRET),
        ("apps/child.yaml", &CHILD.replace("NAMESPACE", namespace)),
        ("child/more.yaml", &MAP.replace("settings", "more")),
    ])
}

fn owned(kustomization: &str, namespace: &str) -> String {
    format!(
        "    kustomize.toolkit.fluxcd.io/name: {kustomization}\n    kustomize.toolkit.fluxcd.io/namespace: {namespace}\n"
    )
}

fn settings(namespace: &str, text: &str) -> String {
    format!(
        "apiVersion: v1\ndata:\n  text: {text}\nkind: ConfigMap\nmetadata:\n  labels:\n{}    team: shop\n  name: settings\n---\n",
        owned("apps", namespace)
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn kustomization_of_a_file_is_built_without_a_cluster() -> Result<()> {
    let objects = Objects::new("build-file").await?;
    let repository = repository("other");
    let root = repository.path().display();
    let run = format!(
        "build kustomization apps --path {root}/apps --kustomization-file {root}/apps.yaml --dry-run"
    );
    let offline = format!("{run} --kubeconfig {root}/apps.yaml -n prod");
    let text = objects.succeeds(&offline).await?;
    assert!(text.contains(&settings("prod", "hello nobody")), "{text}");
    assert!(
        text.contains("stringData:\n  token: '**SOPS**'\n") && !text.contains("ENC["),
        "{text}"
    );
    assert!(!text.contains("name: more"), "{text}");
    let names = |text: &str| text.lines().filter(|line| line.starts_with("  name: ")).count();
    let text = objects
        .succeeds(&format!("{offline} --ignore-paths token.yaml,/child.yaml"))
        .await?;
    assert_eq!(names(&text), 1, "{text}");
    let recursive = format!("{offline} -r --local-sources GitRepository/other/repo={root}");
    let text = objects.succeeds(&recursive).await?;
    let expected = format!(
        "apiVersion: v1\ndata:\n  text: ${{greeting}} ${{who:=nobody}}\nkind: ConfigMap\nmetadata:\n  labels:\n{}  name: more\n---\n",
        owned("child", "other")
    );
    assert!(text.ends_with(&expected), "{text}");
    let error = objects.fails(&format!("{offline} -r")).await?;
    assert!(
        error.contains("cannot get local path for GitRepository/other/repo of kustomization child"),
        "{error}"
    );
    let listed: Vec<String> = fs::read_dir(repository.path().join("apps"))?
        .map(|entry| Ok(entry?.file_name().into_string().unwrap()))
        .collect::<Result<_>>()?;
    assert_eq!(listed.len(), 3, "nothing is written: {listed:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn kustomization_of_the_cluster_is_built_with_its_variables() -> Result<()> {
    let objects = Objects::new("build-live").await?;
    let namespace = &objects.namespace;
    let repository = repository(namespace);
    let root = repository.path().display();
    let file = fs::read_to_string(repository.path().join("apps.yaml"))?;
    let missing = objects
        .fails(&format!("build ks apps --path {root}/apps"))
        .await?;
    assert!(
        missing.contains(
            "failed to get kustomization object: kustomizations.kustomize.toolkit.fluxcd.io \"apps\" not found"
        ),
        "{missing}"
    );
    let spec = json!({
        "interval": "5m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "repo"},
        "commonMetadata": {"labels": {"team": "shop"}},
        "postBuild": {"substitute": {"greeting": "hello"}, "substituteFrom": [{"kind": "ConfigMap", "name": "vars"}]},
    });
    objects
        .put(KUSTOMIZE, "Kustomization", "apps", json!({"spec": spec}))
        .await?;
    let run = format!("build ks apps --path {root}/apps");
    let error = objects.fails(&run).await?;
    assert!(
        error.contains(&format!("ConfigMap {namespace}/vars not found")),
        "{error}"
    );
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vars", "namespace": namespace},
        "data": {"who": "world", "greeting": "hi"},
    });
    objects.plane.apply(map).await?;
    let text = objects.succeeds(&run).await?;
    assert!(text.contains(&settings(namespace, "hello world")), "{text}");
    // The file takes precedence.
    let changed = file.replace("team: shop", "team: shop, tier: web");
    fs::write(repository.path().join("changed.yaml"), changed)?;
    let text = objects
        .succeeds(&format!("{run} --kustomization-file {root}/changed.yaml"))
        .await?;
    assert!(text.contains("    team: shop\n    tier: web\n"), "{text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_arguments_of_builds_are_named() -> Result<()> {
    let objects = Objects::new("build-invalid").await?;
    let repository = repository("other");
    let root = repository.path().display();
    for (words, expected) in [
        ("", "invalid resource path \"\"".to_owned()),
        ("--path /nope", "invalid resource path \"/nope\"".to_owned()),
        (
            &format!("--path {root}/apps --dry-run"),
            "dry-run mode requires a kustomization file".to_owned(),
        ),
        (
            &format!("--path {root}/apps --kustomization-file {root}/nope.yaml"),
            format!("invalid kustomization file \"{root}/nope.yaml\""),
        ),
        (
            &format!("--path {root}/apps --kustomization-file {root}/apps/child.yaml --dry-run"),
            "failed find kustomization with name 'apps' and namespace ".to_owned(),
        ),
        (
            &format!("--path {root} --kustomization-file {root}/apps.yaml --dry-run --local-sources x"),
            "--local-sources: x must be formatted as key=value".to_owned(),
        ),
    ] {
        let error = objects.fails(&format!("build ks apps {words}")).await?;
        assert!(error.contains(&expected), "{words}: {error}");
    }
    let output = objects.run("build ks").await?;
    assert!(stderr(&output).contains("NAME"), "{}", stderr(&output));
    Ok(())
}

/// Returns a ConfigMap or Secret as the controller applied it.
fn applied(objects: &Objects, kind: &str, name: &str, data: &Json) -> Json {
    json!({
        "apiVersion": "v1", "kind": kind, "data": data,
        "metadata": {
            "name": name, "namespace": objects.namespace,
            "labels": {
                "kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": objects.namespace,
            },
        },
    })
}

/// Creates the Kustomization `apps` with fields of its spec and an inventory.
async fn reconciled(objects: &Objects, spec: Json, inventory: &[(&str, &str)]) -> Result<()> {
    let mut all = json!({
        "interval": "5m", "prune": true, "targetNamespace": objects.namespace,
        "sourceRef": {"kind": "GitRepository", "name": "repo"},
    });
    for (field, value) in spec.as_object().context("no fields")? {
        all[field] = value.clone();
    }
    let entries: Vec<Json> = inventory
        .iter()
        .map(|(name, kind)| json!({"id": format!("{}_{name}__{kind}", objects.namespace), "v": "v1"}))
        .collect();
    let status = json!({"inventory": {"entries": entries}});
    objects
        .put(
            KUSTOMIZE,
            "Kustomization",
            "apps",
            json!({"spec": all, "status": status}),
        )
        .await
}

/// Compares, and returns the exit code with the text and the errors.
async fn compared(objects: &Objects, words: &str) -> Result<(Option<i32>, String, String)> {
    let output = objects.run(&format!("diff kustomization apps {words}")).await?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((output.status.code(), text, stderr(&output)))
}

const PLAIN: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {color: red}\n";
const PASSWORD: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: new}\n";

#[tokio::test(flavor = "multi_thread")]
async fn differences_are_shown_and_nothing_is_changed() -> Result<()> {
    let objects = Objects::new("diff").await?;
    let namespace = &objects.namespace;
    let repository = files(&[
        ("apps/settings.yaml", PLAIN),
        ("apps/login.yaml", PASSWORD),
        ("apps/token.yaml", SECRET),
        ("apps/new.yaml", &PLAIN.replace("settings", "added")),
    ]);
    let path = format!("--path {}/apps", repository.path().display());
    reconciled(
        &objects,
        json!({}),
        &[
            ("settings", "ConfigMap"),
            ("left", "ConfigMap"),
            ("gone", "ConfigMap"),
            ("other", "ConfigMap"),
        ],
    )
    .await?;
    let mut other = applied(&objects, "ConfigMap", "other", &json!({}));
    other["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/name"] = json!("another");
    for object in [
        applied(&objects, "ConfigMap", "settings", &json!({"color": "blue"})),
        applied(&objects, "ConfigMap", "left", &json!({})),
        applied(&objects, "Secret", "login", &json!({"password": "b2xk"})),
        applied(&objects, "Secret", "token", &json!({"token": "b2xk"})),
        other,
    ] {
        objects.plane.apply(object).await?;
    }
    let (code, text, errors) = compared(&objects, &path).await?;
    assert_eq!(code, Some(1), "{text}{errors}");
    for part in [
        format!("► ConfigMap/{namespace}/settings drifted\n\ndata.color\n± value change\n- blue\n+ red\n\n"),
        format!(
            "► Secret/{namespace}/login drifted\n\ndata.password\n± value change\n- *** (before)\n+ *** (after)\n\n"
        ),
        format!("► ConfigMap/{namespace}/added created\n"),
        format!("► ConfigMap/{namespace}/left deleted\n"),
    ] {
        assert!(text.contains(&part), "{part:?} in {text}");
    }
    assert!(
        !text.contains("token") && !text.contains("gone") && !text.contains("other"),
        "{text}"
    );
    assert!(
        errors.contains("✗ identified at least one change, exiting with non-zero exit code"),
        "{errors}"
    );
    let live = objects.live("v1", "ConfigMap", "settings").await?;
    assert_eq!(live["data"]["color"], "blue");
    assert!(objects.live("v1", "ConfigMap", "added").await.is_err());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ignored_fields_and_equal_objects_are_no_differences() -> Result<()> {
    let objects = Objects::new("diff-ignore").await?;
    let repository = files(&[("apps/settings.yaml", PLAIN)]);
    let path = format!("--path {}/apps --progress-bar=false", repository.path().display());
    let ignore = json!({"ignore": [{"paths": ["/data/color"], "target": {"kind": "ConfigMap"}}]});
    reconciled(&objects, ignore, &[("settings", "ConfigMap")]).await?;
    objects
        .plane
        .apply(applied(
            &objects,
            "ConfigMap",
            "settings",
            &json!({"color": "blue"}),
        ))
        .await?;
    let (code, text, errors) = compared(&objects, &path).await?;
    assert_eq!((code, text.as_str(), errors.as_str()), (Some(0), "", ""));
    fs::write(
        repository.path().join("apps/settings.yaml"),
        PLAIN.replace("color: red", "color: red, size: large"),
    )?;
    let (code, text, _) = compared(&objects, &path).await?;
    assert_eq!(code, Some(1));
    assert!(
        text.ends_with("\n\ndata\n+ one map entry added:\n  size: large\n\n"),
        "{text}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn kustomizations_among_the_objects_are_compared() -> Result<()> {
    let objects = Objects::new("diff-recursive").await?;
    let namespace = &objects.namespace;
    let child = CHILD.replace("NAMESPACE", namespace) + &format!("  targetNamespace: {namespace}\n");
    let repository = files(&[("apps/child.yaml", &child), ("child/settings.yaml", PLAIN)]);
    let root = repository.path().display();
    reconciled(&objects, json!({}), &[]).await?;
    let built: Json = serde_json::from_str(
        &objects
            .plane
            .kubectl(&[
                "create",
                "--dry-run=client",
                "-o",
                "json",
                "-f",
                &format!("{root}/apps/child.yaml"),
            ])
            .await?,
    )?;
    let mut live = built;
    live["metadata"]["labels"] =
        applied(&objects, "ConfigMap", "x", &json!({}))["metadata"]["labels"].clone();
    objects.plane.apply(live).await?;
    let words = format!("--path {root}/apps -r --local-sources GitRepository/{namespace}/repo={root}");
    let (code, text, errors) = compared(&objects, &words).await?;
    let expected =
        format!("📁 Kustomization/{namespace}/child changed\n► ConfigMap/{namespace}/settings created\n");
    assert_eq!((code, text), (Some(1), expected), "{errors}");
    let (code, _, errors) = compared(&objects, &format!("--path {root}/apps -r")).await?;
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("cannot get local path for GitRepository/"),
        "{errors}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_comparisons_have_their_own_exit_code() -> Result<()> {
    let objects = Objects::new("diff-failed").await?;
    let namespace = &objects.namespace;
    let invalid = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 99999}]}\n";
    let repository = files(&[
        (
            "apps.yaml",
            &KUSTOMIZATION.replace(
                "prune: true",
                &format!("prune: true\n  targetNamespace: {namespace}"),
            ),
        ),
        ("apps/settings.yaml", PLAIN),
        ("apps/web.yaml", invalid),
    ]);
    let root = repository.path().display();
    let (code, _, errors) = compared(&objects, "--path /nope").await?;
    assert_eq!(
        (code, errors.as_str()),
        (Some(2), "✗ invalid resource path \"/nope\"\n")
    );
    let (code, _, errors) = compared(&objects, &format!("--path {root}/apps")).await?;
    assert_eq!(code, Some(2));
    assert!(errors.contains("\"apps\" not found"), "{errors}");
    let vars = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vars", "namespace": namespace}, "data": {},
    });
    objects.plane.apply(vars).await?;
    let words = format!("--path {root}/apps --kustomization-file {root}/apps.yaml --ignore-not-found");
    let (code, text, errors) = compared(&objects, &words).await?;
    assert_eq!(code, Some(2), "{text}{errors}");
    assert_eq!(text, format!("► ConfigMap/{namespace}/settings created\n"));
    assert!(
        errors.contains(&format!("Service/{namespace}/web dry-run failed: ")),
        "{errors}"
    );
    Ok(())
}
