//! The series of single objects: a few bytes an object, and series only while they are written.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt::{self, Write as _},
    io::{self, Write},
    ops::Bound,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;

use super::registry::Registry;
use crate::queue::ObjectKey;

/// Number of objects whose series are written under one lock.
const AT_ONCE: usize = 64;
const STATUSES: [&str; 4] = ["True", "False", "Unknown", "Deleted"];

/// The objects of all kinds that have the same label `group`, or none; clones share them.
#[derive(Debug, Clone)]
pub(super) struct Objects(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Upper bounds of the buckets of durations, in seconds; empty without `--metrics-per-object`.
    bounds: Vec<f64>,
    kinds: Mutex<Kinds>,
}

type Kinds = BTreeMap<String, BTreeMap<ObjectKey, Object>>;

/// An object; unrecorded values have no series.
#[derive(Debug, Default)]
struct Object {
    /// Index in [`STATUSES`] of the status of its Ready condition, beyond its end for other strings.
    ready: Option<usize>,
    suspended: Option<bool>,
    passes: Option<Passes>,
}

#[derive(Debug)]
struct Passes {
    number: u64,
    seconds: f64,
    /// Number of passes in each bucket, without the buckets below.
    buckets: Box<[u32]>,
}

impl Objects {
    pub(super) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let bounds = registry.object_buckets(bounds());
        let objects = Self(Arc::new(Shared {
            bounds: bounds.into_iter().filter(|bound| bound.is_finite()).collect(),
            kinds: Mutex::default(),
        }));
        for family in Family::ALL {
            registry.register_objects(family, objects.clone())?;
        }
        Ok(objects)
    }

    fn change(&self, kind: &str, key: &ObjectKey, change: impl FnOnce(&mut Object)) {
        let mut kinds = self.0.kinds.lock();
        if !kinds.contains_key(kind) {
            kinds.insert(kind.to_owned(), BTreeMap::new());
        }
        let Some(objects) = kinds.get_mut(kind) else {
            return;
        };
        match objects.get_mut(key) {
            Some(object) => change(object),
            None => change(objects.entry(key.clone()).or_default()),
        }
    }

    pub(super) fn passed(&self, kind: &str, key: &ObjectKey, took: Duration) {
        let seconds = took.as_secs_f64();
        let bounds = &self.0.bounds;
        self.change(kind, key, |object| {
            let passes = object.passes.get_or_insert_with(|| Passes {
                number: 0,
                seconds: 0.0,
                buckets: vec![0; bounds.len()].into(),
            });
            passes.number += 1;
            passes.seconds += seconds;
            let bucket = bounds.iter().position(|bound| seconds <= *bound);
            if let Some(number) = bucket.and_then(|at| passes.buckets.get_mut(at)) {
                *number = number.saturating_add(1);
            }
        });
    }

    pub(super) fn suspended(&self, kind: &str, key: &ObjectKey, suspended: bool) {
        self.change(kind, key, |object| object.suspended = Some(suspended));
    }

    pub(super) fn ready(&self, kind: &str, key: &ObjectKey, status: &str) {
        let index = STATUSES.iter().position(|each| *each == status);
        self.change(kind, key, |object| {
            object.ready = Some(index.unwrap_or(STATUSES.len()));
        });
    }

    pub(super) fn forget(&self, kind: &str, key: &ObjectKey) {
        if let Some(objects) = self.0.kinds.lock().get_mut(kind) {
            objects.remove(key);
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Family {
    Condition,
    Suspend,
    Duration,
}

impl Family {
    const ALL: [Self; 3] = [Self::Condition, Self::Suspend, Self::Duration];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Condition => "gotk_reconcile_condition",
            Self::Suspend => "gotk_suspend_status",
            Self::Duration => "gotk_reconcile_duration_seconds",
        }
    }

    pub(super) fn write_heading(self, out: &mut impl Write) -> io::Result<()> {
        let (help, kind) = match self {
            Self::Condition => (
                "The current condition status of a GitOps Toolkit resource.",
                "gauge",
            ),
            Self::Suspend => ("Whether a GitOps Toolkit resource is suspended.", "gauge"),
            Self::Duration => ("How long the reconciliations of an object took.", "histogram"),
        };
        let name = self.name();
        writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
    }

    fn append(
        self,
        text: &mut String,
        object: &Object,
        labels: &str,
        more: &str,
        bounds: &[f64],
    ) -> fmt::Result {
        let name = self.name();
        match self {
            Self::Condition => {
                let Some(ready) = object.ready else {
                    return Ok(());
                };
                for (index, status) in STATUSES.iter().enumerate() {
                    let value = u8::from(index == ready);
                    writeln!(
                        text,
                        "{name}{{{labels},status=\"{status}\",type=\"Ready\"{more}}} {value}"
                    )?;
                }
            }
            Self::Suspend => {
                if let Some(suspended) = object.suspended {
                    writeln!(text, "{name}{{{labels}{more}}} {}", u8::from(suspended))?;
                }
            }
            Self::Duration => {
                let Some(passes) = &object.passes else {
                    return Ok(());
                };
                let mut below = 0;
                for (bound, number) in bounds.iter().zip(&passes.buckets) {
                    below += u64::from(*number);
                    writeln!(text, "{name}_bucket{{{labels}{more},le=\"{bound}\"}} {below}")?;
                }
                let Passes { number, seconds, .. } = passes;
                writeln!(text, "{name}_bucket{{{labels}{more},le=\"+Inf\"}} {number}")?;
                writeln!(text, "{name}_sum{{{labels}{more}}} {seconds}")?;
                writeln!(text, "{name}_count{{{labels}{more}}} {number}")?;
            }
        }
        Ok(())
    }
}

