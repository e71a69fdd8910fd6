//! Who must be looked at when something else changes: a source that has a new artifact, a dependency that became ready.
//!
//! The index holds names and revisions only; what a pass works with, it reads live.

use std::{
    collections::{HashMap, HashSet},
    future::ready,
    time::Duration,
};

use api::{SourceView, condition_type, conditions, kluctl::KluctlDeployment, revision};
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use kube::{
    Api, Client,
    core::DynamicObject,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use runtime::{Context, ObjectKey, Trigger};

use super::{observe, spec};

/// How soon it is looked which version of a kind is served, and how late at most.
const SOON: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_secs(30);

/// The wishes that come from sources and dependencies.
pub(crate) fn stream(ctx: &Context) -> BoxStream<'static, Trigger> {
    let (client, namespace) = (ctx.client().clone(), ctx.flags().watch_namespace());
    // A source may live in a namespace that is not watched for deployments.
    let within = namespace.filter(|_| ctx.flags().no_cross_namespace_refs);
    let sources = sources(client.clone(), within.map(str::to_owned))
        .map(|event| event_of(event, &SourceSeen::of))
        .map(Seen::Source);
    let deployments = watch(deployments(client, namespace), "KluctlDeployment");
    let deployments = deployments
        .map(|event| event_of(event, &Links::of))
        .map(Seen::Deployment);
    stream::select(sources, deployments)
        .scan(Index::default(), |index, seen| ready(Some(index.apply(seen))))
        .flat_map(stream::iter)
        .boxed()
}

fn deployments(client: Client, namespace: Option<&str>) -> Api<KluctlDeployment> {
    match namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    }
}

/// Watches all sources, in another version when the one that is watched is not served (any more).
fn sources(client: Client, namespace: Option<String>) -> BoxStream<'static, Event<DynamicObject>> {
    let asking = client.clone();
    let begin = (observe::git_repository(observe::SOURCE_VERSION), Duration::ZERO);
    let versions = stream::unfold(begin, move |(last, pause)| {
        let client = asking.clone();
        async move {
            if pause.is_zero() {
                return Some((last.clone(), (last, SOON)));
            }
            tokio::time::sleep(pause).await;
            let found = observe::served_git_repository(&client).await.ok().flatten();
            let next = found.unwrap_or_else(|| last.clone());
            let pause = if next.version == last.version {
                (pause * 2).min(LATE)
            } else {
                tracing::info!(
                    version = next.version,
                    "watching GitRepositories in another version"
                );
                SOON
            };
            Some((next.clone(), (next, pause)))
        }
    });
    versions
        .flat_map(move |resource| {
            let api = match &namespace {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
                None => Api::all_with(client.clone(), &resource),
            };
            watch(api, "GitRepository")
        })
        .boxed()
}

/// Watches for as long as the kind is served.
fn watch<K>(api: Api<K>, kind: &'static str) -> BoxStream<'static, Event<K>>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    let events = watcher(api, watcher::Config::default()).default_backoff();
    events
        .inspect_err(move |error| {
            tracing::info!(kind, error = %api::redact(&error.to_string()), "the watch for triggers broke off");
        })
        .take_while(|event| ready(!event.as_ref().is_err_and(is_unserved)))
        .filter_map(|event| ready(event.ok()))
        .boxed()
}

/// Whether a watch broke off because its kind is not served (any more).
fn is_unserved(error: &watcher::Error) -> bool {
    use watcher::Error as E;
    match error {
        E::InitialListFailed(error) | E::WatchStartFailed(error) | E::WatchFailed(error) => {
            observe::is_unserved(error)
        }
        E::WatchError(status) => status.code == 404,
        E::NoResourceVersion => false,
    }
}

/// A change as the index takes it in: what is kept of an object, under its name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change<T> {
    /// A list begins.
    Listing,
    /// The object is there.
    There(ObjectKey, T),
    /// The object is gone.
    Gone(ObjectKey),
    /// All objects of the list were seen.
    Listed,
}

fn event_of<K: kube::ResourceExt, T>(event: Event<K>, of: &dyn Fn(&K) -> T) -> Change<T> {
    let key = |object: &K| ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any());
    match event {
        Event::Init => Change::Listing,
        Event::InitApply(object) | Event::Apply(object) => Change::There(key(&object), of(&object)),
        Event::Delete(object) => Change::Gone(key(&object)),
        Event::InitDone => Change::Listed,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Source(Change<SourceSeen>),
    Deployment(Change<Links>),
}

/// What a source offers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct SourceSeen {
    revision: Option<String>,
    /// Other ignore rules make other bytes of the same revision.
    digest: Option<String>,
}

