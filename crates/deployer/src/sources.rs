//! The source of an object, and the artifact that it offers.

pub(crate) mod hosts;
pub(crate) mod seen;
mod source_kind;

use std::{collections::HashMap, sync::Arc, time::Duration};

use api::{Artifact, Fault, Reason, SafeUrl, SourceView};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use kube::{
    Client, Resource,
    core::{ApiResource, DynamicObject},
    discovery,
};
use parking_lot::Mutex;
use runtime::{ObjectKey, client::describe, triggers::is_unserved};

use crate::{Consumer, ReferenceRules, objects};
use hosts::ArtifactHosts;
use seen::SeenSources;
pub use source_kind::{SourceId, SourceKind};

/// Age at which an object without a source's artifact says so in its status. Creation times have whole seconds.
pub const NEW: Duration = Duration::from_secs(3);
/// Maximum delay before a source is read again that was older than before.
const OUTDATED_RETRY: Duration = Duration::from_secs(2);

/// The artifact that a source offers.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceArtifact {
    pub source: SourceId,
    /// The `status.artifact` of the source.
    pub artifact: Artifact,
    /// The repository of a GitRepository, if it has a Secret.
    pub git: Option<GitOrigin>,
}

/// Location of the credentials of a GitRepository. Consumers reuse them for repositories that the project includes; nothing else of a
/// source's spec is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitOrigin {
    /// URL of the repository.
    pub url: String,
    /// Name of the Secret, in the namespace of the GitRepository.
    pub secret: String,
}

impl GitOrigin {
    fn of(kind: SourceKind, object: &DynamicObject) -> Option<Self> {
        let text = |pointer: &str| {
            let text = object.data.pointer(pointer)?.as_str()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        if kind != SourceKind::GitRepository {
            return None;
        }
        Some(Self {
            url: text("/spec/url")?,
            secret: text("/spec/secretRef/name")?,
        })
    }
}

impl SourceArtifact {
    /// The message of the fault about a source that has no artifact yet.
    pub const MISSING: &'static str = "Source is not ready, artifact not found";

    /// Returns true for the fault about a source that has no artifact yet.
    #[must_use]
    pub fn is_missing(fault: &Fault) -> bool {
        fault.reason == Reason::ArtifactFailed && fault.message == Self::MISSING
    }

    #[must_use]
    pub fn revision(&self) -> &str {
        &self.artifact.revision
    }

    /// Checks that the URL leads to a file of this source: its path must be `/<kind>/<namespace>/<name>/<file>`, the
    /// layout of source-controller's storage, on one of its hosts. Who may write the status of a source could otherwise make its consumers
    /// fetch the artifact of another tenant. A file in the root of a server on the loopback interface is nobody's: it is accepted, for
    /// processes that may connect to it, as in tests on a machine.
    ///
    /// # Errors
    /// A fault with the expected path. It is retried after `retry`: the source may correct its status.
    pub(crate) fn check_url(&self, hosts: &ArtifactHosts, retry: Duration) -> Result<(), Fault> {
        let parsed = SafeUrl::parse(&self.artifact.url).ok();
        let is_own = parsed.as_ref().is_some_and(|url| {
            let url = url.expose();
            let mut segments = url.path_segments().into_iter().flatten();
            let key = &self.source.key;
            let kind = self.source.kind.name().to_lowercase();
            let directory = [kind.as_str(), &key.namespace, &key.name];
            let is_in_root =
                url.host().is_some_and(|host| net::is_loopback(&host)) && segments.clone().count() == 1;
            let mut in_directory = directory.iter().filter(|_| !is_in_root);
            in_directory.all(|name| segments.next() == Some(name))
                && segments.next().is_some_and(is_file_name)
                && segments.next().is_none()
                && url.query().is_none()
        });
        if is_own {
            if parsed.is_some_and(|url| hosts.accept(url.expose())) {
                return Ok(());
            }
            let message = format!(
                "{}: the artifact URL '{}' is refused: its host is not one that --artifact-hosts names",
                self.source,
                api::redact(&self.artifact.url),
            );
            return Err(Fault::wait(retry, Reason::ArtifactFailed, message));
        }
        let message = format!(
            "{}: the artifact URL '{}' is refused: its path must be /{}/{}/{}/<file>, where the source is stored",
            self.source,
            api::redact(&self.artifact.url),
            self.source.kind.name().to_lowercase(),
            self.source.key.namespace,
            self.source.key.name,
        );
        Err(Fault::wait(retry, Reason::ArtifactFailed, message))
    }
}

/// Returns true for an object that was created a moment ago: its source is created at the same time as a rule, and has its first artifact soon.
#[must_use]
pub fn is_new(object: &ObjectMeta, now: &Timestamp) -> bool {
    let created = object.creation_timestamp.as_ref();
    created.is_some_and(|created| now.duration_since(created.0) < NEW.try_into().unwrap_or_default())
}

/// Returns true for a name that no server takes for a path: an escaped slash may be one.
fn is_file_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '~');
    !name.is_empty() && name != "." && name != ".." && name.chars().all(plain)
}