impl Objects {
    pub(super) fn is_empty(&self) -> bool {
        self.0.kinds.lock().values().all(BTreeMap::is_empty)
    }

    /// Writes the series of a family, with `more` labels after their own. The lock is taken for a few objects at a time: the reader of the
    /// output may be slow.
    pub(super) fn write(&self, family: Family, more: &str, out: &mut impl Write) -> io::Result<()> {
        let kinds: Vec<String> = self.0.kinds.lock().keys().cloned().collect();
        for kind in kinds {
            let mut last: Option<ObjectKey> = None;
            loop {
                let (text, end) = self.next(family, &kind, last.as_ref(), more);
                out.write_all(text.as_bytes())?;
                match end {
                    Some(end) => last = Some(end),
                    None => break,
                }
            }
        }
        Ok(())
    }

    /// Returns the series of the next objects of a kind after the last one, and the last of these; `None` if there are no more.
    fn next(
        &self,
        family: Family,
        kind: &str,
        last: Option<&ObjectKey>,
        more: &str,
    ) -> (String, Option<ObjectKey>) {
        let mut text = String::new();
        let kinds = self.0.kinds.lock();
        let Some(objects) = kinds.get(kind) else {
            return (text, None);
        };
        let begin = last.map_or(Bound::Unbounded, Bound::Excluded);
        let mut end = None;
        for (number, (key, object)) in objects.range((begin, Bound::Unbounded)).enumerate() {
            if number == AT_ONCE {
                return (text, end);
            }
            let [name, namespace] = [&key.name, &key.namespace].map(|value| escape(value));
            let labels = format!("kind=\"{kind}\",name=\"{name}\",namespace=\"{namespace}\"");
            // Writing to a string can't fail.
            let _ = family.append(&mut text, object, &labels, more, &self.0.bounds);
            end = Some(key.clone());
        }
        (text, None)
    }
}

pub(super) fn escape(value: &str) -> Cow<'_, str> {
    match value.contains(['\\', '"', '\n']) {
        false => Cow::Borrowed(value),
        true => Cow::Owned(
            value
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n"),
        ),
    }
}

/// Ten buckets from 10 ms to 30 minutes, each the same factor above the last.
fn bounds() -> Vec<f64> {
    let factor = (1800.0f64 / 0.01).powf(1.0 / 9.0);
    (0..10).map(|step| 0.01 * factor.powi(step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(registry: &Registry) -> String {
        registry.text().unwrap()
    }

    #[test]
    fn bounds_run_from_10_ms_to_30_minutes() {
        let bounds = bounds();
        assert_eq!(bounds.len(), 10);
        assert!((bounds[0] - 0.01).abs() < 1e-9 && (bounds[9] - 1800.0).abs() < 1e-6);
    }

    #[test]
    fn durations_have_buckets_on_request() {
        let key = ObjectKey::new("team", "app");
        let labels = r#"kind="App",name="app",namespace="team""#;
        for (per_object, buckets) in [(false, 1), (true, 11)] {
            let registry = Registry::new(per_object);
            let objects = Objects::register(&registry).unwrap();
            for seconds in [1, 2, 4000] {
                objects.passed("App", &key, Duration::from_secs(seconds));
            }
            let text = text(&registry);
            let found = text.matches("gotk_reconcile_duration_seconds_bucket{").count();
            assert_eq!(found, buckets, "{text}");
            for line in [
                format!("gotk_reconcile_duration_seconds_sum{{{labels}}} 4003"),
                format!("gotk_reconcile_duration_seconds_count{{{labels}}} 3"),
                format!("gotk_reconcile_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 3"),
            ] {
                assert!(text.contains(&line), "{text}");
            }
            let mut buckets = text.lines().filter(|line| line.contains("_bucket{")).rev();
            let longest = buckets.nth(1).map(|line| line.ends_with(" 2"));
            assert_eq!(longest, per_object.then_some(true), "{text}");
        }
    }

    #[test]
    fn conditions_have_a_series_for_each_status() {
        let registry = Registry::new(false);
        let objects = Objects::register(&registry).unwrap();
        objects.ready("App", &ObjectKey::new("team", "app"), "False");
        let text = text(&registry);
        for (status, value) in [("True", 0), ("False", 1), ("Unknown", 0), ("Deleted", 0)] {
            let line = format!(
                "gotk_reconcile_condition{{kind=\"App\",name=\"app\",namespace=\"team\",status=\"{status}\",type=\"Ready\"}} {value}"
            );
            assert!(text.lines().any(|each| each == line), "{text}");
        }
        assert!(!text.contains("gotk_suspend_status{"), "{text}");
    }
}
