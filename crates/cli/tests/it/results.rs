//! Results of commands on a cluster, compared with kluctl's.

use anyhow::{Context as _, Result};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use testkit::ControlPlane;

use crate::{
    commands::{stderr, weir},
    program::files,
};

struct Project {
    plane: &'static ControlPlane,
    namespace: String,
    dir: TempDir,
}

struct Outcome {
    success: bool,
    result: Json,
    stderr: String,
}

impl Project {
    /// Creates a namespace and a project; `NAMESPACE` in the files stands for its name, which is the discriminator, too.
    async fn new(name: &str, project: &[(&str, &str)]) -> Result<Self> {
        let plane = ControlPlane::shared().await?;
        let namespace = plane.namespace(name).await?;
        let project: Vec<(&str, String)> = project
            .iter()
            .map(|(path, text)| (*path, text.replace("NAMESPACE", &namespace)))
            .collect();
        let project: Vec<(&str, &str)> = project
            .iter()
            .map(|(path, text)| (*path, text.as_str()))
            .collect();
        Ok(Self {
            plane,
            dir: files(&project),
            namespace,
        })
    }

    fn run(&self, words: &str) -> Result<Outcome> {
        let mut command = weir(self.dir.path(), &format!("{words} -o json"));
        let output = command.env("KUBECONFIG", self.plane.kubeconfig()).output()?;
        let stderr = stderr(&output);
        let result = serde_json::from_slice(&output.stdout).with_context(|| stderr.clone())?;
        Ok(Outcome {
            success: output.status.success(),
            result,
            stderr,
        })
    }

    fn deploy(&self, words: &str) -> Result<Outcome> {
        self.run(&format!("deploy --yes --write-command-result=false {words}"))
    }

    fn write(&self, path: &str, text: &str) -> Result<()> {
        std::fs::write(
            self.dir.path().join(path),
            text.replace("NAMESPACE", &self.namespace),
        )?;
        Ok(())
    }
}

const MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, namespace: NAMESPACE}\ndata: {a: '1'}\n";

