//! Messages on stderr of commands that wait or give up.

use anyhow::Result;
use tempfile::TempDir;
use testkit::ControlPlane;

use crate::{
    commands::{stderr, weir},
    program::files,
};

fn project(namespace: &str, metadata: &str, rest: &str) -> TempDir {
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m, namespace: {namespace}, annotations: {{{metadata}}}}}\n{rest}"
    );
    files(&[
        (".kluctl.yaml", &format!("discriminator: {namespace}\n")),
        ("deployment.yaml", "deployments: [{path: app}]"),
        ("app/m.yaml", &map),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn unready_object_is_reported_after_five_and_every_ten_seconds() -> Result<()> {
    let plane = ControlPlane::shared().await?;
    let namespace = plane.namespace("unready").await?;
    let marks = "kluctl.io/wait-readiness: 'true', kluctl.io/is-ready: 'false'";
    let dir = project(&namespace, marks, "");
    let words = "deploy --yes --write-command-result=false --readiness-timeout 11s";
    let output = weir(dir.path(), words)
        .env("KUBECONFIG", plane.kubeconfig())
        .output()?;
    assert_eq!(output.status.code(), Some(1));
    let messages = stderr(&output);
    let of = format!("{namespace}/ConfigMap/m to get ready...");
    assert_eq!(
        messages.matches(&format!(": Waiting for {of}")).count(),
        1,
        "{messages}"
    );
    for seconds in [5, 10] {
        let reminder = format!("app: Still waiting for {of} ({seconds}s elapsed)");
        assert_eq!(messages.matches(&reminder).count(), 1, "{messages}");
    }
    assert_eq!(messages.matches("Still waiting").count(), 2, "{messages}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let error = format!("timed out while waiting for readiness of {namespace}/ConfigMap/m");
    assert!(stdout.contains(&error), "{stdout}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn forced_replace_of_a_kept_object_is_reported() -> Result<()> {
    let plane = ControlPlane::shared().await?;
    let namespace = plane.namespace("kept").await?;
    let words = "deploy --yes --write-command-result=false --force-replace-on-error";
    for (value, succeeds) in [("1", true), ("2", false)] {
        let data = format!("immutable: true\ndata: {{a: '{value}'}}\n");
        let dir = project(&namespace, "kluctl.io/skip-delete: 'true'", &data);
        let output = weir(dir.path(), words)
            .env("KUBECONFIG", plane.kubeconfig())
            .output()?;
        let (messages, stdout) = (stderr(&output), String::from_utf8_lossy(&output.stdout));
        assert_eq!(output.status.success(), succeeds, "{stdout}{messages}");
        let skipped = format!("skipped forced replace of {namespace}/ConfigMap/m");
        assert_eq!(messages.contains(&skipped), !succeeds, "{messages}");
        // It isn't a warning of the result.
        assert!(!stdout.contains(&skipped), "{stdout}");
        assert_eq!(
            stdout.contains("retrying with replace instead of patch"),
            !succeeds,
            "{stdout}"
        );
    }
    let value = [
        "get",
        "configmap",
        "m",
        "-n",
        &namespace,
        "-o",
        "jsonpath={.data.a}",
    ];
    assert_eq!(plane.kubectl(&value).await?, "1");
    Ok(())
}
