//! Tests of events: their messages, and how often they are sent.

use deployer::SourceArtifact;

use super::{super::super::report::failure_of, *};

#[test]
fn pass_without_changes_has_no_events() {
    let object = object(|_| {});
    let first = done(&object, &report(), &at(0));
    let object = after(object, &first);
    let second = done(&object, &quiet(), &at(300));
    assert_eq!(second.status, first.status);
    assert_eq!(second.events, []);
    assert_eq!(second.requeue, Requeue::Interval(Duration::from_secs(300)));
}

#[test]
fn events_report_the_commands_and_the_end() {
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
fn failed_deployment_is_reported_once_and_retried() {
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
fn missing_readiness_is_reported_once_after_the_timeout() {
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
fn fault_events_have_a_severity() {
    let object = object(|_| {});
    let wait = |reason, message: &str| Fault::wait(Duration::from_secs(30), reason, message);
    let cases = [
        (
            wait(Reason::ArtifactFailed, SourceArtifact::MISSING),
            Severity::Trace,
            SourceArtifact::MISSING,
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
