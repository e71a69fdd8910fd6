//! Cleans received events, and joins them with the metadata of an alert. Pure.

mod repetition;

use std::collections::BTreeMap;

use api::{Event, annotation, commit_metadata, notification::AlertSpec};
use notification_specs::provider::Takes;
use sha2::{Digest, Sha256};

pub(crate) use repetition::Comparison;

/// Metadata of the controller for its peers only.
const DROPPED: [&str; 2] = ["checksum", "digest"];
const SUMMARY: &str = "summary";
/// Metadata of a commit, and their names in notifications that ask for them.
const COMMIT: [(&str, &str); 3] = [
    (commit_metadata::AUTHOR, "commitAuthor"),
    (commit_metadata::SUBJECT, "commitSubject"),
    (commit_metadata::MESSAGE, "commitMessage"),
];
/// Maximum length of a value of the metadata of a commit, in characters.
const COMMIT_TEXT: usize = 2048;
/// Marks an event that repeats an earlier one: it counts for the failures of its object, and is not delivered.
const REPEATED: &str = "weir.io/repeated";
const RECOVERED: &str = "recovered";
const COMMIT_STATUS: &str = "commit_status";
/// Reasons of events that are neither a success nor a failure of their object.
const IN_PROGRESS: [&str; 5] = [
    "DependencyNotReady",
    "GarbageCollectionSucceeded",
    "NewRevision",
    "Progressing",
    "ProgressingWithRetry",
];

/// The prefix of the metadata that the controller of the object set: its API group and a slash.
fn prefix(event: &Event) -> String {
    format!("{}/", event.group())
}

pub(crate) fn object_name(event: &Event) -> String {
    let object = &event.involved_object;
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    format!(
        "{}/{}/{}",
        text(&object.kind),
        text(&object.namespace),
        text(&object.name)
    )
}

/// Removes metadata that is neither the controller's nor the user's, and metadata for the controller's peers.
pub(crate) fn clean(event: &mut Event) {
    let prefix = prefix(event);
    event.metadata.retain(|key, _| {
        if key == REPEATED {
            return false;
        }
        if key.starts_with(annotation::EVENT_PREFIX) || COMMIT.iter().any(|(known, _)| key == known) {
            return true;
        }
        key.strip_prefix(&prefix)
            .is_some_and(|name| !DROPPED.iter().any(|dropped| name.eq_ignore_ascii_case(dropped)))
    });
}

pub(crate) fn mark_repeated(event: &mut Event) {
    event.metadata.insert(REPEATED.to_owned(), "true".to_owned());
}

pub(crate) fn is_repeated(event: &Event) -> bool {
    event.metadata.contains_key(REPEATED)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Failure,
    Success,
    Neither,
}

pub(crate) fn meaning(event: &Event) -> Meaning {
    match event.severity {
        api::Severity::Error => Meaning::Failure,
        api::Severity::Info if !IN_PROGRESS.contains(&event.reason.as_str()) => Meaning::Success,
        _ => Meaning::Neither,
    }
}

pub(crate) fn recovered(event: &Event, since: &api::Time, takes: Takes) -> Event {
    let prefix = prefix(event);
    let mut event = event.clone();
    event.message = format!("Recovered after failures since {}: {}", since.0, event.message);
    event
        .metadata
        .insert(format!("{prefix}{RECOVERED}"), "true".to_owned());
    // A repeated commit status is news here.
    if takes != Takes::Commits {
        event.metadata.remove(&format!("{prefix}{COMMIT_STATUS}"));
    }
    event
}

/// Returns the hash that identifies duplicates: of sender, object, message and revisions, but neither severity nor reason.
pub(crate) fn sameness(event: &Event, sender: Option<&str>, comparison: Comparison) -> [u8; 32] {
    let object = &event.involved_object;
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let mut parts = Vec::from_iter(sender.map(|sender| format!("sender={sender}")));
    parts.extend([
        "event".to_owned(),
        format!("name={}", text(&object.name)),
        format!("namespace={}", text(&object.namespace)),
        format!("kind={}", text(&object.kind)),
        format!("message={}", comparison.of(&event.message)),
    ]);
    let prefix = prefix(event);
    for name in ["originRevision", "revision", "token"] {
        if let Some(value) = event.metadata.get(&format!("{prefix}{name}")) {
            parts.push(format!("{name}={value}"));
        }
    }
    Sha256::digest(parts.join("/").as_bytes()).into()
}

/// Returns true if the event only repeats a commit status without a change.
pub(crate) fn is_status_update(event: &Event) -> bool {
    event
        .metadata
        .get(&format!("{}{COMMIT_STATUS}", prefix(event)))
        .is_some_and(|value| value == "update")
}

