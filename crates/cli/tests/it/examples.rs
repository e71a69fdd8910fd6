//! Deploys real projects of kluctl-examples, if they are present.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use testkit::ControlPlane;

/// Projects and their targets.
const PROJECTS: &[(&str, &[&str])] = &[
    ("simple", &["simple", "another"]),
    ("simple-helm", &["simple-helm"]),
    ("microservices-demo/1-basic-project", &["local"]),
    ("microservices-demo/2-helm-integration", &["local"]),
    (
        "microservices-demo/3-templating-and-multi-env",
        &["local", "test", "prod"],
    ),
];

struct Project<'a> {
    dir: PathBuf,
    target: &'a str,
    plane: &'a ControlPlane,
}

impl Project<'_> {
    fn weir(&self, command: &str, more: &[&str]) -> Result<String> {
        let output = Command::new(env!("CARGO_BIN_EXE_weir"))
            .arg(command)
            .args(["--target", self.target, "--context", "weir", "--project-dir"])
            .arg(&self.dir)
            .args(more)
            .env("KUBECONFIG", self.plane.kubeconfig())
            .output()?;
        let (shown, stderr) = (self.dir.display(), String::from_utf8_lossy(&output.stderr));
        let target = self.target;
        ensure!(
            output.status.success(),
            "weir {command} of {shown}, target {target}: {stderr}"
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    fn live(&self) -> Result<()> {
        let objects = self.weir("render", &["--print-all"])?.matches("\nkind: ").count();
        ensure!(objects > 0, "{} renders nothing", self.dir.display());
        let deployed = self.weir("deploy", &["--yes"])?;
        let refs = section(&deployed, "New objects").with_context(|| deployed.clone())?;
        ensure!(
            refs == objects,
            "{refs} of {objects} objects are new:\n{deployed}"
        );
        let again = self.weir("diff", &[])?;
        ensure!(again.trim().is_empty(), "the diff is not clean:\n{again}");
        // Deployments take a moment to be ready.
        self.weir("validate", &["--wait", "60s", "--sleep", "1s"])?;
        let deleted = self.weir("delete", &["--yes"])?;
        // Objects that go with their namespace are not named.
        let gone = section(&deleted, "Deleted objects").with_context(|| deleted.clone())?;
        ensure!(gone > 0, "nothing is deleted:\n{deleted}");
        let left = self.weir("delete", &["--yes"])?;
        ensure!(left.trim().is_empty(), "something is left:\n{left}");
        Ok(())
    }
}

fn section(output: &str, title: &str) -> Option<usize> {
    let (_, rest) = output.split_once(&format!("{title}:\n"))?;
    Some(rest.lines().take_while(|line| line.starts_with("  ")).count())
}

#[tokio::test(flavor = "multi_thread")]
async fn example_projects_can_be_deployed_and_deleted() -> Result<()> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/examples/kluctl-examples");
    if !dir.is_dir() {
        testkit::skipped::note(
            "deployments of example projects",
            &format!("{} is absent", dir.display()),
        );
        return Ok(());
    }
    let plane = ControlPlane::shared().await?;
    let projects = PROJECTS
        .iter()
        .flat_map(|(project, targets)| targets.iter().map(move |target| (project, target)));
    // Each makes its own namespaces, some of the same name: one after the other.
    for (project, target) in projects {
        let project = Project {
            dir: dir.join(project),
            target,
            plane,
        };
        tokio::task::block_in_place(|| project.live())?;
    }
    Ok(())
}

#[test]
fn gitops_example_renders_with_an_argument() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/examples/kluctl-examples/gitops-deployment");
    if !dir.is_dir() {
        testkit::skipped::note(
            "renders of an example project",
            &format!("{} is absent", dir.display()),
        );
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args([
            "render",
            "--offline-kubernetes",
            "--print-all",
            "-t",
            "gitops",
            "-a",
            "cluster_name=test.example.com",
        ])
        .arg("--project-dir")
        .arg(dir)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.contains("kluctl.io/discriminator: gitops-test-example-com"),
        "{printed}"
    );
}
