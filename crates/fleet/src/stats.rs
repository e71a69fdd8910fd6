//! Numbers of objects of a kind.

use crate::Object;

/// The objects of a kind, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    running: u64,
    failing: u64,
    suspended: u64,
    bytes: u64,
}

/// The columns of a table of numbers.
pub const COLUMNS: [&str; 5] = ["Reconcilers", "Running", "Failing", "Suspended", "Storage"];

impl Stats {
    pub fn add(&mut self, object: &Object) {
        match object.spec.suspend {
            true => self.suspended += 1,
            false => self.running += 1,
        }
        self.failing += u64::from(object.ready().is_some_and(|ready| ready.status == "False"));
        let artifact = object.status.artifact.as_ref();
        self.bytes += artifact.and_then(|artifact| artifact.size).unwrap_or_default();
    }

    /// Returns the sum with the numbers of another kind.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self {
            running: self.running + other.running,
            failing: self.failing + other.failing,
            suspended: self.suspended + other.suspended,
            bytes: self.bytes + other.bytes,
        }
    }

    /// Returns the cells of its row in a table.
    #[must_use]
    pub fn cells(&self, name: &str) -> Vec<String> {
        let counts = [self.running, self.failing, self.suspended].map(|count| count.to_string());
        let mut cells = vec![name.to_owned()];
        cells.extend(counts);
        cells.push(size(self.bytes));
        cells
    }
}

/// Returns a number of bytes with one decimal in its largest unit, such as `1.5 MiB`; `-` for none.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    match bytes {
        0 => return "-".to_owned(),
        1..1024 => return format!("{bytes} B"),
        _ => {}
    }
    let (mut unit, mut divisor) = (0, 1024_u64);
    while bytes / divisor >= 1024 {
        divisor *= 1024;
        unit += 1;
    }
    #[allow(clippy::cast_precision_loss, reason = "one decimal is printed")]
    let number = bytes as f64 / divisor as f64;
    format!("{number:.1} {}", UNITS.get(unit).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_counted_by_their_state() {
        let mut stats = Stats::default();
        for (suspend, ready, size) in [(false, "True", 1000), (true, "False", 600), (false, "False", 0)] {
            let object = json!({
                "spec": {"suspend": suspend},
                "status": {"conditions": [{"type": "Ready", "status": ready}], "artifact": {"size": size}},
            });
            stats.add(&serde_json::from_value(object).unwrap());
        }
        assert_eq!(stats.cells("Bucket"), ["Bucket", "2", "2", "1", "1.6 KiB"]);
        assert_eq!(
            stats.with(stats).cells("Bucket"),
            ["Bucket", "4", "4", "2", "3.1 KiB"]
        );
    }

    #[test]
    fn sizes_have_one_decimal() {
        for (bytes, expected) in [
            (0, "-"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (1 << 30, "1.0 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
