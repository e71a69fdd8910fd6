//! Tests of the status and its conditions.

use super::*;

#[test]
fn ready_message_has_the_result_of_each_command() {
    use ConditionStatus::{False, True};
    let base = report();
    type Case = (
        &'static str,
        Value,
        Report,
        (ConditionStatus, &'static str, &'static str),
    );
    let cases: Vec<Case> = vec![
        (
            "all well",
            json!({}),
            base.clone(),
            (
                True,
                "ReconciliationSucceeded",
                "deploy: ok, prune: ok, validate: ok",
            ),
        ),
        (
            "no pruning",
            json!({ "prune": false }),
            Report {
                prune: None,
                ..base.clone()
            },
            (True, "ReconciliationSucceeded", "deploy: ok, validate: ok"),
        ),
        (
            "no validation",
            json!({ "validate": false }),
            Report {
                validate: None,
                ..base.clone()
            },
            (True, "ReconciliationSucceeded", "deploy: ok, prune: ok"),
        ),
        (
            "dry run",
            json!({ "dryRun": true }),
            Report {
                dry_run: true,
                validate: None,
                ..base.clone()
            },
            (True, "ReconciliationSucceeded", "deploy: ok, prune: ok"),
        ),
        (
            "deploy failed",
            json!({}),
            Report {
                deploy: Some(command(&["apps/Deployment/a: denied"])),
                prune: None,
                validate: None,
                ..base.clone()
            },
            (False, "DeployFailed", "deploy: failed: apps/Deployment/a: denied"),
        ),
        (
            "prune failed",
            json!({}),
            Report {
                prune: Some(command(&["no discriminator"])),
                validate: None,
                ..base.clone()
            },
            (
                False,
                "DeployFailed",
                "deploy: ok, prune: failed: no discriminator",
            ),
        ),
        (
            "not ready",
            json!({}),
            Report {
                validate: Some(command(&["a is not ready"])),
                ..base
            },
            (
                False,
                "ValidateFailed",
                "deploy: ok, prune: ok, validate: failed: a is not ready",
            ),
        ),
    ];
    for (name, spec, report, want) in cases {
        let object = object(|object| {
            for (field, value) in spec.as_object().expect("fields") {
                object["spec"][field] = value.clone();
            }
        });
        let outcome = done(&object, &report, &at(0));
        assert_eq!(ready(&outcome.status), want, "{name}");
        assert_eq!(outcome.status.observed_generation, Some(2), "{name}");
        assert_eq!(
            outcome.status.last_attempted_revision.as_deref(),
            Some(REV),
            "{name}"
        );
        assert_eq!(outcome.status.ready_for_migration, Some(true), "{name}");
        assert_sound(&object, &outcome.status);
    }
}

#[test]
fn results_are_cleared_when_their_field_is_off() {
    let object = object(|_| {});
    let first = done(&object, &report(), &at(0)).status;
    let deploy = first.last_deploy_result.clone().expect("deployed");
    assert_eq!(deploy.time, at(0));
    assert_eq!(
        (deploy.objects_hash.as_deref(), deploy.target.as_deref()),
        (Some("hash"), Some("test"))
    );
    assert_eq!((deploy.revision.as_deref(), deploy.error), (Some(REV), None));
    assert_eq!(
        first
            .last_validate_result
            .as_ref()
            .and_then(|result| result.error.as_deref()),
        Some("")
    );
    assert_eq!(first.discriminator.as_deref(), Some("shop-test"));
    let mut object = KluctlDeployment {
        status: Some(first),
        ..object
    };
    object.spec.prune = false;
    object.spec.validate = false;
    let second = done(
        &object,
        &Report {
            validate: None,
            ..quiet()
        },
        &at(9),
    )
    .status;
    assert_eq!(
        (second.last_prune_result, second.last_validate_result),
        (None, None)
    );
    assert!(second.last_deploy_result.is_some());
}

#[test]
fn each_deployment_has_a_later_time_and_a_confirmed_one_nothing_else() {
    let object = object(|_| {});
    let object = after(object.clone(), &done(&object, &report(), &at(0)));
    let confirmed = Report {
        confirmed: true,
        ..quiet()
    };
    let time = |outcome: &Outcome<KluctlDeploymentStatus>| {
        let deployed = outcome.status.last_deploy_result.as_ref();
        deployed.expect("deployed").time.clone()
    };
    let later = done(&object, &confirmed, &at(300));
    assert_eq!((time(&later), later.events), (at(300), vec![]));
    // Two in one second can be told apart.
    for again in [&confirmed, &report()] {
        assert_eq!(time(&done(&object, again, &at(0))), at(1));
    }
    let other = Report {
        hash: "other".to_owned(),
        ..confirmed
    };
    assert_eq!(time(&done(&object, &other, &at(300))), at(0), "not deployed");
    assert_eq!(time(&done(&object, &quiet(), &at(300))), at(0));
}

