//! Running passes and their durations, which are computed on request.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::queue::ObjectKey;

type Started = HashMap<String, HashMap<ObjectKey, Instant>>;

#[derive(Debug, Default)]
pub(super) struct Unfinished(Mutex<Started>);

impl Unfinished {
    /// Adds `controller` before its first pass, too.
    pub(super) fn expect(&self, controller: &str) {
        self.0.lock().entry(controller.to_owned()).or_default();
    }

    pub(super) fn started(&self, controller: &str, key: &ObjectKey, at: Instant) {
        let mut all = self.0.lock();
        all.entry(controller.to_owned())
            .or_default()
            .insert(key.clone(), at);
    }

    pub(super) fn ended(&self, controller: &str, key: &ObjectKey) {
        if let Some(running) = self.0.lock().get_mut(controller) {
            running.remove(key);
        }
    }

    pub(super) fn times(&self, now: Instant) -> Vec<(String, Vec<Duration>)> {
        let times = |running: &HashMap<_, Instant>| {
            let started = running.values();
            started.map(|&at| now.saturating_duration_since(at)).collect()
        };
        let all = self.0.lock();
        all.iter()
            .map(|(controller, running)| (controller.clone(), times(running)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_running_passes() {
        let (unfinished, start) = (Unfinished::default(), Instant::now());
        let second = Duration::from_secs(1);
        unfinished.expect("a");
        assert_eq!(unfinished.times(start), [("a".to_owned(), vec![])]);
        let [one, two] = ["one", "two"].map(|name| ObjectKey::new("team", name));
        unfinished.started("a", &one, start);
        unfinished.started("a", &two, start + second);
        let mut times = unfinished.times(start + 3 * second);
        times[0].1.sort();
        assert_eq!(times, [("a".to_owned(), vec![2 * second, 3 * second])]);
        unfinished.ended("a", &one);
        unfinished.ended("a", &two);
        assert_eq!(unfinished.times(start + 3 * second), [("a".to_owned(), vec![])]);
    }
}
