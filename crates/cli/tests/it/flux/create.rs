//! `weir create`: exported objects are compared with the output of flux, others are created in a real cluster.
//!
//! `WEIR_UPDATE_SNAPSHOTS=1` records the output of flux again, if `make flux-cli` has built it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use testkit::{GitServer, SshKeyPair, SshServer};

use super::{Objects, ready};
use crate::commands::{stderr, weir};

const SOURCE: &str = "source.toolkit.fluxcd.io/v1";

fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/create")
}

/// Splits a line as a shell does, without variables: quotes protect spaces.
pub(super) fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quote, mut is_word) = (Vec::new(), String::new(), None, false);
    for c in line.chars() {
        match (c, quote) {
            ('\'' | '"', None) => (quote, is_word) = (Some(c), true),
            (c, Some(open)) if c == open => quote = None,
            (' ', None) if is_word => {
                all.push(std::mem::take(&mut word));
                is_word = false;
            }
            (' ', None) => {}
            (c, _) => {
                word.push(c);
                is_word = true;
            }
        }
    }
    all.extend(is_word.then_some(word));
    all
}

fn run(program: &Path, dir: &Path, line: &str) -> Output {
    Command::new(program)
        .args(words(line))
        .current_dir(dir)
        .env("HOME", dir)
        .env_remove("KUBECONFIG")
        .output()
        .unwrap()
}

/// Returns the recorded command lines, each with the output of flux with `--export`.
fn recorded() -> Vec<(String, String)> {
    let text = fs::read_to_string(data().join("exports.txt")).unwrap();
    text.split("$ ")
        .skip(1)
        .map(|part| {
            let (line, output) = part.split_once('\n').unwrap();
            (line.to_owned(), output.to_owned())
        })
        .collect()
}

/// Returns the output of a program for each of the recorded command lines.
#[track_caller]
fn exports(program: &Path) -> String {
    let mut text = String::new();
    for (line, _) in recorded() {
        let output = run(program, &data(), &format!("{line} --export"));
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        text.push_str(&format!("$ {line}\n{}", String::from_utf8_lossy(&output.stdout)));
    }
    text
}

#[test]
fn exported_objects_are_those_of_flux() {
    let flux = testkit::flux::find().unwrap();
    if let Some(flux) = flux
        .as_deref()
        .filter(|_| std::env::var_os("WEIR_UPDATE_SNAPSHOTS").is_some())
    {
        fs::write(data().join("exports.txt"), exports(flux)).unwrap();
    }
    let weir = Path::new(env!("CARGO_BIN_EXE_weir"));
    for (line, expected) in recorded() {
        let output = run(weir, &data(), &format!("{line} --export"));
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{line}");
    }
    // The original, if it is built, is asked again.
    if let Some(flux) = flux {
        assert_eq!(exports(&flux), exports(weir));
    }
}

