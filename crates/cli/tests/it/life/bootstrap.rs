//! Bootstrapping with a Git server, and the source- and kustomize-controller as processes.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use anyhow::{Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;
use testkit::{ControlPlane, Controller, GitServer, Options, Repo, SshKeyPair, SshServer, stack};

use super::{contains_all, done, get, refused};
use crate::{
    commands::{stderr, weir},
    gitops::plane,
    program::files,
};

/// A cluster with running controllers, and an empty repository.
struct World {
    plane: ControlPlane,
    _controllers: Vec<Controller>,
    git: GitServer,
    repo: Repo,
}

impl World {
    async fn start() -> Result<Self> {
        let plane = ControlPlane::start(Options::default()).await?;
        stack::install(&plane).await?;
        let mut controllers = Vec::new();
        for name in ["source-controller", "kustomize-controller"] {
            controllers.push(stack::launch(&plane, name).await?.start().await?);
        }
        let git = GitServer::start()?;
        let repo = git.repo("fleet")?;
        repo.require_basic_auth("bot", "s3cret-word");
        Ok(Self {
            plane,
            _controllers: controllers,
            git,
            repo,
        })
    }

    fn words(&self, more: &str) -> String {
        format!(
            "bootstrap git --url={} --username=bot --token-auth --allow-insecure-http --silent {more}",
            self.repo.url()
        )
    }

    async fn bootstrap(&self, more: &str) -> Result<String> {
        let words = self.words(&format!("--password=s3cret-word {more}"));
        let (_, messages) = done(&self.plane, &words).await?;
        ensure!(!messages.contains("s3cret-word"), "{messages}");
        Ok(messages)
    }

