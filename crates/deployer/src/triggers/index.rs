//! The index of who refers to whom. Pure.

use std::collections::HashMap;

use api::SourceView;
use kube::core::DynamicObject;
use runtime::{
    ObjectKey, Trigger,
    triggers::{Change, Effect, Known},
};

use super::{
    configs::{ConfigId, ConfigKind},
    consumers::Consumers,
};
use crate::{Links, SourceId, SourceKind};

/// A change of a source or of a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Observation {
    Source(SourceKind, Change<Offer>),
    Consumer(Change<Links>),
    /// The state is the version.
    Config(ConfigKind, Change<String>),
}

/// The artifact that a source offers, as far as it tells news from old.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Offer {
    /// Revision of the artifact; `None` if there is no artifact.
    pub(super) revision: Option<String>,
    /// Digest of the artifact. Other ignore rules make other bytes of the same revision.
    pub(super) digest: Option<String>,
}

impl Offer {
    /// Reads the artifact of a source. One that cannot be read counts as absent: the passes of its consumers report it.
    pub(super) fn of(source: &DynamicObject) -> Self {
        let artifact = SourceView::of(source).ok().and_then(|view| view.artifact);
        artifact.map_or_else(Self::default, |artifact| Self {
            revision: Some(artifact.revision),
            digest: artifact.digest.or(artifact.checksum),
        })
    }
}

#[derive(Debug, Default)]
pub(super) struct Index {
    sources: HashMap<SourceKind, Known<Offer>>,
    consumers: Consumers,
    configs: HashMap<ConfigKind, Known<String>>,
}

impl Index {
    /// Takes in a change, and returns the objects to wake.
    pub(super) fn apply(&mut self, observation: Observation) -> Vec<Trigger> {
        match observation {
            Observation::Source(kind, change) => self.source_changed(kind, change),
            Observation::Consumer(change) => self.consumer_changed(change),
            Observation::Config(kind, change) => self.config_changed(kind, change),
        }
    }

    fn source_changed(&mut self, kind: SourceKind, change: Change<Offer>) -> Vec<Trigger> {
        let Effect::Changed { key, before, now } = self.sources.entry(kind).or_default().apply(change) else {
            return Vec::new();
        };
        let Some(revision) = &now.revision else {
            return Vec::new();
        };
        let source = SourceId { kind, key };
        if before.revision.as_ref() != Some(revision) {
            self.consumers_of(&source, |links| links.is_behind(revision))
        } else if before.digest != now.digest {
            self.consumers_of(&source, |_| true)
        } else {
            Vec::new()
        }
    }

    fn config_changed(&mut self, kind: ConfigKind, change: Change<String>) -> Vec<Trigger> {
        let changed: Vec<ObjectKey> = match self.configs.entry(kind).or_default().apply(change) {
            Effect::Changed { before, now, .. } if before == now => Vec::new(),
            Effect::Changed { key, .. } => vec![key],
            Effect::Gone(gone) => gone.into_iter().map(|(key, _)| key).collect(),
        };
        let readers = changed.into_iter().flat_map(|key| {
            let id = ConfigId { kind, key };
            let readers = self.consumers.of_config(&id);
            readers.cloned().collect::<Vec<_>>()
        });
        let trigger = |key| Trigger { key, supersede: true };
        readers.map(trigger).collect()
    }

    fn consumer_changed(&mut self, change: Change<Links>) -> Vec<Trigger> {
        let Some((key, before, now)) = self.consumers.apply(change) else {
            return Vec::new();
        };
        let moved = before.attempted_revision != now.attempted_revision;
        let mut triggers = if now.ready && (moved || !before.ready) {
            self.dependents_of(&key)
        } else {
            Vec::new()
        };
        // The watches run independently: the source may have been seen first. Who has attempted nothing yet has a pass of its own.
        let is_moved = moved || before.source != now.source;
        if now.attempted_revision.is_some() && is_moved && self.is_behind(&now) {
            triggers.push(Trigger::from(key));
        }
        triggers
    }

