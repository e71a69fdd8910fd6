//! Annotations of an Alert for features that Flux doesn't have: notices of recovery, a threshold of failures, digests, templates. Pure.

use std::time::Duration;

use api::{GoDuration, notification::Alert};
use kube::ResourceExt as _;
use notification_specs::provider::Takes;

use crate::template;

const PREFIX: &str = "weir.io/";
const RECOVERY: &str = "weir.io/notify-recovery";
const THRESHOLD: &str = "weir.io/failure-threshold";
const DIGEST: &str = "weir.io/digest-interval";
const TEMPLATE: &str = "weir.io/message-template";
const COMMIT: &str = "weir.io/commit-metadata";
const KNOWN: [&str; 5] = [RECOVERY, THRESHOLD, DIGEST, TEMPLATE, COMMIT];
/// Maximum threshold: each failure below it is a write to the Alert.
const MOST_FAILURES: u32 = 100;
/// Bounds of the interval of a digest. The journal gives up events that are older than an hour.
const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// The extensions of an Alert. Invalid values count as missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extensions {
    /// The first success after a failure is sent, whatever the severity of the Alert.
    pub(crate) recovery: bool,
    /// Consecutive failures of an object after which they are sent; 1 sends all.
    pub(crate) threshold: u32,
    /// Interval after which collected events are sent as one notification.
    pub(crate) digest: Option<Duration>,
}

impl Extensions {
    pub(crate) fn of(alert: &Alert) -> Self {
        let text = |name| alert.annotations().get(name).map(String::as_str);
        Self {
            recovery: text(RECOVERY).and_then(flag).unwrap_or_default(),
            threshold: text(THRESHOLD).and_then(threshold).unwrap_or(1),
            digest: text(DIGEST).and_then(interval),
        }
    }

    pub(crate) fn tracks(&self) -> bool {
        self.recovery || self.threshold > 1
    }

    /// Returns the interval of digests, unless the type of the provider can't send them: a commit and a change request have their own
    /// notifications.
    pub(crate) fn digest_for(&self, takes: Takes) -> Option<Duration> {
        self.digest.filter(|_| matches!(takes, Takes::All | Takes::News))
    }
}

pub(crate) fn message_template(alert: &Alert) -> Option<&str> {
    let text = alert.annotations().get(TEMPLATE)?;
    (text.len() <= template::LONGEST).then_some(text.as_str())
}

pub(crate) fn asks_for_commits(alert: &Alert) -> bool {
    let asked = alert.annotations().get(COMMIT);
    asked.and_then(|text| flag(text)).unwrap_or_default()
}

/// Returns the template of an Alert, of any length.
pub(crate) fn template_annotation(alert: &Alert) -> Option<&str> {
    alert.annotations().get(TEMPLATE).map(String::as_str)
}

/// Returns the annotations without effect, each with the reason; `takes` are the events that the Provider of the Alert takes, if known, and
/// `mistake` is the result of [`template::mistake`].
pub(crate) fn problems(alert: &Alert, takes: Option<Takes>, mistake: Option<&str>) -> Vec<String> {
    let ours = alert
        .annotations()
        .iter()
        .filter(|(name, _)| name.starts_with(PREFIX));
    let problem = |name: &str, value: &str| match name {
        RECOVERY | COMMIT if flag(value).is_none() => Some("the value must be true or false".to_owned()),
        THRESHOLD if threshold(value).is_none() => {
            Some(format!("the value must be a number from 1 to {MOST_FAILURES}"))
        }
        DIGEST if interval(value).is_none() => {
            Some("the value must be a duration from 10s to 30m".to_owned())
        }
        DIGEST if takes.is_some_and(|takes| Extensions::of(alert).digest_for(takes).is_none()) => {
            Some("the type of the Provider has no digests, events are sent at once".to_owned())
        }
        TEMPLATE => mistake.map(str::to_owned),
        _ if !KNOWN.contains(&name) => Some(format!("unknown; known are {}", KNOWN.join(", "))),
        _ => None,
    };
    ours.filter_map(|(name, value)| {
        let why = problem(name, value)?;
        Some(format!("annotation {name} has no effect: {why}"))
    })
    .collect()
}

