//! Commands on kluctl projects.

use std::{
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value as Json;
use tempfile::TempDir;
use testkit::ControlPlane;

use crate::program::files;

/// Creates a project with two targets that deploys to `namespace`.
fn project(namespace: &str) -> TempDir {
    let target = format!(
        "discriminator: '{namespace}-{{{{ target.name }}}}'\nargs:\n- name: color\ntargets:\n- name: test\n  args: {{color: red}}\n- \
         name: prod\n"
    );
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: '{{{{ target.name }}}}', namespace: {namespace}}}\ndata: {{color: '{{{{ \
         args.color }}}}'}}\n"
    );
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: '{{{{ target.name }}}}', namespace: {namespace}}}\nstringData: {{key: \
         'word-{{{{ args.color }}}}'}}\n"
    );
    files(&[
        (".kluctl.yaml", target.as_str()),
        ("deployment.yaml", "deployments:\n- path: maps\n- path: secrets\n"),
        ("maps/map.yaml", map.as_str()),
        ("secrets/secret.yaml", secret.as_str()),
    ])
}

pub(crate) fn weir(dir: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command
        .args(words.split_whitespace())
        .current_dir(dir)
        .env("HOME", dir)
        .env_remove("KUBECONFIG");
    command
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns kubectl's output about the results that command lines stored, by a selector of labels.
pub(crate) async fn stored_results(plane: &ControlPlane, selector: &str, output: &str) -> Result<String> {
    let words = ["get", "secrets", "-n", "kluctl-results"];
    let words = [&words[..], &["-l", selector, "-o", output]].concat();
    plane.kubectl(&words).await
}

pub(crate) fn printed(mut command: Command) -> Result<String> {
    let output = command.output()?;
    ensure!(output.status.success(), "{command:?}: {}", stderr(&output));
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn render_works_without_a_cluster() -> Result<()> {
    let dir = project("n");
    let words = "render --print-all --offline-kubernetes -t prod";
    let output = weir(dir.path(), words).output()?;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("required argument color not set"),
        "{}",
        stderr(&output)
    );
    let objects = printed(weir(dir.path(), &format!("{words} -a color=blue")))?;
    assert!(
        objects.contains("color: blue") && objects.contains("word-blue"),
        "{objects}"
    );

    // The environment stands behind the command line.
    let mut command = weir(dir.path(), "render --print-all -a color=green -t test");
    command
        .env("KLUCTL_ARG", "color=blue")
        .env("KLUCTL_OFFLINE_KUBERNETES", "true")
        .env("KLUCTL_TARGET", "prod");
    let objects = printed(command)?;
    assert!(
        objects.contains("color: green") && objects.contains("name: test"),
        "{objects}"
    );

    let mut command = weir(dir.path(), &format!("{words} -a color=x --render-output-dir out"));
    command.env("KLUCTL_PROJECT_DIR", dir.path());
    printed(command)?;
    let rendered = std::fs::read_to_string(dir.path().join("out/0/maps/map.yaml"))?;
    assert!(rendered.contains("color: 'x'"), "{rendered}");
    Ok(())
}

#[test]
fn rendered_kustomizations_are_written_as_by_kluctl() -> Result<()> {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n";
    let own = "# mine\nresources:\n    - map.yaml\nnamePrefix: \"x-\"\ncommonLabels: {b: '1', a: x}\n";
    let named = "resources: [map.yaml]\nnamespace: other # mine\n";
    let dir = files(&[
        (
            "deployment.yaml",
            "overrideNamespace: shop\ndeployments: [{path: generated}, {path: own}, {path: named}, {path: base, onlyRender: true}]",
        ),
        ("generated/map.yaml", map),
        ("own/map.yaml", map),
        ("own/kustomization.yaml", own),
        ("named/map.yaml", map),
        ("named/kustomization.yml", named),
        ("base/map.yaml", map),
        ("base/kustomization.yaml", own),
    ]);
    printed(weir(
        dir.path(),
        "render --offline-kubernetes --render-output-dir out",
    ))?;
    let read =
        |file: &str| std::fs::read_to_string(dir.path().join("out/0").join(file)).context(file.to_owned());
    assert_eq!(
        read("generated/kustomization.yml")?,
        "namespace: shop\nresources:\n- map.yaml\n"
    );
    assert_eq!(
        read("own/kustomization.yaml")?,
        "commonLabels:\n  a: x\n  b: \"1\"\nnamePrefix: x-\nnamespace: shop\nresources:\n- map.yaml\n"
    );
    assert_eq!(
        read("named/kustomization.yml")?,
        "namespace: other\nresources:\n- map.yaml\n"
    );
    assert_eq!(
        read("base/kustomization.yaml")?,
        own.trim_end(),
        "it is rendered only"
    );
    Ok(())
}

#[test]
fn templates_can_load_the_latest_git_commit() -> Result<()> {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {of: '{{ load_latest_git_commit(\"map.yaml\", 7) }}'}\n";
    let dir = files(&[
        ("deployment.yaml", "deployments: [{path: app}]"),
        ("app/map.yaml", map),
    ]);
    let git = |words: &str| -> Result<String> {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=n", "-c", "user.email=e@example.com"]);
        command.args(words.split_whitespace()).current_dir(dir.path());
        printed(command)
    };
    git("init -q")?;
    let words = "render --print-all --offline-kubernetes";
    let output = weir(dir.path(), words).output()?;
    assert!(
        stderr(&output).contains("No commits found for path: app/map.yaml"),
        "{}",
        stderr(&output)
    );
    git("add .")?;
    git("commit -qm one")?;
    let commit = git("rev-parse --short=7 HEAD")?;
    git("commit -qm two --allow-empty")?;
    let objects = printed(weir(dir.path(), words))?;
    assert!(objects.contains(commit.trim()), "{objects}");
    Ok(())
}

#[test]
fn list_targets_and_usage_errors() -> Result<()> {
    let dir = project("n");
    assert_eq!(printed(weir(dir.path(), "list-targets --only-names"))?, "test\n");
    let output = weir(dir.path(), "list-targets -a color=x --only-names").output()?;
    assert_eq!(String::from_utf8(output.stdout)?, "prod\ntest\n");
    for (words, why) in [
        (
            "render -t nope --offline-kubernetes",
            "target nope not existent in kluctl project config",
        ),
        (
            "render --offline-kubernetes",
            "a target must be explicitly selected",
        ),
        (
            "render -t test -a color",
            "Must be --arg=some_var_name=value, not 'color'",
        ),
        (
            "deploy -t test --gops-agent",
            "--gops-agent is not supported: it is specific to the Go runtime",
        ),
        ("deploy -t test", "no kubeconfig found"),
        ("deploy -t test --context x", "context \"x\" does not exist"),
    ] {
        let output = weir(dir.path(), words).output()?;
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(stderr(&output).contains(why), "{words}: {}", stderr(&output));
    }
    // Flags are accepted before the subcommand, too.
    let words = format!("--project-dir {} list-targets --only-names", dir.path().display());
    assert_eq!(printed(weir(std::path::Path::new("/"), &words))?, "test\n");
    let script = printed(weir(dir.path(), "completion bash"))?;
    assert!(script.contains("poke-images"), "{script}");
    printed(weir(dir.path(), "man pages"))?;
    assert!(dir.path().join("pages/weir-deploy.1").is_file());
    Ok(())
}

#[test]
fn flags_of_kluctl_are_accepted_by_their_commands() -> Result<()> {
    let dir = project("n");
    let version = printed(weir(dir.path(), "version"))?;
    assert_eq!(version.trim_end(), concat!("weir: v", env!("CARGO_PKG_VERSION")));
    let global = "--debug --no-color --no-update-check --use-system-python";
    for words in ["list-targets", "helm-pull", "helm-update"] {
        printed(weir(dir.path(), &format!("{words} {global}")))?;
    }
    let project = format!("{global} -t test --git-cache-update-interval 1h --timeout 1m -F a=b -I x -E y");
    for words in [
        "render --print-all",
        "list-images --simple --render-output-dir out",
    ] {
        printed(weir(
            dir.path(),
            &format!("{words} --offline-kubernetes {project}"),
        ))?;
    }
    assert!(dir.path().join("out").is_dir());
    let listed = printed(weir(
        dir.path(),
        "list-targets --only-names -o targets -o - --output=more",
    ))?;
    assert_eq!(listed, "test\n");
    for file in ["targets", "more"] {
        assert_eq!(std::fs::read_to_string(dir.path().join(file))?, listed);
    }
    // These need a cluster, so they fail after their flags were read.
    let results = "--command-result-namespace x --write-command-result=false --force-write-command-result \
                   --keep-command-results-count 1 --keep-validate-results-count 1";
    let changes =
        format!("--yes --dry-run -o yaml=- --no-obfuscate --short-output --render-output-dir out {results}");
    let apply = "--force-apply --replace-on-error --force-replace-on-error --abort-on-error";
    for words in [
        &*format!("deploy {changes} {apply} --readiness-timeout 1s --no-wait --prune --discriminator d"),
        &*format!("prune {changes} --discriminator d"),
        &*format!("delete {changes} --discriminator d --no-wait"),
        &*format!("poke-images {changes}"),
        &*format!(
            "diff {apply} -o yaml --render-output-dir out --ignore-tags --ignore-labels --ignore-annotations \
             --ignore-kluctl-metadata --discriminator d"
        ),
        "validate --output=yaml=- --wait 1s --sleep 1s --warnings-as-errors --render-output-dir out",
    ] {
        let output = weir(dir.path(), &format!("{words} {project}")).output()?;
        let stderr = stderr(&output);
        assert!(stderr.contains("no kubeconfig found"), "{words}: {stderr}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_diff_validate_prune_and_delete() -> Result<()> {
    let plane = ControlPlane::shared().await?;
    let namespace = plane.namespace("commands").await?;
    let dir = project(&namespace);
    let with = |words: &str| {
        let mut command = weir(dir.path(), words);
        command.env("KUBECONFIG", plane.kubeconfig());
        command
    };
    let nobody = with("deploy -t test").output()?;
    assert_eq!(nobody.status.code(), Some(1));
    assert!(
        stderr(&nobody).contains("stdin is not a terminal"),
        "{}",
        stderr(&nobody)
    );
    let unsure = String::from_utf8(nobody.stdout)?;
    assert!(unsure.contains("Errors:\n  aborted"), "{unsure}");

    let first = printed(with("deploy -t test --yes -o text -o json=result.json"))?;
    assert!(
        first.contains(&format!("New objects:\n  {namespace}/ConfigMap/test")),
        "{first}"
    );
    let result: Json = serde_json::from_str(&std::fs::read_to_string(dir.path().join("result.json"))?)?;
    let id = result["id"].as_str().context("no id")?;
    assert!(
        !result.to_string().contains("word-red"),
        "a Secret is shown: {result}"
    );
    let kept = stored_results(plane, &format!("kluctl.io/command-result-id={id}"), "name").await?;
    assert_eq!(kept.lines().count(), 1, "{kept}");

    assert_eq!(printed(with("diff -t test"))?, "");
    let changed = printed(with("diff -t test -a color=blue"))?;
    assert!(
        changed.contains("| data.color") && changed.contains("+blue"),
        "{changed}"
    );
    assert!(
        changed.contains("***** (obfuscated)") && !changed.contains("d29yZ"),
        "{changed}"
    );
    let shown = printed(with("diff -t test -a color=blue --no-obfuscate -I secrets"))?;
    assert!(
        !shown.contains("obfuscated") && !shown.contains("data.color"),
        "{shown}"
    );

    printed(with("validate -t test"))?;
    std::fs::write(dir.path().join("deployment.yaml"), "deployments:\n- path: maps\n")?;
    let pruned = printed(with("deploy -t test --yes --prune"))?;
    assert!(
        pruned.contains(&format!("Deleted objects:\n  {namespace}/Secret/test")),
        "{pruned}"
    );
    let deleted = printed(with("delete -t test --yes"))?;
    assert!(
        deleted.contains(&format!("{namespace}/ConfigMap/test")),
        "{deleted}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn results_have_the_git_info_of_kluctl() -> Result<()> {
    let plane = ControlPlane::shared().await?;
    let namespace = plane.namespace("gitinfo").await?;
    let dir = project(&namespace);
    let git = |words: &str| -> Result<String> {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=n", "-c", "user.email=e@example.com"]);
        command.args(words.split_whitespace()).current_dir(dir.path());
        printed(command)
    };
    let result = || -> Result<Json> {
        let mut command = weir(dir.path(), "diff -t test -o json");
        command.env("KUBECONFIG", plane.kubeconfig());
        Ok(serde_json::from_str(&printed(command)?)?)
    };
    git("init -q -b master")?;
    let unborn = result()?;
    assert_eq!(unborn["gitInfo"]["url"], Json::Null);
    assert_eq!(unborn["gitInfo"]["ref"], Json::Null);
    assert_eq!(unborn["gitInfo"]["subDir"], "");
    assert_eq!(unborn["projectKey"], serde_json::json!({}));
    git("add .")?;
    git("commit -qm one")?;
    git("remote add origin https://example.com/org/shop.git")?;
    let committed = result()?;
    assert_eq!(committed["gitInfo"]["url"], "https://example.com/org/shop.git");
    assert_eq!(
        committed["gitInfo"]["ref"],
        serde_json::json!({"branch": "master"})
    );
    assert_eq!(
        committed["projectKey"],
        serde_json::json!({"repoKey": "git://example.com/org/shop"})
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn diffs_of_secrets_name_the_keys() -> Result<()> {
    let plane = ControlPlane::shared().await?;
    let namespace = plane.namespace("obfuscated").await?;
    let secret = |data: &str| {
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: {namespace}}}\n{data}")
    };
    let dir = files(&[
        (".kluctl.yaml", format!("discriminator: {namespace}\n").as_str()),
        ("deployment.yaml", "deployments:\n- path: app\n"),
        ("app/secret.yaml", &secret("")),
    ]);
    let with = |words: &str| {
        let mut command = weir(dir.path(), words);
        command.env("KUBECONFIG", plane.kubeconfig());
        command
    };
    printed(with("deploy --yes"))?;
    std::fs::write(
        dir.path().join("app/secret.yaml"),
        secret("stringData: {secret1: one, secret2: two}\n"),
    )?;
    let changed = printed(with("diff"))?;
    for expected in ["+secret1: '***** (obfuscated)'", "+secret2: '***** (obfuscated)'"] {
        assert!(changed.contains(expected), "{changed}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn deploy_timeout_stores_a_partial_result() -> Result<()> {
    let plane = ControlPlane::shared().await?;
    let namespace = plane.namespace("interrupted").await?;
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: never\n  namespace: {namespace}\n  annotations: {{kluctl.io/wait-readiness: \
         'true', kluctl.io/is-ready: 'false'}}\n"
    );
    let dir = files(&[
        (".kluctl.yaml", format!("discriminator: {namespace}\n").as_str()),
        ("deployment.yaml", "deployments:\n- path: maps\n"),
        ("maps/map.yaml", map.as_str()),
    ]);
    let mut command = weir(dir.path(), "deploy --yes --timeout 3s -o json");
    let output = command.env("KUBECONFIG", plane.kubeconfig()).output()?;
    assert_eq!(output.status.code(), Some(1));
    let result: Json = serde_json::from_slice(&output.stdout).with_context(|| stderr(&output))?;
    let errors = result["errors"].to_string();
    for expected in [
        "context deadline exceeded".to_owned(),
        format!("context cancelled while waiting for readiness of {namespace}/ConfigMap/never"),
    ] {
        let stderr = stderr(&output);
        assert!(stderr.contains(&expected), "{stderr}");
    }
    assert!(
        errors.contains("the work was interrupted after 1 objects were applied"),
        "{errors}"
    );
    let id = result["id"].as_str().context("no id")?;
    let kept = stored_results(plane, &format!("kluctl.io/command-result-id={id}"), "name").await?;
    assert_eq!(kept.lines().count(), 1, "{kept}");
    Ok(())
}

#[test]
fn a_missing_context_of_the_target_is_an_error() -> Result<()> {
    let dir = files(&[
        (".kluctl.yaml", "targets: [{name: t, context: context1}]\n"),
        ("deployment.yaml", "deployments: []"),
        (
            "config",
            "{apiVersion: v1, kind: Config, contexts: [], clusters: [], users: []}",
        ),
    ]);
    for words in [
        "render -t t --print-all",
        "render -t t --print-all --kubeconfig config",
        "list-images -t t",
        "deploy -t t --yes",
        "render -t t --context context1",
    ] {
        let output = weir(dir.path(), words).output()?;
        assert_eq!(output.status.code(), Some(1), "{words}");
        let stderr = stderr(&output);
        assert!(
            stderr.contains("context \"context1\" does not exist"),
            "{words}: {stderr}"
        );
    }
    printed(weir(dir.path(), "render -t t --print-all --offline-kubernetes"))?;
    printed(weir(dir.path(), "list-targets"))?;
    Ok(())
}

#[test]
fn references_of_includes_can_be_names() -> Result<()> {
    let server = testkit::GitServer::start()?;
    let repo = server.repo("base")?;
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let id = repo.commit(
        "1",
        &[
            ("deployment.yaml", "deployments: [{path: app}]"),
            ("app/map.yaml", &map("first")),
        ],
    )?;
    repo.tag("v1", &id)?;
    repo.commit("2", &[("app/map.yaml", &map("second"))])?;
    for (reference, expected) in [
        ("main", Ok("name: second")),
        ("v1", Ok("name: first")),
        ("refs/tags/v1", Ok("name: first")),
        ("{tag: v1}", Ok("name: first")),
        ("nope", Err("'nope'")),
    ] {
        let deployment = format!(
            "deployments: [{{git: {{url: '{}', ref: {reference}}}}}]",
            repo.url()
        );
        let dir = files(&[("deployment.yaml", deployment.as_str())]);
        let output = weir(dir.path(), "render --print-all --offline-kubernetes").output()?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        match expected {
            Ok(expected) => assert!(stdout.contains(expected), "{reference}: {}", stderr(&output)),
            Err(expected) => assert!(stderr(&output).contains(expected), "{}", stderr(&output)),
        }
    }
    Ok(())
}

#[test]
fn overridden_sources_are_named_once() -> Result<()> {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: local}\n";
    let group = files(&[
        ("base/deployment.yaml", "deployments: [{path: app}]"),
        ("base/app/map.yaml", map),
    ]);
    let base = group.path().join("base");
    let git = "http://git.example.com/team/base";
    let deployment = format!(
        "deployments:\n- git: {git}.git\n- git: {{url: {git}.git, ref: {{tag: v1}}}}\n- oci: {{url: 'oci://oci.example.com/team/base'}}\n"
    );
    let dir = files(&[("deployment.yaml", deployment.as_str())]);
    let (base, group) = (base.display(), group.path().display());
    for flags in [
        format!(
            "--local-git-override git.example.com/team/base={base} --local-oci-override oci.example.com/team/base={base}"
        ),
        format!(
            "--local-git-group-override git.example.com/team={group} --local-oci-group-override oci.example.com/team={group}"
        ),
    ] {
        let output = weir(
            dir.path(),
            &format!("render --print-all --offline-kubernetes {flags}"),
        )
        .output()?;
        let messages = stderr(&output);
        let stdout = String::from_utf8(output.stdout)?;
        assert_eq!(stdout.matches("name: local").count(), 3, "{messages}");
        for source in [
            format!("git repo {git}.git"),
            "oci repo oci://oci.example.com/team/base".to_owned(),
        ] {
            let warning = format!("Overriding {source} with local directory {base}\n");
            assert_eq!(messages.matches(&warning).count(), 1, "{warning}{messages}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_discriminator_is_a_warning() -> Result<()> {
    let plane = ControlPlane::shared().await?;
    let namespace = plane.namespace("unmarked").await?;
    let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m, namespace: {namespace}}}\n");
    let with = |project: &str| {
        files(&[
            (".kluctl.yaml", project),
            ("deployment.yaml", "deployments: [{path: app}]"),
            ("app/map.yaml", &map),
        ])
    };
    let warning = "No discriminator configured. Orphan object detection will not work";
    for (dir, warns) in [(with(""), true), (with("discriminator: unmarked"), false)] {
        for words in ["diff", "deploy --yes --write-command-result=false"] {
            let output = weir(dir.path(), words)
                .env("KUBECONFIG", plane.kubeconfig())
                .output()?;
            let messages = stderr(&output);
            assert!(output.status.success(), "{messages}");
            assert_eq!(messages.contains(warning), warns, "{words}: {messages}");
        }
    }
    Ok(())
}

#[test]
fn login_errors_of_includes_have_hints_for_the_command_line() -> Result<()> {
    let server = testkit::GitServer::start()?;
    let repo = server.repo("private")?;
    repo.commit("1", &[("deployment.yaml", "deployments: []")])?;
    repo.require_basic_auth("me", "s3cret");
    let deployment = format!("deployments: [{{git: '{}'}}]", repo.url());
    let dir = files(&[("deployment.yaml", deployment.as_str())]);
    let output = weir(dir.path(), "render --print-all --offline-kubernetes").output()?;
    let stderr = stderr(&output);
    assert!(
        stderr.contains("authentication required") && stderr.contains("--git-username"),
        "{stderr}"
    );
    assert!(!stderr.contains("spec.secretRef"), "{stderr}");
    Ok(())
}

#[test]
fn legacy_target_config_is_read_from_git() -> Result<()> {
    let server = testkit::GitServer::start()?;
    let repo = server.repo("targets")?;
    repo.commit("1", &[("target-config.yml", "args: {color: red}")])?;
    let project = format!(
        "args: [{{name: color}}]\ntargets:\n- name: '{{{{ target.targetConfig.ref }}}}-{{{{ args.color }}}}'\n  dynamicArgs: \
         [{{name: color}}]\n  targetConfig: {{project: '{}'}}\n",
        repo.url()
    );
    let dir = files(&[
        (".kluctl.yaml", project.as_str()),
        ("deployment.yaml", "deployments: []"),
    ]);
    let listed = weir(dir.path(), "list-targets --only-names").output()?;
    let names = String::from_utf8_lossy(&listed.stdout);
    assert_eq!(names, "main-red\n", "{}", stderr(&listed));
    // The target names the context of the kubeconfig.
    let kubeconfig = dir.path().join("config");
    let empty = "{apiVersion: v1, kind: Config, contexts: [], clusters: [], users: []}";
    std::fs::write(&kubeconfig, empty)?;
    let words = format!("validate -t main-red --kubeconfig {}", kubeconfig.display());
    let output = weir(dir.path(), &words).output()?;
    assert!(!stderr(&output).contains("not existent"), "{}", stderr(&output));
    Ok(())
}
