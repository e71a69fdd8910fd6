//! `weir diff repository`.

use std::{fs, path::Path, process::Command};

use anyhow::{Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tree::Budget;

use super::{KUSTOMIZE, Objects, SOURCE};
use crate::{commands::stderr, program::files};

/// Returns a ConfigMap with one value.
fn map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{color: \"{value}\"}}\n")
}

/// Returns a Kustomization of the repository.
fn kustomization(name: &str, namespace: &str, more: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
         spec: {{interval: 5m, path: ./{name}, prune: true, sourceRef: {{kind: GitRepository, name: fleet}}{more}}}\n"
    )
}

/// Makes a directory the work tree of a remote repository.
fn clone_of(dir: &Path, url: &str) -> Result<()> {
    for words in [&["init", "--quiet"][..], &["remote", "add", "origin", url]] {
        let status = Command::new("git").args(words).current_dir(dir).status()?;
        ensure!(status.success(), "git {words:?}");
    }
    Ok(())
}

/// A cluster with Kustomizations of a repository, and a work tree that differs.
struct Fleet {
    objects: Objects,
    work_tree: TempDir,
}

impl Fleet {
    async fn new(prefix: &str, content: &[(&str, &str)]) -> Result<Self> {
        let objects = Objects::new(prefix).await?;
        let namespace = objects.namespace.clone();
        let work_tree = files(content);
        clone_of(
            work_tree.path(),
            &format!("https://ci:token@example.com/{namespace}/fleet.git"),
        )?;
        let spec = json!({
            "interval": "1m", "url": format!("ssh://git@example.com/{namespace}/fleet"), "ref": {"branch": "main"},
        });
        let source = json!({ "spec": spec });
        objects.put(SOURCE, "GitRepository", "fleet", source).await?;
        Ok(Self { objects, work_tree })
    }

    /// Creates a Kustomization with fields of its spec, as another one owns it, and an inventory of `NAME_GROUP_KIND`.
    async fn reconciled(&self, name: &str, owner: &str, spec: &Json, inventory: &[&str]) -> Result<()> {
        let namespace = &self.objects.namespace;
        let mut all = json!({
            "interval": "5m", "path": format!("./{name}"), "prune": true, "targetNamespace": namespace,
            "sourceRef": {"kind": "GitRepository", "name": "fleet"},
        });
        for (field, value) in spec.as_object().into_iter().flatten() {
            all[field] = value.clone();
        }
        all.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let entries = inventory
            .iter()
            .map(|id| json!({"id": format!("{namespace}_{id}"), "v": "v1"}));
        let status = json!({"inventory": {"entries": entries.collect::<Vec<_>>()}});
        let rest = json!({"labels": self.labels(owner), "spec": all, "status": status});
        self.objects.put(KUSTOMIZE, "Kustomization", name, rest).await
    }

    fn labels(&self, owner: &str) -> Json {
        json!({
            "kustomize.toolkit.fluxcd.io/name": owner,
            "kustomize.toolkit.fluxcd.io/namespace": self.objects.namespace,
        })
    }

    /// Creates an object that a Kustomization applied.
    async fn applied(&self, owner: &str, kind: &str, name: &str, data: &Json) -> Result<()> {
        let metadata = json!({
            "name": name, "namespace": self.objects.namespace, "labels": self.labels(owner),
        });
        let object = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": data});
        self.objects.plane.apply(object).await?;
        Ok(())
    }

    /// Compares, and returns the exit code with the text and the errors.
    async fn compared(&self, words: &str) -> Result<(Option<i32>, String, String)> {
        let path = self.work_tree.path().display();
        let command = format!("diff repository --path {path} {words}");
        let output = self.objects.run(&command).await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((output.status.code(), text, stderr(&output)))
    }

    fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.work_tree.path().join(path);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        Ok(fs::write(path, text)?)
    }
}

const LOGIN: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: new}\n";
const INVALID: &str =
    "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 99999}]}\n";

