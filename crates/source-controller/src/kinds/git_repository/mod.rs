//! GitRepository: a reference in a Git repository, served as an artifact.
//!
//! A pass observes, plans, acts, and says what is now true:
//!
//! - [`spec`] refuses what is invalid or not obeyed (pure);
//! - [`secret`] reads credentials and certificates;
//! - [`plan`] decides whether anything is to be built (pure);
//! - [`fetch`] talks to the Git server, packs and stores;
//! - [`status`] makes status and events (pure).

mod fetch;
mod plan;
mod secret;
mod spec;
mod status;

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use api::{
    Fault, Reason, finalizer,
    revision::Style,
    source::{GitRepository, GitRepositoryStatus},
};
use artifact::{
    Algorithm, Digest, Key, Storage,
    storage::{ALIAS, Verdict},
};
use git::{Network, Resolved};
use kube::Client;
use runtime::{Outcome, Pass, Reconciler};

use fetch::Fetcher;
use plan::{Held, Plan};
use status::{Failed, Report};

/// The name of the kind in paths of the storage.
pub const KIND: &str = "gitrepository";

/// Time for everything of a pass but the Git server, which `spec.timeout` bounds: packing, mostly.
const OWN_TIME: Duration = Duration::from_secs(5 * 60);

/// What a controller of this kind is made of.
pub struct Parts {
    /// Reads Secrets.
    pub client: Client,
    /// Keeps the artifacts.
    pub storage: Arc<Storage>,
    /// Directory for repositories that are being fetched.
    pub scratch: PathBuf,
    /// How revisions are written.
    pub style: Style,
    /// How digests are computed.
    pub algorithm: Algorithm,
}

/// Everything that the passes of this kind share.
pub struct Controller {
    client: Client,
    storage: Arc<Storage>,
    fetcher: Fetcher,
    style: Style,
}

/// What a pass decides upon.
struct Seen<'a> {
    held: Held,
    job: fetch::Job<'a>,
    resolved: Resolved,
    revision: String,
}

impl Controller {
    /// Begins with nothing remembered. Must be called within an async runtime.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let network = Network::new(tokio::runtime::Handle::current());
        let fetcher = Fetcher::new(
            network,
            Arc::clone(&parts.storage),
            parts.scratch,
            parts.algorithm,
        );
        Self {
            client: parts.client,
            storage: parts.storage,
            fetcher,
            style: parts.style,
        }
    }

    fn report<'a>(&self, object: &'a GitRepository) -> Report<'a> {
        Report {
            object,
            style: self.style,
            now: runtime::now(),
        }
    }

    /// What the storage holds of the artifact in the status. Superseded files are removed on the way.
    async fn held(&self, object: &GitRepository, key: &Key) -> Result<Held, Fault> {
        let (storage, key) = (Arc::clone(&self.storage), key.clone());
        let artifact = said(object);
        let looked = tokio::task::spawn_blocking(move || look(&storage, &key, artifact));
        looked.await.unwrap_or_else(|error| {
            Err(Fault::retry(
                Reason::StorageOperationFailed,
                format!("failed to look at the storage: {error}"),
            ))
        })
    }

    async fn pass(&self, pass: &Pass<'_, GitRepository>) -> Result<Outcome<GitRepositoryStatus>, Failed> {
        let report = self.report(pass.object);
        let key = key(pass)?;
        let seen = self.observe(pass, &key).await?;
        let plan = plan::plan(&seen.held, &wanted(pass.object, &seen.revision));
        tracing::debug!(revision = seen.revision, ?plan, "planned");
        let (artifact, subject) = self.act(pass.object, &report, &key, &seen, plan).await?;
        let artifact = api::Artifact {
            url: self.storage.url(&artifact.path),
            revision: seen.revision,
            ..artifact
        };
        let url = self.storage.url(&key.path(ALIAS));
        Ok(report.ready(artifact, url, subject.as_deref(), &seen.held))
    }

    async fn observe<'a>(&self, pass: &'a Pass<'_, GitRepository>, key: &Key) -> Result<Seen<'a>, Failed> {
        let held = self
            .held(pass.object, key)
            .await
            .map_err(|fault| Failed::keeping(said(pass.object), fault))?;
        let lost = |fault| Failed::keeping(held.artifact().cloned(), fault);
        let reference = spec::reference(pass.object).map_err(lost)?;
        let remote = secret::remote(&self.client, pass.object, pass.namespace)
            .await
            .map_err(lost)?;
        let job = fetch::Job {
            remote,
            timeout: spec::timeout(pass.object),
            cancel: &pass.cancel,
        };
        let resolved = self
            .fetcher
            .resolve(&job, &reference)
            .await
            .map_err(|error| lost(error.fault()))?;
        Ok(Seen {
            revision: self.revision(&resolved),
            held,
            job,
            resolved,
        })
    }

    /// Does what is planned; returns the artifact, and the first line of the commit's message if it was fetched.
    async fn act(
        &self,
        object: &GitRepository,
        report: &Report<'_>,
        key: &Key,
        seen: &Seen<'_>,
        plan: Plan,
    ) -> Result<(api::Artifact, Option<String>), Failed> {
        let held = seen.held.artifact().cloned();
        let Plan::Build(why) = plan else {
            return Ok((held.unwrap_or_default(), None));
        };
        tracing::info!(
            revision = seen.revision,
            why = why.words(),
            "building an artifact"
        );
        let build = fetch::Build {
            key: key.clone(),
            resolved: &seen.resolved,
            ignore: object.spec.ignore.clone(),
            superseded: seen.held.file(),
        };
        let built = self.fetcher.build(&seen.job, build).await;
        let built = built.map_err(|error| Failed {
            outdated: why.is_new_revision().then(|| seen.revision.clone()),
            ..Failed::keeping(held, error.fault())
        })?;
        Ok((report.artifact(built.stored, &seen.revision), Some(built.subject)))
    }

    fn revision(&self, resolved: &Resolved) -> String {
        match self.style {
            Style::Rfc5 => resolved.revision(),
            Style::Legacy => resolved.legacy_revision(),
        }
    }
}

