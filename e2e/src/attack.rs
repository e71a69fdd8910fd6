//! Two tenants on the default overlay: one attacks, and the other's deployments stay correct and on time.

pub mod attacks;
pub mod availability;
pub mod inputs;
pub mod memory;
pub mod requests;
pub mod tenants;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::report::{Report, seconds};
use requests::foreign;
use tenants::Tenants;

/// Deployments of the victim that are measured, without and with the attack.
const ROUNDS: u32 = 4;
/// Allowance of a deployment under attack, added to twice the time of the slowest one without it: two cores do everything.
const ALLOWANCE: Duration = Duration::from_secs(5);
/// The most memory of a controller, in bytes.
const MEMORY: u64 = 256 << 20;

#[derive(Debug, clap::Args)]
pub struct Args {}

pub async fn run(_: &Args) -> Result<()> {
    let mut report = Report::new();
    let played = play(&mut report).await;
    report.print(&report.table());
    played
}

/// Plays the attack.
pub async fn play(report: &mut Report) -> Result<()> {
    let tenants = Tenants::start().await?;
    let mark = tenants.cluster.plane.audit_mark();
    let mut before = Vec::new();
    report
        .step("the victim deploys without an attack", async {
            tenants.victim_begins().await?;
            availability::victim_begins(&tenants).await?;
            inputs::victim_begins(&tenants).await?;
            before = measure(&tenants, 1).await?;
            Ok(table(&before))
        })
        .await?;
    let normal = requests::shapes(&tenants.cluster.plane.audit_since(mark)?);
    let attacked = tenants.cluster.plane.audit_mark();
    // Before the silent servers, which keep the attacker's own fetches waiting.
    report
        .step("small inputs that need much memory are refused", async {
            let refused = memory::small_inputs(&tenants).await?;
            Ok(format!("{refused}: {}", peak(&tenants)?))
        })
        .await?;
    let mut running = None;
    report
        .step("the attacker applies everything", async {
            let others = attacks::start(&tenants).await?;
            running = Some(availability::start(&tenants).await?);
            inputs::start(&tenants).await?;
            Ok(format!("{others}, and ten that would hold the shares of others"))
        })
        .await?;
    let running = running.context("the attack is not running")?;
    // Whatever its outcome is, the others are worth knowing.
    let on_time = report
        .step("the victim deploys on time", async {
            let after = measure(&tenants, 1 + ROUNDS).await?;
            ensure!(
                longest(&after) <= 2 * longest(&before) + ALLOWANCE,
                "the deployments took {} under attack, and {} before",
                table(&after),
                table(&before)
            );
            Ok(table(&after))
        })
        .await;
    report
        .step("each attack is refused by name", attacks::refused(&tenants))
        .await?;
    report
        .step(
            "no attack holds the shares of others",
            availability::refused(&tenants, &running),
        )
        .await?;
    report
        .step(
            "no filter, path or port is the attacker's",
            inputs::refused(&tenants),
        )
        .await?;
    report
        .step("no request reached the victim's namespace", async {
            let entries = tenants.cluster.plane.audit_since(attacked)?;
            let foreign = foreign(&normal, &entries);
            ensure!(foreign.is_empty(), "requests of the attack: {foreign:#?}");
            Ok(format!("{} requests", entries.len()))
        })
        .await?;
    report
        .step("the controllers stay small", async { peak(&tenants) })
        .await?;
    tenants.stop().await?;
    on_time
}

/// Deploys some times for the victim, and returns the times from each push to the changed object.
async fn measure(tenants: &Tenants, first: u32) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for number in first..first + ROUNDS {
        let started = Instant::now();
        tenants.victim_pushes(number).await?;
        times.push(started.elapsed());
    }
    Ok(times)
}

fn longest(times: &[Duration]) -> Duration {
    times.iter().max().copied().unwrap_or_default()
}

fn table(times: &[Duration]) -> String {
    let times: Vec<String> = times.iter().map(|time| seconds(*time)).collect();
    times.join(", ")
}

fn peak(tenants: &Tenants) -> Result<String> {
    let mut peaks = Vec::new();
    for controller in &tenants.cluster.controllers {
        let peak = controller.usage().context("a controller ended")?.peak;
        ensure!(peak < MEMORY, "{} had {} MiB", controller.name(), peak >> 20);
        peaks.push(format!("{} {} MiB", controller.name(), peak >> 20));
    }
    Ok(peaks.join(", "))
}
