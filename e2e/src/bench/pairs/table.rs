//! The figures of a load as a table.

use std::{collections::BTreeSet, fmt::Write as _, time::Duration};

use super::{Deployer, Figures, Load, Phase, phase::GIT_SERVER};
use crate::bench::measure::mebibytes;

pub(super) fn title(load: Load) -> String {
    let objects = match load.objects {
        1 => "a ConfigMap each".to_owned(),
        3 => "a ConfigMap, a Service and a Deployment each".to_owned(),
        more => format!("{more} ConfigMaps each"),
    };
    match (load.deployer, load.one_source) {
        (Deployer::KluctlDeployment, _) => format!("{} pairs with {objects}", load.pairs),
        (Deployer::Kustomization, true) => {
            format!("{} Kustomizations of one source with {objects}", load.pairs)
        }
        (Deployer::Kustomization, false) => {
            format!(
                "{} pairs of GitRepository and Kustomization with {objects}",
                load.pairs
            )
        }
    }
}

fn processors() -> u32 {
    let all = std::thread::available_parallelism();
    all.map_or(1, |all| u32::try_from(all.get()).unwrap_or(1))
}

fn fastest(phases: &[Phase]) -> Phase {
    let fastest = phases.iter().min_by_key(|phase| phase.time);
    fastest.cloned().unwrap_or_default()
}

fn times(phases: &[Phase]) -> String {
    let times = phases
        .iter()
        .map(|phase| format!("{:.2}", phase.time.as_secs_f64()));
    times.collect::<Vec<_>>().join(", ")
}

impl Figures {
    /// Returns the fastest times of creations and pushes, and the time of a reconciliation without a change, in seconds.
    pub(crate) fn times(&self) -> [f64; 3] {
        let [created, pushed] = [&self.created, &self.pushed].map(|phases| fastest(phases).time);
        [created, pushed, self.unchanged.time].map(|time| time.as_secs_f64())
    }

    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!("\n{}\n", title(self.load));
        let steps = [
            ("created, until all are Ready", &self.created, &self.created_alone),
            ("pushed, until all are applied", &self.pushed, &self.pushed_alone),
        ];
        for (step, all, all_alone) in steps {
            let (ours, reference) = (&fastest(all), &fastest(all_alone));
            let alone = reference.time.as_secs_f64();
            let time = ours.time.as_secs_f64();
            let _ = writeln!(
                text,
                "  {step:<34} {time:>7.2} s   the API server alone {alone:>7.2} s   {:>5.1}x",
                time / alone
            );
            // It keeps all processors busy with the others, and the reference has none.
            let git = cpu_of(ours, GIT_SERVER);
            let others = ours.time.saturating_sub(git / processors()).as_secs_f64();
            let _ = writeln!(
                text,
                "  {:<34} {others:>7.2} s   {:>37.1}x",
                format!("  without the Git server ({:.1} s CPU)", git.as_secs_f64()),
                others / alone
            );
            let (each, each_alone) = (times(all), times(all_alone));
            let _ = writeln!(text, "    each: {each} s; the API server alone: {each_alone} s");
        }
        let time = self.unchanged.time.as_secs_f64();
        let _ = writeln!(text, "  {:<34} {time:>7.2} s", "reconciled without a change");
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

    /// Writes the memory of the controllers, and CPU times and requests by phase, beside the reference's.
    fn write_usage(&self, text: &mut String) {
        let phases = [
            &fastest(&self.created),
            &fastest(&self.created_alone),
            &fastest(&self.pushed),
            &fastest(&self.pushed_alone),
            &self.unchanged,
        ];
        let _ = writeln!(
            text,
            "  {:<24} {:>10} {:>10} {:>10}   CPU: {:>8} {:>8} {:>8} {:>8} {:>9}",
            "", "empty", "idle", "peak", "create", "(alone)", "push", "(alone)", "no change"
        );
        let names: BTreeSet<&String> = phases.iter().flat_map(|phase| phase.cpu.keys()).collect();
        for name in names {
            let memory = self.memory.get(name.as_str()).map(|memory| {
                let [empty, idle, peak] = memory.map(|bytes| format!("{:.1} MiB", mebibytes(bytes)));
                format!("{empty:>10} {idle:>10} {peak:>10}")
            });
            let cpu = phases.map(|phase| format!("{:.2} s", cpu_of(phase, name).as_secs_f32()));
            write_row(text, name, &memory.unwrap_or_default(), &cpu);
        }
        let idle = phases.map(|phase| format!("{:.0}%", phase.machine.idle_share() * 100.0));
        write_row(text, "idle processors", "", &idle);
        let saturated = phases.map(|phase| phase.machine.saturated().unwrap_or("nothing").to_owned());
        write_row(text, "saturated", "", &saturated);
        let requests = phases.map(|phase| phase.all_requests().to_string());
        write_row(text, "requests", "", &requests);
        write_row(
            text,
            "of them write",
            "",
            &phases.map(|phase| phase.writes.to_string()),
        );
        self.write_requests(text, &phases);
    }

    /// Writes the requests for each pair by user and verb.
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    fn write_requests(&self, text: &mut String, phases: &[&Phase; 5]) {
        let _ = writeln!(text, "  requests of a pair, by user and verb:");
        let kinds: BTreeSet<&(String, String)> =
            phases.iter().flat_map(|phase| phase.requests.keys()).collect();
        for kind in kinds {
            let each = phases.map(|phase| {
                let count = phase.requests.get(kind).copied().unwrap_or_default();
                format!("{:.2}", count as f64 / self.load.pairs.max(1) as f64)
            });
            let (user, verb) = kind;
            write_row(text, &format!("  {user}"), verb, &each);
        }
    }
}

fn write_row(text: &mut String, name: &str, memory: &str, phases: &[String; 5]) {
    let [created, alone, pushed, pushed_alone, unchanged] = phases;
    let _ = writeln!(
        text,
        "  {name:<24} {memory:<32}        {created:>8} {alone:>8} {pushed:>8} {pushed_alone:>8} {unchanged:>9}"
    );
}

fn cpu_of(phase: &Phase, name: &str) -> Duration {
    phase.cpu.get(name).copied().unwrap_or_default()
}