fn key(pass: &Pass<'_, GitRepository>) -> Result<Key, Fault> {
    Key::new(KIND, pass.namespace, pass.name)
        .map_err(|error| Fault::stall(Reason::InvalidSpec, format!("metadata: {error}")))
}

/// The artifact that the status names.
fn said(object: &GitRepository) -> Option<api::Artifact> {
    object.status.as_ref()?.artifact.clone()
}

fn wanted<'a>(object: &'a GitRepository, revision: &'a str) -> plan::Wanted<'a> {
    plan::Wanted {
        revision,
        ignore: object.spec.ignore.as_deref(),
        observed_ignore: object
            .status
            .as_ref()
            .and_then(|status| status.observed_ignore.as_deref()),
    }
}

/// Verifies the artifact of the status, removes it when it is not what it should be, and removes superseded ones.
fn look(storage: &Storage, key: &Key, artifact: Option<api::Artifact>) -> Result<Held, Fault> {
    let Some(artifact) = artifact else {
        return Ok(Held::Nothing);
    };
    let failed = |error: artifact::Error| {
        Fault::retry(
            Reason::StorageOperationFailed,
            format!("failed to look at the storage: {error}"),
        )
    };
    let file = artifact
        .path
        .strip_prefix(&format!("{}/", key.dir()))
        .map(str::to_owned);
    let digest = artifact
        .digest
        .as_deref()
        .and_then(|digest| Digest::parse(digest).ok());
    let (Some(file), Some(digest)) = (file, digest) else {
        return Ok(Held::Missing);
    };
    let held = match storage.verify(&artifact.path, &digest).map_err(failed)? {
        Verdict::Good => Held::Good { artifact, file },
        Verdict::Missing => Held::Missing,
        Verdict::Corrupt { found } => {
            storage.remove_file(&artifact.path);
            tracing::error!(path = artifact.path, wanted = %digest, %found, "removed a corrupt artifact");
            Held::Corrupt {
                wanted: digest.to_string(),
                found: found.to_string(),
            }
        }
    };
    if let Held::Good { file, .. } = &held {
        storage.ensure_alias(key, file).map_err(failed)?;
        match storage.collect(key, file, SystemTime::now()) {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "removed superseded artifacts"),
            // They can go next time as well.
            Err(error) => tracing::warn!(%error, "failed to remove superseded artifacts"),
        }
    }
    Ok(held)
}

impl Reconciler for Controller {
    type Object = GitRepository;
    type Status = GitRepositoryStatus;

    const FINALIZER: &'static str = finalizer::FLUX;

    fn suspended(object: &GitRepository) -> bool {
        object.spec.suspend
    }

    fn timeout(&self, object: &GitRepository) -> Duration {
        // Twice: once to list refs, and once to fetch.
        spec::timeout(object).saturating_mul(2).saturating_add(OWN_TIME)
    }

    fn validate(&self, object: &GitRepository) -> Result<(), Fault> {
        spec::validate(&object.spec)
    }

    fn progressing(&self, object: &GitRepository) -> Option<GitRepositoryStatus> {
        Some(self.report(object).progressing())
    }

    fn faulted(&self, object: &GitRepository, fault: &Fault) -> Outcome<GitRepositoryStatus> {
        self.report(object)
            .failed(&Failed::keeping(said(object), fault.clone()))
    }

    fn suspended_status(&self, object: &GitRepository) -> Option<GitRepositoryStatus> {
        self.report(object).suspended()
    }

    async fn reconcile(&self, pass: &Pass<'_, GitRepository>) -> Outcome<GitRepositoryStatus> {
        match self.pass(pass).await {
            Ok(outcome) => outcome,
            Err(failed) => self.report(pass.object).failed(&failed),
        }
    }

    async fn finalize(&self, pass: &Pass<'_, GitRepository>) -> Result<(), Fault> {
        let (storage, key) = (Arc::clone(&self.storage), key(pass)?);
        let removed = tokio::task::spawn_blocking(move || storage.remove(&key)).await;
        let why = match removed {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let message = format!("garbage collection for deleted resource failed: {why}");
        Err(Fault::retry(Reason::GarbageCollectionFailed, message))
    }
}

#[cfg(test)]
mod tests;