/// The artifact that a source offered in a version; `None` if it had none.
#[derive(Debug, Clone)]
struct Offered {
    version: u64,
    artifact: Option<Artifact>,
    git: Option<GitOrigin>,
    /// True if a watch saw the source: it will see changes, too.
    is_watched: bool,
}

/// The newest artifacts that watches and reads saw, by their sources. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct SeenArtifacts(Arc<Mutex<HashMap<SourceId, Offered>>>);

impl SeenArtifacts {
    pub(crate) fn note(&self, source: SourceId, object: &DynamicObject) {
        let version = object.metadata.resource_version.as_deref();
        let Some(version) = version.and_then(|version| version.parse::<u64>().ok()) else {
            return;
        };
        let mut seen = self.0.lock();
        let known = seen.get(&source);
        if known.is_some_and(|newest| newest.version > version) {
            return;
        }
        let is_watched = known.is_some_and(|known| known.is_watched);
        let artifact = SourceView::of(object).ok().and_then(|view| view.artifact);
        let git = GitOrigin::of(source.kind, object);
        let offered = Offered {
            version,
            artifact,
            git,
            is_watched,
        };
        seen.insert(source, offered);
    }

    /// Notes the state that a watch saw.
    pub(crate) fn note_watched(&self, source: &SourceId, object: &DynamicObject) {
        self.note(source.clone(), object);
        if let Some(offered) = self.0.lock().get_mut(source) {
            offered.is_watched = true;
        }
    }

    /// Returns true if a watch of the source saw nothing newer than this artifact.
    pub(crate) fn still_has(&self, known: &SourceArtifact) -> bool {
        self.0.lock().get(&known.source).is_some_and(|offered| {
            offered.is_watched
                && offered.artifact.as_ref() == Some(&known.artifact)
                && offered.git == known.git
        })
    }

    pub(crate) fn forget(&self, source: &SourceId) {
        self.0.lock().remove(source);
    }

    /// Returns the last offer of a source.
    pub(crate) fn last(&self, source: &SourceId) -> Option<SourceArtifact> {
        self.news(source, None).map(|(_, artifact)| artifact)
    }

    /// Returns the offer of a source if it is news: another revision than the one that was attempted last.
    fn news(&self, source: &SourceId, attempted: Option<&str>) -> Option<(u64, SourceArtifact)> {
        let seen = self.0.lock();
        let offered = seen.get(source)?;
        let artifact = offered.artifact.as_ref()?;
        let is_old = attempted.is_some_and(|attempted| api::revision::same(attempted, &artifact.revision));
        let news = || SourceArtifact {
            source: source.clone(),
            artifact: artifact.clone(),
            git: offered.git.clone(),
        };
        (!is_old).then(|| (offered.version, news()))
    }

    /// Returns true if a watch saw the source, and that it has no artifact yet.
    fn is_missing(&self, source: &SourceId) -> bool {
        let seen = self.0.lock();
        let offered = seen.get(source);
        offered.is_some_and(|offered| offered.is_watched && offered.artifact.is_none())
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// The versions that older ones may not replace.
    pub(crate) seen: &'a SeenSources,
    /// The artifacts that watches saw.
    pub(crate) offered: &'a SeenArtifacts,
    /// The last attempted revision: another one that a watch saw is not read again; `None` to read the source in any case.
    pub(crate) attempted: Option<Option<&'a str>>,
}

impl Reading<'_> {
    /// Returns the news of the source of an object, if a watch saw any.
    fn news(&self, object: &ObjectKey, source: &SourceId) -> Option<SourceArtifact> {
        let (version, news) = self.offered.news(source, self.attempted?)?;
        self.seen.check(object, source, Some(&version.to_string())).ok()?;
        Some(news)
    }

    /// Returns true if a watch saw that the source of a new object has no artifact yet. Later the source is read, in case the watch missed it.
    fn is_missing(&self, object: &impl Resource, source: &SourceId) -> bool {
        self.attempted == Some(None)
            && is_new(object.meta(), &runtime::now().0)
            && self.offered.is_missing(source)
    }
}

