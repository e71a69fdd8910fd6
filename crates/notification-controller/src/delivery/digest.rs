//! Digests: the events of an Alert, collected for an interval and sent as one notification.
//!
//! The journal keeps the collected events until the digest is sent, within bounds. The ends of the intervals follow from the UID of the Alert: a
//! restart doesn't move them, and they differ between Alerts.

use std::{collections::HashMap, sync::Arc, time::Duration};

use api::{Event, GoDuration, Severity, notification::Alert};
use kube::{Resource as _, ResourceExt as _};
use parking_lot::Mutex;
use runtime::ObjectKey;
use sha2::{Digest as _, Sha256};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{event::object_name, journal::Ticket, name::NAME};

/// Maximum number of lines of a digest; further events are counted.
const LINES: usize = 50;
/// Maximum number of lines of all digests together. As of the other limits of all, the digests of a namespace get three quarters of the rest
/// that the others leave.
const ALL_LINES: u64 = 4000;
/// Maximum number of events that the journal keeps for all digests together, and their maximum bytes.
const ALL_TICKETS: u64 = 20_000;
const ALL_BYTES: u64 = 8 * 1024 * 1024;
/// Maximum length of a message in a line, in characters.
const MESSAGE: usize = 300;
const REASON: &str = "Digest";

/// One event of a digest; its repetitions are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    text: String,
    times: u64,
}

#[derive(Debug, Default)]
pub(super) struct Collected {
    lines: Vec<Line>,
    events: u64,
    errors: u64,
    further: u64,
    interval: Duration,
    pub(super) tickets: Vec<Arc<Ticket>>,
    bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct FreeQuota {
    lines: bool,
    events: bool,
}

/// Sums over digests.
#[derive(Debug, Default, Clone, Copy)]
struct Totals {
    lines: u64,
    events: u64,
    bytes: u64,
}

impl Totals {
    fn of(digest: &Collected) -> Self {
        Self {
            lines: digest.lines.len() as u64,
            events: digest.tickets.len() as u64,
            bytes: digest.bytes,
        }
    }

    fn add(&mut self, before: Self, after: Self) {
        let sum =
            |all: &mut u64, before: u64, after: u64| *all = all.saturating_add(after).saturating_sub(before);
        sum(&mut self.lines, before.lines, after.lines);
        sum(&mut self.events, before.events, after.events);
        sum(&mut self.bytes, before.bytes, after.bytes);
    }

    fn is_empty(self) -> bool {
        self.lines == 0 && self.events == 0 && self.bytes == 0
    }
}

/// Returns true if a namespace has less than three quarters of the rest that the others leave.
fn has_part(bound: u64, all: u64, own: u64) -> bool {
    own < bound.saturating_sub(all.saturating_sub(own)) / 4 * 3
}

#[derive(Debug, Default)]
struct OpenDigests {
    by_alert: HashMap<ObjectKey, Collected>,
    all: Totals,
    of_namespaces: HashMap<String, Totals>,
}

impl OpenDigests {
    fn free(&self, namespace: &str) -> FreeQuota {
        let (all, own) = (
            self.all,
            self.of_namespaces.get(namespace).copied().unwrap_or_default(),
        );
        FreeQuota {
            lines: has_part(ALL_LINES, all.lines, own.lines),
            events: has_part(ALL_TICKETS, all.events, own.events)
                && has_part(ALL_BYTES, all.bytes, own.bytes),
        }
    }

    fn count(&mut self, namespace: &str, before: Totals, after: Totals) {
        self.all.add(before, after);
        let own = self.of_namespaces.entry(namespace.to_owned()).or_default();
        own.add(before, after);
        if own.is_empty() {
            self.of_namespaces.remove(namespace);
        }
    }

    /// Adds an event; returns true if it is the first of its digest.
    fn add(&mut self, key: &ObjectKey, interval: Duration, event: &Event, ticket: &Arc<Ticket>) -> bool {
        let free = self.free(&key.namespace);
        let is_new = !self.by_alert.contains_key(key);
        let digest = self.by_alert.entry(key.clone()).or_default();
        if is_new {
            digest.interval = interval;
        }
        let before = Totals::of(digest);
        digest.add(event, ticket, free);
        let after = Totals::of(digest);
        self.count(&key.namespace, before, after);
        is_new
    }