    /// Returns true if the source of an object is known to offer another revision than was attempted.
    fn is_behind(&self, links: &Links) -> bool {
        let offer = links
            .source
            .as_ref()
            .and_then(|source| self.sources.get(&source.kind)?.get(&source.key));
        offer
            .and_then(|offer| offer.revision.as_deref())
            .is_some_and(|current| links.is_behind(current))
    }

    /// Returns triggers for the consumers of a source that `wanted` accepts.
    fn consumers_of(&self, source: &SourceId, wanted: impl Fn(&Links) -> bool) -> Vec<Trigger> {
        let consumers = self.consumers.of_source(source);
        let wanted = consumers.filter(|(_, links)| wanted(links));
        wanted
            .map(|(key, _)| Trigger {
                key: key.clone(),
                supersede: true,
            })
            .collect()
    }

    fn dependents_of(&self, dependency: &ObjectKey) -> Vec<Trigger> {
        let dependents = self.consumers.of_dependency(dependency);
        dependents.cloned().map(Trigger::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("apps", name)
    }

    fn repository(name: &str) -> SourceId {
        SourceId {
            kind: SourceKind::GitRepository,
            key: key(name),
        }
    }

    fn offer(kind: SourceKind, name: &str, revision: Option<&str>, digest: Option<&str>) -> Observation {
        let offer = Offer {
            revision: revision.map(str::to_owned),
            digest: digest.map(str::to_owned),
        };
        Observation::Source(kind, Change::Exists(key(name), offer))
    }

    fn source(name: &str, revision: Option<&str>) -> Observation {
        offer(SourceKind::GitRepository, name, revision, None)
    }

    fn consumer(name: &str, change: impl FnOnce(&mut Links)) -> Observation {
        let mut links = Links {
            source: Some(repository("repo")),
            ..Links::default()
        };
        change(&mut links);
        Observation::Consumer(Change::Exists(key(name), links))
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
    fn new_revision_wakes_the_consumers_that_have_not_attempted_it() {
        let mut index = Index::default();
        for observation in [
            consumer("old", |links| {
                links.attempted_revision = Some("main@sha1:1".to_owned());
            }),
            consumer("fresh", |_| {}),
            consumer("ahead", |links| {
                links.attempted_revision = Some("main/2".to_owned());
            }),
            consumer("other", |links| links.source = Some(repository("elsewhere"))),
        ] {
            assert_eq!(index.apply(observation), []);
        }
        let both = [("fresh".to_owned(), true), ("old".to_owned(), true)];
        assert_eq!(names(index.apply(source("repo", Some("main@sha1:2")))), both);
        let again = index.apply(source("repo", Some("main@sha1:2")));
        assert_eq!(again, [], "nothing new");
        assert_eq!(index.apply(source("repo", None)), []);
        let back = names(index.apply(source("repo", Some("main@sha1:2"))));
        assert_eq!(back, both, "the artifact came back");
    }

    #[test]
    fn source_of_another_kind_with_the_same_name_wakes_no_consumer() {
        let mut index = Index::default();
        index.apply(consumer("shop", |_| {}));
        assert_eq!(
            index.apply(offer(SourceKind::Bucket, "repo", Some("1"), None)),
            []
        );
        // The list of one kind forgets nothing of another.
        index.apply(source("repo", Some("1")));
        index.apply(Observation::Source(SourceKind::Bucket, Change::ListStarted));
        index.apply(Observation::Source(SourceKind::Bucket, Change::ListDone));
        assert_eq!(index.apply(source("repo", Some("1"))), []);
    }

    #[test]
    fn new_digest_of_the_same_revision_wakes_all_consumers() {
        let mut index = Index::default();
        index.apply(consumer("shop", |links| {
            links.attempted_revision = Some("main@sha1:1".to_owned());
        }));
        let with = |digest| {
            offer(
                SourceKind::GitRepository,
                "repo",
                Some("main@sha1:1"),
                Some(digest),
            )
        };
        assert_eq!(index.apply(with("sha256:a")), []);
        assert_eq!(names(index.apply(with("sha256:b"))), [("shop".to_owned(), true)]);
        assert_eq!(index.apply(with("sha256:b")), []);
    }

    #[test]
    fn consumer_that_appears_after_its_source_is_woken_if_behind() {
        let mut index = Index::default();
        index.apply(source("repo", Some("main@sha1:2")));
        let attempted = |revision: &str| {
            let revision = Some(revision.to_owned());
            consumer("shop", move |links| links.attempted_revision = revision)
        };
        let shop = [("shop".to_owned(), false)];
        assert_eq!(
            index.apply(consumer("shop", |_| {})),
            [],
            "its first pass reads the source"
        );
        assert_eq!(names(index.apply(attempted("main@sha1:0"))), shop);
        let again = index.apply(attempted("main@sha1:0"));
        assert_eq!(again, [], "it was woken already");
        assert_eq!(names(index.apply(attempted("main@sha1:1"))), shop);
        assert_eq!(index.apply(attempted("main@sha1:2")), []);
    }

    #[test]
    fn dependency_that_becomes_ready_or_moves_on_wakes_its_dependents() {
        let mut index = Index::default();
        index.apply(consumer("shop", |links| links.dependencies = vec![key("db")]));
        let db = |ready, attempted: &str| {
            consumer("db", |links| {
                links.ready = ready;
                links.attempted_revision = Some(attempted.to_owned());
            })
        };
        assert_eq!(index.apply(db(false, "1")), []);
        assert_eq!(names(index.apply(db(true, "1"))), [("shop".to_owned(), false)]);
        assert_eq!(index.apply(db(true, "1")), []);
        assert_eq!(names(index.apply(db(true, "2"))), [("shop".to_owned(), false)]);
        index.apply(Observation::Consumer(Change::Deleted(key("shop"))));
        index.apply(db(false, "2"));
        assert_eq!(index.apply(db(true, "2")), []);
    }

    #[test]
    fn changed_settings_wake_the_objects_that_read_them() {
        let mut index = Index::default();
        let config = |kind, name: &str| ConfigId { kind, key: key(name) };
        let (map, secret) = (ConfigKind::ConfigMap, ConfigKind::Secret);
        index.apply(consumer("shop", |links| {
            links.configs = vec![config(map, "vars"), config(secret, "keys")];
        }));
        index.apply(consumer("other", |links| {
            links.configs = vec![config(map, "keys")];
        }));
        let exists = |kind, name: &str, version: &str| {
            Observation::Config(kind, Change::Exists(key(name), version.to_owned()))
        };
        let shop = [("shop".to_owned(), true)];
        assert_eq!(
            names(index.apply(exists(map, "vars", "1"))),
            shop,
            "it may be new"
        );
        assert_eq!(index.apply(exists(map, "vars", "1")), [], "as before");
        assert_eq!(names(index.apply(exists(map, "vars", "2"))), shop);
        assert_eq!(names(index.apply(exists(secret, "keys", "1"))), shop);
        assert_eq!(index.apply(exists(map, "none", "1")), []);
        let deleted = Observation::Config(secret, Change::Deleted(key("keys")));
        assert_eq!(names(index.apply(deleted)), shop);
        assert_eq!(index.apply(Observation::Config(map, Change::ListStarted)), []);
        let gone = names(index.apply(Observation::Config(map, Change::ListDone)));
        assert_eq!(gone, shop, "a new list doesn't show it");
        index.apply(consumer("shop", |_| {}));
        assert_eq!(index.apply(exists(map, "vars", "3")), []);
    }

    #[test]
    fn object_that_a_new_list_does_not_show_is_forgotten() {
        let mut index = Index::default();
        index.apply(consumer("kept", |_| {}));
        index.apply(consumer("gone", |_| {}));
        index.apply(Observation::Consumer(Change::ListStarted));
        index.apply(consumer("kept", |_| {}));
        index.apply(Observation::Consumer(Change::ListDone));
        let woken = names(index.apply(source("repo", Some("1"))));
        assert_eq!(woken, [("kept".to_owned(), true)]);
    }
}
