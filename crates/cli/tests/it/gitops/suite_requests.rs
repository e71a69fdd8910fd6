//! Requests, overrides and stored results, step by step as in kluctl's end-to-end suite.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value as Json, json};
use testkit::eventually;

use super::{
    TIMEOUT, failed, succeeded,
    suite::{Project, Suite},
};

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_the_suite_have_the_results_it_expects() -> Result<()> {
    let suite = Suite::start("suite-requests").await?;
    let mut project = suite.project("suite-requests-p").await?;
    // All commands take the flags that kluctl's have in common.
    project.words = format!(
        "--controller-namespace {} --local-source-override-port 0 --command-result-namespace kluctl-results",
        suite.system
    );
    project.targets.push("{name: target1}".to_owned());
    project.map("d1", "cm1", &json!({"k": "v1"}));
    project.push()?;
    project.create("target1", Json::Null).await?;
    let status = project.reconcile().await?;
    assert_eq!(status["observedCommit"], json!(project.commit));
    assert_eq!(project.data("cm1").await?, json!({"k": "v1"}));
    project
        .change(json!({"suspend": true, "deployInterval": "2s"}))
        .await?;
    project.reconcile().await?;

    assert_eq!(project.counts("diff", "").await?, [0; 4]);
    project.map("d1", "cm1", &json!({"k": "v2"}));
    project.map("d2", "cm2", &json!({}));
    project.push()?;
    assert_eq!(project.counts("diff", "").await?, [1, 1, 0, 0]);
    assert_eq!(project.data("cm1").await?, json!({"k": "v1"}));
    assert_eq!(project.data("cm2").await?, Json::Null);
    for expected in [[1, 1, 0, 0], [0; 4]] {
        assert_eq!(project.counts("deploy", "").await?, expected);
        assert_eq!(project.data("cm1").await?, json!({"k": "v2"}));
        project.appears("cm2").await?;
    }
    assert_eq!(project.counts("prune", "").await?, [0; 4]);
    project.items.retain(|item| item != "d2");
    project.push()?;
    assert_eq!(project.counts("prune", "").await?, [0, 0, 0, 1]);
    assert_eq!(project.data("cm2").await?, Json::Null);

    succeeded(&project.gitops("validate", "").await?)?;
    validates(&project, &json!(0), &json!([])).await?;
    project.delete_map("cm1").await?;
    let message = failed(&project.gitops("validate", "--output text").await?)?;
    ensure!(message.contains("Validation failed"), "{message}");
    let reference = json!({"version": "v1", "kind": "ConfigMap", "name": "cm1", "namespace": project.name});
    validates(
        &project,
        &json!(1),
        &json!([{"ref": reference, "message": "object not found"}]),
    )
    .await?;

    succeeded(&project.gitops("resume", "").await?)?;
    project.appears("cm1").await?;
    project.delete_map("cm1").await?;
    project.appears("cm1").await?;
    succeeded(&project.gitops("suspend", "").await?)?;
    project.delete_map("cm1").await?;
    project.map("d1", "cm1", &json!({"k": "v3"}));
    project.push()?;
    let mut other = suite.project("suite-requests-o").await?;
    other.targets.push("{name: target1}".to_owned());
    other.push()?;
    other.create("target1", Json::Null).await?;
    // Another object has passes meanwhile.
    eventually("passes of another object", TIMEOUT, || async {
        ensure!(other.asked() >= 3, "{}", other.asked());
        Ok(())
    })
    .await?;
    assert_eq!(project.data("cm1").await?, Json::Null);
    succeeded(&project.gitops("reconcile", "").await?)?;
    assert_eq!(project.data("cm1").await?, json!({"k": "v3"}));
    Ok(())
}

