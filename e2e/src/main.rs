//! The program behind `make demo`, `make fault` and the `make bench*` targets.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use e2e::{attack, bench, demo, fault};

/// Runs the real binaries against a real control plane.
#[derive(Debug, Parser)]
#[command(name = "e2e")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Deploy an example from a Git push to running workloads, and report each step
    Demo(demo::Args),
    /// Kill the controllers at seeded moments and after each write, and disturb their peers
    Fault(fault::Args),
    /// Attack a tenant from another namespace, and compare the times and requests of both
    Attack(attack::Args),
    /// Measure many pairs of GitRepository and KluctlDeployment: time, memory and CPU
    Bench(bench::pairs::Args),
    /// Measure KluctlDeployments of `gitops.kluctl.io` while nothing changes
    BenchGitops(bench::gitops::Args),
    /// Measure Kustomizations and their sources beside Flux's own controller and the API server alone
    BenchKustomizations(bench::kustomizations::Args),
    /// Measure the notification-controller with many events at once
    BenchEvents(bench::events::Args),
    /// Measure the source-controller: many repositories, large ones, and its artifact server beside nginx
    BenchSources(bench::sources::Args),
    /// Measure `weir kustomize build` beside kustomize
    BenchKustomize(bench::kustomize::Args),
    /// Measure `weir helm template` beside helm
    BenchHelm(bench::helm::Args),
    /// Measure the commands of `weir` with kluctl projects of several sizes
    BenchKluctl(bench::kluctl::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    // More than one provider may be linked in, so rustls needs to be told which one to use.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let measures = !matches!(
        args.command,
        Command::Demo(_) | Command::Fault(_) | Command::Attack(_)
    );
    if measures {
        testkit::statuses::leave_unwatched();
    }
    let result = match args.command {
        Command::Demo(args) => demo::run(&args).await,
        Command::Fault(args) => fault::run(&args).await,
        Command::Attack(args) => attack::run(&args).await,
        Command::Bench(args) => bench::pairs::run(&args).await,
        Command::BenchGitops(args) => bench::gitops::run(&args).await,
        Command::BenchKustomizations(args) => bench::kustomizations::run(&args).await,
        Command::BenchEvents(args) => bench::events::run(&args).await,
        Command::BenchSources(args) => bench::sources::run(&args).await,
        Command::BenchKustomize(args) => bench::kustomize::run(&args),
        Command::BenchHelm(args) => bench::helm::run(&args),
        Command::BenchKluctl(args) => bench::kluctl::run(&args).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            bench::measure::print(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