impl SourceSeen {
    fn of(source: &DynamicObject) -> Self {
        // One that can't be read is told to its dependents by their own passes.
        let artifact = SourceView::of(source).ok().and_then(|view| view.artifact);
        artifact.map_or_else(Self::default, |artifact| Self {
            revision: Some(artifact.revision),
            digest: artifact.digest.or(artifact.checksum),
        })
    }
}

/// What an object refers to, and what others may wait for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Links {
    source: Option<ObjectKey>,
    dependencies: Vec<ObjectKey>,
    /// The revision that was last tried.
    tried: Option<String>,
    ready: bool,
}

impl Links {
    fn of(object: &KluctlDeployment) -> Self {
        let status = object.status.clone().unwrap_or_default();
        let observed =
            status.observed_generation.is_some() && status.observed_generation == object.metadata.generation;
        Self {
            source: spec::source_key(object),
            dependencies: spec::dependencies(object),
            ready: observed && conditions::is_true(&status.conditions, condition_type::READY),
            tried: status.last_attempted_revision,
        }
    }

    /// Whether another revision was tried, or none.
    fn is_behind(&self, current: &str) -> bool {
        !self
            .tried
            .as_deref()
            .is_some_and(|tried| revision::same(tried, current))
    }
}

/// Who refers to whom.
#[derive(Debug, Default)]
struct Index {
    sources: Known<SourceSeen>,
    deployments: Known<Links>,
}

impl Index {
    /// Takes in what was seen, and says who must be looked at.
    fn apply(&mut self, seen: Seen) -> Vec<Trigger> {
        match seen {
            Seen::Source(change) => {
                let Some((key, before, now)) = self.sources.apply(change) else {
                    return Vec::new();
                };
                let Some(revision) = &now.revision else {
                    return Vec::new();
                };
                if before.revision.as_ref() != Some(revision) {
                    self.followers(&key, |links| links.is_behind(revision))
                } else if before.digest != now.digest {
                    self.followers(&key, |_| true)
                } else {
                    Vec::new()
                }
            }
            Seen::Deployment(change) => {
                let Some((key, before, now)) = self.deployments.apply(change) else {
                    return Vec::new();
                };
                let moved = before.tried != now.tried;
                let mut triggers = if now.ready && (moved || !before.ready) {
                    self.dependents(&key)
                } else {
                    Vec::new()
                };
                // The two watches run independently: the source may have been seen first.
                if (moved || before.source != now.source) && self.is_behind(&now) {
                    triggers.push(Trigger::from(key));
                }
                triggers
            }
        }
    }

    /// Whether the source of an object is known to offer another revision than was tried.
    fn is_behind(&self, links: &Links) -> bool {
        let source = links
            .source
            .as_ref()
            .and_then(|source| self.sources.objects.get(source));
        source
            .and_then(|seen| seen.revision.as_deref())
            .is_some_and(|current| links.is_behind(current))
    }

    /// Those that deploy from a source, as far as they are wanted.
    fn followers(&self, source: &ObjectKey, wanted: impl Fn(&Links) -> bool) -> Vec<Trigger> {
        self.triggers(
            |links| links.source.as_ref() == Some(source) && wanted(links),
            true,
        )
    }

    /// Those that wait for another object.
    fn dependents(&self, dependency: &ObjectKey) -> Vec<Trigger> {
        self.triggers(|links| links.dependencies.contains(dependency), false)
    }

    fn triggers(&self, wanted: impl Fn(&Links) -> bool, supersede: bool) -> Vec<Trigger> {
        let all = self.deployments.objects.iter().filter(|(_, links)| wanted(links));
        all.map(|(key, _)| Trigger {
            key: key.clone(),
            supersede,
        })
        .collect()
    }
}

/// What is known of the objects of a kind.
#[derive(Debug)]
struct Known<T> {
    objects: HashMap<ObjectKey, T>,
    /// What a running list has shown so far.
    listed: Option<HashSet<ObjectKey>>,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self {
            objects: HashMap::new(),
            listed: None,
        }
    }
}

impl<T: Clone + Default> Known<T> {
    /// Takes in a change; gives back what an object was (the default if it is new) and is.
    fn apply(&mut self, change: Change<T>) -> Option<(ObjectKey, T, T)> {
        match change {
            Change::Listing => self.listed = Some(HashSet::new()),
            Change::Gone(key) => {
                self.objects.remove(&key);
            }
            Change::Listed => {
                if let Some(listed) = self.listed.take() {
                    self.objects.retain(|key, _| listed.contains(key));
                }
            }
            Change::There(key, now) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(key.clone());
                }
                let before = self.objects.insert(key.clone(), now.clone()).unwrap_or_default();
                return Some((key, before, now));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("apps", name)
    }

