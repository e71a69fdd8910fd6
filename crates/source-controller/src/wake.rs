//! Wakes objects when a source that they use has a new artifact.
//!
//! Sources are watched untyped, and their links are read one by one: an object that doesn't decode stops no watch.

use std::{
    collections::{BTreeSet, HashMap},
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use api::SourceView;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use kube::{
    Resource,
    core::{ApiResource, DynamicObject, NamespaceResourceScope},
};
use runtime::{
    Context, ObjectKey, Trigger,
    triggers::{Change, Effect, Known, Watched, WatchedFields, api_of, watch},
};
use tokio::sync::Notify;

/// Remembers that an object uses others. Before, nothing is watched.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wake(Arc<(AtomicBool, Notify)>);

/// A source: its kind and its name. References never cross namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SourceName {
    kind: String,
    name: String,
}

/// Revision and digest of an artifact.
type Version = (String, Option<String>);

/// The sources that an object uses, and its artifact.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Links {
    uses: Vec<SourceName>,
    artifact: Option<Version>,
}

/// A change of an object of a kind.
#[derive(Debug)]
pub(crate) struct Observation {
    kind: &'static str,
    change: Change<Links>,
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
        changes: Vec<BoxStream<'static, Observation>>,
    ) -> BoxStream<'static, Trigger> {
        let waiting = Arc::clone(&self.0);
        let begun = stream::once(async move { waiting.1.notified().await });
        // The watches start when they are polled first.
        let mut changes = Some(changes);
        begun
            .flat_map(move |()| stream::select_all(changes.take().unwrap_or_default()))
            .scan(Index::of(user), |index, observation| {
                ready(Some(index.apply(observation)))
            })
            .flat_map(stream::iter)
            .boxed()
    }
}

/// The fields of sources that name other sources, and their artifact.
struct LinkFields;

impl WatchedFields for LinkFields {
    const SPEC: &'static [&'static str] = &["sourceRef", "include"];
    const STATUS: &'static [&'static str] = &["artifact"];
}

impl Links {
    /// Reads the links of a source of any kind. Those that cannot be read count as absent: the pass of the object reports them.
    fn of(source: &DynamicObject) -> Self {
        let text = |pointer: &str| source.data.pointer(pointer)?.as_str().map(str::to_owned);
        let chart = text("/spec/sourceRef/kind").zip(text("/spec/sourceRef/name"));
        let includes = source
            .data
            .pointer("/spec/include")
            .and_then(|list| list.as_array());
        let included = includes.into_iter().flatten().filter_map(|include| {
            let name = include.pointer("/repository/name")?.as_str()?;
            Some(("GitRepository".to_owned(), name.to_owned()))
        });
        let uses = chart.into_iter().chain(included);
        let artifact = SourceView::of(source).ok().and_then(|view| view.artifact);
        Self {
            uses: uses.map(|(kind, name)| SourceName { kind, name }).collect(),
            artifact: artifact.map(|artifact| (artifact.revision, artifact.digest)),
        }
    }
}

/// Watches the sources of a kind, as long as it is served.
pub(crate) fn changes<K>(ctx: &Context, kind: &'static str) -> BoxStream<'static, Observation>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let resource = ApiResource::erase::<K>(&());
    let api = api_of::<Watched<LinkFields>>(ctx.client(), &resource, ctx.flags().watch_namespace());
    watch(api, resource.kind)
        .map(move |event| Observation {
            kind,
            change: Change::of(event, Links::of),
        })
        .boxed()
}

/// The artifacts of all sources, and the objects of one kind that use them.
struct Index {
    user: &'static str,
    known: HashMap<&'static str, Known<Links>>,
    artifacts: HashMap<Source, Version>,
    users: HashMap<Source, BTreeSet<String>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Source {
    namespace: String,
    source: SourceName,
}

impl Source {
    fn new(kind: &str, key: &ObjectKey) -> Self {
        let (kind, name) = (kind.to_owned(), key.name.clone());
        Self {
            namespace: key.namespace.clone(),
            source: SourceName { kind, name },
        }
    }
}

impl Index {
    fn of(user: &'static str) -> Self {
        Self {
            user,
            known: HashMap::new(),
            artifacts: HashMap::new(),
            users: HashMap::new(),
        }
    }

    /// Notes a change, and returns the objects to wake.
    fn apply(&mut self, observation: Observation) -> Vec<Trigger> {
        let Observation { kind, change } = observation;
        match self.known.entry(kind).or_default().apply(change) {
            Effect::Gone(gone) => {
                for (key, links) in gone {
                    self.note_uses(kind, &key, links.uses, Vec::new());
                    self.artifacts.remove(&Source::new(kind, &key));
                }
                Vec::new()
            }
            Effect::Changed { key, before, now } => {
                self.note_uses(kind, &key, before.uses, now.uses);
                let artifact = now.artifact.as_ref();
                artifact.map_or_else(Vec::new, |version| self.offered(kind, &key, version))
            }
        }
    }

