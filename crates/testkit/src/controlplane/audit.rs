//! The audit log of the API server: users, requests and decisions.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{ErrorKind, Read as _, Seek as _, SeekFrom},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

/// The `User-Agent` of requests that are left out: the test kit makes them beside a test.
pub(crate) const UNLOGGED: &str = "weir-testkit-unlogged";

/// Maximum time until the end of a write that has begun is logged.
const END_OF_WRITES: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    pub user: String,
    pub impersonated: Option<String>,
    pub user_agent: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// The API group, empty for the core group and for paths that are no resource.
    pub group: String,
    pub resource: String,
    pub subresource: String,
    /// The namespace, empty for cluster-scoped requests.
    pub namespace: String,
    /// The name of the object, empty for lists and creations with a generated name.
    pub name: String,
    /// Path and query of the request.
    pub uri: String,
    pub code: u16,
    /// The decision of the authorizer: `allow` or `forbid`.
    pub decision: String,
    /// Time of the response (RFC 3339, microseconds).
    pub at: String,
    /// Body of the request, if the control plane was started with [`super::Options::audit_bodies`].
    pub request: Option<Value>,
}

/// A moment in the audit log: the requests since then are those that arrived later. A request that had been answered may be logged
/// later still, so that the length of the log alone does not tell them apart.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mark {
    offset: u64,
    /// Microseconds since the epoch, the resolution of the log.
    at: i64,
}

impl Mark {
    pub(crate) fn now(log: &Path) -> Self {
        Self {
            offset: std::fs::metadata(log)
                .map(|metadata| metadata.len())
                .unwrap_or_default(),
            at: Timestamp::now().as_microsecond(),
        }
    }

    fn includes(self, event: &Value) -> bool {
        let received = event.get("requestReceivedTimestamp").and_then(Value::as_str);
        let received = received.and_then(|received| received.parse::<Timestamp>().ok());
        received.is_none_or(|received| received.as_microsecond() >= self.at)
    }
}

impl Entry {
    /// Returns true for changes of objects. Reviews of the own rights are created, but stored nowhere.
    #[must_use]
    pub fn is_write(&self) -> bool {
        let changes = matches!(
            self.verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        );
        changes && !self.resource.starts_with("selfsubject")
    }

    /// Returns true for reads of an object, whatever version of it they ask for.
    #[must_use]
    pub fn reads(&self, resource: &str, name: &str) -> bool {
        let is_object = self.resource == resource && self.subresource.is_empty() && self.name == name;
        self.verb == "get" && is_object
    }

    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.decision == "forbid" || self.code == 403
    }

    fn parse(event: &Value) -> Self {
        let text = |pointer: &str| {
            event
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let code = event
            .pointer("/responseStatus/code")
            .and_then(Value::as_u64)
            .unwrap_or_default();
        Self {
            user: text("/user/username"),
            impersonated: event
                .pointer("/impersonatedUser/username")
                .and_then(Value::as_str)
                .map(str::to_owned),
            user_agent: text("/userAgent"),
            verb: text("/verb"),
            group: text("/objectRef/apiGroup"),
            resource: text("/objectRef/resource"),
            subresource: text("/objectRef/subresource"),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            uri: text("/requestURI"),
            code: u16::try_from(code).unwrap_or_default(),
            decision: text("/annotations/authorization.k8s.io~1decision"),
            at: text("/stageTimestamp"),
            request: event.get("requestObject").cloned(),
        }
    }
}

/// Reads the requests that arrived since a mark. A request that is logged at several stages (a watch: begun and ended) is one
/// entry, as of the latest. Writes that have begun are waited for, [`END_OF_WRITES`] at most: others see their effect before the end is logged.
pub(crate) fn read(path: &Path, since: Mark) -> Result<Vec<Entry>> {
    complete(since, || read_text(path, since.offset))
}

/// Reads a log until the writes have ended that it names at first.
fn complete(since: Mark, mut read: impl FnMut() -> Result<Vec<u8>>) -> Result<Vec<Entry>> {
    let began = Instant::now();
    let mut logged = events(&read()?, since);
    let mut open = open_writes(&logged);
    while !open.is_empty() && began.elapsed() < END_OF_WRITES {
        std::thread::sleep(Duration::from_millis(1));
        logged = events(&read()?, since);
        let now = open_writes(&logged);
        open.retain(|id| now.contains(id));
    }
    Ok(parse(&logged))
}

fn read_text(path: &Path, from: u64) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    match std::fs::File::open(path) {
        Ok(mut file) => {
            file.seek(SeekFrom::Start(from))?;
            file.read_to_end(&mut text)?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("can't read {}", path.display())),
    }
    Ok(text)
}

fn events(text: &[u8], since: Mark) -> Vec<Value> {
    // The last line may still be being written.
    text.split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .filter(|event| since.includes(event))
        .collect()
}

