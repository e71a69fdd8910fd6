//! Measures the source-controller: many repositories at once and without a change, large ones beside Git itself, and its artifact server
//! beside nginx.

mod generated;
mod large;
mod load;
mod many;
mod serving;

use std::{process, time::Duration};

use anyhow::{Context as _, Result};
use testkit::process::Usage;

use super::measure::print;
use crate::cluster::TestCluster;

/// The only controller that runs.
const NAME: &str = "source-controller";

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Repositories that are created at once, and then do not change
    Many,
    /// First artifacts beside `git clone` and `git archive`
    Large,
    /// The artifact server beside nginx
    Serving,
}

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Numbers of GitRepositories, which are measured one after another; each has its own repository
    #[arg(long, value_delimiter = ',', value_name = "OBJECTS", default_values_t = [1, 50, 200, 1000])]
    objects: Vec<usize>,
    /// Parts that are measured; all if none is named
    #[arg(long, value_delimiter = ',', value_enum)]
    only: Vec<Part>,
}

pub async fn run(args: &Args) -> Result<()> {
    let measured = |part| args.only.is_empty() || args.only.contains(&part);
    if measured(Part::Many) {
        for objects in &args.objects {
            print(&Box::pin(many::measure(*objects)).await?);
        }
    }
    if measured(Part::Large) {
        print(&Box::pin(large::measure()).await?);
    }
    if measured(Part::Serving) {
        print(&Box::pin(serving::measure()).await?);
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct Cpu {
    controller: Duration,
    git: Duration,
    api: Duration,
}

impl Cpu {
    fn read(cluster: &TestCluster) -> Result<Self> {
        Ok(Self {
            controller: cluster.controller(NAME)?.usage()?.cpu,
            git: ended_children()?,
            api: cluster.plane.usage("kube-apiserver")?.cpu,
        })
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            controller: self.controller.saturating_sub(earlier.controller),
            git: self.git.saturating_sub(earlier.git),
            api: self.api.saturating_sub(earlier.api),
        }
    }
}

/// Returns the CPU time of all programs that this process started and that have ended: `git upload-pack` is among them.
fn ended_children() -> Result<Duration> {
    Ok(Usage::of(process::id()).context("this process")?.children_cpu)
}