/// Returns true if the annotations of two states of an Alert ask for different extensions.
pub(crate) fn differ<'a>(
    one: impl IntoIterator<Item = (&'a String, &'a String)>,
    other: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> bool {
    let ours = |(name, _): &(&String, &String)| name.starts_with(PREFIX);
    !one.into_iter().filter(ours).eq(other.into_iter().filter(ours))
}

fn flag(text: &str) -> Option<bool> {
    text.parse().ok()
}

fn threshold(text: &str) -> Option<u32> {
    text.parse()
        .ok()
        .filter(|count| (1..=MOST_FAILURES).contains(count))
}

fn interval(text: &str) -> Option<Duration> {
    let duration: GoDuration = text.parse().ok()?;
    u64::try_from(duration.nanos())
        .ok()
        .map(Duration::from_nanos)
        .filter(|interval| (SHORTEST..=LONGEST).contains(interval))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn alert(annotations: &serde_json::Value) -> Alert {
        serde_json::from_value(json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
            "metadata": {"name": "a", "namespace": "ns", "annotations": annotations},
            "spec": {"providerRef": {"name": "p"}, "eventSources": []},
        }))
        .unwrap()
    }

    #[test]
    fn extensions_are_off_without_annotations() {
        let none = Extensions::of(&alert(&json!({"reconcile.fluxcd.io/requestedAt": "1"})));
        let off = Extensions {
            recovery: false,
            threshold: 1,
            digest: None,
        };
        assert_eq!(none, off);
        assert!(!none.tracks());
    }

    #[test]
    fn annotations_turn_extensions_on() {
        let annotations = json!({RECOVERY: "true", THRESHOLD: "3", DIGEST: "10m"});
        let all = Extensions::of(&alert(&annotations));
        assert_eq!((all.recovery, all.threshold), (true, 3));
        assert_eq!(all.digest_for(Takes::News), Some(Duration::from_secs(600)));
        assert_eq!(all.digest_for(Takes::Commits), None);
        assert!(all.tracks());
        assert!(problems(&alert(&annotations), Some(Takes::All), None).is_empty());
    }

    #[test]
    fn each_invalid_annotation_is_named_and_off() {
        for (name, value, takes) in [
            (RECOVERY, "yes", None),
            (COMMIT, "yes", None),
            (THRESHOLD, "0", None),
            (THRESHOLD, "101", None),
            (THRESHOLD, "-3", None),
            (THRESHOLD, "three", None),
            (DIGEST, "9s", None),
            (DIGEST, "31m", None),
            (DIGEST, "10", None),
            (DIGEST, "-10m", None),
            (DIGEST, "10m", Some(Takes::Commits)),
            (DIGEST, "10m", Some(Takes::ChangeRequests)),
            ("weir.io/failure-treshold", "3", None),
        ] {
            let alert = alert(&json!({name: value}));
            let said = problems(&alert, takes, None);
            assert!(
                said.len() == 1 && said[0].starts_with(&format!("annotation {name} has no effect: ")),
                "{said:?}"
            );
            let extensions = Extensions::of(&alert);
            assert!(!extensions.tracks());
            assert_eq!(extensions.digest_for(takes.unwrap_or(Takes::All)), None);
        }
    }

    #[test]
    fn only_changes_of_our_annotations_count() {
        let map = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            pairs.collect::<std::collections::BTreeMap<_, _>>()
        };
        let one = map(&[(THRESHOLD, "3"), ("failing.weir.io/x", "{}")]);
        assert!(!differ(&one, &map(&[(THRESHOLD, "3"), ("other", "x")])));
        assert!(differ(&one, &map(&[(THRESHOLD, "4")])) && differ(&one, &map(&[])));
    }
}