fn is_unanswered(event: &Value) -> bool {
    event.get("stage").and_then(Value::as_str) == Some("RequestReceived")
}

fn id_of(event: &Value) -> &str {
    event.get("auditID").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the identifiers of requests that have begun, and whose end isn't logged.
fn open_writes(events: &[Value]) -> BTreeSet<String> {
    let mut open = BTreeSet::new();
    for event in events {
        if is_unanswered(event) {
            open.insert(id_of(event).to_owned());
        } else {
            open.remove(id_of(event));
        }
    }
    open
}

fn parse(events: &[Value]) -> Vec<Entry> {
    let mut order: BTreeMap<String, usize> = BTreeMap::new();
    let mut entries: Vec<Entry> = Vec::new();
    for event in events.iter().filter(|event| !is_unanswered(event)) {
        let entry = Entry::parse(event);
        if entry.user_agent == UNLOGGED {
            continue;
        }
        let id = id_of(event);
        match order.get(id).and_then(|index| entries.get_mut(*index)) {
            Some(earlier) => *earlier = entry,
            None => {
                order.insert(id.to_owned(), entries.len());
                entries.push(entry);
            }
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_makes_one_entry_of_a_request_and_skips_torn_lines() {
        let log = br#"{"auditID":"1","stage":"ResponseStarted","verb":"watch","user":{"username":"u"},"objectRef":{"resource":"pods","apiVersion":"v1"},"responseStatus":{"code":200},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"auditID":"2","verb":"delete","user":{"username":"u"},"objectRef":{"apiGroup":"apps","resource":"deployments","namespace":"n","name":"d"},"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"auditID":"1","stage":"ResponseComplete","verb":"watch","user":{"username":"u"},"responseStatus":{"code":200}}
{"auditID":"3","verb":"#;
        let entries = parse(&events(log, Mark::default()));
        assert_eq!(
            entries
                .iter()
                .map(|entry| entry.verb.as_str())
                .collect::<Vec<_>>(),
            ["watch", "delete"]
        );
        assert!(!entries[0].is_write() && entries[1].is_write() && entries[1].is_denied());
        assert_eq!(
            (entries[1].group.as_str(), entries[1].namespace.as_str()),
            ("apps", "n")
        );
    }

    #[test]
    fn reviews_of_own_rights_are_no_writes() {
        let line = |resource: &str| {
            format!(
                "{{\"auditID\":\"{resource}\",\"verb\":\"create\",\"objectRef\":{{\"resource\":\"{resource}\"}}}}\n"
            )
        };
        let log = line("selfsubjectaccessreviews") + &line("configmaps");
        let entries = parse(&events(log.as_bytes(), Mark::default()));
        let writes: Vec<_> = entries.iter().map(Entry::is_write).collect();
        assert_eq!(writes, [false, true]);
    }

    #[test]
    fn requests_that_arrived_before_the_mark_are_left_out_wherever_they_are_logged() {
        let line =
            |id: &str, at: &str| format!("{{\"auditID\":\"{id}\",\"requestReceivedTimestamp\":\"{at}\"}}\n");
        let log = line("1", "2026-01-01T00:00:00.000001Z") + &line("2", "2026-01-01T00:00:00.000002Z");
        let at: Timestamp = "2026-01-01T00:00:00.000002Z".parse().unwrap();
        let mark = Mark {
            offset: 0,
            at: at.as_microsecond(),
        };
        let found = events(log.as_bytes(), mark);
        assert_eq!(found.iter().map(id_of).collect::<Vec<_>>(), ["2"]);
    }

    #[test]
    fn writes_without_an_end_are_open_and_no_entries() {
        let log = br#"{"auditID":"1","stage":"RequestReceived","verb":"patch"}
{"auditID":"2","stage":"RequestReceived","verb":"create"}
{"auditID":"1","stage":"ResponseComplete","verb":"patch"}
"#;
        let events = events(log, Mark::default());
        assert_eq!(open_writes(&events), BTreeSet::from(["2".to_owned()]));
        let entries = parse(&events);
        let verbs: Vec<_> = entries.iter().map(|entry| entry.verb.as_str()).collect();
        assert_eq!(verbs, ["patch"]);
    }

    #[test]
    fn end_of_a_write_is_waited_for_and_later_ones_are_not() {
        let line = |id: &str, stage: &str| {
            format!("{{\"auditID\":\"{id}\",\"stage\":\"{stage}\",\"verb\":\"patch\"}}\n")
        };
        let mut lines = [
            line("1", "RequestReceived"),
            line("2", "RequestReceived"),
            line("1", "ResponseComplete"),
            line("2", "ResponseComplete"),
        ]
        .into_iter();
        let mut text = Vec::new();
        let entries = complete(Mark::default(), || {
            text.extend(lines.next().unwrap_or_default().into_bytes());
            Ok(text.clone())
        });
        assert_eq!(entries.unwrap().len(), 1);
        assert_eq!(lines.len(), 1);
    }
}