    fn take(&mut self, key: &ObjectKey) -> Option<Collected> {
        let digest = self.by_alert.remove(key)?;
        self.count(&key.namespace, Totals::of(&digest), Totals::default());
        Some(digest)
    }
}

impl Collected {
    fn add(&mut self, event: &Event, ticket: &Arc<Ticket>, free: FreeQuota) {
        if free.events {
            ticket.hold();
            self.tickets.push(Arc::clone(ticket));
            self.bytes += u64::from(ticket.length());
        }
        self.events += 1;
        self.errors += u64::from(event.severity == Severity::Error);
        let text = line(event);
        if let Some(same) = self.lines.iter_mut().find(|line| line.text == text) {
            same.times += 1;
            return;
        }
        if self.lines.len() >= LINES || !free.lines {
            self.further += 1;
            return;
        }
        self.lines.push(Line { text, times: 1 });
    }

    /// Returns the event of the digest, about the Alert itself.
    pub(super) fn event(&self, alert: &Alert) -> Event {
        Event {
            involved_object: alert.object_ref(&()),
            severity: match self.errors {
                0 => Severity::Info,
                _ => Severity::Error,
            },
            timestamp: Some(runtime::now()),
            message: self.message(),
            reason: REASON.to_owned(),
            reporting_controller: NAME.to_owned(),
            ..Event::default()
        }
    }

    fn message(&self) -> String {
        let count = |number: u64, what: &str| match number {
            1 => format!("1 {what}"),
            number => format!("{number} {what}s"),
        };
        let mut message = format!(
            "{} in {}, {}",
            count(self.events, "event"),
            GoDuration::from(self.interval),
            count(self.errors, "failure")
        );
        for line in &self.lines {
            message.push_str("\n- ");
            message.push_str(&line.text);
            if line.times > 1 {
                message.push_str(&format!(" ({} times)", line.times));
            }
        }
        if self.further > 0 {
            message.push_str(&format!("\n- and {}", count(self.further, "further event")));
        }
        message
    }
}

fn line(event: &Event) -> String {
    let words = event.message.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut message: String = words.chars().take(MESSAGE).collect();
    if message.len() < words.len() {
        message.push('…');
    }
    format!(
        "{} {}: {}: {message}",
        event.severity,
        runtime::bounded_text(&object_name(event)),
        runtime::bounded_text(&event.reason)
    )
}

#[derive(Debug, Default)]
pub(super) struct Digests {
    open: Mutex<OpenDigests>,
    tasks: TaskTracker,
    ends: CancellationToken,
}

impl Digests {
    /// Adds an event to the digest of an Alert; `send` gets it at the end of the interval.
    pub(super) fn add<F: Future<Output = ()> + Send>(
        &self,
        alert: &Alert,
        interval: Duration,
        event: &Event,
        ticket: &Arc<Ticket>,
        send: impl FnOnce(ObjectKey) -> F + Send + 'static,
    ) {
        let key = ObjectKey::new(alert.namespace().unwrap_or_default(), alert.name_any());
        let is_new = self.open.lock().add(&key, interval, event, ticket);
        if is_new {
            let wait = left(interval, &alert.uid().unwrap_or_default(), jiff::Timestamp::now());
            let ends = self.ends.clone();
            self.tasks.spawn(async move {
                let _ = tokio::time::timeout(wait, ends.cancelled()).await;
                send(key).await;
            });
        }
    }

    pub(super) fn take(&self, key: &ObjectKey) -> Option<Collected> {
        self.open.lock().take(key)
    }

