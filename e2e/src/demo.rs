//! The demo: a Git push becomes running workloads, on a real control plane.

pub mod eras;
pub mod mesh;
pub mod project;
pub mod shop;
mod successor;
mod webhook;

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use futures::future::BoxFuture;

use crate::{
    cluster::{CONTROLLERS, TestCluster},
    report::Report,
};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Leave everything running at the end, and print what to try
    #[arg(long)]
    keep: bool,
    /// Folder that becomes the Git repository, instead of the bundled example
    #[arg(long, value_name = "DIR", requires = "target")]
    example: Option<PathBuf>,
    /// Folder of the kluctl project within the example
    #[arg(long, value_name = "SUBDIR", default_value = ".")]
    project: String,
    /// Targets to deploy
    #[arg(long, value_name = "NAME[,NAME]", value_delimiter = ',')]
    target: Vec<String>,
}

pub async fn run(args: &Args) -> Result<()> {
    let mut report = Report::new();
    let played = play(&mut report, args).await;
    report.print(&report.table());
    played?;
    ensure!(report.all_passed(), "some steps failed");
    Ok(())
}

async fn play(report: &mut Report, args: &Args) -> Result<()> {
    let mut cluster = None;
    report
        .step(
            "a control plane starts (etcd, kube-apiserver, controller-manager, scheduler, kwok)",
            async {
                let started = TestCluster::bare().await?;
                let server = format!("{}, with CRDs and RBAC", started.plane.server());
                cluster = Some(started);
                Ok(server)
            },
        )
        .await?;
    let mut cluster = cluster.context("the control plane did not start")?;
    report
        .step("the controllers start, each as its own service account", async {
            for &name in CONTROLLERS {
                cluster.start(name, &[]).await?;
            }
            Ok(CONTROLLERS.join(", "))
        })
        .await?;
    let played = match &args.example {
        Some(example) => {
            let project = project::Project {
                example,
                path: &args.project,
                targets: args.target.iter().map(String::as_str).collect(),
            };
            boxed(|| project::play(report, &cluster, &project)).await
        }
        None => boxed(|| shop::play(report, &cluster)).await,
    };
    if played.is_err() {
        print_logs(report, &cluster);
    }
    if args.keep {
        keep(
            report,
            &cluster,
            if args.example.is_some() { "example" } else { "shop" },
        )
        .await?;
    }
    played?;
    cluster.stop().await
}

/// Boxes the future of some steps. It is made here and not in the frame of the caller, where the futures of all steps together are
/// too large for the stack of a test's thread.
#[inline(never)]
pub fn boxed<'a, T, F>(steps: impl FnOnce() -> F) -> BoxFuture<'a, Result<T>>
where
    F: Future<Output = Result<T>> + Send + 'a,
{
    Box::pin(steps())
}

fn print_logs(report: &Report, cluster: &TestCluster) {
    for controller in &cluster.controllers {
        let log = controller.log();
        let lines: Vec<&str> = log.lines().rev().take(15).collect();
        report.print(&format!("\n-- end of the log of {}:", controller.name()));
        for line in lines.iter().rev() {
            report.print(line);
        }
    }
}

async fn keep(report: &Report, cluster: &TestCluster, repository: &str) -> Result<()> {
    report.print(&format!(
        "\nEverything is still running. In another terminal:\n\n  export KUBECONFIG={}\n  \
         kubectl get gitrepositories,kluctldeployments -n flux-system\n  \
         kubectl describe kluctldeployment -n flux-system\n  \
         git clone {}/{repository}.git   # commit and push, and watch it roll out\n",
        cluster.plane.kubeconfig().display(),
        cluster.git.origin(),
    ));
    for controller in &cluster.controllers {
        report.print(&format!(
            "  {}: log {}, metrics http://{}/metrics",
            controller.name(),
            controller.log_file().display(),
            controller.addresses().metrics
        ));
    }
    report.print("\nCtrl-C stops everything.");
    tokio::signal::ctrl_c().await?;
    Ok(())
}