/// Returns true if a type of provider with these `takes` sends the event.
pub(crate) fn is_taken(event: &Event, takes: Takes) -> bool {
    let has = |name: &str| {
        event
            .metadata
            .contains_key(&format!("{}{name}", annotation::EVENT_PREFIX))
    };
    let updates = is_status_update(event);
    match takes {
        Takes::All => true,
        Takes::News => !updates,
        Takes::Commits => updates || event.severity == api::Severity::Error || has("commit"),
        Takes::ChangeRequests => !updates && has("change_request"),
    }
}

/// Adds the commit of an event to the metadata of a notification; existing metadata has precedence.
pub(crate) fn add_commit(notification: &mut Event, event: &Event) {
    for (key, name) in COMMIT {
        if let Some(text) = event.metadata.get(key) {
            let text = || text.chars().take(COMMIT_TEXT).collect();
            notification.metadata.entry(name.to_owned()).or_insert_with(text);
        }
    }
}

/// An event as a provider gets it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Combined {
    pub(crate) event: Event,
    /// Keys with different values in several places, with these places.
    pub(crate) conflicts: BTreeMap<String, String>,
}

/// Joins the metadata of user, alert and controller under their plain names; the later has precedence.
pub(crate) fn combine(event: &Event, alert: &AlertSpec) -> Combined {
    let prefix = prefix(event);
    let token = format!("{prefix}token");
    let of = |prefix: &str| -> BTreeMap<String, String> {
        let own = event
            .metadata
            .iter()
            .filter(|(key, _)| **key != token && *key != REPEATED);
        own.filter_map(|(key, value)| Some((key.strip_prefix(prefix)?.to_owned(), value.clone())))
            .collect()
    };
    let summary = alert.summary.iter().filter(|summary| !summary.is_empty());
    let layers = [
        ("object annotations", of(annotation::EVENT_PREFIX)),
        ("Alert spec.eventMetadata", alert.event_metadata.clone()),
        (
            "Alert spec.summary",
            summary
                .map(|summary| (SUMMARY.to_owned(), summary.clone()))
                .collect(),
        ),
        ("controller metadata", of(&prefix)),
    ];
    let mut metadata = BTreeMap::new();
    let mut origins: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (origin, layer) in layers {
        for (key, value) in layer {
            origins.entry(key.clone()).or_default().push(origin);
            metadata.insert(key, value);
        }
    }
    let conflicts = origins.into_iter().filter(|(_, origins)| origins.len() > 1);
    let conflicts = conflicts
        .map(|(key, origins)| (key, origins.join(", ")))
        .collect();
    Combined {
        event: Event {
            metadata,
            ..event.clone()
        },
        conflicts,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(metadata: &serde_json::Value) -> Event {
        serde_json::from_value(json!({
            "involvedObject": {"apiVersion": "flux.kluctl.io/v1alpha1", "kind": "KluctlDeployment", "name": "a", "namespace": "b"},
            "severity": "info", "message": "m", "reason": "r", "reportingController": "c",
            "metadata": metadata,
        }))
        .unwrap()
    }

    fn keys(event: &Event) -> Vec<&str> {
        event.metadata.keys().map(String::as_str).collect()
    }

    #[test]
    fn foreign_and_peer_metadata_is_removed() {
        let mut given = event(&json!({
            "flux.kluctl.io/revision": "1", "flux.kluctl.io/Digest": "2", "flux.kluctl.io/checksum": "3",
            "event.toolkit.fluxcd.io/digest": "4", "other.io/x": "5", "plain": "6", "flux.kluctl.io/token": "7",
        }));
        clean(&mut given);
        assert_eq!(
            keys(&given),
            [
                "event.toolkit.fluxcd.io/digest",
                "flux.kluctl.io/revision",
                "flux.kluctl.io/token"
            ]
        );
    }

    #[test]
    fn marks_of_repetitions_are_ours_alone_and_are_not_delivered() {
        let mut given = event(&json!({"weir.io/repeated": "true"}));
        given.involved_object.api_version = Some("weir.io/v1".into());
        clean(&mut given);
        assert!(!is_repeated(&given));
        mark_repeated(&mut given);
        assert!(is_repeated(&given));
        assert!(combine(&given, &AlertSpec::default()).event.metadata.is_empty());
    }

    #[test]
    fn information_is_a_success_unless_work_goes_on() {
        let of = |severity: &str, reason: &str| {
            let mut event = event(&json!({}));
            (event.severity, event.reason) = (severity.to_owned().into(), reason.to_owned());
            meaning(&event)
        };
        assert_eq!(of("error", "BuildFailed"), Meaning::Failure);
        assert_eq!(of("info", "ReconciliationSucceeded"), Meaning::Success);
        assert_eq!(of("info", "Progressing"), Meaning::Neither);
        assert_eq!(of("warning", "Anything"), Meaning::Neither);
    }

    #[test]
    fn recovery_is_news_also_of_a_repeated_status() {
        let update = event(&json!({"flux.kluctl.io/commit_status": "update"}));
        let since = api::Time("2026-11-21T10:00:00Z".parse().unwrap());
        let news = recovered(&update, &since, Takes::News);
        assert!(is_taken(&news, Takes::News));
        assert_eq!(
            news.message,
            "Recovered after failures since 2026-11-21T10:00:00Z: m"
        );
        assert_eq!(news.metadata["flux.kluctl.io/recovered"], "true");
        assert!(is_status_update(&recovered(&update, &since, Takes::Commits)));
    }

    #[test]
    fn the_core_group_has_a_bare_slash() {
        let mut given = event(&json!({"/revision": "1", "revision": "2"}));
        given.involved_object.api_version = Some("v1".into());
        clean(&mut given);
        assert_eq!(keys(&given), ["/revision"]);
    }

    #[test]
    fn object_message_and_revisions_make_an_event() {
        let base = event(&json!({"flux.kluctl.io/revision": "1"}));
        let hash = |event: &Event, sender| sameness(event, sender, Comparison::Exact);
        let changed = |change: &dyn Fn(&mut Event)| {
            let mut event = base.clone();
            change(&mut event);
            hash(&event, None) != hash(&base, None)
        };
        assert!(changed(&|e| e.message = "n".into()));
        assert!(changed(&|e| e.involved_object.name = Some("z".into())));
        for name in ["revision", "originRevision", "token"] {
            assert!(
                changed(&|e| drop(e.metadata.insert(format!("flux.kluctl.io/{name}"), "2".into()))),
                "{name}"
            );
        }
        assert_ne!(hash(&base, None), hash(&base, Some("a")));
        assert_ne!(hash(&base, Some("b")), hash(&base, Some("a")));
        assert!(!changed(&|e| e.severity = api::Severity::Error));
        assert!(!changed(&|e| e.reason = "other".into()));
        assert!(!changed(&|e| drop(
            e.metadata.insert("event.toolkit.fluxcd.io/x".into(), "2".into())
        )));
    }

    #[test]
    fn later_metadata_wins_and_conflicts_are_reported() {
        let given = event(&json!({
            "event.toolkit.fluxcd.io/summary": "user", "event.toolkit.fluxcd.io/env": "user",
            "flux.kluctl.io/revision": "main@sha1:1", "flux.kluctl.io/token": "t",
        }));
        let alert = AlertSpec {
            event_metadata: BTreeMap::from([
                ("env".into(), "alert".into()),
                ("revision".into(), "forged".into()),
            ]),
            summary: Some("alert".into()),
            ..AlertSpec::default()
        };
        let combined = combine(&given, &alert);
        let metadata: Vec<_> = combined
            .event
            .metadata
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(
            metadata,
            [
                ("env", "alert"),
                ("revision", "main@sha1:1"),
                ("summary", "alert")
            ]
        );
        let conflicts: Vec<_> = combined.conflicts.keys().map(String::as_str).collect();
        assert_eq!(conflicts, ["env", "revision", "summary"]);
        assert_eq!(
            combined.conflicts["revision"],
            "Alert spec.eventMetadata, controller metadata"
        );
    }

    #[test]
    fn each_family_of_providers_takes_its_events() {
        let plain = event(&json!({"flux.kluctl.io/revision": "1"}));
        let update = event(&json!({"flux.kluctl.io/commit_status": "update"}));
        let commit = event(&json!({"event.toolkit.fluxcd.io/commit": "1"}));
        let change = event(&json!({"event.toolkit.fluxcd.io/change_request": "1"}));
        let failure = Event {
            severity: api::Severity::Error,
            ..plain.clone()
        };
        let all = [&plain, &update, &commit, &change, &failure];
        for (takes, expected) in [
            (Takes::All, [true, true, true, true, true]),
            (Takes::News, [true, false, true, true, true]),
            (Takes::Commits, [false, true, true, false, true]),
            (Takes::ChangeRequests, [false, false, false, true, false]),
        ] {
            assert_eq!(all.map(|event| is_taken(event, takes)), expected, "{takes:?}");
        }
    }

    #[test]
    fn updates_of_commit_statuses_are_marked() {
        assert!(is_status_update(&event(
            &json!({"flux.kluctl.io/commit_status": "update"})
        )));
        assert!(!is_status_update(&event(
            &json!({"flux.kluctl.io/commit_status": "x", "event.toolkit.fluxcd.io/commit_status": "update"})
        )));
    }
}
