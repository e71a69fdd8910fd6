//! Measures the notification-controller: events that eight senders post as fast as they are asked to.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use futures::{StreamExt as _, future::join_all, stream};
use testkit::eventually;

use super::measure::{mebibytes, print};
use crate::{
    cluster::{TIMEOUT, TestCluster},
    events::{EventSender, apply_alert, apply_provider, letters},
};

const NAME: &str = "notification-controller";
const SENDERS: usize = 8;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Numbers of Alerts, which are measured one after another; each event fits one of them
    #[arg(long, value_delimiter = ',', value_name = "ALERTS", default_values_t = [1, 100, 1000])]
    alerts: Vec<usize>,
    /// Events a second that the senders post together
    #[arg(long, default_value_t = 10_000)]
    rate: u32,
    /// Seconds of the load
    #[arg(long, default_value_t = 10)]
    seconds: u32,
}

#[derive(Debug, Default)]
struct Answers {
    accepted: AtomicUsize,
    refused: AtomicUsize,
    none: AtomicUsize,
}

pub async fn run(args: &Args) -> Result<()> {
    for alerts in &args.alerts {
        print(&Box::pin(measure(*alerts, args)).await?);
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "counts of some ten thousand")]
async fn measure(alerts: usize, args: &Args) -> Result<String> {
    let dir = tempfile::tempdir()?;
    let mut cluster = TestCluster::bare().await?;
    let journal = format!("--journal-path={}", dir.path().display());
    cluster.start(NAME, &[&journal]).await?;
    apply_provider(&cluster).await?;
    let applied = stream::iter(0..alerts).map(|index| {
        let (cluster, name) = (&cluster, source(index));
        async move { apply_alert(cluster, &name, &name).await }
    });
    let applied: Vec<Result<()>> = applied.buffer_unordered(8).collect().await;
    applied.into_iter().collect::<Result<()>>()?;
    let sender = EventSender::new(&cluster).await?;
    let controller = cluster.controller(NAME)?;
    let url = controller.events_url();
    let mut number = 0;
    eventually("the last Alert to be known", TIMEOUT, || {
        number += 1;
        let message = format!("first {}", letters(number));
        let (sender, url, cluster) = (&sender, &url, &cluster);
        async move {
            sender.post(url, &source(alerts - 1), &message).await?;
            ensure!(!cluster.sink.received().is_empty(), "nothing arrived");
            Ok(())
        }
    })
    .await?;
    drained(&cluster).await?;
    cluster.sink.clear();
    let before = controller.usage()?;
    let answers = Answers::default();
    let began = Instant::now();
    join_all((0..SENDERS).map(|lane| send(lane, alerts, args, &sender, &url, &answers))).await;
    let posted = began.elapsed();
    drained(&cluster).await?;
    let delivered = began.elapsed();
    let after = controller.usage()?;
    let accepted = answers.accepted.load(Ordering::Relaxed);
    let arrived = cluster.sink.received().len();
    let dropped = controller
        .metric("weir_notifications_total{result=\"dropped\",type=\"generic\"}")
        .await?;
    ensure!(
        arrived as f64 + dropped >= accepted as f64,
        "{accepted} were accepted, {arrived} arrived, {dropped} were dropped and counted"
    );
    let text = format!(
        "\n{alerts} Alerts, {} events a second from {SENDERS} senders for {} s\n  accepted {:>8.0} a second, {} refused with 503, {} without an answer\n  \
         delivered {:>7.0} a second, the last {:.2} s after the last post; {dropped} dropped and counted\n  memory {:.1} MiB before, {:.1} MiB at most; CPU {:.1} s",
        args.rate,
        args.seconds,
        rate(accepted, posted),
        answers.refused.load(Ordering::Relaxed),
        answers.none.load(Ordering::Relaxed),
        rate(arrived, delivered),
        delivered.saturating_sub(posted).as_secs_f64(),
        mebibytes(before.resident),
        mebibytes(after.peak),
        after.cpu.saturating_sub(before.cpu).as_secs_f64(),
    );
    cluster.stop().await?;
    Ok(text)
}

/// Posts the share of one sender, in pieces of ten milliseconds.
async fn send(lane: usize, alerts: usize, args: &Args, sender: &EventSender, url: &str, answers: &Answers) {
    const PIECE: Duration = Duration::from_millis(10);
    let each = args.rate as usize / SENDERS / 100;
    let mut clock = tokio::time::interval(PIECE);
    for piece in 0..args.seconds as usize * 100 {
        clock.tick().await;
        let posts = stream::iter(0..each).map(|index| async move {
            let number = (piece * each + index) * SENDERS + lane;
            let message = format!("event {}", letters(number));
            match sender.post(url, &source(number % alerts), &message).await {
                Ok(202) => &answers.accepted,
                Ok(_) => &answers.refused,
                Err(_) => &answers.none,
            }
            .fetch_add(1, Ordering::Relaxed)
        });
        posts
            .buffer_unordered(4)
            .for_each(|_| std::future::ready(()))
            .await;
    }
}

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

fn source(index: usize) -> String {
    format!("repo-{index}")
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}
