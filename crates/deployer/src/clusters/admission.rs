//! A watch of the webhooks and policies of the controller's own cluster, for all deployments: it tells when their rules have to be read again.
//!
//! It has the rights of the controller, and shares its objects with nobody: each identity reads the rules by itself. It runs while rules are used.
//! Without the right to watch, they expire after a while.

use std::{collections::HashSet, time::Duration};

use cluster::{AdmissionWatch, Cluster};
use futures::{StreamExt as _, stream};
use kube::{
    Client,
    runtime::watcher::{self, Event, watcher},
};
use runtime::Context;
use tokio::time;

use crate::objects::metadata_of;

/// Pause after the watch broke off.
const PAUSE: Duration = Duration::from_secs(60);
/// Interval of looking if the rules are still used.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Keeps the watch from the moment this process leads until its shutdown.
pub(crate) fn keep(ctx: &Context, cluster: Cluster) {
    let ctx = ctx.clone();
    tokio::spawn(async move {
        if ctx.leader().await.is_ok() {
            let client = ctx.client().clone();
            let _ = ctx.shutdown().run_until_cancelled(run(client, cluster)).await;
        }
    });
}

async fn run(client: Client, cluster: Cluster) {
    let watch = cluster.admission_watch();
    loop {
        watch.asked().await;
        let ended = while_used(&client, &cluster, &watch).await;
        watch.ended();
        if let Err(error) = ended {
            tracing::debug!(error = %api::redact(&error), "the watch of webhooks and policies broke off");
            time::sleep(PAUSE).await;
        }
    }
}

/// Watches all kinds, and tells of changes, until the rules are not used any more.
async fn while_used(client: &Client, cluster: &Cluster, watch: &AdmissionWatch) -> Result<(), String> {
    let kinds = cluster
        .admission_kinds()
        .await
        .map_err(|error| error.to_string())?;
    let watches = kinds.iter().enumerate().map(|(number, kind)| {
        let events = watcher(metadata_of(client, kind), watcher::Config::default());
        events.map(move |event| (number, event)).boxed()
    });
    let mut events = stream::select_all(watches);
    let (mut listed, mut look) = (HashSet::new(), time::interval(CHECK_INTERVAL));
    loop {
        let (number, event) = tokio::select! {
            event = events.next() => event.ok_or("there are no such kinds")?,
            _ = look.tick() => match watch.is_used() {
                true => continue,
                false => return Ok(()),
            },
        };
        match event.map_err(|error| error.to_string())? {
            Event::Init | Event::InitApply(_) => continue,
            Event::InitDone => drop(listed.insert(number)),
            Event::Apply(_) | Event::Delete(_) => {}
        }
        if listed.len() == kinds.len() {
            watch.changed();
        }
    }
}
