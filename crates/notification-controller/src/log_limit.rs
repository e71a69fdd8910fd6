//! Limits the lines that a tenant's objects and its visitors write to the log.

use std::{
    collections::HashMap,
    sync::LazyLock,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

const WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of lines of one object in a window.
const OF_OBJECT: u64 = 1;
/// Maximum number of lines of all objects of a namespace in a window.
const OF_NAMESPACE: u64 = 10;
/// Maximum number of objects and namespaces that are remembered. Further ones write nothing until a window ends.
const REMEMBERED: usize = 8192;

/// The lines about refused and failed webhooks.
pub(crate) static WEBHOOKS: LazyLock<LogLimit> = LazyLock::new(LogLimit::default);
/// The lines about accepted webhooks, which take none from the others.
pub(crate) static ACCEPTED: LazyLock<LogLimit> = LazyLock::new(LogLimit::default);
/// The lines about objects that webhooks annotated.
pub(crate) static ANNOTATED: LazyLock<LogLimit> = LazyLock::new(LogLimit::default);

#[derive(Debug, Default)]
pub(crate) struct LogLimit(Mutex<HashMap<(String, String), Lines>>);

#[derive(Debug)]
struct Lines {
    since: Instant,
    written: u64,
    left_out: u64,
}

impl Lines {
    fn new(now: Instant) -> Self {
        Self {
            since: now,
            written: 0,
            left_out: 0,
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= WINDOW
    }

    fn has_quota(&mut self, most: u64, now: Instant) -> bool {
        if self.is_over(now) {
            (self.since, self.written) = (now, 0);
        }
        self.written < most
    }
}

impl LogLimit {
    /// Returns the number of lines about the object that were left out since the last one, if one may be written now.
    pub(crate) fn admit(&self, namespace: &str, name: &str, now: Instant) -> Option<u64> {
        let mut entries = self.0.lock();
        let of_namespace = (namespace.to_owned(), String::new());
        let of_object = (namespace.to_owned(), name.to_owned());
        if entries.len() + 2 > REMEMBERED {
            entries.retain(|_, lines| !lines.is_over(now));
        }
        if entries.len() + 2 > REMEMBERED && !entries.contains_key(&of_object) {
            return None;
        }
        let own = entries
            .entry(of_namespace.clone())
            .or_insert_with(|| Lines::new(now));
        if !own.has_quota(OF_NAMESPACE, now) {
            // Further objects of the namespace are not remembered.
            if let Some(lines) = entries.get_mut(&of_object) {
                lines.left_out += 1;
            }
            return None;
        }
        let lines = entries.entry(of_object).or_insert_with(|| Lines::new(now));
        if !lines.has_quota(OF_OBJECT, now) {
            lines.left_out += 1;
            return None;
        }
        lines.written += 1;
        let left_out = std::mem::take(&mut lines.left_out);
        if let Some(lines) = entries.get_mut(&of_namespace) {
            lines.written += 1;
        }
        Some(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_writes_a_line_a_minute_with_the_number_of_the_others() {
        let (limit, start) = (LogLimit::default(), Instant::now());
        assert_eq!(limit.admit("apps", "hook", start), Some(0));
        for _ in 0..1000 {
            assert_eq!(limit.admit("apps", "hook", start), None);
        }
        assert_eq!(limit.admit("apps", "other", start), Some(0));
        assert_eq!(limit.admit("apps", "hook", start + WINDOW), Some(1000));
        assert_eq!(limit.admit("apps", "hook", start + WINDOW), None);
    }

    #[test]
    fn many_objects_of_a_namespace_write_few_lines() {
        let (limit, now) = (LogLimit::default(), Instant::now());
        let written = |namespace: &str| {
            let names = (0..20_000).map(|number| number.to_string());
            names
                .filter(|name| limit.admit(namespace, name, now).is_some())
                .count()
        };
        assert_eq!(written("greedy"), 10);
        assert_eq!(limit.0.lock().len(), 11);
        assert_eq!(limit.admit("other", "hook", now), Some(0));
        for number in 0..REMEMBERED / 2 + 8 {
            let _ = limit.admit(&number.to_string(), "hook", now);
        }
        assert!(limit.0.lock().len() <= REMEMBERED);
        assert_eq!(limit.admit("late", "hook", now + WINDOW), Some(0));
        assert_eq!(limit.0.lock().len(), 2);
    }
}
