//! Starting the controller with the flags of the original.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testkit::{Controller, audit, eventually};

use crate::fixture::{Fixture, TIMEOUT, grant_in, plane};

/// Starts the controller with exactly the flags of the original's end-to-end suite, and with rights in its namespace only.
async fn started(prefix: &str) -> Result<Fixture> {
    let plane = plane().await?;
    let namespace = plane.namespace(prefix).await?;
    grant_in(plane, &namespace, (&namespace, "controller")).await?;
    let name = ["--controller-name", "their-name"];
    Fixture::original(plane, namespace, "their-results", &name).await
}

#[tokio::test]
async fn flags_of_the_original_start_a_controller_for_one_namespace() -> Result<()> {
    let fixture = started("original").await?;
    let other = fixture.plane.namespace("original-other").await?;
    let mark = fixture.plane.audit_mark();
    let elsewhere = testkit::manifest::kluctl_deployment(&other, "shop", "shop", ".");
    fixture.plane.apply(elsewhere).await?;
    fixture.deploy("shop", json!({})).await?;
    let object = fixture.ready("shop", "False", "ArtifactFailed").await?;

    let managers = object.metadata.managed_fields.unwrap_or_default();
    let managers: Vec<_> = managers.into_iter().filter_map(|entry| entry.manager).collect();
    ensure!(managers.contains(&"their-name".to_owned()), "{managers:?}");
    let started = |entry: &Value| entry["msg"] == "starting" && entry["controller"] == "their-name";
    fixture.controller.wait_log("the name", TIMEOUT, started).await?;
    let log = fixture.controller.log();
    ensure!(
        !log.contains("\"listening\"") && !log.contains("no effect"),
        "{log}"
    );

    // A pass has an ID that its log lines have in common, under the keys that the original's tools read.
    let failed = |entry: &Value| entry["name"] == "shop" && entry["level"] == "error";
    let line = fixture
        .controller
        .wait_log("a failed pass", TIMEOUT, failed)
        .await?;
    for key in ["ts", "logger", "msg", "controller", "reconcileID"] {
        ensure!(
            line[key].as_str().is_some_and(|text| !text.is_empty()),
            "{key}: {line}"
        );
    }
    assert_eq!(line["namespace"], json!(fixture.namespace));

    // Nothing outside of the namespace is watched or written.
    eventually("the audit log", TIMEOUT, || async {
        let entries = fixture.plane.audit_since(mark)?;
        let own: Vec<_> = entries
            .iter()
            .filter(|entry| entry.user == fixture.user)
            .collect();
        ensure!(!own.is_empty(), "nothing was written yet");
        // It may not read the results, and needs not.
        let is_result = |entry: &audit::Entry| entry.namespace == "their-results" && !entry.is_write();
        let denied: Vec<_> = own
            .iter()
            .filter(|entry| entry.is_denied() && !is_result(entry))
            .collect();
        ensure!(denied.is_empty(), "{denied:?}");
        Ok(())
    })
    .await?;
    ensure!(fixture.controller.is_running());
    Ok(())
}

#[tokio::test]
async fn flag_given_by_two_names_ends_the_process() -> Result<()> {
    let plane = plane().await?;
    let launch = Controller::named("kluctl-controller").run_by(plane.kubeconfig());
    let controller = launch.flag("--metrics-bind-address=0").spawn()?;
    ensure!(!controller.exit().await?.success());
    let log = controller.log();
    ensure!(log.contains("--metrics-addr"), "{log}");
    Ok(())
}
