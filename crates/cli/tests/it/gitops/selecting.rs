//! Selection of KluctlDeployments, lists, and suspension.

use anyhow::{Result, ensure};
use serde_json::{Value as Json, json};
use testkit::{ControlPlane, Options};

use super::{Fixture, failed, succeeded};
use crate::{commands::weir, program::files};

#[tokio::test(flavor = "multi_thread")]
async fn local_project_selects_its_deployments_after_confirmation() -> Result<()> {
    let fixture = Fixture::new("gitops-local").await?;
    let other = json!({"source": {"git": {"url": fixture.url, "path": "elsewhere"}}});
    fixture.deployment("other", other).await?;
    let nothing = failed(&fixture.gitops("suspend").await?)?;
    ensure!(
        nothing.contains("no matching KluctlDeployments found"),
        "{nothing}"
    );
    fixture.deployment("one", json!({})).await?;
    // Nobody answers.
    let asked = failed(&fixture.gitops("suspend").await?)?;
    let question = format!(
        "Do you want to suspend KluctlDeployment {}/one?",
        fixture.namespace
    );
    ensure!(asked.contains(&question) && asked.contains("aborted"), "{asked}");
    fixture
        .deployment("two", json!({"source": {"url": fixture.url, "path": "./deploy"}}))
        .await?;
    let asked = failed(&fixture.gitops("suspend").await?)?;
    let names = format!("[1] {0}/one\n  [2] {0}/two\n", fixture.namespace);
    ensure!(asked.contains(&names) && !asked.contains("other"), "{asked}");
    for name in ["one", "two", "other"] {
        assert_eq!(fixture.live(name).await?["spec"]["suspend"], json!(false));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn suspension_is_set_and_waited_for() -> Result<()> {
    let fixture = Fixture::new("gitops-suspend").await?;
    for name in ["one", "two"] {
        fixture.deployment(name, json!({})).await?;
    }
    // The controller has seen the next generation.
    let seen = json!({"status": {"observedGeneration": 100}});
    for name in ["one", "two"] {
        fixture.patch(name, "status", seen.clone()).await?;
    }
    succeeded(
        &fixture
            .gitops(&format!("suspend --all -y -n {}", fixture.namespace))
            .await?,
    )?;
    for name in ["one", "two"] {
        assert_eq!(fixture.live(name).await?["spec"]["suspend"], json!(true));
    }
    succeeded(
        &fixture
            .gitops(&format!("resume -l of=one -n {}", fixture.namespace))
            .await?,
    )?;
    assert_eq!(fixture.live("one").await?["spec"]["suspend"], json!(false));
    assert_eq!(fixture.live("two").await?["spec"]["suspend"], json!(true));

    fixture
        .patch("two", "status", json!({"status": {"observedGeneration": 1}}))
        .await?;
    let words = format!("resume --name two -n {} --timeout 1s", fixture.namespace);
    let message = failed(&fixture.gitops(&words).await?)?;
    ensure!(
        message.contains("the controller has not confirmed it"),
        "{message}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn contradicting_and_missing_selections_are_refused() -> Result<()> {
    let fixture = Fixture::new("gitops-refused").await?;
    let both = failed(&fixture.gitops("deploy --name a -l b=c").await?)?;
    ensure!(
        both.contains("either name or label selector must be set, not both"),
        "{both}"
    );
    let missing = failed(&fixture.gitops("deploy --name a").await?)?;
    ensure!(
        missing.contains("KluctlDeployment default/a not found"),
        "{missing}"
    );
    let empty = failed(
        &fixture
            .gitops(&format!("deploy -l a=b -n {}", fixture.namespace))
            .await?,
    )?;
    ensure!(empty.contains("no matching KluctlDeployments found"), "{empty}");
    let outside = files(&[]);
    let mut command = weir(outside.path(), "gitops reconcile --yes");
    let message = failed(&command.env("KUBECONFIG", fixture.plane.kubeconfig()).output()?)?;
    ensure!(message.contains("is not in a Git repository"), "{message}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn list_prints_the_columns_of_kubectl_or_the_objects() -> Result<()> {
    let fixture = Fixture::new("gitops-list").await?;
    fixture.deployment("shop", json!({"suspend": true})).await?;
    fixture.deployment("app", json!({})).await?;
    let status = json!({"status": {
        "conditions": [{
            "type": "Ready", "status": "False", "reason": "DeployFailed", "message": "deploy failed with 1 errors.",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
        "lastDriftDetectionResultMessage": "1 new",
    }});
    fixture.patch("shop", "status", status).await?;
    let words = format!("list -n {}", fixture.namespace);
    let table = succeeded(&fixture.gitops(&words).await?)?;
    let lines: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let head = [
        "NAMESPACE",
        "NAME",
        "SUSPEND",
        "DRYRUN",
        "DEPLOYED",
        "READY",
        "DRIFT",
        "STATUS",
        "AGE",
    ];
    assert_eq!(lines[0], head);
    assert_eq!((lines[1][1], lines[2][1]), ("app", "shop"));
    ensure!(
        table.contains("deploy failed with 1 errors.") && table.contains("1 new"),
        "{table}"
    );
    let one = succeeded(&fixture.gitops(&format!("{words} -l of=shop -o json")).await?)?;
    let one: Json = serde_json::from_str(&one)?;
    assert_eq!(one["items"][0]["metadata"]["name"], json!("shop"));
    assert_eq!(
        (one["items"].as_array().map(Vec::len), &one["kind"]),
        (Some(1), &json!("List"))
    );
    let yaml = succeeded(&fixture.gitops(&format!("{words} --name app -o yaml")).await?)?;
    ensure!(
        yaml.contains("kind: List") && yaml.contains("name: app") && !yaml.contains("name: shop"),
        "{yaml}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_and_outdated_definitions_are_reported() -> Result<()> {
    let plane = ControlPlane::start(Options::default()).await?;
    let dir = files(&[]);
    let run = || {
        let mut command = weir(dir.path(), "gitops suspend --name a");
        failed(&command.env("KUBECONFIG", plane.kubeconfig()).output()?)
    };
    let missing = run()?;
    let text = "KluctlDeployment CRD not found, which usually means the kluctl-controller is not installed";
    ensure!(missing.contains(text), "{missing}");
    let outdated = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "kluctldeployments.gitops.kluctl.io"},
        "spec": {
            "group": "gitops.kluctl.io", "scope": "Namespaced",
            "names": {"kind": "KluctlDeployment", "plural": "kluctldeployments"},
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": {"type": "object"}}}},
            }],
        },
    });
    plane.apply(outdated).await?;
    let outdated = run()?;
    ensure!(
        outdated.contains("outdated") && outdated.contains("v2.22.0"),
        "{outdated}"
    );
    Ok(())
}
