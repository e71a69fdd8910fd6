//! The build of a Kustomization: its files, keys and variables are read, then its manifests are made on a thread of their own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use api::{Fault, GoDuration, Reason, kustomize::Kustomization};
use bytes::Bytes;
use deployer::{SourceArtifact, manifests::Manifests};
use kustomization::{Build, LeftOut, variables};
use kustomize::{CallbackError, Fetch, Fetched, remote::Repository};
use remote::{RemoteFetcher, ServerAccess, SshConnections};
use runtime::Pass;
use tokio::runtime::Handle;
use tree::{Budget, Recording, Tree as _, TreePath};

use super::{Kustomizations, reads::BuildReads, spec};

/// Part of the timeout that a build may take.
const BUILD: u32 = 2;

/// Fetches remote bases, and notes that it did: no watch tells when these change.
struct NotedFetcher {
    fetcher: RemoteFetcher,
    used: Arc<AtomicBool>,
}

impl Fetch for NotedFetcher {
    fn repository(&self, repository: &Repository, budget: &Budget) -> Result<Fetched, CallbackError> {
        self.used.store(true, Ordering::Relaxed);
        self.fetcher.repository(repository, budget)
    }

    fn file(&self, url: &str, budget: &Budget) -> Result<Bytes, CallbackError> {
        self.used.store(true, Ordering::Relaxed);
        self.fetcher.file(url, budget)
    }
}

impl Kustomizations {
    /// Makes the manifests of an artifact.
    pub(super) async fn build(
        &self,
        pass: &Pass<'_, Kustomization>,
        source: &SourceArtifact,
    ) -> Result<Manifests, Fault> {
        let spec = &pass.object.spec;
        let retry = spec::retry_interval(spec);
        let failed = |message: String| Fault::wait(retry, Reason::BuildFailed, message);
        let files = self.files(pass, source).await?;
        let path = spec.path.as_deref().unwrap_or_default();
        let dir = TreePath::confined(path);
        if !files.is_dir(&dir) {
            let message = format!("kustomization path not found: stat {path}: no such file or directory");
            return Err(Fault::wait(retry, Reason::ArtifactFailed, message));
        }
        let mut reads = BuildReads::new(self.parts.clusters.local().of_tenant(pass.namespace));
        let inputs = async {
            let variables = variables::read(spec, pass.namespace, &mut reads).await;
            let keys = self.keys(pass.object, &mut reads).await.map_err(failed)?;
            Ok((variables, keys))
        };
        let (variables, keys) = pass.slot.lending(inputs).await?;
        let recording = Arc::new(Recording::new(files));
        let used = Arc::new(AtomicBool::new(false));
        let build = Build {
            files: Arc::<Recording>::clone(&recording),
            dir,
            spec: spec.clone(),
            keys,
            variables: variables.clone(),
            strict: self.gates.strict_substitutions,
            limits: self.limits.clone(),
            fetcher: self.fetcher(&used).map(|fetcher| Box::new(fetcher) as _),
            left_out: LeftOut::default(),
            runtime: Handle::current(),
        };
        let limit = spec::timeout(spec) / BUILD;
        let work = self
            .parts
            .threads
            .run(pass, limit, move |job| build.manifests(job));
        let (made, evicted) = work.await.map_err(|error| failed(error.to_string()))?;
        let built = made.map_err(|error| {
            let message = error.to_string();
            let message = match &variables {
                Ok(variables) => variables.redact(&message),
                Err(_) => message,
            };
            failed(stopped(message, evicted))
        })?;
        reads.has_others = used.load(Ordering::Relaxed);
        Ok(Manifests {
            objects: built.manifests,
            record: recording.take().map(Arc::new),
            reads: Arc::new(reads),
            hidden: variables.map(|variables| variables.secrets).unwrap_or_default(),
            digest: built.digest,
            refusal: built.refusal,
        })
    }

    fn fetcher(&self, used: &Arc<AtomicBool>) -> Option<NotedFetcher> {
        if self.no_remote_bases {
            return None;
        }
        let servers = ServerAccess {
            addresses: self.parts.ctx.addresses().clone(),
            ..ServerAccess::default()
        };
        Some(NotedFetcher {
            fetcher: RemoteFetcher::on(Handle::current(), servers, SshConnections::default()),
            used: Arc::clone(used),
        })
    }
}

/// Returns the message of a failed build, with the time after which it was stopped for other namespaces. Pure.
fn stopped(message: String, evicted: Option<Duration>) -> String {
    match evicted {
        None => message,
        Some(after) => format!(
            "stopped after {}, because other namespaces wait and this one has much slow work: {message}; it is tried again: build less, \
             use faster key services, or fewer Kustomizations at the same time",
            GoDuration::from(Duration::from_secs(after.as_secs()))
        ),
    }
}
