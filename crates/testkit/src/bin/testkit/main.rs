//! Builds, starts and stops the test control plane.

mod up;

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use testkit::{
    ControlPlane, NotarySigner, Options, Prometheus, SshServer, controlplane::binaries::Binaries,
    flux_controllers, oracle, process::sweep, progress::say,
};

/// A real Kubernetes control plane on this machine, without containers.
#[derive(Debug, Parser)]
#[command(name = "testkit", version)]
struct Cli {
    /// The folder for the kubeconfig and the state of `up`.
    #[arg(long, global = true, default_value = ".weir")]
    dir: PathBuf,
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build the control plane into the cache, once
    Build {
        /// Build the programs that only tests need, too
        #[arg(long)]
        tests: bool,
        /// Build the `flux` command line, too, which takes minutes
        #[arg(long)]
        flux: bool,
        /// Build the notification-controller of Flux, too, which takes minutes
        #[arg(long)]
        flux_notification: bool,
        /// Build the kustomize-controller and the helm-controller of Flux, too, which takes minutes
        #[arg(long)]
        flux_consumers: bool,
    },
    /// Start a control plane with our controllers in the background
    Up {
        /// Start the control plane alone
        #[arg(long)]
        bare: bool,
    },
    /// Stop the processes that `up` started
    Down,
    /// Print the running processes
    Status,
    /// Print the path of the kubeconfig
    Kubeconfig,
    /// Start a control plane, print its folder, and hold it until standard input ends
    #[command(hide = true)]
    Hold,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let dir = std::path::absolute(&cli.dir).context("the folder has no absolute path")?;
    match &cli.command {
        Task::Build {
            tests,
            flux,
            flux_notification,
            flux_consumers,
        } => {
            let binaries = Binaries::resolve()?;
            if *tests {
                Prometheus::resolve()?;
                SshServer::prepare()?;
                NotarySigner::resolve()?;
                oracle::kustomize()?;
                oracle::helm()?;
                oracle::helm_templates()?;
            }
            if *flux {
                testkit::flux::build()?;
            }
            if *flux_notification {
                flux_controllers::NOTIFICATION.build()?;
            }
            if *flux_consumers {
                flux_controllers::KUSTOMIZE.build()?;
            }
            let kubectl = binaries.path("kubectl").display().to_string();
            say(format_args!(
                "control plane: ready to start; kubectl is {kubectl}"
            ));
            sweep()
        }
        Task::Up { bare } => runtime.block_on(up::up(&dir, *bare)),
        Task::Down => up::down(&dir),
        Task::Status => up::status(&dir),
        Task::Kubeconfig => print(&up::kubeconfig(&dir)?.display().to_string()),
        Task::Hold => runtime.block_on(hold()),
    }
}

async fn hold() -> Result<()> {
    let plane = ControlPlane::start(Options::default()).await?;
    print(&plane.dir().display().to_string())?;
    tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await??;
    plane.stop()
}

fn print(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