    /// Notes the artifact of a source, and returns the objects that use it if it is new.
    fn offered(&mut self, kind: &str, key: &ObjectKey, version: &Version) -> Vec<Trigger> {
        let own = Source::new(kind, key);
        let past = self.artifacts.insert(own.clone(), version.clone());
        if past.as_ref() == Some(version) {
            return Vec::new();
        }
        let users = self.users.get(&own).into_iter().flatten();
        let others = users.filter(|name| kind != self.user || **name != key.name);
        others
            .map(|name| Trigger::from(ObjectKey::new(key.namespace.clone(), name.clone())))
            .collect()
    }

    fn note_uses(&mut self, kind: &str, key: &ObjectKey, past: Vec<SourceName>, uses: Vec<SourceName>) {
        if kind != self.user {
            return;
        }
        let of_namespace = |source| Source {
            namespace: key.namespace.clone(),
            source,
        };
        for source in past.into_iter().map(of_namespace) {
            if let Some(users) = self.users.get_mut(&source) {
                users.remove(&key.name);
                if users.is_empty() {
                    self.users.remove(&source);
                }
            }
        }
        for source in uses.into_iter().map(of_namespace) {
            self.users.entry(source).or_default().insert(key.name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key((namespace, name): (&str, &str)) -> ObjectKey {
        ObjectKey::new(namespace.to_owned(), name.to_owned())
    }

    fn change(kind: &'static str, object: (&str, &str), uses: &[(&str, &str)], digest: &str) -> Observation {
        let uses = uses.iter().map(|(kind, name)| SourceName {
            kind: (*kind).to_owned(),
            name: (*name).to_owned(),
        });
        let artifact = (!digest.is_empty()).then(|| (String::new(), Some(digest.to_owned())));
        let links = Links {
            uses: uses.collect(),
            artifact,
        };
        Observation {
            kind,
            change: Change::Exists(key(object), links),
        }
    }

    fn woken(index: &mut Index, observation: Observation) -> Vec<String> {
        let triggers = index.apply(observation).into_iter();
        triggers.map(|trigger| trigger.key.name).collect()
    }

    #[test]
    fn new_artifacts_wake_the_objects_of_the_namespace_that_use_them() {
        let mut index = Index::of("User");
        let mut woken = |change| woken(&mut index, change);
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
        let gone = Observation {
            kind: "User",
            change: Change::Deleted(key(("a", "app"))),
        };
        assert_eq!(woken(gone), [""; 0]);
        assert_eq!(woken(change("Other", ("a", "y"), &[], "2")), [""; 0]);
    }

    #[test]
    fn objects_that_a_new_list_lacks_are_forgotten() {
        let mut index = Index::of("User");
        for observation in [
            change("User", ("a", "app"), &[("Other", "x")], ""),
            change("Other", ("a", "x"), &[], "1"),
        ] {
            index.apply(observation);
        }
        assert!(!index.users.is_empty() && !index.artifacts.is_empty());
        for kind in ["User", "Other"] {
            for change in [Change::ListStarted, Change::ListDone] {
                index.apply(Observation { kind, change });
            }
        }
        assert!(index.users.is_empty() && index.artifacts.is_empty());
    }

    #[test]
    fn links_of_objects_that_do_not_decode_are_read_all_the_same() {
        let links = |object: serde_json::Value| {
            let watched: Watched<LinkFields> = serde_json::from_str(&object.to_string()).unwrap();
            Links::of(&watched.object)
        };
        let metadata = json!({"name": "a", "namespace": "n"});
        let poison = "99999999999999h";
        let chart = links(json!({"metadata": metadata, "spec": {"interval": poison,
            "sourceRef": {"kind": "Bucket", "name": "b"}}}));
        let repository = links(json!({"metadata": metadata, "spec": {"interval": poison,
            "include": [{"repository": {"name": "lib"}}, {"repository": 1}]},
            "status": {"artifact": {"path": "p", "url": "http://h/p", "revision": "r", "digest": "d"}}}));
        let name = |kind: &str, name: &str| SourceName {
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        assert_eq!(chart.uses, [name("Bucket", "b")]);
        assert_eq!(repository.uses, [name("GitRepository", "lib")]);
        assert_eq!(repository.artifact, Some(("r".to_owned(), Some("d".to_owned()))));
        for section in [
            json!(null),
            json!("x"),
            json!({"sourceRef": 1, "include": {}, "artifact": []}),
        ] {
            let object = json!({"metadata": metadata, "spec": section, "status": section});
            assert_eq!(links(object), Links::default(), "{section}");
        }
    }
}
