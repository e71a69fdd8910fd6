//! `weir controller install` against a real API server.

use std::process::Output;

use anyhow::{Result, ensure};
use serde_json::Value;
use testkit::{ControlPlane, Options};

use crate::{
    commands::{stderr, weir},
    program::files,
};

#[tokio::test(flavor = "multi_thread")]
async fn controller_is_installed_and_its_upgrade_shown() -> Result<()> {
    let plane = ControlPlane::start(Options::default()).await?;
    let dir = files(&[]);
    let run = |words: &str| -> Result<String> {
        let cluster = plane.kubeconfig().display();
        let mut command = weir(
            dir.path(),
            &format!("controller install --kubeconfig {cluster} {words}"),
        );
        let output: Output = command.output()?;
        ensure!(output.status.success(), "{}", stderr(&output));
        ensure!(
            !stderr(&output).contains("git project root"),
            "{}",
            stderr(&output)
        );
        Ok(String::from_utf8(output.stdout)?)
    };
    let installed = run("--yes")?;
    ensure!(
        installed.contains("kluctl-system/Deployment/kluctl-controller"),
        "{installed}"
    );
    let find = [
        "get",
        "deployment",
        "kluctl-controller",
        "-n",
        "kluctl-system",
        "-o",
        "json",
    ];
    let found: Value = serde_json::from_str(&plane.kubectl(&find).await?)?;
    let label = &found["metadata"]["labels"]["kluctl.io/discriminator"];
    assert_eq!(label, "kluctl.io-controller");
    let container = &found["spec"]["template"]["spec"]["containers"][0];
    let image = format!("weir/kluctl-controller:v{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        (&container["image"], &container["imagePullPolicy"]),
        (&Value::from(image.as_str()), &Value::from("IfNotPresent"))
    );
    for definition in ["flux", "gitops"] {
        let name = format!("kluctldeployments.{definition}.kluctl.io");
        plane.kubectl(&["get", "crd", &name]).await?;
    }

    // The second time changes nothing; another version is printed, and not installed by a dry run.
    assert_eq!(run("--yes")?, "");
    let shown = run("--dry-run --kluctl-version v2.99999")?;
    ensure!(shown.contains("v2.99999") && shown.contains(&image), "{shown}");
    let found: Value = serde_json::from_str(&plane.kubectl(&find).await?)?;
    assert_eq!(
        found["spec"]["template"]["spec"]["containers"][0]["image"],
        *image
    );

    let upgraded = run("--yes --kluctl-version v2.99999")?;
    ensure!(
        upgraded.contains("v2.99999") && upgraded.contains(&image),
        "{upgraded}"
    );

    let arguments = "--yes --kluctl-image registry.example.com/controller --kluctl-version v1-devel -a controller_args=[--debug] \
                     -a controller_priority_class_name=system-cluster-critical";
    run(arguments)?;
    let found: Value = serde_json::from_str(&plane.kubectl(&find).await?)?;
    let pod = &found["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(
        (
            &container["image"],
            &container["imagePullPolicy"],
            &pod["priorityClassName"]
        ),
        (
            &Value::from("registry.example.com/controller:v1-devel"),
            &Value::from("Always"),
            &Value::from("system-cluster-critical")
        )
    );
    let args = container["args"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    ensure!(args.last() == Some(&Value::from("--debug")), "{args:?}");
    Ok(())
}