/// The Kustomization `infra` deploys `apps`, which was changed, `added`, which is new, and deployed `gone`.
async fn fleet(prefix: &str) -> Result<Fleet> {
    let fleet = Fleet::new(
        prefix,
        &[
            ("apps/settings.yaml", &map("settings", "red")),
            ("apps/token.yaml", &map("token", "x-${password}")),
            ("apps/login.yaml", LOGIN),
            ("apps/web.yaml", INVALID),
            ("added/first.yaml", &map("first", "red")),
            ("infra/docs/ignored.yaml", "not: a manifest\n"),
            ("infra/.sourceignore", "docs/\n"),
        ],
    )
    .await?;
    let namespace = fleet.objects.namespace.clone();
    let target = format!(", targetNamespace: {namespace}");
    let from = "postBuild: {substituteFrom: [{kind: Secret, name: vars}]}";
    fleet.write(
        "infra/apps.yaml",
        &kustomization("apps", &namespace, &format!("{target}, {from}")),
    )?;
    let elsewhere = format!(", targetNamespace: {namespace}-new");
    fleet.write(
        "infra/added.yaml",
        &kustomization("added", &namespace, &elsewhere),
    )?;
    fleet.write(
        "infra/space.yaml",
        &format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}-new}}\n"),
    )?;
    let kind = "kustomize.toolkit.fluxcd.io_Kustomization";
    let (apps, gone) = (format!("apps_{kind}"), format!("gone_{kind}"));
    let inventory = [apps.as_str(), gone.as_str()];
    let no_target = json!({"targetNamespace": null});
    fleet.reconciled("infra", "", &no_target, &inventory).await?;
    let owned = [
        "settings__ConfigMap",
        "left__ConfigMap",
        "login__Secret",
        "token__ConfigMap",
    ];
    fleet.reconciled("apps", "infra", &json!({}), &owned).await?;
    fleet
        .reconciled("gone", "infra", &json!({}), &["last__ConfigMap"])
        .await?;
    // It has another source.
    let source = json!({"sourceRef": {"kind": "GitRepository", "name": "other"}});
    fleet.reconciled("other", "", &source, &[]).await?;
    for (name, value) in [("settings", "blue"), ("left", "blue"), ("token", "old")] {
        fleet
            .applied("apps", "ConfigMap", name, &json!({"color": value}))
            .await?;
    }
    fleet.applied("gone", "ConfigMap", "last", &json!({})).await?;
    for (name, owner, value) in [("login", "apps", "old"), ("vars", "nobody", "s3cr3t")] {
        let data = json!({"password": STANDARD.encode(value)});
        fleet.applied(owner, "Secret", name, &data).await?;
    }
    Ok(fleet)
}

