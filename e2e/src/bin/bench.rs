//! `make bench`: many pairs of GitRepository and KluctlDeployment, measured.

use anyhow::Result;
use clap::Parser;
use e2e::{fleet, stage::Stage};

/// Measures time, memory and processor with many pairs of GitRepository and KluctlDeployment.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Args {
    /// How many pairs; several numbers are measured one after another.
    #[arg(long, value_delimiter = ',', default_values_t = [50, 200])]
    pairs: Vec<usize>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let stage = Stage::new();
    for pairs in args.pairs {
        let figures = fleet::measure(pairs, |text| stage.say(text)).await?;
        stage.say(&figures.table());
    }
    Ok(())
}
