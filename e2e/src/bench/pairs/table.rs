//! The figures of a load as a table.

use std::fmt::Write as _;

use super::{Figures, Load};
use crate::{bench::measure::mebibytes, cluster::CONTROLLERS};

/// Returns the head of a load's lines.
pub(super) fn title(load: Load) -> String {
    let objects = match load.objects {
        1 => "a ConfigMap each".to_owned(),
        3 => "a ConfigMap, a Service and a Deployment each".to_owned(),
        more => format!("{more} ConfigMaps each"),
    };
    format!("{} pairs with {objects}", load.pairs)
}

impl Figures {
    /// Returns the figures as a table.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!("\n{}\n", title(self.load));
        for (step, ours, reference) in [
            (
                "created, until all are Ready",
                self.created,
                Some(self.reference.created),
            ),
            (
                "pushed, until all are applied",
                self.pushed,
                Some(self.reference.pushed),
            ),
            ("reconciled without a change", self.unchanged, None),
        ] {
            let _ = write!(text, "  {step:<34} {:>7.2} s", ours.as_secs_f64());
            if let Some(reference) = reference {
                let times = ours.as_secs_f64() / reference.as_secs_f64();
                let alone = reference.as_secs_f64();
                let _ = write!(text, "   the API server alone {alone:>7.2} s   {times:>5.1}x");
            }
            text.push('\n');
        }
        if let Some(pod) = self.pod {
            let _ = writeln!(
                text,
                "  {:<34} {:>7.2} s",
                "of it, a Pod on its node (mean)",
                pod.as_secs_f64()
            );
        }
        let _ = writeln!(
            text,
            "  {:<26} {:>11} {:>11} {:>11} {:>9}",
            "", "empty", "idle", "peak", "CPU"
        );
        for (name, [empty, idle, peak]) in &self.memory {
            let cpu = self.cpu.get(*name).copied().unwrap_or_default();
            let _ = writeln!(
                text,
                "  {name:<26} {:>7.1} MiB {:>7.1} MiB {:>7.1} MiB {:>7.1} s",
                mebibytes(*empty),
                mebibytes(*idle),
                mebibytes(*peak),
                cpu.as_secs_f32()
            );
        }
        for (name, cpu) in &self.cpu {
            if !CONTROLLERS.contains(&name.as_str()) {
                let _ = writeln!(text, "  {name:<26} {:>45.1} s", cpu.as_secs_f32());
            }
        }
        if let Some(calm) = &self.calm {
            let _ = writeln!(text, "  {}", calm.line(self.load.pairs));
        }
        text
    }
}
