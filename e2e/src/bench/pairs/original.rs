//! The same load with the kustomize-controller of Flux, which follows the artifacts of our source-controller.

use std::path::Path;

use anyhow::Result;
use testkit::flux_controllers::KUSTOMIZE;

use super::{Load, Phase, calm, create, figures_of, project, push, reconcile, say, usages};
use crate::{bench::measure::mebibytes, cluster::TestCluster};

/// Figures of Flux's controller.
#[derive(Debug)]
pub struct Original {
    load: Load,
    created: Phase,
    pushed: Phase,
    unchanged: Phase,
    /// Resident memory of the controller in bytes: without objects, after the last pass, and the peak.
    memory: [u64; 3],
}

const NAME: &str = "flux-kustomize-controller";

/// Measures one creation, one push, and one reconciliation without a change. `program` is the built controller.
///
/// # Errors
/// If a deployment is not ready in time.
pub async fn measure(load: Load, program: &Path) -> Result<Original> {
    let mut cluster = TestCluster::bare().await?;
    for name in ["notification-controller", "source-controller"] {
        cluster.start(name, &[]).await?;
    }
    let controller = KUSTOMIZE.start(program, &cluster.plane).await?;
    cluster.controllers.push(controller);
    let repos = project::repositories(&cluster, load)?;
    calm::end_of_start(&[&cluster]).await?;
    let empty = usages(&cluster)?;
    say(load, "creation with the kustomize-controller of Flux");
    let created = create(&cluster, load, &repos).await?;
    say(load, "push with the kustomize-controller of Flux");
    let pushed = push(&cluster, load, &repos, 1).await?;
    let unchanged = reconcile(&cluster, load).await?;
    let memory = figures_of(empty.get(NAME), &cluster.controller(NAME)?.usage()?);
    cluster.stop().await?;
    Ok(Original {
        load,
        created,
        pushed,
        unchanged,
        memory,
    })
}

impl Original {
    /// Returns lines that follow the table of our own figures. The times are of our fastest phases: created, pushed, and unchanged.
    #[must_use]
    pub fn lines(&self, ours: [f64; 3]) -> String {
        let phases = [
            ("created", &self.created),
            ("pushed", &self.pushed),
            ("reconciled without a change", &self.unchanged),
        ];
        let mut lines = format!(
            "  {} with Flux's kustomize-controller:\n",
            super::table::title(self.load)
        );
        for ((step, phase), ours) in phases.into_iter().zip(ours) {
            let time = phase.time.as_secs_f64();
            let cpu = phase.cpu.get(NAME).copied().unwrap_or_default().as_secs_f64();
            lines += &format!(
                "    {step:<32} {time:>7.2} s   {:>5.1}x ours   CPU {cpu:>7.2} s   {} requests of all\n",
                time / ours,
                phase.all_requests()
            );
        }
        let [empty, idle, peak] = self.memory.map(mebibytes);
        lines + &format!("    memory {empty:.1} MiB empty, {idle:.1} MiB idle, {peak:.1} MiB peak\n")
    }
}
