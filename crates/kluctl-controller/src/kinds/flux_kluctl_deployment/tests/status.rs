use api::{ConditionStatus, conditions::Subject};
use serde_json::{Value, json};

use runtime::Severity;

use super::{
    super::{
        events::NO_ARTIFACT,
        results::{CommandDone, failure_of},
    },
    *,
};

const REV: &str = "main@sha1:abc";

fn at(seconds: i64) -> Time {
    Time(k8s_openapi::jiff::Timestamp::from_second(1_700_000_000 + seconds).expect("in range"))
}

fn object(change: impl FnOnce(&mut Value)) -> KluctlDeployment {
    let mut object = json!({
        "apiVersion": "flux.kluctl.io/v1alpha1",
        "kind": "KluctlDeployment",
        "metadata": { "name": "shop", "namespace": "apps", "generation": 2 },
        "spec": {
            "interval": "5m", "retryInterval": "20s", "timeout": "2m", "target": "test", "prune": true,
            "sourceRef": { "kind": "GitRepository", "name": "shop" },
        },
    });
    change(&mut object);
    serde_json::from_value(object).expect("decodes")
}

/// What the next pass sees.
fn after(mut object: KluctlDeployment, outcome: &Outcome<KluctlDeploymentStatus>) -> KluctlDeployment {
    object.status = Some(outcome.status.clone());
    object
}

fn command(errors: &[&str]) -> CommandDone {
    CommandDone {
        message: "prune succeeded.".to_owned(),
        errors: errors.iter().map(|&error| error.to_owned()).collect(),
        denied: false,
        raw: "{}\n".to_owned(),
    }
}

/// The first deployment, everything ready at once.
fn report() -> Report {
    Report {
        revision: REV.to_owned(),
        hash: "hash".to_owned(),
        discriminator: Some("shop-test".to_owned()),
        raw_target: "name: test\n".to_owned(),
        deploy: Some(CommandDone {
            message: "deploy succeeded. 3 new objects.".to_owned(),
            ..command(&[])
        }),
        prune: Some(command(&[])),
        validate: Some(command(&[])),
        took: Duration::from_millis(1500),
        ..Report::default()
    }
}

/// A pass in which nothing was due but a validation.
fn quiet() -> Report {
    Report {
        deploy: None,
        prune: None,
        ..report()
    }
}

fn ready(status: &KluctlDeploymentStatus) -> (ConditionStatus, &str, &str) {
    let ready = conditions::get(&status.conditions, "Ready").expect("Ready");
    (ready.status, &ready.reason, &ready.message)
}

fn messages(outcome: &Outcome<KluctlDeploymentStatus>) -> Vec<(Severity, &str)> {
    outcome
        .events
        .iter()
        .map(|event| (event.severity, event.message.as_str()))
        .collect()
}

fn assert_sound(object: &KluctlDeployment, status: &KluctlDeploymentStatus) {
    let subject = Subject {
        generation: object.metadata.generation.unwrap_or_default(),
        observed_generation: status.observed_generation,
        conditions: &status.conditions,
        negative: &[],
    };
    assert_eq!(conditions::check(&subject, false), [], "{:?}", status.conditions);
}