#[tokio::test(flavor = "multi_thread")]
async fn all_kustomizations_of_a_repository_are_compared() -> Result<()> {
    let fleet = fleet("repository").await?;
    let namespace = fleet.objects.namespace.clone();
    let (code, text, errors) = fleet.compared("").await?;
    for part in [
        format!("📁 Kustomization/{namespace}/infra changed\n"),
        format!("► Namespace/{namespace}-new created\n"),
        format!("► Kustomization/{namespace}/added created\n"),
        format!("► Kustomization/{namespace}/gone deleted\n"),
        format!("📁 Kustomization/{namespace}/apps changed\n"),
        format!("► ConfigMap/{namespace}/settings drifted\n\ndata.color\n± value change\n- blue\n+ red\n"),
        format!("► ConfigMap/{namespace}/token drifted\n\ndata.color\n± value change\n- old\n+ x-*****\n"),
        format!("► ConfigMap/{namespace}/left deleted\n"),
        format!("📁 Kustomization/{namespace}/added changed\n► ConfigMap/{namespace}-new/first created\n"),
        format!("📁 Kustomization/{namespace}/gone removed\n► ConfigMap/{namespace}/last deleted\n"),
    ] {
        let is_pruned = part.contains("left deleted");
        // Nothing is pruned while an object fails.
        assert_eq!(text.contains(&part), !is_pruned, "{part:?} in {text}{errors}");
    }
    assert!(!text.contains("other") && !text.contains("docs"), "{text}");
    assert_eq!(code, Some(2), "{errors}");
    let refused = format!("Kustomization/{namespace}/apps: Service/{namespace}/web dry-run failed: ");
    assert!(errors.contains(&refused), "{errors}");
    for output in [&text, &errors] {
        assert!(
            !output.contains("s3cr3t") && !output.contains("token@"),
            "{output}"
        );
    }
    fs::remove_file(fleet.work_tree.path().join("apps/web.yaml"))?;
    let (code, text, errors) = fleet.compared("--branch main").await?;
    assert_eq!(code, Some(1), "{text}{errors}");
    assert!(
        text.contains(&format!("► ConfigMap/{namespace}/left deleted\n")),
        "{text}"
    );
    let live = fleet.objects.live("v1", "ConfigMap", "settings").await?;
    assert_eq!(live["data"]["color"], "blue", "nothing is changed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn differences_of_a_repository_are_data_and_a_comment() -> Result<()> {
    let fleet = fleet("repository-data").await?;
    let namespace = fleet.objects.namespace.clone();
    let (code, text, errors) = fleet.compared("-o json").await?;
    assert_eq!(code, Some(2), "{errors}");
    let json: Json = serde_json::from_str(&text)?;
    let deployments = json["deployments"].as_array().unwrap();
    let states: Vec<(&str, &str)> = deployments
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["status"].as_str().unwrap()))
        .collect();
    assert_eq!(
        states,
        [
            ("infra", "changed"),
            ("added", "changed"),
            ("apps", "failed"),
            ("gone", "removed")
        ]
    );
    // Among them is the Kustomization apps, whose spec is another.
    let expected = json!({"created": 3, "changed": 4, "deleted": 2, "failed": 1});
    assert_eq!(json["summary"], expected, "{text}");
    let login = deployments[2]["objects"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "login");
    let diff = login.unwrap()["diff"].as_str().unwrap();
    assert_eq!(
        diff,
        "data.password\n± value change\n- *** (before)\n+ *** (after)"
    );
    let (code, text, _) = fleet.compared("-o markdown --title Production").await?;
    assert_eq!(code, Some(2));
    for part in [
        "<!-- weir diff repository -->\n### Production\n\n**3 created, 4 changed, 2 deleted, 1 failed** in 4 deployments.\n",
        &format!("| <code>Kustomization/{namespace}/apps</code> | failed |  | 3 |  | 1 |\n"),
        &format!("<summary><code>Kustomization/{namespace}/apps</code>: 3 changed, 1 failed</summary>\n"),
        &format!("✗ Service/{namespace}/web dry-run failed: "),
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains("s3cr3t"), "{text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn repositories_without_differences_or_deployments_are_told_apart() -> Result<()> {
    let fleet = Fleet::new(
        "repository-equal",
        &[("apps/settings.yaml", &map("settings", "red"))],
    )
    .await?;
    let namespace = fleet.objects.namespace.clone();
    let (code, _, errors) = fleet.compared("").await?;
    assert_eq!(code, Some(2));
    let missing = format!("nothing in the cluster is deployed from git://example.com/{namespace}/fleet");
    assert!(errors.contains(&missing), "{errors}");
    fleet
        .reconciled("apps", "", &json!({}), &["settings__ConfigMap"])
        .await?;
    fleet
        .applied("apps", "ConfigMap", "settings", &json!({"color": "red"}))
        .await?;
    let (code, text, errors) = fleet.compared("").await?;
    assert_eq!((code, text.as_str(), errors.as_str()), (Some(0), "", ""));
    let (_, text, _) = fleet.compared("-o markdown").await?;
    assert!(
        text.ends_with("No differences: 1 deployments equal the repository.\n"),
        "{text}"
    );
    let (code, _, errors) = fleet.compared("--branch dev").await?;
    assert_eq!(code, Some(2));
    assert!(errors.contains(&format!("{missing} (branch dev)")), "{errors}");
    let (code, text, errors) = fleet
        .compared(&format!("--source OCIRepository/{namespace}/none"))
        .await?;
    assert_eq!((code, text.as_str()), (Some(2), ""));
    let unknown =
        format!("--source OCIRepository/{namespace}/none: nothing in the cluster or the repository");
    assert!(errors.contains(&unknown), "{errors}");
    // Its sources have another URL, and the Kustomization is in a file.
    let file =
        kustomization("apps", &namespace, ", targetNamespace: default").replace("GitRepository", "Bucket");
    fleet.write("new.yaml", &file)?;
    let file = fleet.work_tree.path().join("new.yaml");
    let words = format!(
        "--source Bucket/{namespace}/fleet --kustomization-file {} -n {namespace}",
        file.display()
    );
    let (code, text, errors) = fleet.compared(&words).await?;
    assert_eq!(code, Some(1), "{errors}");
    assert!(text.contains("► ConfigMap/default/settings created\n"), "{text}");
    // Files outside of the repository are not read.
    fleet.write("apps/kustomization.yaml", "resources: [../../secret.yaml]\n")?;
    let (code, _, errors) = fleet.compared("").await?;
    assert_eq!(code, Some(2));
    assert!(
        errors.contains(&format!("Kustomization/{namespace}/apps: ")),
        "{errors}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn kluctl_deployments_of_a_repository_are_compared() -> Result<()> {
    let project = "deployments: [{path: app}]\ncommonLabels: {team: shop}\n";
    let fleet = Fleet::new(
        "repository-kluctl",
        &[
            (
                "shop/.kluctl.yaml",
                "discriminator: shop-{{ args.env }}\nargs: [{name: env}]\n",
            ),
            ("shop/deployment.yaml", project),
            ("broken/deployment.yaml", "deployments: [{path: missing}]\n"),
        ],
    )
    .await?;
    let namespace = fleet.objects.namespace.clone();
    let object =
        map("settings", "{{ args.env }}").replace("name: ", &format!("namespace: {namespace}, name: "));
    fleet.write("shop/app/map.yaml", &object)?;
    let source = json!({"kind": "GitRepository", "name": "fleet"});
    let own = json!({"git": {"url": format!("https://example.com/{namespace}/fleet"), "path": "broken"}});
    for (api, name, spec) in [
        (
            "flux.kluctl.io/v1alpha1",
            "shop",
            json!({"interval": "5m", "path": "./shop", "sourceRef": source, "args": {"env": "prod"}, "prune": true, "forceApply": true}),
        ),
        (
            "gitops.kluctl.io/v1beta1",
            "broken",
            json!({"interval": "5m", "source": own}),
        ),
        (
            "gitops.kluctl.io/v1beta1",
            "other",
            json!({"interval": "5m", "source": {"git": {"url": "https://example.com/other"}}}),
        ),
    ] {
        fleet
            .objects
            .put(api, "KluctlDeployment", name, json!({"spec": spec}))
            .await?;
    }
    let words = format!("-n {namespace}");
    let (code, text, errors) = fleet.compared(&words).await?;
    let expected =
        format!("📁 KluctlDeployment/{namespace}/shop changed\n► ConfigMap/{namespace}/settings created\n");
    assert_eq!((code, text.as_str()), (Some(2), expected.as_str()), "{errors}");
    let broken = format!("✗ KluctlDeployment/{namespace}/broken: ");
    assert!(errors.contains(&broken) && !errors.contains("other"), "{errors}");
    let labels = json!({"kluctl.io/discriminator": "shop-prod", "team": "shop"});
    for (name, data) in [("settings", json!({"color": "blue"})), ("left", json!({}))] {
        let metadata = json!({"name": name, "namespace": namespace, "labels": labels});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        fleet.write("applied.json", &object.to_string())?;
        let file = fleet.work_tree.path().join("applied.json");
        let file = file.to_string_lossy();
        // As the controller applied it: objects of others are no orphans.
        let words = ["apply", "--server-side", "--field-manager=kluctl", "-f", &file];
        fleet.objects.plane.kubectl(&words).await?;
    }
    let (_, text, errors) = fleet.compared(&words).await?;
    for part in [
        format!("► ConfigMap/{namespace}/settings drifted\n"),
        "\ndata.color\n± value change\n- blue\n+ prod\n".to_owned(),
        format!("► ConfigMap/{namespace}/left deleted\n"),
    ] {
        assert!(text.contains(&part), "{part:?} in {text}{errors}");
    }
    Ok(())
}

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/ci/");

fn example(name: &str) -> Result<(String, Vec<Json>)> {
    let text = fs::read_to_string(format!("{EXAMPLES}{name}"))?;
    let documents = yaml::read::goyaml_all(&text, &Budget::default())?;
    let documents = documents.into_iter().map(|document| document.value.to_json());
    Ok((text, documents.collect()))
}

/// Returns all strings of a value.
fn strings(value: &Json) -> Vec<&str> {
    match value {
        Json::String(text) => vec![text],
        Json::Array(items) => items.iter().flat_map(strings).collect(),
        Json::Object(fields) => fields.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn examples_of_jobs_are_pinned_and_have_few_rights() -> Result<()> {
    let (_, github) = example("github-actions.yaml")?;
    let (github, job) = (&github[0], &github[0]["jobs"]["diff"]);
    assert_eq!(github["permissions"], json!({"contents": "read"}));
    assert_eq!(
        job["permissions"],
        json!({"contents": "read", "pull-requests": "write"})
    );
    assert!(
        job["if"]
            .as_str()
            .unwrap()
            .ends_with("head.repo.full_name == github.repository")
    );
    let steps = job["steps"].as_array().unwrap();
    let uses: Vec<&str> = steps.iter().filter_map(|step| step["uses"].as_str()).collect();
    let is_pinned = |action: &&str| {
        let (_, commit) = action.split_once('@').unwrap_or_default();
        commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit())
    };
    assert!(!uses.is_empty() && uses.iter().all(is_pinned), "{uses:?}");
    let scripts = steps.iter().filter_map(|step| step["run"].as_str());
    // Expressions are passed in variables: a branch may have any name.
    assert!(scripts.clone().all(|script| !script.contains("${{")), "{github}");
    assert!(scripts.clone().any(|script| script.contains("sha256sum --check")));
    let (_, gitlab) = example("gitlab-ci.yaml")?;
    let job = &gitlab[0]["weir-diff"];
    assert_eq!(job["image"], "$WEIR_IMAGE");
    let condition = job["rules"][0]["if"].as_str().unwrap();
    assert!(condition.ends_with("$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID"));
    let (_, rights) = example("rbac.yaml")?;
    let all: Vec<&str> = rights.iter().flat_map(strings).collect();
    assert!(!all.contains(&"*") && !all.contains(&"delete"), "{all:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_the_examples_are_understood() -> Result<()> {
    let fleet = Fleet::new("repository-examples", &[]).await?;
    for name in ["github-actions.yaml", "gitlab-ci.yaml"] {
        let (text, _) = example(name)?;
        let lines = text.lines().map(|line| line.trim().trim_start_matches("- "));
        let lines = lines.filter_map(|line| line.strip_prefix("weir diff repository "));
        let commands: Vec<&str> = lines.filter_map(|line| line.split(" > ").next()).collect();
        assert_eq!(commands.len(), 1, "{name}");
        let (code, text, errors) = fleet.compared(commands[0]).await?;
        assert_eq!(code, Some(2), "{name}: {errors}");
        // Nothing is deployed from this repository.
        assert!(
            text.is_empty() && errors.contains("nothing in the cluster is deployed from"),
            "{errors}"
        );
    }
    Ok(())
}
