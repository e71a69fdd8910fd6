//! Wakes GitRepositories when what they include has a new artifact.

use std::{
    collections::HashMap,
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use api::source::GitRepository;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use kube::{
    Api, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use runtime::{Context, ObjectKey, Trigger};
use tokio::sync::Notify;

/// Remembers that an object has includes. Until then, nothing is watched.
#[derive(Debug, Clone, Default)]
pub(super) struct Wake(Arc<(AtomicBool, Notify)>);

impl Wake {
    /// Begins to watch, if that has not begun.
    pub(super) fn start(&self) {
        if !self.0.0.swap(true, Ordering::Relaxed) {
            self.0.1.notify_one();
        }
    }

    /// Returns the requests for passes of objects whose includes have new artifacts.
    pub(super) fn triggers(&self, ctx: &Context) -> BoxStream<'static, Trigger> {
        let (client, namespace) = (ctx.client().clone(), ctx.flags().watch_namespace());
        let api: Api<GitRepository> = match namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        };
        let waiting = Arc::clone(&self.0);
        let begun = stream::once(async move { waiting.1.notified().await });
        begun
            .flat_map(move |()| watcher(api.clone(), watcher::Config::default()).default_backoff())
            .filter_map(|event| ready(event.ok()))
            .scan(Index::default(), |index, event| ready(Some(index.apply(event))))
            .flat_map(stream::iter)
            .boxed()
    }
}

/// The artifacts and includes of all objects.
#[derive(Default)]
struct Index(HashMap<ObjectKey, Known>);

#[derive(Default, PartialEq)]
struct Known {
    /// Revision and digest of the artifact.
    artifact: Option<(String, Option<String>)>,
    includes: Vec<String>,
}

impl Index {
    /// Notes an event, and returns the objects to wake.
    fn apply(&mut self, event: Event<GitRepository>) -> Vec<Trigger> {
        match event {
            Event::Apply(object) | Event::InitApply(object) => self.note(&object),
            Event::Delete(object) => {
                self.0.remove(&key(&object));
                Vec::new()
            }
            Event::Init | Event::InitDone => Vec::new(),
        }
    }

    fn note(&mut self, object: &GitRepository) -> Vec<Trigger> {
        let key = key(object);
        let artifact = object.status.as_ref().and_then(|status| status.artifact.as_ref());
        let artifact = artifact.map(|artifact| (artifact.revision.clone(), artifact.digest.clone()));
        let includes = object.spec.include.iter();
        let includes = includes.map(|include| include.repository.name.clone()).collect();
        let known = Known { artifact, includes };
        let past = self.0.get(&key);
        let is_new = known.artifact.is_some() && past.is_none_or(|past| past.artifact != known.artifact);
        self.0.insert(key.clone(), known);
        if !is_new {
            return Vec::new();
        }
        let others = self.0.iter().filter(|(other, known)| {
            other.namespace == key.namespace && other.name != key.name && known.includes.contains(&key.name)
        });
        others.map(|(other, _)| Trigger::from(other.clone())).collect()
    }
}

fn key(object: &GitRepository) -> ObjectKey {
    ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any())
}

#[cfg(test)]
mod tests {
    use api::{Artifact, source::GitRepositorySpec};

    use super::*;

    fn object(namespace: &str, name: &str, includes: &[&str], digest: &str) -> GitRepository {
        let include = |name: &&str| api::source::GitRepositoryInclude {
            repository: api::LocalObjectReference {
                name: (*name).to_owned(),
            },
            ..Default::default()
        };
        let spec = GitRepositorySpec {
            include: includes.iter().map(include).collect(),
            ..GitRepositorySpec::default()
        };
        let mut object = GitRepository::new(name, spec);
        object.metadata.namespace = Some(namespace.to_owned());
        object.status = Some(api::source::GitRepositoryStatus {
            artifact: Some(Artifact {
                digest: Some(digest.to_owned()),
                ..Artifact::default()
            }),
            ..Default::default()
        });
        object
    }

    #[test]
    fn new_artifacts_wake_the_objects_of_the_namespace_that_include_them() {
        let mut index = Index::default();
        let mut woken = |object: GitRepository| {
            let triggers = index.apply(Event::Apply(object));
            triggers
                .into_iter()
                .map(|trigger| trigger.key.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(woken(object("a", "app", &["lib"], "1")), [""; 0]);
        assert_eq!(woken(object("b", "other", &["lib"], "1")), [""; 0]);
        assert_eq!(woken(object("a", "lib", &[], "1")), ["app"]);
        assert_eq!(woken(object("a", "lib", &[], "1")), [""; 0]);
        assert_eq!(woken(object("a", "lib", &["lib"], "2")), ["app"]);
    }
}
