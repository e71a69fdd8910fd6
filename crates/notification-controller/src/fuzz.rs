//! Random events, alerts and providers: input of strangers and of tenants.

use std::{collections::VecDeque, time::Instant};

use api::{
    Event, Secret,
    notification::{Alert, Provider},
};
use notification_specs::provider;
use serde_json::{Value, json};
use testkit::fuzz::{self, Random};

use crate::{
    alerts::{
        Verdict,
        expressions::{self, broken_expression},
        verdict,
    },
    event::{self, Comparison},
    providers::{self, fixture, interface::Step},
};

const WORDS: &[&str] = &[
    "involvedObject",
    "apiVersion",
    "kind",
    "name",
    "namespace",
    "severity",
    "timestamp",
    "message",
    "reason",
    "metadata",
    "reportingController",
    "reportingInstance",
    "GitRepository",
    "shop",
    "team",
    "info",
    "error",
    "trace",
    "g/v1",
    "v1",
    "/",
    "g/revision",
    "g/token",
    "g/commit_status",
    "update",
    "event.toolkit.fluxcd.io/summary",
    "2026-11-21T10:00:00Z",
    "*",
    "stored\nartifact",
    "<b>&",
    "\u{2028}",
    "eventSources",
    "matchLabels",
    "inclusionList",
    "exclusionList",
    "eventSeverity",
    "suspend",
    "summary",
    "eventMetadata",
    "providerRef",
    "a",
    "",
];
const EXPRESSION: &[&str] = &[
    "a",
    ".",
    "*",
    "+",
    "?",
    "(",
    ")",
    "(?i)",
    "(?:",
    "|",
    "[",
    "]",
    "[^",
    "\\w",
    "\\d",
    "\\p{L}",
    "{100}",
    "{1000}",
    "{0,9999}",
    "^",
    "$",
    "\\b",
    "\\",
    "(?=",
    "(?P<n>",
    "x",
    "stored.*artifact",
    "é",
    "{",
    "}",
    ".*",
    "(a*)*",
    "\\x{10FFFF}",
];

fn event_json(random: &mut Random) -> Value {
    let mut event = json!({
        "involvedObject": {"apiVersion": "g/v1", "kind": "GitRepository", "name": "shop", "namespace": "team", "uid": "u"},
        "severity": "info", "timestamp": "2026-11-21T10:00:00Z", "message": "stored artifact for commit 'fix'", "reason": "NewArtifact",
        "metadata": {"g/revision": "main@sha1:1", "g/token": "t", "event.toolkit.fluxcd.io/env": "prod", "other/x": "1"},
        "reportingController": "source-controller", "reportingInstance": "p",
    });
    random.damage_json(&mut event, WORDS, 4);
    event
}

fn alert_json(random: &mut Random) -> Value {
    let expressions = |random: &mut Random| random.list(0..3, |random| random.text(EXPRESSION, 0..8));
    let mut spec = json!({
        "providerRef": {"name": "p"}, "eventSeverity": random.pick(&["info", "error", ""]),
        "eventSources": [{"kind": "GitRepository", "name": random.pick(&["*", "shop"])}, {"kind": "Kustomization", "name": "x"}],
        "inclusionList": expressions(random), "exclusionList": expressions(random),
        "eventMetadata": {"env": "alert"}, "summary": "s",
    });
    random.damage_json(&mut spec, WORDS, 2);
    json!({"apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
        "metadata": {"name": "a", "namespace": "team"}, "spec": spec})
}