#[test]
fn failed_render_keeps_the_results_of_the_last_deployment() {
    let object = object(|_| {});
    let object = after(object.clone(), &done(&object, &report(), &at(0)));
    let fault = Fault::wait(
        Duration::from_secs(20),
        Reason::PrepareFailed,
        "deployment.yaml:3: bad",
    );
    let failure = Failure::of("main@sha1:bad", fault);
    let outcome = failed(&object, &failure, &at(9));
    let status = &outcome.status;
    assert_eq!(
        ready(status),
        (ConditionStatus::False, "PrepareFailed", "deployment.yaml:3: bad")
    );
    assert_eq!(status.last_attempted_revision.as_deref(), Some("main@sha1:bad"));
    assert_eq!(
        status.last_deploy_result,
        object
            .status
            .as_ref()
            .and_then(|status| status.last_deploy_result.clone())
    );
    assert_eq!(status.discriminator.as_deref(), Some("shop-test"));
    assert_eq!(messages(&outcome), [(Severity::Error, "deployment.yaml:3: bad")]);
    assert_eq!(outcome.requeue, Requeue::After(Duration::from_secs(20)));
    assert_sound(&object, status);
    let again = failed(&after(object, &outcome), &failure, &at(29));
    assert_eq!((again.events, again.status), (vec![], outcome.status));
}

#[test]
fn stalling_fault_sets_stalled() {
    let object = object(|_| {});
    let outcome = failed(
        &object,
        &Fault::unsupported("spec.images", "a list of 1").into(),
        &at(0),
    );
    assert!(conditions::is_true(&outcome.status.conditions, "Stalled"));
    assert_eq!(ready(&outcome.status).1, "UnsupportedField");
    assert_eq!(outcome.requeue, Requeue::OnChange);
    assert_sound(&object, &outcome.status);
    let well = done(&after(object.clone(), &outcome), &report(), &at(9));
    assert!(conditions::get(&well.status.conditions, "Stalled").is_none());
    assert_sound(&object, &well.status);
}

#[test]
fn missing_rights_are_reported_as_access_denied() {
    let object = object(|_| {});
    let deployed = |errors: &[&str], denied| Report {
        deploy: Some(CommandDone {
            denied,
            ..command(errors)
        }),
        prune: None,
        validate: None,
        ..report()
    };
    let reason = |outcome: &Outcome<KluctlDeploymentStatus>| {
        let ready = conditions::get(&outcome.status.conditions, "Ready");
        ready.expect("a condition").reason.clone()
    };
    let quoting = done(
        &object,
        &deployed(&["it says: is forbidden: User \"u\""], false),
        &at(0),
    );
    assert_eq!(reason(&quoting), "DeployFailed");
    let denied = done(&object, &deployed(&["a: no"], true), &at(0));
    assert_eq!(reason(&denied), "AccessDenied");
    // A pass that deploys nothing repeats it.
    let idle = Report {
        deploy: None,
        ..deployed(&[], false)
    };
    assert_eq!(
        reason(&done(&after(object.clone(), &denied), &idle, &at(9))),
        "AccessDenied"
    );
    assert_eq!(
        reason(&done(&after(object, &quoting), &idle, &at(9))),
        "DeployFailed"
    );
}

#[test]
fn progressing_is_set_before_the_first_pass_only() {
    let object = object(|_| {});
    let status = progressing(&object, &at(0)).expect("the first pass");
    assert_eq!(
        ready(&status),
        (
            ConditionStatus::Unknown,
            "Progressing",
            "reconciliation in progress"
        )
    );
    assert_sound(&object, &status);
    let object = after(object.clone(), &done(&object, &report(), &at(0)));
    assert_eq!(progressing(&object, &at(5)), None);
}

#[test]
fn discriminator_is_stored_without_an_observed_generation() {
    let fresh = object(|_| {});
    let status = with_discriminator(&fresh, Some("d".to_owned()), "name: test\n".to_owned(), &at(0));
    assert_eq!(
        (status.discriminator.as_deref(), status.observed_generation),
        (Some("d"), None)
    );
    assert_eq!(ready(&status).1, "Progressing");
    let deployed = after(fresh.clone(), &done(&fresh, &report(), &at(0)));
    let status = with_discriminator(
        &deployed,
        Some("other".to_owned()),
        "name: test\n".to_owned(),
        &at(5),
    );
    assert_eq!(
        (status.discriminator.as_deref(), ready(&status).1),
        (Some("other"), "ReconciliationSucceeded")
    );
}

#[test]
fn deploy_annotation_is_handled_by_a_deployment_only() {
    let asked = object(|object| {
        object["metadata"]["annotations"] = json!({ "deploy.flux.kluctl.io/requestedAt": "now" });
    });
    let fault = Fault::wait(Duration::from_secs(1), Reason::PrepareFailed, "broken");
    assert_eq!(
        failed(&asked, &fault.into(), &at(0))
            .status
            .last_handled_deploy_at,
        None
    );
    assert_eq!(
        done(&asked, &report(), &at(0))
            .status
            .last_handled_deploy_at
            .as_deref(),
        Some("now")
    );
    let failing = Report {
        deploy: Some(command(&["a: denied"])),
        ..report()
    };
    assert_eq!(
        done(&asked, &failing, &at(0))
            .status
            .last_handled_deploy_at
            .as_deref(),
        Some("now")
    );
}

#[test]
fn long_message_of_a_fault_is_cut_as_in_the_original() {
    let fault = Fault::retry(Reason::InternalError, "x".repeat(40_000));
    let status = failed(&object(|_| {}), &fault.into(), &at(0)).status;
    let message = ready(&status).2;
    assert_eq!(message.len(), 20_003);
    assert!(message.ends_with("x..."));
}