    /// Ends all digests now, and waits until they are sent.
    pub(super) async fn drain(&self) {
        self.ends.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn left(interval: Duration, uid: &str, now: jiff::Timestamp) -> Duration {
    let hash = Sha256::digest(uid.as_bytes());
    let phase = hash
        .iter()
        .take(8)
        .fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
    let interval = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX).max(1);
    let now = u64::try_from(now.as_millisecond()).unwrap_or_default();
    let passed = (now % interval + phase % interval) % interval;
    Duration::from_millis(interval - passed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::journal::{Entry, Journal};

    fn event(severity: &str, name: &str, message: &str) -> Event {
        serde_json::from_value(json!({
            "involvedObject": {"kind": "Bucket", "namespace": "ns", "name": name},
            "severity": severity, "message": message, "reason": "R",
        }))
        .unwrap()
    }

    async fn ticket() -> Arc<Ticket> {
        let (journal, _) = Journal::open(None, prometheus::IntGauge::new("pending", "-").unwrap()).unwrap();
        let entry = Entry {
            at: 0,
            key: String::new(),
            event: Event::default(),
        };
        Arc::new(journal.add(&entry).await.unwrap())
    }

    const FREE: FreeQuota = FreeQuota {
        lines: true,
        events: true,
    };

    #[tokio::test]
    async fn digest_has_a_line_for_each_event_and_counts_repetitions() {
        let ticket = ticket().await;
        let mut digest = Collected {
            interval: Duration::from_secs(600),
            ..Collected::default()
        };
        for (severity, name, message) in [
            ("error", "a", "it\n  failed"),
            ("info", "b", "done"),
            ("error", "a", "it failed"),
        ] {
            digest.add(&event(severity, name, message), &ticket, FREE);
        }
        let expected = "3 events in 10m0s, 2 failures\n- error Bucket/ns/a: R: it failed (2 times)\n- info Bucket/ns/b: R: done";
        assert_eq!(digest.message(), expected);
        // The journal keeps repetitions, too: they are counted again after a restart.
        assert_eq!(digest.tickets.len(), 3);
    }

    #[tokio::test]
    async fn digest_is_bounded() {
        let ticket = ticket().await;
        let mut digest = Collected::default();
        for number in 0..LINES + 7 {
            let long = format!("{number} {}", "é".repeat(5000));
            digest.add(&event("info", "a", &long), &ticket, FREE);
        }
        let none = FreeQuota {
            lines: false,
            events: false,
        };
        digest.add(&event("info", "b", "no quota"), &ticket, none);
        assert_eq!(
            (digest.lines.len(), digest.tickets.len(), digest.further),
            (LINES, LINES + 7, 8)
        );
        let message = digest.message();
        assert!(message.len() < LINES * (2 * MESSAGE + 100), "{}", message.len());
        assert!(message.ends_with("…\n- and 8 further events"));
    }

    #[tokio::test]
    async fn digests_of_one_namespace_leave_lines_and_events_to_others() {
        let ticket = ticket().await;
        let mut open = OpenDigests::default();
        let interval = Duration::from_secs(60);
        for number in 0..5000 {
            let key = ObjectKey::new("greedy", (number / 40).to_string());
            open.add(&key, interval, &event("info", &number.to_string(), "m"), &ticket);
        }
        let greedy = open.of_namespaces["greedy"];
        assert_eq!(
            (greedy.lines, open.all.lines),
            (ALL_LINES / 4 * 3, ALL_LINES / 4 * 3)
        );
        let other = ObjectKey::new("other", "a");
        open.add(&other, interval, &event("info", "a", "m"), &ticket);
        assert_eq!(open.by_alert[&other].lines.len(), 1);
        let keys: Vec<_> = open.by_alert.keys().cloned().collect();
        for key in keys {
            open.take(&key);
        }
        assert!(open.of_namespaces.is_empty() && open.all.is_empty());
    }

    #[test]
    fn intervals_end_at_the_same_time_after_a_restart() {
        let interval = Duration::from_secs(600);
        let at = |millis: i64| jiff::Timestamp::from_millisecond(millis).unwrap();
        let end = |uid: &str, now: i64| {
            let left = left(interval, uid, at(now));
            assert!(left > Duration::ZERO && left <= interval);
            now + i64::try_from(left.as_millis()).unwrap()
        };
        let first = end("u", 1_795_255_200_000);
        assert_eq!(end("u", first - 1), first);
        assert_eq!(end("u", first), first + 600_000);
        assert_ne!(end("v", first - 1), first);
    }
}