/// Returns the artifact that the source of an object offers now.
///
/// # Errors
/// If the source is missing, in a blocked namespace, unreadable, has no artifact yet, or is older than before.
pub(crate) async fn artifact<C: Consumer>(
    client: &Client,
    rules: ReferenceRules,
    reading: Reading<'_>,
    object: &C::Object,
) -> Result<SourceArtifact, Fault> {
    let retry = C::retry_interval(object);
    let (Some(source), Some(reference)) = (C::source(object), C::source_ref(object)) else {
        return Err(Fault::stall(
            Reason::InvalidSpec,
            "spec.sourceRef: is missing or not supported",
        ));
    };
    rules.allow(&C::key(object).namespace, source.kind.name(), &source.key, retry)?;
    if let Some(news) = reading.news(&C::key(object), &source) {
        return Ok(news);
    }
    let missing = || Fault::wait(retry, Reason::ArtifactFailed, SourceArtifact::MISSING);
    if reading.is_missing(object, &source) {
        return Err(missing());
    }
    let version = reference
        .api_version
        .as_deref()
        .and_then(|given| given.split_once('/'))
        .map_or(source.kind.preferred_version(), |(_, version)| version);
    let failed = |what: String| Fault::retry(Reason::ArtifactFailed, format!("{source}: {what}"));
    match get(client, &source, version).await {
        Ok(Some(found)) => {
            if let Err(outdated) = reading.seen.check(
                &C::key(object),
                &source,
                found.metadata.resource_version.as_deref(),
            ) {
                let message = format!("{source}: {outdated}");
                return Err(Fault::wait(
                    retry.min(OUTDATED_RETRY),
                    Reason::ArtifactFailed,
                    message,
                ));
            }
            reading.offered.note(source.clone(), &found);
            let view = SourceView::of(&found).map_err(|error| failed(format!("cannot be read: {error}")))?;
            match view.artifact {
                Some(artifact) => Ok(SourceArtifact {
                    git: GitOrigin::of(source.kind, &found),
                    source,
                    artifact,
                }),
                None => Err(missing()),
            }
        }
        Ok(None) => {
            reading.offered.forget(&source);
            let message = format!("Source '{source}' not found");
            Err(Fault::wait(retry, Reason::ArtifactFailed, message))
        }
        Err(error) => Err(failed(format!("cannot be read: {}", describe(&error)))),
    }
}

/// Reads a source in a version, or in the newest served one if that version is not served.
async fn get(
    client: &Client,
    source: &SourceId,
    version: &str,
) -> Result<Option<DynamicObject>, kube::Error> {
    let (namespace, name) = (&source.key.namespace, &source.key.name);
    let get = async |resource: &ApiResource| objects::api(client, resource, Some(namespace)).get(name).await;
    match get(&source.kind.resource(version)).await {
        Err(error) if is_unserved(&error) => match served(client, source.kind).await? {
            Some(resource) => objects::found(get(&resource).await),
            None => Ok(None),
        },
        answer => objects::found(answer),
    }
}

/// Returns a kind in the newest version that is served; `None` if it is not served.
pub(crate) async fn served(client: &Client, kind: SourceKind) -> Result<Option<ApiResource>, kube::Error> {
    let group = match discovery::group(client, kind.group()).await {
        Err(kube::Error::Discovery(_)) => return Ok(None),
        group => group?,
    };
    let in_version = |version| {
        let all = group.versioned_resources(version).into_iter();
        all.map(|(resource, _)| resource)
            .find(|resource| resource.kind == kind.name())
    };
    Ok(group.versions().find_map(in_version))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;

    fn object(version: &str, revision: Option<&str>) -> DynamicObject {
        let artifact = revision.map(|revision| {
            json!({ "url": "http://source-controller/a.tar.gz", "revision": revision, "digest": "sha256:1",
                    "path": "a.tar.gz", "lastUpdateTime": "2026-01-01T00:00:00Z" })
        });
        serde_json::from_value(json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": { "name": "repo", "namespace": "apps", "resourceVersion": version },
            "status": { "artifact": artifact },
        }))
        .unwrap()
    }

    #[test]
    fn seen_artifact_is_used_only_if_it_is_news_and_the_newest() {
        let seen = SeenArtifacts::default();
        let source = SourceId {
            kind: SourceKind::GitRepository,
            key: ObjectKey::new("apps", "repo"),
        };
        let news = |attempted| {
            seen.news(&source, attempted)
                .map(|(_, offered)| offered.artifact.revision)
        };
        let (one, two) = ("main@sha1:1".to_owned(), "main@sha1:2".to_owned());
        assert_eq!(news(None), None);
        seen.note(source.clone(), &object("5", Some(&one)));
        assert_eq!(news(None), Some(one.clone()));
        assert_eq!(news(Some("main/1")), None, "it was attempted, so it is read live");
        seen.note(source.clone(), &object("7", Some(&two)));
        seen.note(source.clone(), &object("6", Some(&one)));
        assert_eq!(news(Some(&one)), Some(two.clone()), "an older version is no news");
        assert_eq!(news(Some(&two)), None);
        seen.note(source.clone(), &object("8", None));
        assert_eq!(news(Some(&one)), None, "it has no artifact any more");
        assert!(!seen.is_missing(&source), "no watch saw it");
        seen.note_watched(&source, &object("8", None));
        assert!(seen.is_missing(&source));
        seen.note(source.clone(), &object("9", Some(&one)));
        assert!(!seen.is_missing(&source));
        seen.forget(&source);
        assert_eq!(news(None), None);
    }

    #[test]
    fn objects_are_new_for_some_seconds() {
        let created: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let object = ObjectMeta {
            creation_timestamp: Some(Time(created)),
            ..ObjectMeta::default()
        };
        assert!(is_new(&object, &created) && is_new(&object, &(created + Duration::from_millis(2999))));
        assert!(!is_new(&object, &(created + NEW)) && !is_new(&ObjectMeta::default(), &created));
    }
}
