//! GitRepository: a reference in a Git repository.
//!
//! - [`spec`] refuses invalid and unsupported fields (pure);
//! - [`credentials`] interprets the Secrets (pure);
//! - [`shared`] has the requests that passes share;
//! - [`fetch`] fetches a commit: by [`checkout`] with its submodules, and by [`include`] the artifacts of other objects;
//! - [`verification`] verifies signatures (pure);
//! - [`pack`] packs them;
//! - [`failure`] and [`words`] have reasons and messages (pure).

mod checkout;
mod credentials;
mod failure;
mod fetch;
mod include;
mod pack;
mod shared;
mod tokens;
mod verification;
mod words;

use std::{sync::Arc, time::Duration};

use api::{
    Artifact, Fault, Reason,
    revision::Style,
    source::{GitRepository, GitRepositoryStatus},
};
use artifact::Storage;
use cloud::Cloud;
use futures::stream::BoxStream;
use git::{Network, Reference, Remote, SshConnections};
use runtime::{Context, Trigger};
use source_specs::{fields::given, git_repository as spec};

use crate::{
    blocking::Job,
    identity::{self, GitCredentials, Identities},
    proxy,
    source_kind::{
        Identity, Inputs, KindSettings, Named, Resolve, SecretRole, SourceKind, SourceObject, SourceSecrets,
        SourceSpec, Verification, Verify, named, timeout,
    },
    wake::{self, Wake},
};
use include::Include;
use verification::VerifyRequest;

const KIND: &str = "GitRepository";
const NO_PROXY: &str = "failed to configure proxy options";

pub(crate) struct GitRepositories {
    network: Network,
    heads: shared::Heads,
    fetches: shared::Fetches,
    runtime: tokio::runtime::Handle,
    client: kube::Client,
    storage: Arc<Storage>,
    requeue_dependency: Duration,
    wake: Wake,
    tokens: tokens::Tokens,
    identities: Arc<Identities>,
}

#[derive(Debug, Clone)]
pub(crate) struct GitRequest {
    remote: Remote,
    reference: Reference,
    age: Duration,
    namespace: String,
    submodules: bool,
    sparse: Vec<String>,
    includes: Vec<Include>,
    verify: Option<VerifyRequest>,
    app: Option<tokens::AppLogin>,
    identity: Option<identity::Login>,
    ssh: SshConnections,
}

/// The commit to serve, and the other inputs of the artifact.
#[derive(Clone)]
pub(crate) struct Resolved {
    head: git::Resolved,
    includes: Vec<Artifact>,
    /// Changes with the trusted keys, if signatures are verified.
    keys: Option<String>,
    /// The fetch of the commit, for all passes that need it now.
    fetch: shared::Fetch,
}

impl SourceObject for GitRepositories {
    type Object = GitRepository;
    type Status = GitRepositoryStatus;

    const DIRECTORY: &'static str = "gitrepository";

    fn secrets(object: &GitRepository) -> Named<'_> {
        let spec = &object.spec;
        named([
            (SecretRole::Proxy, spec.proxy_secret_ref.as_ref()),
            (SecretRole::Credentials, spec.secret_ref.as_ref()),
            (SecretRole::TrustedKeys, spec::verification::secret(spec)),
        ])
    }

    fn secret_failure(_: &GitRepository, role: SecretRole, fault: Fault) -> Fault {
        let (reason, prefix) = match role {
            SecretRole::Proxy => (fault.reason, NO_PROXY),
            SecretRole::TrustedKeys => (Reason::VerificationError, "public keys secret error"),
            _ => return fault,
        };
        let message = format!("{prefix}: {}", fault.message);
        Fault {
            reason,
            message,
            ..fault
        }
    }

    fn spec(object: &GitRepository) -> SourceSpec<'_> {
        let spec = &object.spec;
        SourceSpec {
            interval: spec.interval.as_duration(),
            timeout: timeout(spec.timeout),
            suspend: spec.suspend,
            ignore: spec.ignore.as_deref(),
        }
    }

    fn validate(object: &GitRepository) -> Result<(), Fault> {
        spec::validate(&object.spec)
    }
}

impl Identity for GitRepositories {
    fn service_account(object: &GitRepository) -> Option<&str> {
        given(&object.spec.service_account_name)
    }

