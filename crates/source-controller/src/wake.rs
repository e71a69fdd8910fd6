//! Wakes objects when a source that they use has a new artifact.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Debug,
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use api::Artifact;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use kube::{
    Api, Resource, ResourceExt,
    core::NamespaceResourceScope,
    runtime::watcher::{self, Event, watcher},
};
use runtime::{Context, ObjectKey, Trigger, watch_backoff::rest_after_errors};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

/// Remembers that an object uses others. Before, nothing is watched.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wake(Arc<(AtomicBool, Notify)>);

/// A source: its kind and its name. References never cross namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SourceName {
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// The sources that an object uses, and its artifact, if others may use it.
#[derive(Debug, Default)]
pub(crate) struct Links {
    pub(crate) uses: Vec<SourceName>,
    pub(crate) artifact: Option<Artifact>,
}

pub(crate) struct Change {
    kind: &'static str,
    key: ObjectKey,
    links: Option<Links>,
}

impl Wake {
    /// Starts to watch, unless that has started.
    pub(crate) fn start(&self) {
        if !self.0.0.swap(true, Ordering::Relaxed) {
            self.0.1.notify_one();
        }
    }

    /// Returns the requests for passes of the objects of the kind `user` whose sources have new artifacts, from the changes of all kinds
    /// concerned.
    pub(crate) fn triggers(
        &self,
        user: &'static str,
        changes: Vec<BoxStream<'static, Change>>,
    ) -> BoxStream<'static, Trigger> {
        let waiting = Arc::clone(&self.0);
        let begun = stream::once(async move { waiting.1.notified().await });
        // The watches start when they are polled first.
        let mut changes = Some(changes);
        begun
            .flat_map(move |()| stream::select_all(changes.take().unwrap_or_default()))
            .scan(Index::of(user), |index, change| ready(Some(index.apply(change))))
            .flat_map(stream::iter)
            .boxed()
    }
}

pub(crate) fn changes<K>(
    ctx: &Context,
    kind: &'static str,
    links: fn(&K) -> Links,
) -> BoxStream<'static, Change>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + 'static,
{
    let client = ctx.client().clone();
    let api: Api<K> = match ctx.flags().watch_namespace() {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    rest_after_errors(watcher(api, watcher::Config::default()))
        .filter_map(move |event| {
            let (object, is_gone) = match event {
                Ok(Event::Apply(object) | Event::InitApply(object)) => (object, false),
                Ok(Event::Delete(object)) => (object, true),
                Ok(Event::Init | Event::InitDone) | Err(_) => return ready(None),
            };
            let key = ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any());
            let links = (!is_gone).then(|| links(&object));
            ready(Some(Change { kind, key, links }))
        })
        .boxed()
}

type Version = (String, Option<String>);

/// The artifacts of all sources, and the objects of one kind that use them.
struct Index {
    user: &'static str,
    artifacts: HashMap<Source, Version>,
    users: HashMap<Source, BTreeSet<String>>,
    uses: HashMap<ObjectKey, Vec<Source>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Source {
    namespace: String,
    source: SourceName,
}

impl Index {
    fn of(user: &'static str) -> Self {
        Self {
            user,
            artifacts: HashMap::new(),
            users: HashMap::new(),
            uses: HashMap::new(),
        }
    }

    /// Notes a change, and returns the objects to wake.
    fn apply(&mut self, change: Change) -> Vec<Trigger> {
        let Change { kind, key, links } = change;
        let is_gone = links.is_none();
        let links = links.unwrap_or_default();
        if kind == self.user {
            self.note_uses(&key, links.uses);
        }
        let own = Source {
            namespace: key.namespace.clone(),
            source: SourceName {
                kind: kind.to_owned(),
                name: key.name.clone(),
            },
        };
        let version = links
            .artifact
            .map(|artifact| (artifact.revision, artifact.digest));
        let Some(version) = version else {
            if is_gone {
                self.artifacts.remove(&own);
            }
            return Vec::new();
        };
        let past = self.artifacts.insert(own.clone(), version.clone());
        if past.as_ref() == Some(&version) {
            return Vec::new();
        }
        let users = self.users.get(&own).into_iter().flatten();
        let others = users.filter(|name| kind != self.user || **name != key.name);
        others
            .map(|name| Trigger::from(ObjectKey::new(key.namespace.clone(), name.clone())))
            .collect()
    }

    fn note_uses(&mut self, key: &ObjectKey, uses: Vec<SourceName>) {
        let namespace = || key.namespace.clone();
        let uses: Vec<Source> = uses
            .into_iter()
            .map(|source| Source {
                namespace: namespace(),
                source,
            })
            .collect();
        let past = match uses.is_empty() {
            true => self.uses.remove(key),
            false => self.uses.insert(key.clone(), uses.clone()),
        };
        for source in past.into_iter().flatten() {
            if let Some(users) = self.users.get_mut(&source) {
                users.remove(&key.name);
                if users.is_empty() {
                    self.users.remove(&source);
                }
            }
        }
        for source in uses {
            self.users.entry(source).or_default().insert(key.name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(
        kind: &'static str,
        (namespace, name): (&str, &str),
        uses: &[(&str, &str)],
        digest: &str,
    ) -> Change {
        let uses = uses.iter().map(|(kind, name)| SourceName {
            kind: (*kind).to_owned(),
            name: (*name).to_owned(),
        });
        let artifact = (!digest.is_empty()).then(|| Artifact {
            digest: Some(digest.to_owned()),
            ..Artifact::default()
        });
        Change {
            kind,
            key: ObjectKey::new(namespace.to_owned(), name.to_owned()),
            links: Some(Links {
                uses: uses.collect(),
                artifact,
            }),
        }
    }

    #[test]
    fn new_artifacts_wake_the_objects_of_the_namespace_that_use_them() {
        let mut index = Index::of("User");
        let mut woken = |change: Change| {
            let triggers = index.apply(change).into_iter();
            triggers.map(|trigger| trigger.key.name).collect::<Vec<_>>()
        };
        let lib = [("User", "lib"), ("Other", "x")];
        assert_eq!(woken(change("User", ("a", "app"), &lib, "1")), [""; 0]);
        assert_eq!(woken(change("User", ("b", "other"), &lib, "1")), [""; 0]);
        assert_eq!(woken(change("User", ("a", "lib"), &[], "1")), ["app"]);
        assert_eq!(woken(change("User", ("a", "lib"), &[], "1")), [""; 0]);
        // An object that uses itself isn't woken by itself.
        assert_eq!(
            woken(change("User", ("a", "lib"), &[("User", "lib")], "2")),
            ["app"]
        );
        assert_eq!(woken(change("Other", ("a", "x"), &[], "1")), ["app"]);
        assert_eq!(woken(change("Third", ("a", "x"), &[], "1")), [""; 0]);
        // It uses another source now.
        assert_eq!(
            woken(change("User", ("a", "app"), &[("Other", "y")], "1")),
            [""; 0]
        );
        assert_eq!(woken(change("Other", ("a", "x"), &[], "2")), [""; 0]);
        assert_eq!(woken(change("Other", ("a", "y"), &[], "1")), ["app"]);
        let gone = Change {
            links: None,
            ..change("User", ("a", "app"), &[], "")
        };
        assert_eq!(woken(gone), [""; 0]);
        assert_eq!(woken(change("Other", ("a", "y"), &[], "2")), [""; 0]);
    }
}
