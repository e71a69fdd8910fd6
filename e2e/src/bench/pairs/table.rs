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

/// Returns the number of processors.
fn processors() -> u32 {
    let all = std::thread::available_parallelism();
    all.map_or(1, |all| u32::try_from(all.get()).unwrap_or(1))
}

impl Figures {
    /// Returns the figures as a table.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!("\n{}\n", title(self.load));
        let [create, push] = self.git;
        let steps = [
            (
                "created, until all are Ready",
                self.created,
                self.reference.created,
                create,
            ),
            (
                "pushed, until all are applied",
                self.pushed,
                self.reference.pushed,
                push,
            ),
        ];
        for (step, ours, reference, git) in steps {
            let alone = reference.as_secs_f64();
            let _ = writeln!(
                text,
                "  {step:<34} {:>7.2} s   the API server alone {alone:>7.2} s   {:>5.1}x",
                ours.as_secs_f64(),
                ours.as_secs_f64() / alone
            );
            // It keeps all processors busy with the others, and is no part of the reference.
            let others = ours.saturating_sub(git / processors()).as_secs_f64();
            let _ = writeln!(
                text,
                "  {:<34} {others:>7.2} s   {:>37.1}x",
                format!("  without the Git server ({:.1} s CPU)", git.as_secs_f64()),
                others / alone
            );
        }
        let (step, unchanged) = ("reconciled without a change", self.unchanged.as_secs_f64());
        let _ = writeln!(text, "  {step:<34} {unchanged:>7.2} s");
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