    fn source(name: &str, revision: Option<&str>) -> Seen {
        let seen = SourceSeen {
            revision: revision.map(str::to_owned),
            digest: None,
        };
        Seen::Source(Change::There(key(name), seen))
    }

    fn deployment(name: &str, change: impl FnOnce(&mut Links)) -> Seen {
        let mut links = Links {
            source: Some(key("repo")),
            ..Links::default()
        };
        change(&mut links);
        Seen::Deployment(Change::There(key(name), links))
    }

    fn names(triggers: Vec<Trigger>) -> Vec<(String, bool)> {
        let mut names: Vec<_> = triggers
            .into_iter()
            .map(|trigger| (trigger.key.name, trigger.supersede))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_revision_wakes_those_that_have_not_tried_it() {
        let mut index = Index::default();
        for seen in [
            deployment("old", |links| links.tried = Some("main@sha1:1".to_owned())),
            deployment("fresh", |_| {}),
            deployment("ahead", |links| links.tried = Some("main/2".to_owned())),
            deployment("other", |links| links.source = Some(key("elsewhere"))),
        ] {
            assert_eq!(index.apply(seen), []);
        }
        let both = [("fresh".to_owned(), true), ("old".to_owned(), true)];
        assert_eq!(names(index.apply(source("repo", Some("main@sha1:2")))), both);
        assert_eq!(
            index.apply(source("repo", Some("main@sha1:2"))),
            [],
            "nothing new"
        );
        assert_eq!(index.apply(source("repo", None)), []);
        assert_eq!(
            names(index.apply(source("repo", Some("main@sha1:2")))),
            both,
            "the artifact came back"
        );
    }

    #[test]
    fn other_bytes_of_the_same_revision_wake_everybody() {
        let mut index = Index::default();
        index.apply(deployment("shop", |links| {
            links.tried = Some("main@sha1:1".to_owned());
        }));
        let offer = |digest: &str| {
            let seen = SourceSeen {
                revision: Some("main@sha1:1".to_owned()),
                digest: Some(digest.to_owned()),
            };
            Seen::Source(Change::There(key("repo"), seen))
        };
        assert_eq!(index.apply(offer("sha256:a")), []);
        assert_eq!(names(index.apply(offer("sha256:b"))), [("shop".to_owned(), true)]);
        assert_eq!(index.apply(offer("sha256:b")), []);
    }

    #[test]
    fn a_source_that_was_seen_first_wakes_whoever_comes_behind() {
        let mut index = Index::default();
        index.apply(source("repo", Some("main@sha1:2")));
        let tried = |revision: Option<&str>| {
            let revision = revision.map(str::to_owned);
            deployment("shop", move |links| links.tried = revision)
        };
        let shop = [("shop".to_owned(), false)];
        assert_eq!(names(index.apply(tried(Some("main@sha1:0")))), shop);
        assert_eq!(
            index.apply(tried(Some("main@sha1:0"))),
            [],
            "it was woken already"
        );
        assert_eq!(names(index.apply(tried(Some("main@sha1:1")))), shop);
        assert_eq!(index.apply(tried(Some("main@sha1:2"))), []);
    }

    #[test]
    fn a_dependency_that_becomes_ready_or_moves_on_wakes_its_dependents() {
        let mut index = Index::default();
        index.apply(deployment("shop", |links| links.dependencies = vec![key("db")]));
        let db = |ready, tried: &str| {
            deployment("db", |links| {
                links.ready = ready;
                links.tried = Some(tried.to_owned());
            })
        };
        assert_eq!(index.apply(db(false, "1")), []);
        assert_eq!(names(index.apply(db(true, "1"))), [("shop".to_owned(), false)]);
        assert_eq!(index.apply(db(true, "1")), []);
        assert_eq!(names(index.apply(db(true, "2"))), [("shop".to_owned(), false)]);
        index.apply(Seen::Deployment(Change::Gone(key("shop"))));
        index.apply(db(false, "2"));
        assert_eq!(index.apply(db(true, "2")), []);
    }

    #[test]
    fn what_a_new_list_does_not_show_is_gone() {
        let mut index = Index::default();
        index.apply(deployment("kept", |_| {}));
        index.apply(deployment("gone", |_| {}));
        index.apply(Seen::Deployment(Change::Listing));
        index.apply(deployment("kept", |_| {}));
        index.apply(Seen::Deployment(Change::Listed));
        assert_eq!(
            names(index.apply(source("repo", Some("1")))),
            [("kept".to_owned(), true)]
        );
    }
}