/// Returns the examples in the help of a command, as lines.
pub(super) fn examples(command: &str) -> Vec<String> {
    let output = run(
        Path::new(env!("CARGO_BIN_EXE_weir")),
        &data(),
        &format!("{command} --help"),
    );
    let help = String::from_utf8(output.stdout).unwrap();
    let (_, examples) = help
        .split_once("Examples:\n")
        .unwrap_or_else(|| panic!("{command} has no examples"));
    let joined = examples.replace("\\\n", " ");
    let lines = joined
        .lines()
        .map(str::trim)
        .filter_map(|line| line.strip_prefix("weir "));
    lines
        .map(|line| line.split(" > ").next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn examples_of_the_help_print_objects() {
    let dir = tempfile::tempdir().unwrap();
    for (name, from) in [
        ("private.key", "tls.key"),
        ("client.crt", "tls.crt"),
        ("client.key", "tls.key"),
        ("ca.crt", "ca.crt"),
        ("my-cert.crt", "ca.crt"),
        ("my-trust-policy.json", "policy.json"),
        ("private-key-file.pem", "app.pem"),
    ] {
        fs::copy(data().join(from), dir.path().join(name)).unwrap();
    }
    for command in [
        "source git",
        "source bucket",
        "source oci",
        "source helm",
        "source chart",
        "kustomization",
        "helmrelease",
        "alert",
        "alert-provider",
        "receiver",
        "tenant",
        "image repository",
        "image policy",
        "image update",
        "secret git",
        "secret githubapp",
        "secret helm",
        "secret notation",
        "secret oci",
        "secret proxy",
        "secret receiver",
        "secret tls",
    ] {
        let all = examples(&format!("create {command}"));
        assert!(!all.is_empty(), "{command}");
        // An SSH server is asked for its key.
        let offline = all
            .iter()
            .filter(|line| !(command == "secret git" && line.contains("ssh://")));
        for line in offline {
            let line = line.replace(" --export", "");
            let output = run(
                Path::new(env!("CARGO_BIN_EXE_weir")),
                dir.path(),
                &format!("{line} --export"),
            );
            assert!(output.status.success(), "{line}: {}", stderr(&output));
            assert!(output.stdout.starts_with(b"---\napiVersion: "), "{line}");
        }
    }
}

#[test]
fn wrong_input_says_what_to_do() {
    for (line, message) in [
        ("source git pp", "url is required"),
        (
            "source git pp --url=git@h:p --branch=b --ssh-rsa-bits=100",
            "RSA keys need at least 2048 bits",
        ),
        (
            "tenant team --with-namespace=X_",
            "use at most 63 lower-case letters, digits and '-'",
        ),
        (
            "secret receiver rr --type=github --hostname=https://x",
            "write it without https:// and a path",
        ),
        (
            "source git p --url=git@h:p --branch=b",
            "invalid value 'p' for '<NAME>'",
        ),
        (
            "source git pp --url=git@h:p --branch=b",
            "for an SSH address, write ssh://USER@HOST/PATH",
        ),
        (
            "source git pp --url=ftp://h/p --branch=b",
            "git URL scheme 'ftp' not supported",
        ),
        (
            "source git pp --url=https://h/p",
            "a Git ref is required, use one of the following",
        ),
        (
            "source git pp --url=ssh://h/p --branch=b --ca-file=x",
            "not supported for Git over SSH",
        ),
        (
            "source git pp --url=https://h/p --branch=b --label=x",
            "invalid label format 'x'",
        ),
        (
            "source oci pp --url=oci://h/p",
            "--tag, --tag-semver or --digest is required",
        ),
        (
            "source oci pp --url=oci://h/p --tag=1 --layer-selector=a",
            "must be in the format '<media-type>:<operation>'",
        ),
        (
            "source oci pp --url=oci://h/p --tag=1 --verify-issuer=x",
            "a verification provider must be specified",
        ),
        ("source helm pp --url=ftp://h", "url scheme 'ftp' not supported"),
        (
            "source chart pp --chart=c --source=Pod/x",
            "source kind 'Pod' is not supported",
        ),
        ("ks pp --path=./", "source is required"),
        (
            "ks pp --source=x --health-check=Pod/a.b",
            "invalid health check kind 'Pod'",
        ),
        ("hr pp", "chart or chart-ref is required"),
        (
            "hr pp --chart=c --chart-ref=HelmChart/x",
            "cannot use --chart in combination with --chart-ref",
        ),
        (
            "hr pp --chart=c --source=HelmRepository/x --values=missing.yaml",
            "reading values from missing.yaml failed",
        ),
        (
            "hr pp --chart=c --source=HelmRepository/x --values-from=Pod/x",
            "reference kind 'Pod' is not supported",
        ),
        (
            "alert aa --event-source=x --provider-ref=p",
            "invalid event source 'x'",
        ),
        (
            "receiver rr --type=github --secret-ref=s",
            "at least one resource is required",
        ),
        ("tenant tt", "with-namespace is required"),
        ("image repository rr", "an image repository (--image) is required"),
        (
            "image repository rr --image=https://h/p",
            "is not the name of an image without scheme, tag and digest",
        ),
        (
            "image policy pp --select-semver=1.x",
            "the name of an ImageRepository in the namespace is required (--image-ref)",
        ),
        (
            "image policy pp --image-ref=r",
            "a policy must be provided with --select-semver",
        ),
        (
            "image policy pp --image-ref=r --select-semver=1.x --select-alpha=asc",
            "only one of --select-semver, --select-alpha or --select-numeric",
        ),
        (
            "image policy pp --image-ref=r --select-alpha=up",
            "must be one of [\"asc\", \"desc\"]",
        ),
        (
            "image policy pp --image-ref=r --select-alpha=asc --filter-extract=$a",
            "cannot specify --filter-extract without specifying --filter-regex",
        ),
        (
            "image policy pp --image-ref=r --select-alpha=asc --filter-regex=(",
            "--filter-regex is an invalid regex pattern",
        ),
        (
            "image policy pp --image-ref=r --select-alpha=asc --reflect-digest=Always",
            "--interval belongs to --reflect-digest=Always",
        ),
        (
            "image update uu --git-repo-ref=r --author-name=a --author-email=e",
            "the Git repository branch is required (--checkout-branch)",
        ),
        (
            "secret git ss --url=https://h/p --username=u",
            "the username and password, or a bearer token is required",
        ),
        (
            "secret git ss --url=https://h/p --username=u --password=p --bearer-token=t",
            "cannot be used together",
        ),
        ("secret tls ss --tls-crt-file=tls.crt", "use --tls-key-file"),
        (
            "secret tls ss --tls-crt-file=tls.crt --tls-key-file=app.pem",
            "the key is no PEM",
        ),
        (
            "secret oci ss --url=https://h --username=u --password=p",
            "without a scheme",
        ),
        (
            "secret notation ss --ca-cert-file=app.txt --trust-policy-file=policy.json",
            "must end with either .crt or .pem",
        ),
        (
            "secret notation ss --ca-cert-file=ca.crt --trust-policy-file=values.yaml",
            "invalid trust policy",
        ),
        (
            "secret githubapp ss --app-id=1 --app-private-key=app.pem",
            "use --app-installation-owner or",
        ),
        (
            "secret receiver rr --type=gcr --hostname=h",
            "--email-claim is required for gcr receiver type",
        ),
    ] {
        let output = run(
            Path::new(env!("CARGO_BIN_EXE_weir")),
            &data(),
            &format!("create {line} --export"),
        );
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(stderr(&output).contains(message), "{line}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{line}");
    }
}

fn lines(output: &Output) -> Vec<String> {
    stderr(output).lines().map(str::to_owned).collect()
}

fn artifact(revision: &str) -> Json {
    json!({
        "revision": revision, "digest": format!("sha256:{}", "a".repeat(64)), "path": "p", "url": "http://x/a.tar.gz",
        "lastUpdateTime": "2026-01-01T00:00:00Z", "size": 1000,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn source_is_created_updated_and_waited_for() -> Result<()> {
    let objects = Objects::new("create-source").await?;
    let line = "create source git podinfo --url=https://example.invalid/podinfo --branch=main --label=a=b";
    let status = json!({
        "observedGeneration": 1, "artifact": artifact("main@sha1:1"), "conditions": [ready("True", "Succeeded", "stored")],
    });
    let answer = objects.answer(SOURCE, "GitRepository", "podinfo", |_| true, |_| status.clone());
    let (output, answered) = tokio::join!(objects.run(line), answer);
    answered?;
    let output = output?;
    assert_eq!(
        lines(&output),
        [
            "✚ generating GitRepository source",
            "► applying GitRepository source",
            "✔ GitRepository source created",
            "◎ waiting for GitRepository source reconciliation",
            "✔ GitRepository source reconciliation completed",
            "✔ fetched revision: main@sha1:1",
        ]
    );
    assert!(output.status.success());

    // A stalled object ends the wait.
    let line = "create source git podinfo --url=https://example.invalid/podinfo --tag=1";
    let mut condition = ready("False", "Failed", "no such tag");
    condition["observedGeneration"] = json!(2);
    let stalled = json!({"type": "Stalled", "status": "True", "reason": "Failed", "message": "no such tag",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"observedGeneration": 2, "conditions": [condition, stalled]});
    let is_new = |object: &Json| object["metadata"]["generation"] == 2;
    let answer = objects.answer(SOURCE, "GitRepository", "podinfo", is_new, |_| status.clone());
    let (output, answered) = tokio::join!(objects.run(line), answer);
    answered?;
    let output = output?;
    assert_eq!(output.status.code(), Some(1));
    let lines = lines(&output);
    assert!(
        lines.contains(&"✔ GitRepository source updated".to_owned()),
        "{lines:?}"
    );
    assert_eq!(lines.last().map(String::as_str), Some("✗ no such tag"));
    let live = objects.live(SOURCE, "GitRepository", "podinfo").await?;
    assert_eq!(live["spec"]["ref"], json!({"tag": "1"}));
    assert_eq!(live["metadata"]["labels"], json!(null));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_without_a_controller_time_out_and_static_ones_do_not() -> Result<()> {
    let objects = Objects::new("create-static").await?;
    let late = objects
        .fails("create ks apps --source=podinfo --prune=true --timeout=2s")
        .await?;
    assert!(late.contains("✔ Kustomization created"), "{late}");
    assert!(late.contains("no answer of the controller"), "{late}");
    let provider = objects
        .run("create alert-provider chat --type=generic --address=https://example.invalid")
        .await?;
    assert_eq!(
        lines(&provider),
        [
            "✚ generating Provider",
            "► applying Provider",
            "✔ Provider created",
            "◎ waiting for Provider reconciliation",
            "✔ Provider chat is ready",
        ]
    );
    let alert = "create alert all --event-source=Kustomization/* --provider-ref=chat";
    objects.succeeds(alert).await?;
    let refused = objects
        .fails("create alert all --event-source=Kustomization/* --provider-ref=chat --event-severity=loud")
        .await?;
    assert!(refused.contains("eventSeverity"), "{refused}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bucket_gets_a_secret_with_its_keys() -> Result<()> {
    let objects = Objects::new("create-bucket").await?;
    let line = "create source bucket data --bucket-name=b --endpoint=minio.invalid:9000 --access-key=key --secret-key=word --timeout=2s";
    let late = objects.fails(line).await?;
    assert!(late.contains("✔ authentication configured"), "{late}");
    let live = objects.live(SOURCE, "Bucket", "data").await?;
    assert_eq!(live["spec"]["secretRef"], json!({"name": "bucket-data"}));
    assert_eq!(
        objects.secret("bucket-data").await?,
        json!({"accesskey": "key", "secretkey": "word"})
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_is_created_and_its_role_changes() -> Result<()> {
    let objects = Objects::new("create-tenant").await?;
    let space = format!("{}-apps", objects.namespace);
    let line = format!("create tenant team --with-namespace={space} --label=a=b");
    let output = objects.run(&line).await?;
    let expected = [
        format!("► applying namespace {space}"),
        "► applying service account team".to_owned(),
        "► applying role binding team-reconciler".to_owned(),
        "✔ tenant setup completed".to_owned(),
    ];
    assert_eq!(lines(&output), expected);
    objects
        .succeeds(&format!("{line} --cluster-role=edit --label=c=d"))
        .await?;
    let role = [
        "get",
        "rolebinding",
        "team-reconciler",
        "-n",
        &space,
        "-o",
        "json",
    ];
    let binding: Json = serde_json::from_str(&objects.plane.kubectl(&role).await?)?;
    assert_eq!(binding["roleRef"]["name"], "edit");
    assert_eq!(
        binding["metadata"]["labels"],
        json!({"a": "b", "c": "d", "toolkit.fluxcd.io/tenant": "team"})
    );
    let account = ["get", "serviceaccount", "team", "-n", &space, "-o", "json"];
    let account: Json = serde_json::from_str(&objects.plane.kubectl(&account).await?)?;
    assert_eq!(account["metadata"]["labels"]["c"], "d");
    let uid = [
        "get",
        "rolebinding/team-reconciler",
        "-n",
        &space,
        "-o",
        "jsonpath={.metadata.uid}",
    ];
    let before = objects.plane.kubectl(&uid).await?;
    objects
        .succeeds(&format!("{line} --cluster-role=edit --label=c=d"))
        .await?;
    assert_eq!(objects.plane.kubectl(&uid).await?, before, "nothing changed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_is_created_and_its_keys_are_set() -> Result<()> {
    let objects = Objects::new("create-secret").await?;
    let line = "create secret git auth --url=https://example.invalid/p --username=u --password=p --label=a=b";
    let output = objects.run(line).await?;
    assert_eq!(
        lines(&output),
        [format!(
            "► git secret 'auth' created in '{}' namespace",
            objects.namespace
        )]
    );
    objects
        .succeeds("create secret git auth --url=https://example.invalid/p --bearer-token=t")
        .await?;
    assert_eq!(
        objects.secret("auth").await?,
        json!({"username": "u", "password": "p", "bearerToken": "t"})
    );
    let refused = objects
        .fails("create secret oci auth --url=ghcr.io --username=u --password=p")
        .await?;
    assert!(refused.contains("delete it first"), "{refused}");
    Ok(())
}

/// Returns the data of an exported Secret, by key.
fn string_data(output: &Output) -> Result<Json> {
    ensure!(output.status.success(), "{}", stderr(output));
    let text = String::from_utf8_lossy(&output.stdout);
    let object = yaml::read::goyaml(&*text, &tree::Budget::default())?.value;
    let json: Json = serde_json::from_str(&yaml::print::json(&object))?;
    Ok(json["stringData"].clone())
}

/// An SSH server, and a directory with a key that it knows.
struct Ssh {
    server: SshServer,
    url: String,
    key: SshKeyPair,
    dir: TempDir,
    _git: GitServer,
}

impl Ssh {
    fn start() -> Result<Self> {
        let git = GitServer::start()?;
        let repo = git.repo("base")?;
        repo.commit("one", &[("a", "b")])?;
        let key = SshKeyPair::generate("-t ecdsa -b 384", "opens it")?;
        let server = SshServer::start(&git, &[&key])?;
        let dir = tempfile::tempdir()?;
        fs::write(dir.path().join("identity"), &key.private)?;
        Ok(Self {
            url: server.url(&repo),
            server,
            key,
            dir,
            _git: git,
        })
    }

    fn run(&self, program: &Path, flags: &str) -> Output {
        let line = format!("create secret git auth --url={} --export {flags}", self.url);
        run(program, self.dir.path(), &line)
    }
}

#[test]
fn secret_for_ssh_has_keys_that_openssh_takes() -> Result<()> {
    let ssh = Ssh::start()?;
    let own = Path::new(env!("CARGO_BIN_EXE_weir"));
    for (flags, kind) in [
        ("", "ecdsa-sha2-nistp384 "),
        ("--ssh-ecdsa-curve=p521", "ecdsa-sha2-nistp521 "),
        ("--ssh-key-algorithm=rsa --ssh-rsa-bits=2048", "ssh-rsa "),
        ("--ssh-key-algorithm=ed25519", "ssh-ed25519 "),
    ] {
        let data = string_data(&ssh.run(own, flags))?;
        let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
        assert!(text("identity.pub").starts_with(kind), "{data}");
        assert!(text("identity").starts_with("-----BEGIN PRIVATE KEY-----\n"));
        let known: Vec<String> = text("known_hosts").split(' ').map(str::to_owned).collect();
        assert_eq!(known[0], format!("[127.0.0.1]:{}", ssh.server.address().port()));
        assert!(ssh.server.known_hosts()?.contains(&known[2]), "{known:?}");
    }
    Ok(())
}

#[test]
fn secret_for_ssh_with_a_key_is_the_one_of_flux() -> Result<()> {
    let ssh = Ssh::start()?;
    let flags = "--private-key-file=identity --password='opens it'";
    let own = ssh.run(Path::new(env!("CARGO_BIN_EXE_weir")), flags);
    let data = string_data(&own)?;
    assert_eq!(data["identity"], ssh.key.private);
    assert_eq!(data["password"], "opens it");
    let public: Vec<&str> = ssh.key.public.split(' ').take(2).collect();
    assert_eq!(data["identity.pub"], format!("{}\n", public.join(" ")));
    if let Some(flux) = testkit::flux::find()? {
        let original = ssh.run(&flux, flags);
        assert_eq!(
            String::from_utf8_lossy(&own.stdout),
            String::from_utf8_lossy(&original.stdout)
        );
    }
    let wrong = ssh.run(
        Path::new(env!("CARGO_BIN_EXE_weir")),
        "--private-key-file=identity",
    );
    assert!(
        stderr(&wrong).contains("is encrypted but no password was given"),
        "{}",
        stderr(&wrong)
    );
    Ok(())
}

#[test]
fn namespace_follows_the_flags_and_the_environment() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u, namespace: of-context}}]\n";
    fs::write(dir.path().join("config"), kubeconfig)?;
    for (flags, variable, expected) in [
        ("", "", "flux-system"),
        ("", "of-variable", "of-variable"),
        ("-n of-flag", "of-variable", "of-flag"),
        (
            "--ns-follows-kube-context --kubeconfig=config",
            "of-variable",
            "of-context",
        ),
    ] {
        let mut command = weir(
            dir.path(),
            &format!("create alert-provider chat --type=slack --export {flags}"),
        );
        let output = command.env("FLUX_SYSTEM_NAMESPACE", variable).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("namespace: "));
        assert_eq!(
            line.context("no namespace")?,
            expected,
            "{flags} {text}{}",
            stderr(&output)
        );
    }
    Ok(())
}
