//! Installing, checking and removing the controllers, against a real API server.

mod bootstrap;

use std::{
    path::Path,
    process::{Output, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value as Json, json};
use testkit::{ControlPlane, Options};

use crate::{
    commands::{stderr, weir},
    program::files,
};

pub(crate) async fn run(plane: &ControlPlane, words: &str) -> Result<Output> {
    let mut command = weir(Path::new("."), words);
    command.env("KUBECONFIG", plane.kubeconfig()).stdin(Stdio::null());
    let mut command = tokio::process::Command::from(command);
    Ok(command.kill_on_drop(true).output().await?)
}

/// Runs a command that has to succeed, and returns its output and messages.
pub(crate) async fn done(plane: &ControlPlane, words: &str) -> Result<(String, String)> {
    let output = run(plane, words).await?;
    ensure!(output.status.success(), "{words}: {}", stderr(&output));
    Ok((String::from_utf8(output.stdout.clone())?, stderr(&output)))
}

/// Fails with the first line that an output lacks.
fn contains_all(output: &str, lines: &[&str]) -> Result<()> {
    for line in lines {
        ensure!(output.contains(line), "{line}: {output}");
    }
    Ok(())
}

/// Runs a command that has to fail, and returns its messages.
async fn refused(plane: &ControlPlane, words: &str) -> Result<String> {
    let output = run(plane, words).await?;
    ensure!(output.status.code() == Some(1), "{words}: {}", stderr(&output));
    Ok(stderr(&output))
}

pub(crate) async fn get(plane: &ControlPlane, words: &[&str]) -> Result<Json> {
    let output = plane.kubectl(&[&["get", "-o", "json"], words].concat()).await?;
    serde_json::from_str(&output).context("kubectl printed no JSON")
}

/// Creates a deployed object, and the objects of two controllers whose finalizers would delete it.
async fn deploy_something(plane: &ControlPlane) -> Result<()> {
    plane
        .apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "workload", "namespace": "default"},
        }))
        .await?;
    for (api_version, kind, spec) in [
        (
            "source.toolkit.fluxcd.io/v1",
            "GitRepository",
            json!({"interval": "1m", "url": "https://git.example.com/fleet.git"}),
        ),
        (
            "kustomize.toolkit.fluxcd.io/v1",
            "Kustomization",
            json!({"interval": "1m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "fleet"}}),
        ),
    ] {
        plane
            .apply(json!({
                "apiVersion": api_version, "kind": kind, "spec": spec,
                "metadata": {"name": "fleet", "namespace": "default", "finalizers": ["finalizers.fluxcd.io"]},
            }))
            .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn installation_is_checked_changed_and_removed() -> Result<()> {
    let plane = ControlPlane::start(Options::default()).await?;
    let (_, checked) = done(&plane, "check --pre").await?;
    ensure!(checked.contains("✔ Kubernetes 1."), "{checked}");
    let missing = refused(&plane, "check").await?;
    ensure!(
        missing.contains("✗ no controllers found in the 'flux-system' namespace"),
        "{missing}"
    );

    let (_, installed) = done(&plane, "install").await?;
    contains_all(
        &installed,
        &[
            "► installing components in flux-system namespace",
            "Deployment/flux-system/source-controller created",
            "✔ kustomize-controller: deployment ready",
            "✔ install finished",
        ],
    )?;
    let (_, again) = done(&plane, "install").await?;
    ensure!(
        !again.contains("created") && !again.contains("configured"),
        "{again}"
    );
    let (_, changed) = done(&plane, "install --log-level=debug").await?;
    ensure!(
        changed.contains("Deployment/flux-system/source-controller configured"),
        "{changed}"
    );
    let (_, checked) = done(&plane, "check").await?;
    let version = format!("v{}", env!("CARGO_PKG_VERSION"));
    for line in [
        format!("✔ distribution: weir-{version}"),
        "✔ bootstrapped: false".to_owned(),
        "✔ source-controller: deployment ready".to_owned(),
        format!("► weir/source-controller:{version}"),
        "✔ kustomizations.kustomize.toolkit.fluxcd.io/v1".to_owned(),
        "✔ all checks passed".to_owned(),
    ] {
        ensure!(checked.contains(&line), "{line}: {checked}");
    }
    let versions: Json = serde_json::from_str(&done(&plane, "version -o json").await?.0)?;
    assert_eq!(versions["weir"], *version);
    assert_eq!(versions["notification-controller"], *version);
    assert_eq!(versions["distribution"], format!("weir-{version}"));

    deploy_something(&plane).await?;
    let unconfirmed = refused(&plane, "uninstall").await?;
    ensure!(unconfirmed.contains("--silent"), "{unconfirmed}");
    let (_, shown) = done(&plane, "uninstall --dry-run").await?;
    ensure!(
        shown.contains("✔ Deployment/flux-system/source-controller deleted (dry run)"),
        "{shown}"
    );
    get(&plane, &["deployment", "source-controller", "-n", "flux-system"]).await?;
    let fleet = get(&plane, &["gitrepository", "fleet"]).await?;
    assert_eq!(fleet["metadata"]["finalizers"], json!(["finalizers.fluxcd.io"]));

    let (_, removed) = done(&plane, "uninstall -s").await?;
    contains_all(
        &removed,
        &[
            "✔ GitRepository/default/fleet finalizers deleted",
            "✔ CustomResourceDefinition/kluctldeployments.gitops.kluctl.io deleted",
            "✔ Namespace/flux-system deleted",
            "✔ uninstall finished",
        ],
    )?;
    get(&plane, &["configmap", "workload"]).await?;
    let left = "crd,clusterrole,clusterrolebinding,namespace,role,rolebinding";
    let left = get(&plane, &[left, "-A", "-l", "app.kubernetes.io/part-of=flux"]).await?;
    assert_eq!(left["items"], json!([]));

    // Nothing of it is in the way of another installation.
    let words =
        "install -n gitops --components=source-controller,notification-controller --network-policy=false";
    done(&plane, words).await?;
    let deployments = get(&plane, &["deployments,networkpolicies", "-n", "gitops"]).await?;
    assert_eq!(deployments["items"].as_array().map(Vec::len), Some(2));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn installations_of_others_are_not_overridden_by_accident() -> Result<()> {
    let plane = ControlPlane::start(Options::default()).await?;
    done(&plane, "install --components=source-controller").await?;
    let label = async |label: &str| {
        let words = [
            "label",
            "--overwrite",
            "crd",
            "gitrepositories.source.toolkit.fluxcd.io",
            label,
        ];
        plane.kubectl(&words).await
    };
    label("app.kubernetes.io/managed-by=flux-operator").await?;
    let error = refused(&plane, "install").await?;
    ensure!(error.contains("kept by flux-operator: use --force"), "{error}");
    done(&plane, "install --components=source-controller --force").await?;
    label("kustomize.toolkit.fluxcd.io/name=flux-system").await?;
    label("kustomize.toolkit.fluxcd.io/namespace=flux-system").await?;
    let error = refused(&plane, "install --force").await?;
    ensure!(error.contains("upgrade it by weir bootstrap"), "{error}");
    Ok(())
}

/// Runs the real flux, with its messages on both streams; `None` if it isn't in the cache.
async fn flux(plane: &ControlPlane, words: &str) -> Result<Option<(bool, String)>> {
    let Some(program) = testkit::flux::find()? else {
        return Ok(None);
    };
    let mut command = tokio::process::Command::new(program);
    command
        .args(words.split_whitespace())
        .env("KUBECONFIG", plane.kubeconfig())
        .env("HOME", plane.kubeconfig().parent().unwrap_or(Path::new(".")))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = command.output().await?;
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    Ok(Some((output.status.success(), String::from_utf8(text)?)))
}

#[tokio::test(flavor = "multi_thread")]
async fn real_flux_checks_and_removes_an_installation() -> Result<()> {
    if testkit::flux::find()?.is_none() {
        let reason = "flux isn't built: run make flux-cli";
        testkit::skipped::note("installations with the real flux", reason);
        return Ok(());
    }
    let plane = ControlPlane::start(Options::default()).await?;
    done(&plane, "install").await?;
    let version = format!("v{}", env!("CARGO_PKG_VERSION"));
    for (words, lines) in [
        (
            "check",
            vec![
                format!("► weir/kustomize-controller:{version}"),
                "✔ all checks passed".to_owned(),
            ],
        ),
        ("version", vec![format!("source-controller: {version}")]),
    ] {
        let (is_done, text) = flux(&plane, words).await?.context("flux is gone")?;
        ensure!(is_done, "{words}: {text}");
        for line in lines {
            ensure!(text.contains(&line), "{line}: {text}");
        }
    }
    deploy_something(&plane).await?;
    let (is_done, text) = flux(&plane, "uninstall --silent")
        .await?
        .context("flux is gone")?;
    ensure!(is_done && text.contains("uninstall finished"), "{text}");
    get(&plane, &["configmap", "workload"]).await?;
    for name in [
        "gitrepositories.source.toolkit.fluxcd.io",
        "kluctldeployments.gitops.kluctl.io",
    ] {
        let words = ["wait", "crd", name, "--for=delete", "--timeout=60s"];
        plane.kubectl(&words).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_stores_objects_in_the_newest_version_alone() -> Result<()> {
    let plane = ControlPlane::start(Options::default()).await?;
    done(&plane, "install --components=source-controller").await?;
    let source = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1beta2", "kind": "GitRepository",
        "metadata": {"name": "old", "namespace": "default"},
        "spec": {"interval": "1m", "url": "https://git.example.com/old.git"},
    });
    plane.apply(source).await?;
    let crd = "gitrepositories.source.toolkit.fluxcd.io";
    let stored = r#"{"status": {"storedVersions": ["v1beta2", "v1"]}}"#;
    plane
        .kubectl(&[
            "patch",
            "crd",
            crd,
            "--subresource=status",
            "--type=merge",
            "-p",
            stored,
        ])
        .await?;
    let (_, shown) = done(&plane, "migrate --dry-run").await?;
    contains_all(
        &shown,
        &[
            "► GitRepository/default/old would be migrated to version v1",
            "► gitrepositories.source.toolkit.fluxcd.io would be migrated to storage version v1",
            "✔ dry run: nothing was stored",
        ],
    )?;
    let found = get(&plane, &["crd", crd]).await?;
    assert_eq!(found["status"]["storedVersions"], json!(["v1beta2", "v1"]));
    let (_, migrated) = done(&plane, "migrate").await?;
    contains_all(
        &migrated,
        &[
            "✔ GitRepository/default/old migrated to version v1",
            "✔ gitrepositories.source.toolkit.fluxcd.io migrated to storage version v1",
            "✔ custom resources migrated successfully",
        ],
    )?;
    let found = get(&plane, &["crd", crd]).await?;
    assert_eq!(found["status"]["storedVersions"], json!(["v1"]));
    let words = [
        "get",
        "gitrepository",
        "old",
        "-n",
        "default",
        "-o",
        "json",
        "--show-managed-fields",
    ];
    let found: Json = serde_json::from_str(&plane.kubectl(&words).await?)?;
    let managers = found["metadata"]["managedFields"].as_array().map(Vec::as_slice);
    let versions = managers
        .unwrap_or_default()
        .iter()
        .map(|manager| &manager["apiVersion"]);
    ensure!(
        versions
            .clone()
            .all(|version| version == "source.toolkit.fluxcd.io/v1"),
        "{found}"
    );
    Ok(())
}

#[test]
fn files_are_rewritten_below_the_current_directory_only() -> Result<()> {
    let old = "apiVersion: image.toolkit.fluxcd.io/v1beta2 # pinned\nkind: ImagePolicy\n";
    let dir = files(&[
        ("a/one.yaml", old),
        ("a/two.txt", old),
        ("b.yml", "kind: ConfigMap\n"),
    ]);
    let run = |words: &str| weir(dir.path(), words).stdin(Stdio::null()).output();
    let shown = run("migrate -f . --dry-run")?;
    let change = "a/one.yaml:1: ImagePolicy image.toolkit.fluxcd.io/v1beta2 -> image.toolkit.fluxcd.io/v1\n";
    assert_eq!(
        String::from_utf8_lossy(&shown.stdout),
        change,
        "{}",
        stderr(&shown)
    );
    let unconfirmed = run("migrate -f .")?;
    ensure!(stderr(&unconfirmed).contains("--yes"), "{}", stderr(&unconfirmed));
    let read = |path: &str| std::fs::read_to_string(dir.path().join(path));
    assert_eq!(read("a/one.yaml")?, old);
    ensure!(run("migrate -f a -y")?.status.success());
    assert_eq!(read("a/one.yaml")?, old.replace("v1beta2", "v1"));
    assert_eq!(read("a/two.txt")?, old);
    let outside = run("migrate -f ..")?;
    ensure!(
        stderr(&outside).contains("is not below the current directory"),
        "{}",
        stderr(&outside)
    );
    for words in ["migrate -y", "migrate -v 2.9", "migrate -e .yaml"] {
        let without_path = run(words)?;
        ensure!(
            !without_path.status.success() && stderr(&without_path).contains("--path"),
            "{words}: {}",
            stderr(&without_path)
        );
    }
    let unknown = run("migrate -f . -v 1.0")?;
    ensure!(
        stderr(&unknown).contains("supported versions are: 2.6, 2.7, 2.8, 2.9"),
        "{}",
        stderr(&unknown)
    );
    Ok(())
}

#[test]
fn manifests_and_versions_are_printed_without_a_cluster() -> Result<()> {
    let printed = |words: &str| -> Result<String> {
        let output = weir(Path::new("."), words).output()?;
        ensure!(output.status.success(), "{}", stderr(&output));
        Ok(String::from_utf8(output.stdout)?)
    };
    let manifests = printed("install --export")?;
    ensure!(
        manifests.starts_with("---\n# This manifest was generated by weir."),
        "{manifests}"
    );
    for part in [
        "kind: NetworkPolicy",
        "--watch-all-namespaces=true",
        "name: platform-admin-flux-system",
    ] {
        ensure!(manifests.contains(part), "{part}");
    }
    let words =
        "--components=source-controller --network-policy=false --watch-all-namespaces=false -n gitops";
    let manifests = printed(&format!("install --export {words}"))?;
    for part in [
        "kind: NetworkPolicy",
        "--watch-all-namespaces=true",
        "flux-system",
        "image: weir/kustomize",
    ] {
        ensure!(!manifests.contains(part), "{part}");
    }
    let url = "--url=https://git.example.com/o/fleet.git --path=clusters/one -n gitops";
    let sync = printed(&format!("bootstrap git {url} --export=sync"))?;
    ensure!(
        sync.contains("url: ssh://git@git.example.com/o/fleet.git\n"),
        "{sync}"
    );
    ensure!(
        sync.contains("  path: ./clusters/one\n") && sync.contains("  name: gitops\n"),
        "{sync}"
    );
    let components = printed(&format!("bootstrap git {url} --export=components"))?;
    assert_eq!(components, printed("install --export -n gitops")?);
    let index = printed(&format!("bootstrap git {url} --export=kustomization"))?;
    ensure!(
        index.ends_with("resources:\n- gotk-components.yaml\n- gotk-sync.yaml\n"),
        "{index}"
    );
    let version = concat!("weir: v", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(printed("version --client")?, version);
    let output = weir(Path::new("."), "install --export --components=helm").output()?;
    ensure!(
        stderr(&output).contains("unknown component 'helm': there are kluctl-controller,"),
        "{}",
        stderr(&output)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_of_an_artifact_are_verified_and_selected() -> Result<()> {
    let dir = files(&[]);
    let run = |words: &str| weir(dir.path(), words).stdin(Stdio::null()).output();
    let printed = run("install --export")?;
    std::fs::write(dir.path().join("install.yaml"), &printed.stdout)?;
    let packed = std::process::Command::new("tar")
        .args(["-czf", "-", "install.yaml"])
        .current_dir(dir.path())
        .output()?;
    ensure!(packed.status.success(), "{}", stderr(&packed));
    let registry = testkit::Registry::start(testkit::registry::Login::Anonymous, None).await?;
    let kinds = [
        "application/vnd.cncf.flux.config.v1+json",
        "application/vnd.cncf.flux.content.v1.tar+gzip",
    ];
    let digest = registry
        .push("weir/manifests", "v1", kinds, &packed.stdout)
        .await?;
    let url = format!("oci://{}/weir/manifests", registry.host());

    let all = run(&format!("install --export --manifests-oci={url}@{digest}"))?;
    ensure!(all.status.success(), "{}", stderr(&all));
    let all = String::from_utf8(all.stdout)?;
    ensure!(all.contains("name: kustomize-controller\n"), "{all}");
    let one = run(&format!(
        "install --export --manifests-oci={url}@{digest} --components=source-controller"
    ))?;
    let one = String::from_utf8(one.stdout)?;
    assert_eq!(one.matches("\nkind: Deployment\n").count(), 1);
    ensure!(one.len() < all.len(), "nothing was left out");

    for (words, expected) in [
        (format!("--manifests-oci={url}:v1"), "so write the digest"),
        (
            format!("--manifests-oci={url}@sha256:{}", "0".repeat(64)),
            "weir/manifests",
        ),
        (
            format!("--manifests-oci={url}@{digest} --components=other"),
            "unknown component 'other'",
        ),
        (
            format!("--manifests-oci={url}@{digest} --registry=example.com"),
            "cannot be used with",
        ),
        (
            format!("--manifests-oci={url}@{digest} -n gitops"),
            "they install into the namespace flux-system, not gitops",
        ),
    ] {
        let refused = run(&format!("install --export {words}"))?;
        ensure!(
            !refused.status.success() && stderr(&refused).contains(expected),
            "{words}: {}",
            stderr(&refused)
        );
    }
    Ok(())
}
