mod events;
mod states;

use api::{
    ConditionStatus,
    conditions::{KindRules, Subject},
    group,
};
use runtime::Severity;
use serde_json::{Value, json};

use super::{super::report::CommandDone, *};

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

/// Returns the object as the next pass sees it.
fn after(mut object: KluctlDeployment, outcome: &Outcome<KluctlDeploymentStatus>) -> KluctlDeployment {
    object.status = Some(outcome.status.clone());
    object
}

fn command(errors: &[&str]) -> CommandDone {
    CommandDone {
        message: "prune succeeded.".to_owned(),
        errors: errors.iter().map(|&error| error.to_owned()).collect(),
        denied: false,
        is_idle: false,
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
        kind: KindRules::of(group::FLUX_KLUCTL),
        suspended: object.spec.suspend,
    };
    assert_eq!(conditions::check(&subject), [], "{:?}", status.conditions);
}
