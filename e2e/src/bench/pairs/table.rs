//! The figures of a load as a table.

use std::{collections::BTreeSet, fmt::Write as _, time::Duration};

use super::{Figures, GIT_SERVER, Load};
use crate::bench::measure::mebibytes;

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
        let git = |phase: usize| self.cpu_of(GIT_SERVER).get(phase).copied().unwrap_or_default();
        let steps = [
            (
                "created, until all are Ready",
                self.created,
                self.reference.created,
                git(0),
            ),
            (
                "pushed, until all are applied",
                self.pushed,
                self.reference.pushed,
                git(1),
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
        self.write_usage(&mut text);
        if let Some(calm) = &self.calm {
            let _ = writeln!(text, "  {}", calm.line(self.load.pairs));
        }
        text
    }

    /// Writes the memory of the controllers, and the CPU times of all processes by phase.
    fn write_usage(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "  {:<24} {:>10} {:>10} {:>10}   CPU: {:>6} {:>7} {:>9}",
            "", "empty", "idle", "peak", "create", "push", "no change"
        );
        let names: BTreeSet<&String> = self.cpu.iter().flat_map(|times| times.keys()).collect();
        for name in names {
            let memory = self.memory.get(name.as_str()).map(|memory| {
                let [empty, idle, peak] = memory.map(|bytes| format!("{:.1} MiB", mebibytes(bytes)));
                format!("{empty:>10} {idle:>10} {peak:>10}")
            });
            let [create, push, unchanged] = self
                .cpu_of(name)
                .map(|time| format!("{:.1} s", time.as_secs_f32()));
            let _ = writeln!(
                text,
                "  {name:<24} {:<32}        {create:>6} {push:>7} {unchanged:>9}",
                memory.unwrap_or_default()
            );
        }
    }

    /// Returns the CPU time of a process in each phase.
    fn cpu_of(&self, name: &str) -> [Duration; 3] {
        self.cpu
            .each_ref()
            .map(|times| times.get(name).copied().unwrap_or_default())
    }
}
