//! `make fault`: the controllers are killed at seeded moments of a deployment.

use anyhow::Result;
use clap::Parser;
use e2e::{crash, stage::Stage};

/// Kills all controllers at seeded moments of a deployment, and looks at what is left.
#[derive(Debug, Parser)]
#[command(name = "fault")]
struct Args {
    /// Where the moments come from; a fresh one is drawn and printed without it.
    #[arg(long)]
    seed: Option<u64>,
    /// How often to kill.
    #[arg(long, default_value_t = 10)]
    rounds: u32,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut stage = Stage::new();
    let played = crash::play(
        &mut stage,
        args.seed.unwrap_or_else(|| fastrand::u64(..)),
        args.rounds,
    )
    .await;
    stage.say(&stage.table());
    played
}
