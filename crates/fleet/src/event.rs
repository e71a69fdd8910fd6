//! Events of both APIs: `v1` and `events.k8s.io/v1`, which show the same objects under different names.

use jiff::Timestamp;
use serde::Deserialize;

use crate::{Reference, age, object::or_default};

/// An event about an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    pub metadata: crate::Metadata,
    #[serde(alias = "regarding")]
    pub involved_object: Reference,
    #[serde(rename = "type")]
    pub type_: String,
    pub reason: String,
    #[serde(alias = "note")]
    pub message: String,
    #[serde(alias = "deprecatedCount", deserialize_with = "or_default")]
    count: u64,
    #[serde(alias = "deprecatedFirstTimestamp")]
    first_timestamp: Option<String>,
    #[serde(alias = "deprecatedLastTimestamp")]
    last_timestamp: Option<String>,
    event_time: Option<String>,
    series: Option<Series>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Series {
    count: u64,
    last_observed_time: Option<String>,
}

impl Event {
    /// Returns the time at which it was last seen.
    #[must_use]
    pub fn last_seen(&self) -> Option<Timestamp> {
        match &self.series {
            Some(series) => time(series.last_observed_time.as_ref()),
            None => time(self.last_timestamp.as_ref()).or_else(|| time(self.event_time.as_ref())),
        }
    }

    /// Returns the ages of its last and first occurrence, such as `3m (x5 over 20m)`.
    #[must_use]
    pub fn seen(&self, now: Timestamp) -> String {
        let since = |time: Option<Timestamp>| match time {
            Some(time) => age(now.as_second().saturating_sub(time.as_second())),
            None => "<unknown>".to_owned(),
        };
        let first = time(self.event_time.as_ref()).or_else(|| time(self.first_timestamp.as_ref()));
        let first = since(first);
        match &self.series {
            Some(series) => format!("{} (x{} over {first})", since(self.last_seen()), series.count),
            None if self.count > 1 => {
                let last = since(time(self.last_timestamp.as_ref()));
                format!("{last} (x{} over {first})", self.count)
            }
            None => first,
        }
    }

    /// Returns the cells of its row in a table.
    #[must_use]
    pub fn cells(&self, with_namespace: bool, now: Timestamp) -> Vec<String> {
        let mut cells = Vec::new();
        if with_namespace {
            cells.push(self.metadata.namespace.clone());
        }
        let object = format!("{}/{}", self.involved_object.kind, self.involved_object.name);
        cells.extend([
            self.seen(now),
            self.type_.clone(),
            self.reason.clone(),
            object,
            self.message.clone(),
        ]);
        cells
    }
}

/// The columns of a table of events.
pub const COLUMNS: [&str; 5] = ["Last seen", "Type", "Reason", "Object", "Message"];

fn time(text: Option<&String>) -> Option<Timestamp> {
    text?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn seen(event: Value) -> String {
        let event: Event = serde_json::from_value(event).unwrap();
        event
            .cells(true, "2026-01-01T01:00:00Z".parse().unwrap())
            .join("|")
    }

    #[test]
    fn events_of_both_apis_have_one_row() {
        let object = json!({"kind": "Kustomization", "name": "a", "namespace": "n"});
        let core = json!({
            "metadata": {"namespace": "n"}, "involvedObject": object, "type": "Warning", "reason": "BuildFailed", "message": "no",
            "count": 3, "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:58:00Z", "eventTime": null,
        });
        assert_eq!(
            seen(core),
            "n|2m (x3 over 60m)|Warning|BuildFailed|Kustomization/a|no"
        );
        let new = json!({
            "metadata": {"namespace": "n"}, "regarding": object, "type": "Normal", "reason": "R", "note": "yes",
            "eventTime": "2026-01-01T00:30:00.000000Z", "series": {"count": 7, "lastObservedTime": "2026-01-01T00:59:59.000001Z"},
        });
        assert_eq!(seen(new), "n|1s (x7 over 30m)|Normal|R|Kustomization/a|yes");
        assert_eq!(seen(json!({"metadata": {}})), "|<unknown>|||/|");
    }
}