    fn cloud(object: &GitRepository) -> Option<Cloud> {
        spec::cloud(&object.spec)
    }
}

impl Resolve for GitRepositories {
    type Request = GitRequest;
    type Resolved = Resolved;

    fn request(object: &GitRepository, secrets: &SourceSecrets) -> Result<GitRequest, Fault> {
        let remote = spec::remote(&object.spec)?;
        let proxy = secrets.get(SecretRole::Proxy);
        let proxy = proxy.map(|secret| proxy::read(secret, NO_PROXY)).transpose()?;
        let remote = match proxy.clone() {
            Some(proxy) => remote.with_proxy(proxy),
            None => remote,
        };
        let secret = secrets.get(SecretRole::Credentials);
        let app = credentials::app(object.spec.provider.as_deref(), secret)?;
        let app = match (app, secret) {
            (Some(app), Some(secret)) => Some(tokens::AppLogin::new(app, secret, proxy.clone())?),
            _ => None,
        };
        let reference = spec::reference(&object.spec)?;
        let cloud = spec::cloud(&object.spec);
        if let Some(cloud) = cloud {
            credentials::check_host(cloud, remote.url())?;
        }
        Ok(GitRequest {
            identity: cloud.map(|cloud| secrets.login(&object.metadata, cloud, proxy)),
            verify: verification::request(object, &reference, secrets.get(SecretRole::TrustedKeys))?,
            reference,
            age: shared::tolerated_age(object),
            remote: credentials::add(remote, secret)?,
            app,
            namespace: object.metadata.namespace.clone().unwrap_or_default(),
            submodules: object.spec.recurse_submodules,
            sparse: object.spec.sparse_checkout.clone(),
            includes: object.spec.include.iter().map(Include::new).collect(),
            ssh: SshConnections::default(),
        })
    }

    fn server(request: &GitRequest) -> String {
        let url = request.remote.url();
        let port = url.port_or_known_default().unwrap_or_default();
        format!("{}:{port}", url.host_str().unwrap_or_default())
    }

    fn resolve(&self, request: &GitRequest, job: &Job) -> Result<Resolved, Fault> {
        let remote = self.remote(request, job)?;
        let followed = (&remote, &request.reference);
        let head = self.heads.get(&self.runtime, job, followed, request.age, |left| {
            self.ask_head(request, &remote, job, left)
        });
        let head = match head {
            Ok(head) if self.is_passed_over(request, &head) => {
                self.ask_head(request, &remote, job, job.timeout)
            }
            head => head,
        };
        let head = head.map_err(|error| self.fault(request, &error))?;
        Ok(Resolved {
            fetch: self.shared_fetch(request, remote, head.clone()),
            head,
            includes: self.read_includes(request)?,
            keys: request
                .verify
                .as_ref()
                .map(|verify| verify.fingerprint().to_owned()),
        })
    }

    fn revision(resolved: &Resolved, style: Style) -> String {
        match style {
            Style::Rfc5 => resolved.head.revision(),
            Style::Legacy => resolved.head.legacy_revision(),
        }
    }

    fn file_name(resolved: &Resolved) -> String {
        format!("{}.tar.gz", resolved.head.commit)
    }
}

impl Inputs for GitRepositories {
    fn config_changed(object: &GitRepository) -> bool {
        object
            .status
            .as_ref()
            .is_some_and(|status| verification::is_changed(&object.spec, status))
    }

    fn inputs_changed(object: &GitRepository, resolved: &Resolved) -> bool {
        let Some(status) = &object.status else {
            return true;
        };
        let same =
            |(past, now): (&Artifact, &Artifact)| past.revision == now.revision && past.digest == now.digest;
        let past = &status.included_artifacts;
        past.len() != resolved.includes.len()
            || !past.iter().zip(&resolved.includes).all(same)
            || (resolved.keys.is_some() && status.source_verification_fingerprint != resolved.keys)
    }

    fn observe(status: &mut GitRepositoryStatus, object: &GitRepository, verified: Option<&Verification>) {
        let spec = &object.spec;
        status.observed_recurse_submodules = spec.recurse_submodules.then_some(true);
        status.observed_include.clone_from(&spec.include);
        status.observed_sparse_checkout.clone_from(&spec.sparse_checkout);
        status.source_verification_mode =
            verification::observed(spec, object.status.as_ref(), verified.is_some());
    }

