//! Kills the notification-controller while it takes and delivers events: none that it accepted is lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use testkit::eventually;

use crate::{
    cluster::{TIMEOUT, TestCluster},
    events::{EventSender, apply_alert, apply_provider, letters},
    report::Report,
};

const NAME: &str = "notification-controller";
const KILLS: usize = 200;
const EVENTS: usize = 24;
/// The latest moment of a kill: a round's events are accepted and delivered within it.
const LATEST: Duration = Duration::from_millis(40);

#[derive(Debug, Default)]
struct Sums {
    accepted: usize,
    repeated: usize,
    /// Rounds in which the kill left accepted events in the journal.
    replayed: usize,
}

/// Kills the controller at seeded moments after the first event of a round, and checks the arrived events.
pub async fn accepted_events_survive(report: &mut Report, seed: u64) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let journal = format!("--journal-path={}", dir.path().display());
    let mut cluster = TestCluster::bare().await?;
    let flags = [journal.as_str(), "--enable-leader-election=false"];
    cluster.start(NAME, &flags).await?;
    let sender = EventSender::new(&cluster).await?;
    alert(&cluster, &sender).await?;
    let title = format!("{NAME} is killed {KILLS} times while it takes events (seed {seed})");
    report
        .step(&title, async {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut sums = Sums::default();
            for round in 0..KILLS {
                let moment = LATEST.mul_f64(random.f64());
                let played = self::round(&mut cluster, round, moment, &sender, &mut sums).await;
                played.with_context(|| format!("round {round}, killed after {moment:?}"))?;
            }
            ensure!(
                sums.replayed > KILLS / 10,
                "only {} kills met events",
                sums.replayed
            );
            Ok(format!(
                "{} accepted events arrived, {} of them twice; {} kills left some",
                sums.accepted, sums.repeated, sums.replayed
            ))
        })
        .await?;
    cluster.stop().await
}

async fn alert(cluster: &TestCluster, sender: &EventSender) -> Result<()> {
    apply_provider(cluster).await?;
    apply_alert(cluster, "hook", "*").await?;
    let url = cluster.controller(NAME)?.events_url();
    let mut number = 0;
    eventually("the first event", TIMEOUT, || {
        number += 1;
        let message = format!("attempt with the letter {}", letters(number));
        let url = &url;
        async move {
            sender.post(url, "shop", &message).await?;
            ensure!(!cluster.sink.received().is_empty(), "nothing arrived");
            Ok(())
        }
    })
    .await?;
    drained(cluster).await
}

/// Posts events until the kill, restarts the controller, and waits for the accepted events.
async fn round(
    cluster: &mut TestCluster,
    round: usize,
    moment: Duration,
    sender: &EventSender,
    sums: &mut Sums,
) -> Result<()> {
    cluster.sink.clear();
    let accepted = Mutex::new(BTreeSet::new());
    let controller = cluster.controller(NAME)?;
    let url = controller.events_url();
    let posts = stream::iter(0..EVENTS).for_each_concurrent(8, |number| {
        let message = format!("event {} of {}", letters(number), letters(round));
        let (url, accepted) = (&url, &accepted);
        async move {
            if sender
                .post(url, "shop", &message)
                .await
                .is_ok_and(|status| status == 202)
            {
                accepted.lock().insert(message);
            }
        }
    });
    let kill = async {
        tokio::time::sleep(moment).await;
        controller.kill().await
    };
    let ((), killed) = tokio::join!(posts, kill);
    killed?;
    let accepted = accepted.into_inner();
    let running = cluster
        .controllers
        .iter_mut()
        .find(|controller| controller.name() == NAME);
    running.context("it was started")?.restart().await?;
    eventually("all accepted events", TIMEOUT, || async {
        let counts = arrived(cluster);
        let missing: Vec<&String> = accepted
            .iter()
            .filter(|message| !counts.contains_key(*message))
            .collect();
        ensure!(missing.is_empty(), "{missing:?} are missing");
        Ok(())
    })
    .await?;
    drained(cluster).await?;
    let counts = arrived(cluster);
    for (message, count) in &counts {
        ensure!(*count <= 2, "{message} arrived {count} times");
    }
    let replayed = cluster
        .controller(NAME)?
        .metric("weir_notification_events_replayed_total")
        .await?;
    sums.accepted += accepted.len();
    sums.repeated += counts.values().filter(|count| **count == 2).count();
    sums.replayed += usize::from(replayed > 0.0);
    Ok(())
}

/// Waits until the journal has no event, so that the next kill meets none of this round.
async fn drained(cluster: &TestCluster) -> Result<()> {
    eventually("an empty journal", TIMEOUT, || async {
        let pending = cluster
            .controller(NAME)?
            .metric("weir_notification_events_pending")
            .await?;
        ensure!(pending.abs() < f64::EPSILON, "{pending} events are left");
        Ok(())
    })
    .await
}

fn arrived(cluster: &TestCluster) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in cluster.sink.received() {
        let message = request.json()["message"].as_str().unwrap_or_default().to_owned();
        *counts.entry(message).or_default() += 1;
    }
    counts
}
