//! A watch of the webhooks and policies of the controller's own cluster, for all deployments: it reports when their rules have to be read again.
//!
//! It has the rights of the controller, and shares its objects with nobody: each identity reads the rules by itself. It runs while rules are used.
//! Without the right to watch, they expire after a while.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use cluster::{AdmissionWatch, Cluster};
use futures::{StreamExt as _, stream};
use kube::{
    Client, Resource, ResourceExt as _,
    runtime::watcher::{self, Event, watcher},
};
use runtime::Context;
use tokio::time;

use crate::objects::metadata_of;

/// Pause after the watch broke off.
const PAUSE: Duration = Duration::from_secs(60);
/// Interval at which the use of the rules is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Runs the watch from the moment this process leads until its shutdown.
pub(crate) fn spawn_watch(ctx: &Context, cluster: Cluster) {
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

/// Watches all kinds, and reports changes, until the rules are not used any more.
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
    let mut generations: HashMap<usize, Generations> = HashMap::new();
    let (mut listed, mut check) = (HashSet::new(), time::interval(CHECK_INTERVAL));
    loop {
        let (number, event) = tokio::select! {
            event = events.next() => event.ok_or("there are no such kinds")?,
            _ = check.tick() => match watch.is_used() {
                true => continue,
                false => return Ok(()),
            },
        };
        let event = event.map_err(|error| error.to_string())?;
        let changed = generations.entry(number).or_default().changed(&event);
        if matches!(event, Event::InitDone) {
            listed.insert(number);
        }
        if changed && listed.len() == kinds.len() {
            watch.changed();
        }
    }
}

/// Generations of the objects of a kind by name. Rules only change with them: the controller-manager writes a status of each
/// policy after its creation, which does not count.
#[derive(Default)]
struct Generations(HashMap<String, (String, i64)>);

impl Generations {
    /// Returns true if the event may change rules: the end of a list does, and objects without a generation always.
    fn changed<K: Resource>(&mut self, event: &Event<K>) -> bool {
        match event {
            Event::Init => {
                self.0.clear();
                false
            }
            Event::InitApply(object) => {
                self.replace(object);
                false
            }
            Event::InitDone => true,
            Event::Apply(object) => self.replace(object),
            Event::Delete(object) => {
                self.0.remove(&object.name_any());
                true
            }
        }
    }

    fn replace<K: Resource>(&mut self, object: &K) -> bool {
        let Some(generation) = object.meta().generation else {
            return true;
        };
        let state = (object.uid().unwrap_or_default(), generation);
        self.0.insert(object.name_any(), state.clone()).as_ref() != Some(&state)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::core::ObjectMeta;

    use super::*;

    fn object(uid: &str, generation: Option<i64>) -> ConfigMap {
        let metadata = ObjectMeta {
            name: Some("rules".to_owned()),
            uid: Some(uid.to_owned()),
            generation,
            ..ObjectMeta::default()
        };
        ConfigMap {
            metadata,
            ..ConfigMap::default()
        }
    }

    #[test]
    fn rules_change_with_generations_deletions_and_lists() {
        let mut generations = Generations::default();
        for (event, expected) in [
            (Event::Init, false),
            (Event::InitApply(object("a", Some(1))), false),
            (Event::InitDone, true),
            // A write of the status.
            (Event::Apply(object("a", Some(1))), false),
            (Event::Apply(object("a", Some(2))), true),
            (Event::Apply(object("b", Some(2))), true),
            (Event::Delete(object("b", Some(2))), true),
            (Event::Apply(object("b", Some(2))), true),
            (Event::Apply(object("b", None)), true),
            (Event::Init, false),
            (Event::InitDone, true),
            (Event::Apply(object("b", Some(2))), true),
        ] {
            assert_eq!(generations.changed(&event), expected, "{event:?}");
        }
    }
}
