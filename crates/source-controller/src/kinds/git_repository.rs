//! GitRepository: a reference in a Git repository.
//!
//! - [`spec`] refuses invalid and unsupported fields (pure);
//! - [`credentials`] and [`proxy`] interpret the Secrets (pure);
//! - [`fetch`] packs a commit.

mod credentials;
mod fetch;
pub(super) mod proxy;
mod spec;

use std::{path::Path, sync::Arc};

use artifact::storage::ArtifactWriter;

use api::{
    Fault, Reason,
    revision::Style,
    source::{GitRepository, GitRepositoryStatus},
};
use artifact::pack::Packed;
use git::{Call, Network, Reference, Remote, Resolved, Snapshot};

use crate::{
    blocking::Work,
    builder::BuildError,
    source_kind::{
        KindSettings, PackOptions, SecretRole, SourceKind, SourceSecrets, SourceSpec, SourceStatus,
    },
};

/// Maximum characters of a commit's subject in an event.
const SUBJECT_CHARS: usize = 50;

/// The kind GitRepository.
pub(crate) struct GitRepositories {
    network: Network,
}

/// A repository with credentials, and what to follow in it.
#[derive(Debug, Clone)]
pub(crate) struct GitRequest {
    remote: Remote,
    reference: Reference,
}

impl SourceKind for GitRepositories {
    type Object = GitRepository;
    type Status = GitRepositoryStatus;
    type Request = GitRequest;
    type Resolved = Resolved;
    type Fetched = Snapshot;

    const DIRECTORY: &'static str = "gitrepository";
    const LEGACY_READY: Reason = Reason::GitOperationSucceed;

    fn new(settings: KindSettings) -> Self {
        let network = Network::new(tokio::runtime::Handle::current(), settings.addresses);
        Self {
            network: network.with_ssh_algorithms(settings.ssh),
        }
    }

    fn spec(object: &GitRepository) -> SourceSpec<'_> {
        let spec = &object.spec;
        SourceSpec {
            interval: spec.interval.as_duration(),
            timeout: spec::timeout(object),
            suspend: spec.suspend,
            ignore: spec.ignore.as_deref(),
            secret: spec.secret_ref.as_ref().map(|reference| reference.name.as_str()),
            proxy_secret: spec
                .proxy_secret_ref
                .as_ref()
                .map(|reference| reference.name.as_str()),
        }
    }

    fn common_status(status: &GitRepositoryStatus) -> SourceStatus {
        SourceStatus {
            observed_generation: status.observed_generation,
            conditions: status.conditions.clone(),
            artifact: status.artifact.clone(),
            url: status.url.clone(),
            observed_ignore: status.observed_ignore.clone(),
            last_handled_reconcile_at: status.last_handled_reconcile_at.clone(),
        }
    }

    fn set_common(status: &mut GitRepositoryStatus, common: SourceStatus) {
        status.observed_generation = common.observed_generation;
        status.conditions = common.conditions;
        status.artifact = common.artifact;
        status.url = common.url;
        status.observed_ignore = common.observed_ignore;
        status.last_handled_reconcile_at = common.last_handled_reconcile_at;
    }

    fn validate(object: &GitRepository) -> Result<(), Fault> {
        spec::validate(&object.spec)
    }

    fn request(object: &GitRepository, secrets: &SourceSecrets) -> Result<GitRequest, Fault> {
        let remote = spec::remote(&object.spec)?;
        let remote = match secrets.get(SecretRole::Proxy) {
            Some(secret) => remote.with_proxy(proxy::read(secret)?),
            None => remote,
        };
        Ok(GitRequest {
            reference: spec::reference(object)?,
            remote: credentials::add(remote, secrets.get(SecretRole::Credentials))?,
        })
    }

    fn server(request: &GitRequest) -> String {
        let url = request.remote.url();
        let port = url.port_or_known_default().unwrap_or_default();
        format!("{}:{port}", url.host_str().unwrap_or_default())
    }

    fn resolve(&self, request: &GitRequest, work: &Work) -> Result<Resolved, Fault> {
        let opened = self.network.open(&request.remote, &call(work));
        let resolved = opened.and_then(|mut session| session.resolve(&request.reference));
        resolved.map_err(|error| fetch::fault(&error))
    }

    fn revision(resolved: &Resolved, style: Style) -> String {
        match style {
            Style::Rfc5 => resolved.revision(),
            Style::Legacy => resolved.legacy_revision(),
        }
    }

    fn file_name(resolved: &Resolved) -> String {
        format!("{}.tar.gz", resolved.commit)
    }

    fn fetch(
        &self,
        request: &GitRequest,
        resolved: &Resolved,
        work: &Work,
        dir: &Path,
    ) -> Result<Snapshot, Fault> {
        let opened = self.network.open(&request.remote, &call(work));
        let fetched = opened.and_then(|mut session| session.fetch(resolved, dir));
        fetched.map_err(|error| fetch::fault(&error))
    }

    fn pack(
        snapshot: &Snapshot,
        options: &PackOptions,
        out: &mut ArtifactWriter<'_>,
    ) -> Result<Packed, BuildError> {
        fetch::pack(snapshot, options, out)
    }

    fn describe(snapshot: &Snapshot) -> Option<String> {
        Some(snapshot.subject().to_owned())
    }

    fn event_message(_: &Resolved, revision: &str, subject: Option<&str>) -> String {
        event_message(revision, subject)
    }
}

/// Returns the message of an event: the subject of the commit, or else the revision.
fn event_message(revision: &str, subject: Option<&str>) -> String {
    let commit = subject.map_or_else(|| revision.to_owned(), shorten);
    format!("stored artifact for commit '{commit}'")
}

fn call(work: &Work) -> Call {
    Call {
        cancelled: Arc::clone(&work.cancelled),
        tenant: work.namespace.clone(),
        ..Call::new(work.timeout)
    }
}

fn shorten(subject: &str) -> String {
    match subject.char_indices().nth(SUBJECT_CHARS) {
        Some((cut, _)) => format!("{}...", subject.get(..cut).unwrap_or_default()),
        None => subject.to_owned(),
    }
}

#[cfg(test)]
mod tests;