/// Compares the stored result of the last validation.
async fn validates(project: &Project<'_>, errors: &Json, messages: &Json) -> Result<()> {
    let live = project.live().await?;
    let id = live["status"]["validateRequestResult"]["resultId"]
        .as_str()
        .context("no result")?;
    let summary = project.suite.summary(id, "validate").await?;
    assert_eq!(
        (&summary["errors"], &summary["warnings"]),
        (errors, &json!(0)),
        "{summary}"
    );
    let last = &live["status"]["lastValidateResult"];
    assert_eq!((&last["id"], &last["errors"]), (&json!(id), messages));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn overrides_of_the_suite_hold_for_one_request() -> Result<()> {
    let suite = Suite::start("suite-overrides").await?;
    let mut project = suite.project("suite-overrides-p").await?;
    let values = |k1: &str| json!({"k1": k1, "k2": "{{ args.a }}", "k3": "{{ get_var('args.b', 'na') }}"});
    project.targets.push("{name: target1}".to_owned());
    project.map("d1", "cm1", &values("v1"));
    project.push()?;
    project.create("target1", json!({"a": "v1"})).await?;
    project.reconcile().await?;
    assert_eq!(
        project.data("cm1").await?,
        json!({"k1": "v1", "k2": "v1", "k3": "na"})
    );
    project.change(json!({"suspend": true})).await?;
    project.reconcile().await?;

    project.map("d1", "cm1", &values("v2"));
    project.map("d2", "cm2", &json!({}));
    project.push()?;
    assert_eq!(project.counts("deploy", "--dry-run").await?, [1, 1, 0, 0]);
    assert_eq!(project.data("cm1").await?["k1"], "v1");
    assert_eq!(project.data("cm2").await?, Json::Null);
    project.change(json!({"dryRun": true})).await?;
    project.reconcile().await?;
    assert_eq!(project.counts("deploy", "--dry-run=false").await?, [1, 1, 0, 0]);
    assert_eq!(project.data("cm1").await?["k1"], "v2");
    project.appears("cm2").await?;
    project.change(json!({"dryRun": null})).await?;
    project.reconcile().await?;

    assert_eq!(project.counts("deploy", "-a a=via_arg").await?, [0, 1, 0, 0]);
    assert_eq!(project.data("cm1").await?["k2"], "via_arg");
    project.counts("deploy", "").await?;

    project.items.retain(|item| item != "d2");
    project.push()?;
    project.change(json!({"prune": true})).await?;
    succeeded(&project.gitops("reconcile", "--prune=false").await?)?;
    assert_eq!(project.counts("deploy", "--prune=false").await?, [0, 0, 1, 0]);
    project.appears("cm2").await?;
    project.change(json!({"prune": null})).await?;
    succeeded(&project.gitops("reconcile", "").await?)?;
    assert_eq!(project.counts("deploy", "--prune").await?, [0, 0, 0, 1]);
    assert_eq!(project.data("cm2").await?, Json::Null);

    let mut more = values("v2");
    more["k4"] = json!("v1");
    project.map("d1", "cm1", &more);
    project.map("d3", "cm3", &json!({}));
    project.push()?;
    assert_eq!(project.counts("deploy", "-I d1").await?, [0, 1, 0, 0]);
    assert_eq!(project.data("cm3").await?, Json::Null);
    assert_eq!(project.counts("deploy", "-E d1").await?, [1, 0, 0, 0]);
    project.appears("cm3").await?;

    project
        .targets
        .push("{name: target2, args: {b: via_target}}".to_owned());
    project.push()?;
    project.counts("deploy", "").await?;
    assert_eq!(project.data("cm1").await?["k3"], "na");
    assert_eq!(project.counts("deploy", "--target target2").await?, [0, 2, 0, 0]);
    assert_eq!(project.data("cm1").await?["k3"], "via_target");
    let label = format!("kluctl.io/discriminator={}-target2", project.name);
    let labelled = [
        "get",
        "configmaps",
        "-n",
        &project.name,
        "-l",
        &label,
        "-o",
        "name",
    ];
    assert_eq!(suite.plane.kubectl(&labelled).await?.lines().count(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn results_of_the_suite_are_listed_newest_first_with_their_counts() -> Result<()> {
    let suite = Suite::start("suite-results").await?;
    let mut project = suite.project("suite-results-p").await?;
    project.targets.push("{name: test}".to_owned());
    project.map("cm", "cm", &json!({"d1": "v1"}));
    project.push()?;
    succeeded(&project.weir("deploy --yes -t test").await?)?;
    project.stored(1, [1, 1, 0, 0, 0, 0]).await?;

    project.map("cm2", "cm2", &json!({}));
    project.map("cm", "cm", &json!({"d1": "v2"}));
    project.push()?;
    succeeded(&project.weir("deploy --yes -t test").await?)?;
    project.stored(2, [2, 1, 1, 0, 0, 1]).await?;

    project.items.retain(|item| item != "cm2");
    project.push()?;
    succeeded(&project.weir("deploy --yes -t test").await?)?;
    project.stored(3, [1, 0, 0, 1, 0, 0]).await?;
    assert_eq!(project.data("cm2").await?, json!({}));

    succeeded(&project.weir("prune --yes -t test").await?)?;
    project.stored(4, [0, 0, 0, 0, 1, 0]).await?;
    assert_eq!(project.data("cm2").await?, Json::Null);
    Ok(())
}