#[test]
fn fuzz_events_become_requests() {
    fuzz::run("events", |random| {
        let json = event_json(random);
        let mut bytes = json.to_string().into_bytes();
        if random.one_in(6) {
            random.damage(&mut bytes, 3);
        }
        random.note("event", &String::from_utf8_lossy(&bytes));
        let Ok(mut event) = serde_json::from_slice::<Event>(&bytes) else {
            return;
        };
        event::clean(&mut event);
        let once = event.clone();
        event::clean(&mut event);
        assert_eq!(event, once);
        let _ = event::is_status_update(&event);
        let spec = serde_json::from_value::<Alert>(alert_json(random))
            .map(|alert| alert.spec)
            .unwrap_or_default();
        let combined = event::combine(&event, &spec);
        for kind in providers::ALL {
            let mut config = fixture::config();
            config.token = random
                .flag()
                .then(|| Secret::new(random.text(&["t0k3n", "\n", "é", " "], 1..4)));
            config.channel = random.text(WORDS, 0..2);
            let addresses = [
                "https://h.example/t0k3n",
                "https://h/scm/t0k3n/shop.git",
                "git@h:team/shop",
                "https://h/o/p/_git/r",
                "Endpoint=sb://h/;SharedAccessKeyName=a;SharedAccessKey=t0k3n;EntityPath=b",
                "",
            ];
            config.address = random.flag().then(|| Secret::new(random.text(&addresses, 1..3)));
            config.username = random.flag().then(|| random.text(WORDS, 0..2));
            config.password = random.flag().then(|| Secret::new("t0k3n".to_owned()));
            let mut steps = VecDeque::from([(kind.steps)(&combined.event, &config)]);
            let mut count = 0;
            while let Some(step) = steps.pop_front() {
                count += 1;
                assert!(count < 20, "{} never ends", kind.rules.name);
                let step = match step {
                    Err(error) => {
                        assert!(
                            !error.to_string().contains("t0k3n"),
                            "{}: {error}",
                            kind.rules.name
                        );
                        continue;
                    }
                    Ok(step) => step,
                };
                assert!(
                    !format!("{step:?}").contains("t0k3n"),
                    "{}: {step:?}",
                    kind.rules.name
                );
                for step in step {
                    if let Step::Ask(_, next) = step {
                        let mut answer =
                            json!([{"id": 1, "body": "x", "context": "y", "user": {"login": "z"}}]);
                        random.damage_json(
                            &mut answer,
                            &["id", "login", "slug", "token", "values", "body"],
                            3,
                        );
                        let mut answer = answer.to_string().into_bytes();
                        if random.one_in(4) {
                            random.damage(&mut answer, 3);
                        }
                        steps.push_back(next(&answer));
                    }
                }
            }
        }
    });
}

#[test]
fn fuzz_messages_are_compared_without_growing() {
    const PIECES: &[&str] = &[
        "3", "12.5", "#", "/", "1h", "2m", "s", "ms", "µs", " ", "attempt", "retry", "of", "times", "second",
        "(", "=", ":", ".", "\0", "é", "artifact", "\n",
    ];
    fuzz::run("messages", |random| {
        let message = random.text(PIECES, 0..30);
        random.note("message", &message);
        let lasting = Comparison::Lasting.of(&message);
        assert!(lasting.len() <= message.len(), "{lasting:?}");
        assert_eq!(Comparison::Lasting.of(&lasting), lasting);
        assert_eq!(Comparison::Exact.of(&message), message);
    });
}

#[test]
fn fuzz_alerts_match_in_bounded_time() {
    fuzz::run("alerts", |random| {
        let (alert, mut event) = (alert_json(random), event_json(random));
        if event.is_object() && random.one_in(4) {
            event["message"] = random
                .text(&["a", "stored ", "artifact", "x", "\n", "é"], 0..40)
                .repeat(50)
                .into();
        }
        random.note("alert, event", &(alert.to_string(), event.to_string()));
        let (Ok(alert), Ok(event)) = (
            serde_json::from_value::<Alert>(alert),
            serde_json::from_value::<Event>(event),
        ) else {
            return;
        };
        let broken = broken_expression(&alert.spec);
        let started = Instant::now();
        let mut verdict = verdict(&alert, &event, false);
        if !expressions::matches_once(&alert.spec, &event.message) {
            verdict = Verdict::No;
        }
        assert!(started.elapsed().as_secs() < 5, "it took {:?}", started.elapsed());
        if let Some((path, why)) = broken {
            assert!(
                path.starts_with("spec.") && !why.is_empty() && !why.contains('\n'),
                "{path}: {why}"
            );
        }
        if verdict != Verdict::No {
            let about = |kind: &str| event.involved_object.kind.as_deref() == Some(kind);
            assert!(!alert.spec.suspend && alert.spec.event_sources.iter().any(|source| about(&source.kind)));
        }
    });
}

#[test]
fn fuzz_providers_are_refused_or_known() {
    fuzz::run("providers", |random| {
        let mut spec = json!({"type": random.pick(&["generic", "slack", "generic-hmac", "msteams"]), "address": "https://h/t0k3n",
            "channel": "c", "username": "u", "secretRef": {"name": "s"}});
        random.damage_json(
            &mut spec,
            &[
                "type",
                "proxy",
                "https://u:t0k3n@h",
                "t0k3n",
                "name",
                "generic",
                "timeout",
                "1m",
            ],
            3,
        );
        random.note("spec", &spec.to_string());
        let provider = json!({"apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Provider",
            "metadata": {"name": "p"}, "spec": spec});
        let Ok(provider) = serde_json::from_value::<Provider>(provider) else {
            return;
        };
        let fault = provider::check(&provider.spec).err();
        assert!(fault.is_some() || providers::find(&provider.spec.type_).is_ok());
    });
}