#[tokio::test(flavor = "multi_thread")]
async fn result_has_the_targets_own_arguments_and_the_images_of_the_command() -> Result<()> {
    let image = MAP.replace(
        "'1'",
        "'{{ images.get_image(\"i\") }} {{ args.b }} {{ target.args.b }}'",
    );
    let project = Project::new(
        "own-arguments",
        &[
            (
                ".kluctl.yaml",
                "discriminator: NAMESPACE\nargs: [{name: c, default: 3}]\ntargets: [{name: t, args: {a: 1, b: 2}}]\n",
            ),
            ("deployment.yaml", "deployments: [{path: app}]"),
            ("app/m.yaml", &image),
        ],
    )
    .await?;
    let outcome = project.deploy("-t t -a b=4 -F i=one:1")?;
    assert!(outcome.success, "{}", outcome.stderr);
    assert_eq!(outcome.result["target"]["args"], json!({"a": 1, "b": 2}));
    assert_eq!(outcome.result["command"]["args"], json!({"b": 4}));
    assert_eq!(
        outcome.result["command"]["images"],
        json!([{"image": "i", "resultImage": "one:1"}])
    );
    let data = [
        "get",
        "configmap",
        "m",
        "-n",
        &project.namespace,
        "-o",
        "jsonpath={.data.a}",
    ];
    assert_eq!(project.plane.kubectl(&data).await?, "one:1 4 2");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn object_of_two_items_is_unchanged_after_the_second_deployment() -> Result<()> {
    let second = MAP.replace("'1'", "'2'");
    let project = Project::new(
        "two-items",
        &[
            (".kluctl.yaml", "discriminator: NAMESPACE\n"),
            (
                "deployment.yaml",
                "deployments: [{path: one}, {barrier: true}, {path: two}]",
            ),
            ("one/m.yaml", MAP),
            ("two/m.yaml", &second),
        ],
    )
    .await?;
    let first = project.deploy("")?.result;
    assert_eq!(
        first["compactedObjects"].as_array().context("no list")?.len(),
        1,
        "{first}"
    );
    assert_eq!(first["compactedObjects"][0]["new"], json!(true), "{first}");
    let again = project.deploy("")?.result;
    assert_eq!(again["compactedObjects"][0].get("changes"), None, "{again}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn removal_keeps_the_discriminator_of_the_target_and_refuses_an_empty_render() -> Result<()> {
    let project = Project::new(
        "removal",
        &[
            (".kluctl.yaml", "discriminator: NAMESPACE\n"),
            (
                "deployment.yaml",
                "deployments: [{path: app, when: args.on | default(true)}]",
            ),
            ("app/m.yaml", MAP),
        ],
    )
    .await?;
    let removal = |words: &str| project.run(&format!("{words} --yes --write-command-result=false"));
    // Nothing is rendered, and nothing is there.
    let pruned = removal("prune -a on=false")?;
    assert!(pruned.success, "{}", pruned.stderr);
    assert!(project.deploy("")?.success);
    let refused = removal("prune -a on=false")?;
    assert!(!refused.success);
    let message = refused.result["errors"][0]["message"]
        .as_str()
        .unwrap_or_default();
    assert!(message.contains("renders no objects"), "{message}");

    project.write(".kluctl.yaml", "discriminator: NAMESPACE-other\n")?;
    let deleted = removal(&format!("delete --discriminator {}", project.namespace))?;
    assert!(deleted.success, "{}", deleted.stderr);
    let other = format!("{}-other", project.namespace);
    assert_eq!(deleted.result["target"]["discriminator"], json!(other));
    assert_eq!(deleted.result["compactedObjects"][0]["deleted"], json!(true));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn validation_of_a_missing_object_fails_and_stays_ready() -> Result<()> {
    let project = Project::new(
        "missing",
        &[
            (".kluctl.yaml", "discriminator: NAMESPACE\n"),
            ("deployment.yaml", "deployments: [{path: app}]"),
            ("app/m.yaml", MAP),
        ],
    )
    .await?;
    let missing = project.run("validate")?;
    assert!(
        !missing.success && missing.stderr.contains("Validation failed"),
        "{}",
        missing.stderr
    );
    assert_eq!(missing.result["ready"], json!(true));
    assert_eq!(missing.result["errors"][0]["message"], json!("object not found"));
    let unready = MAP.replace(
        "metadata: {",
        "metadata: {annotations: {kluctl.io/is-ready: 'false'}, ",
    );
    project.write("app/m.yaml", &unready)?;
    assert!(project.deploy("")?.success);
    let unready = project.run("validate")?;
    assert_eq!(unready.result["ready"], json!(false), "{}", unready.result);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn parse_yaml_of_a_cluster_object_needs_a_map() -> Result<()> {
    let project = Project::new(
        "parse-yaml",
        &[
            (".kluctl.yaml", "discriminator: NAMESPACE\n"),
            (
                "deployment.yaml",
                "vars: [{clusterObject: {kind: ConfigMap, namespace: NAMESPACE, name: have, path: data.v, parseYaml: true}, \
                 targetPath: v}]\ndeployments: [{path: app}]",
            ),
            ("app/m.yaml", &MAP.replace("'1'", "'{{ v.x }}'")),
        ],
    )
    .await?;
    let (plane, namespace) = (project.plane, &project.namespace);
    for (text, kind) in [
        ("42", "number"),
        ("[a]", "array"),
        ("true", "bool"),
        ("word", "string"),
    ] {
        let literal = format!("--from-literal=v={text}");
        plane
            .kubectl(&["create", "configmap", "have", "-n", namespace, &literal])
            .await?;
        let mut command = weir(project.dir.path(), "diff");
        let output = command.env("KUBECONFIG", plane.kubeconfig()).output()?;
        assert_eq!(output.status.code(), Some(1));
        let expected = format!(
            "and json path data.v: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind}"
        );
        assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
        plane
            .kubectl(&["delete", "configmap", "have", "-n", namespace])
            .await?;
    }
    plane
        .kubectl(&[
            "create",
            "configmap",
            "have",
            "-n",
            namespace,
            "--from-literal=v=x: 1",
        ])
        .await?;
    assert!(project.deploy("")?.success);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn summary_of_a_result_without_problems_has_null_lists() -> Result<()> {
    let project = Project::new(
        "null-lists",
        &[
            (".kluctl.yaml", "discriminator: NAMESPACE\n"),
            ("deployment.yaml", "deployments: [{path: app}]"),
            ("app/m.yaml", MAP),
        ],
    )
    .await?;
    let results = format!("{}-results", project.namespace);
    let deployed = project.run(&format!("deploy --yes --command-result-namespace {results}"))?;
    assert!(deployed.success, "{}", deployed.stderr);
    let path = "jsonpath={.items[0].metadata.annotations.kluctl\\.io/command-result-summary}";
    let stored = ["get", "secrets", "-n", &results, "-o", path];
    let summary: Json = serde_json::from_str(&project.plane.kubectl(&stored).await?)?;
    assert_eq!(summary["newObjects"], json!(1), "{summary}");
    for list in ["errors", "warnings"] {
        assert_eq!(summary.get(list), Some(&Json::Null), "{list}: {summary}");
    }
    Ok(())
}