    fn observe_inputs(status: &mut GitRepositoryStatus, resolved: &Resolved) {
        status.included_artifacts.clone_from(&resolved.includes);
        status.source_verification_fingerprint.clone_from(&resolved.keys);
    }
}

impl Verify for GitRepositories {
    fn verifies(object: &GitRepository) -> bool {
        spec::verification::mode(&object.spec).is_some()
    }
}

impl SourceKind for GitRepositories {
    fn new(settings: KindSettings) -> Self {
        let runtime = tokio::runtime::Handle::current();
        let network = Network::new(runtime.clone(), settings.addresses.clone());
        Self {
            network: network.with_ssh_algorithms(settings.ssh).with_disk(settings.disk),
            heads: shared::Heads::default(),
            fetches: shared::Fetches::default(),
            runtime,
            client: settings.client,
            storage: settings.storage,
            requeue_dependency: settings.requeue_dependency,
            wake: Wake::default(),
            tokens: tokens::Tokens::new(settings.addresses, settings.identities.bounds()),
            identities: settings.identities,
        }
    }

    fn triggers(&self, ctx: &Context) -> Vec<BoxStream<'static, Trigger>> {
        let changes = wake::changes::<GitRepository>(ctx, KIND);
        vec![self.wake.triggers(KIND, vec![changes])]
    }
}

impl GitRepositories {
    fn ask_head(
        &self,
        request: &GitRequest,
        remote: &Remote,
        job: &Job,
        left: Duration,
    ) -> Result<git::Resolved, git::Error> {
        let call = checkout::call(job, left, &request.ssh);
        self.network.open(remote, &call)?.resolve(&request.reference)
    }

    /// Returns true for a tag in a range that a fetch found to lead to no commit: another one is meant.
    fn is_passed_over(&self, request: &GitRequest, head: &git::Resolved) -> bool {
        matches!(request.reference, Reference::Semver(_)) && self.network.is_no_commit(head)
    }

    fn shared_fetch(&self, request: &GitRequest, remote: Remote, head: git::Resolved) -> shared::Fetch {
        self.fetches.get(shared::FetchKey {
            namespace: request.namespace.clone(),
            remote,
            head,
            submodules: request.submodules,
            verify: request.verify.as_ref().map(VerifyRequest::key),
        })
    }

    fn remote(&self, request: &GitRequest, job: &Job) -> Result<Remote, Fault> {
        let remote = request.remote.clone();
        if let Some(login) = &request.identity {
            let found = self.identities.git(login, remote.url(), job.timeout);
            let found = self.runtime.block_on(found).map_err(|error| {
                let message = format!("failed to configure authentication options: {error}");
                Fault::retry(Reason::AuthenticationFailed, message)
            })?;
            return Ok(match found {
                GitCredentials::Bearer(token) => remote.with_token(token),
                GitCredentials::Basic(login) => remote.with_auth(git::Auth {
                    username: login.username,
                    password: login.password,
                }),
            });
        }
        let Some(app) = &request.app else {
            return Ok(remote);
        };
        let token = self.tokens.get(&request.namespace, app, job.timeout);
        Ok(remote.with_auth(self.runtime.block_on(token)?))
    }

    /// Returns the fault for an error of the repository's server. Tokens that it refused are evicted: they may have been revoked.
    fn fault(&self, request: &GitRequest, error: &git::Error) -> Fault {
        if matches!(error, git::Error::AuthenticationFailed { .. }) {
            if let Some(app) = &request.app {
                self.tokens.forget(&request.namespace, app);
            }
            if let Some(login) = &request.identity {
                self.identities.forget_git(login, request.remote.url());
            }
        }
        failure::fault(error)
    }

    fn read_includes(&self, request: &GitRequest) -> Result<Vec<Artifact>, Fault> {
        if request.includes.is_empty() {
            return Ok(Vec::new());
        }
        self.wake.start();
        let read = include::read(
            &self.client,
            &request.namespace,
            &request.includes,
            self.requeue_dependency,
        );
        self.runtime.block_on(read)
    }
}

#[cfg(test)]
mod tests;