#[test]
fn the_message_says_how_each_command_ended() {
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
fn results_are_noted_and_cleared_with_their_feature() {
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
fn a_quiet_pass_changes_nothing_and_tells_nothing() {
    let object = object(|_| {});
    let first = done(&object, &report(), &at(0));
    let object = after(object, &first);
    let second = done(&object, &quiet(), &at(300));
    assert_eq!(second.status, first.status);
    assert_eq!(second.events, []);
    assert_eq!(second.requeue, Requeue::Interval(Duration::from_secs(300)));
}

#[test]
fn events_tell_the_commands_and_the_end() {
    let base = object(|_| {});
    let first = done(&base, &report(), &at(0));
    assert_eq!(
        messages(&first),
        [
            (Severity::Info, "deploy succeeded. 3 new objects."),
            (Severity::Info, "prune succeeded."),
            (
                Severity::Info,
                "Reconciliation finished in 1.5s, next run in 5m0s"
            ),
        ]
    );
    let last = first.events.last().expect("an event");
    assert_eq!(
        last.metadata.get("flux.kluctl.io/revision").map(String::as_str),
        Some(REV)
    );
    assert_eq!(
        last.metadata
            .get("flux.kluctl.io/commit_status")
            .map(String::as_str),
        Some("update")
    );

    // A new revision that renders the same.
    let object = after(base, &first);
    let next = done(
        &object,
        &Report {
            revision: "main@sha1:def".to_owned(),
            ..quiet()
        },
        &at(9),
    );
    assert_eq!(
        messages(&next),
        [(
            Severity::Info,
            "Reconciliation finished in 1.5s, next run in 5m0s"
        )]
    );

    // A request to reconcile is answered even if there was nothing to do.
    let mut asked = object;
    asked
        .annotations_mut()
        .insert("reconcile.fluxcd.io/requestedAt".to_owned(), "now".to_owned());
    let answer = done(&asked, &quiet(), &at(9));
    assert_eq!(answer.status.last_handled_reconcile_at.as_deref(), Some("now"));
    assert_eq!(answer.events.len(), 1);
    assert_eq!(done(&after(asked, &answer), &quiet(), &at(10)).events, []);
}

#[test]
fn a_failed_deployment_is_told_once_and_tried_again() {
    let object = object(|_| {});
    let report = Report {
        deploy: Some(command(&["a: denied"])),
        prune: None,
        validate: None,
        ..report()
    };
    let first = done(&object, &report, &at(0));
    assert_eq!(messages(&first), [(Severity::Error, "deploy failed. a: denied")]);
    assert_eq!(first.requeue, Requeue::After(Duration::from_secs(20)));
    assert_eq!(
        first.fault.as_ref().map(|fault| fault.reason),
        Some(Reason::DeployFailed)
    );
    let object = after(object, &first);
    assert!(
        failure_of(
            object
                .status
                .as_ref()
                .and_then(|status| status.last_deploy_result.as_ref())
        )
        .is_some()
    );
    assert_eq!(done(&object, &report, &at(20)).events, []);
}

#[test]
fn readiness_is_awaited_and_reported_once_if_it_does_not_come() {
    let object = object(|_| {});
    let not_ready = |report: Report| Report {
        validate: Some(command(&["a is not ready"])),
        ..report
    };
    let first = done(&object, &not_ready(report()), &at(0));
    assert!(conditions::is_true(&first.status.conditions, "Reconciling"));
    assert_eq!(first.requeue, Requeue::After(Duration::from_secs(1)));
    assert!(
        first
            .events
            .iter()
            .all(|event| event.severity == Severity::Info && !event.message.contains("finished"))
    );
    let object = after(object, &first);

    let soon = done(&object, &not_ready(quiet()), &at(40));
    assert_eq!(
        (soon.events.len(), &soon.requeue),
        (0, &Requeue::After(Duration::from_secs(10)))
    );
    assert_eq!(
        soon.status, first.status,
        "what is still true is not written again"
    );

    let late = done(&object, &not_ready(quiet()), &at(121));
    assert!(!conditions::is_true(&late.status.conditions, "Reconciling"));
    assert_eq!(
        messages(&late),
        [(
            Severity::Error,
            "deploy: ok, prune: ok, validate: failed: a is not ready"
        )]
    );
    let object = after(object, &late);
    assert_eq!(done(&object, &not_ready(quiet()), &at(200)).events, []);

    let well = done(&object, &quiet(), &at(300));
    assert_eq!(ready(&well.status).1, "ReconciliationSucceeded");
    assert_eq!(
        messages(&well),
        [(
            Severity::Info,
            "Reconciliation finished in 1.5s, next run in 5m0s"
        )]
    );
}

#[test]
fn a_broken_commit_leaves_what_is_deployed() {
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
fn a_fault_that_only_a_change_helps_stalls() {
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
fn each_fault_is_told_with_its_weight() {
    let object = object(|_| {});
    let wait = |reason, message: &str| Fault::wait(Duration::from_secs(30), reason, message);
    let cases = [
        (
            wait(Reason::ArtifactFailed, NO_ARTIFACT),
            Severity::Trace,
            NO_ARTIFACT,
        ),
        (
            wait(
                Reason::ArtifactFailed,
                "Source 'GitRepository/apps/shop' not found",
            ),
            Severity::Error,
            "Source 'GitRepository/apps/shop' not found",
        ),
        (
            wait(Reason::DependencyNotReady, "dependency 'apps/db' is not ready"),
            Severity::Info,
            "Dependencies do not meet ready condition, retrying in 30s: dependency 'apps/db' is not ready",
        ),
    ];
    for (fault, severity, message) in cases {
        assert_eq!(
            messages(&failed(&object, &fault.into(), &at(0))),
            [(severity, message)]
        );
    }
    let denied = failed(&object, &wait(Reason::AccessDenied, "no").into(), &at(0));
    assert_eq!(
        denied.events[0]
            .metadata
            .get("flux.kluctl.io/revision")
            .map(String::as_str),
        Some("unknown")
    );
}

#[test]
fn missing_rights_are_told_by_what_the_engine_found_and_not_by_words() {
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
fn only_the_first_pass_is_announced() {
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
fn the_mark_is_noted_without_claiming_a_pass() {
    let fresh = object(|_| {});
    let status = marked(&fresh, Some("d".to_owned()), "name: test\n".to_owned(), &at(0));
    assert_eq!(
        (status.discriminator.as_deref(), status.observed_generation),
        (Some("d"), None)
    );
    assert_eq!(ready(&status).1, "Progressing");
    let deployed = after(fresh.clone(), &done(&fresh, &report(), &at(0)));
    let status = marked(
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
fn the_deploy_annotation_is_answered_by_a_deployment_alone() {
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