    fn subjects(&self) -> Result<Vec<String>> {
        let log = self.repo.git(&["log", "--format=%an: %s", "main"])?;
        Ok(log.lines().map(str::to_owned).collect())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bootstrapped_cluster_follows_its_repository() -> Result<()> {
    let world = World::start().await?;
    let first = world.bootstrap("--path=./clusters/one").await?;
    contains_all(
        &first,
        &[
            "✔ committed and pushed component manifests to \"main\"",
            "✔ kustomize-controller: deployment ready",
            "✔ reconciled source secret",
            "◎ waiting for GitRepository \"flux-system/flux-system\" to be reconciled",
            "✔ Kustomization reconciled successfully",
            "✔ all components are healthy",
        ],
    )?;
    let version = env!("CARGO_PKG_VERSION");
    let commits = [
        "Flux: Add Weir sync manifests".to_owned(),
        format!("Flux: Add Weir v{version} component manifests"),
    ];
    assert_eq!(world.subjects()?, commits);
    let files = world.repo.git(&["ls-tree", "-r", "--name-only", "main"])?;
    assert_eq!(
        files,
        "clusters/one/flux-system/gotk-components.yaml\nclusters/one/flux-system/gotk-sync.yaml\n\
         clusters/one/flux-system/kustomization.yaml\n"
    );

    // The second time changes nothing.
    let second = world.bootstrap("--path=clusters/one").await?;
    contains_all(
        &second,
        &[
            "✔ component manifests are up to date",
            "✔ sync manifests are up to date",
            "✔ the cluster follows the repository already",
        ],
    )?;
    assert_eq!(world.subjects()?, commits);
    let other = world.words("--password=s3cret-word --path=clusters/two");
    let error = refused(&world.plane, &other).await?;
    ensure!(error.contains("use --path=./clusters/one"), "{error}");
    let error = refused(
        &world.plane,
        &world.words("--password=wrong-word --path=clusters/one"),
    )
    .await?;
    ensure!(
        error.contains("authentication failed") && !error.contains("wrong-word"),
        "{error}"
    );

    let fewer = world.words(
        "--password=s3cret-word --path=clusters/one --components=source-controller,kustomize-controller",
    );
    let error = refused(&world.plane, &fewer).await?;
    ensure!(
        error.contains("the cluster has kluctl-controller, notification-controller, which"),
        "{error}"
    );
    assert_eq!(world.subjects()?, commits);

    let (_, checked) = done(&world.plane, "check").await?;
    ensure!(checked.contains("✔ bootstrapped: true"), "{checked}");
    let error = refused(&world.plane, "install").await?;
    ensure!(error.contains("weir bootstrap"), "{error}");
    Ok(())
}

/// Lets the user of the SSH server write to a repository.
fn writable(path: &Path) -> Result<()> {
    let is_dir = path.is_dir();
    fs::set_permissions(path, Permissions::from_mode(if is_dir { 0o777 } else { 0o666 }))?;
    if is_dir {
        for entry in fs::read_dir(path)? {
            writable(&entry?.path())?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn key_in_a_file_serves_weir_and_the_cluster() -> Result<()> {
    let world = World::start().await?;
    writable(&world.repo.path())?;
    let pair = SshKeyPair::generate("-t ed25519", "")?;
    let server = SshServer::start(&world.git, &[&pair])?;
    let dir = files(&[("key", pair.private.as_str())]);
    let words = format!(
        "bootstrap git --url={} --path=clusters/one --silent",
        server.url(&world.repo)
    );
    let key = format!("--private-key-file={}", dir.path().join("key").display());
    let (_, messages) = done(&world.plane, &format!("{words} {key}")).await?;
    ensure!(
        messages.contains("► the SSH server has the host key ["),
        "{messages}"
    );
    ensure!(
        messages.contains("✔ Kustomization reconciled successfully"),
        "{messages}"
    );
    let secret = ["secret", "flux-system", "-n", "flux-system"];
    let stored = get(&world.plane, &secret).await?["data"]["identity"].clone();
    assert_eq!(stored, STANDARD.encode(&pair.private));

    // The Secret has the host key of the server that the cluster uses.
    let without = format!("{words} {key} --timeout=1m --ssh-hostname=127.0.0.1:1");
    let error = refused(&world.plane, &without).await?;
    ensure!(
        error.contains("SSH key scan for host 127.0.0.1:1 failed"),
        "{error}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn hosting_service_is_asked_with_the_token_of_the_environment() -> Result<()> {
    let plane = plane().await?;
    // A server without the API of a service.
    let git = GitServer::start_tls()?;
    let dir = files(&[("ca.pem", git.ca_pem())]);
    let words = format!(
        "bootstrap gitea --hostname={} --owner=nobody --repository=fleet --ca-file=ca.pem",
        git.origin().trim_start_matches("https://")
    );
    let run = |token: &str| -> Result<String> {
        let mut command = weir(dir.path(), &words);
        command
            .env("KUBECONFIG", plane.kubeconfig())
            .env("GITEA_TOKEN", token);
        let output = command.output()?;
        ensure!(output.status.code() == Some(1), "{}", stderr(&output));
        Ok(stderr(&output))
    };
    let error = run("")?;
    ensure!(
        error.contains("set $GITEA_TOKEN to a token of the service"),
        "{error}"
    );
    let error = run("s3cret-word")?;
    ensure!(error.contains("the owner 'nobody' is not found"), "{error}");
    ensure!(
        error.contains("use --personal if it is a user") && !error.contains("s3cret"),
        "{error}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn upgrade_keeps_patches_and_apps_of_the_repository() -> Result<()> {
    let world = World::start().await?;
    world.repo.commit("Start", &[("README.md", "A fleet\n")])?;
    let appendix = "--commit-message-appendix=[skip] --author-name=Bot --author-email=bot@example.com";
    world
        .bootstrap(&format!("--path=clusters/one --secret-name=fleet {appendix}"))
        .await?;
    let body = world.repo.git(&["log", "-1", "--format=%ae|%B", "main"])?;
    assert_eq!(
        body.trim_end(),
        "bot@example.com|Add Weir sync manifests\n\n[skip]"
    );
    let source = get(
        &world.plane,
        &["gitrepository", "flux-system", "-n", "flux-system"],
    )
    .await?;
    assert_eq!(source["spec"]["secretRef"]["name"], "fleet");

    // An app of the platform, and a patch of the installation.
    let index = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [gotk-components.yaml, gotk-sync.yaml]\n\
                 patches:\n- target: {kind: Deployment, name: source-controller}\n  patch: |\n    \
                 - {op: add, path: /metadata/annotations, value: {patched: \"yes\"}}\n";
    let app = "apiVersion: v1\nkind: Namespace\nmetadata: {name: sample}\n---\n\
               apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sample, namespace: sample}\n";
    world.repo.commit(
        "Add a sample",
        &[
            ("clusters/one/flux-system/kustomization.yaml", index),
            ("clusters/one/sample.yaml", app),
        ],
    )?;
    let words = "--path=clusters/one --secret-name=fleet --log-level=debug --toleration-keys=dedicated";
    let upgraded = world.bootstrap(words).await?;
    ensure!(upgraded.contains("✔ sync manifests are up to date"), "{upgraded}");
    let deployment = ["deployment", "source-controller", "-n", "flux-system"];
    let deployment = get(&world.plane, &deployment).await?;
    assert_eq!(deployment["metadata"]["annotations"]["patched"], "yes");
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(
        pod["tolerations"],
        json!([{"key": "dedicated", "operator": "Exists"}])
    );
    ensure!(
        pod["containers"][0]["args"]
            .to_string()
            .contains("--log-level=debug"),
        "{pod}"
    );
    get(&world.plane, &["configmap", "sample", "-n", "sample"]).await?;
    let kept = world
        .repo
        .git(&["show", "main:clusters/one/flux-system/kustomization.yaml"])?;
    assert_eq!(kept, index);
    Ok(())
}
