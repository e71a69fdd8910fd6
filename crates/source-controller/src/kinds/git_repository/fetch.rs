//! Fetching a commit with its submodules and includes.

use std::{path::Path, sync::Arc};

use api::Fault;
use artifact::{pack::Packed, storage::ArtifactWriter};
use tree::{Budget, TreePath};

use super::{
    GitRepositories, GitRequest, Resolved,
    checkout::{Checkout, Part, Sparse},
    failure,
    include::{self, IncludeQuota, Includes},
    pack::{self, Fetched},
    shared::Contents,
    words,
};
use crate::{
    blocking::Job,
    source_kind::{BuildError, Details, Pack, PackOptions},
};

/// Maximum number of tags that a range passes over in one pass, because they lead to no commit.
const MAX_PASSED_OVER: usize = 10;

impl Pack for GitRepositories {
    type Fetched = Fetched;

    fn fetch(
        &self,
        request: &GitRequest,
        resolved: &Resolved,
        job: &Job,
        scratch: &Path,
    ) -> Result<Fetched, Fault> {
        let mut resolved = resolved.clone();
        let mut fetched = self.fetch_shared(request, &resolved, job, scratch);
        for _ in 0..MAX_PASSED_OVER {
            if fetched.is_ok() || !self.is_passed_over(request, &resolved.head) {
                break;
            }
            let remote = self.remote(request, job)?;
            let head = self.ask_head(request, &remote, job, job.timeout);
            resolved.head = head.map_err(|error| self.fault(request, &error))?;
            resolved.fetch = self.shared_fetch(request, remote, resolved.head.clone());
            fetched = self.fetch_shared(request, &resolved, job, scratch);
        }
        let contents = fetched?;
        let parts = contents.parts();
        let included = self.unpack_includes(request, &resolved, (job, scratch), &parts)?;
        Ok(Fetched {
            head: resolved.head,
            sparse: Sparse::new(&request.sparse, &parts)?,
            parts,
            included,
            verification: contents.verification.clone(),
            _contents: contents,
        })
    }

    fn fetched(fetched: &Fetched, resolved: Resolved) -> Resolved {
        Resolved {
            head: fetched.head.clone(),
            ..resolved
        }
    }

    fn pack(
        fetched: &Fetched,
        options: &PackOptions,
        out: &mut ArtifactWriter<'_>,
    ) -> Result<Packed, BuildError> {
        pack::pack(fetched, options, out)
    }

    fn details(fetched: &Fetched) -> Details {
        let first = fetched.parts.first().map(|part| &part.snapshot);
        Details {
            description: first.map(|commit| commit.subject().to_owned()),
            event_metadata: first.map(words::commit_metadata).unwrap_or_default(),
            verification: fetched.verification.clone(),
            ..Details::default()
        }
    }
}

impl GitRepositories {
    fn fetch_shared(
        &self,
        request: &GitRequest,
        resolved: &Resolved,
        job: &Job,
        scratch: &Path,
    ) -> Result<Arc<Contents>, Fault> {
        let fetch = |timeout| {
            let job = Job {
                timeout,
                ..job.clone()
            };
            self.contents(request, resolved, &job, scratch)
        };
        resolved.fetch.get_or(&self.runtime, job, |_| true, fetch)
    }

    fn contents(
        &self,
        request: &GitRequest,
        resolved: &Resolved,
        job: &Job,
        scratch: &Path,
    ) -> Result<Arc<Contents>, Fault> {
        let remote = self.remote(request, job)?;
        let mut checkout = Checkout::new(&self.network, job, &request.ssh, scratch);
        checkout
            .fetch(&remote, &resolved.head, TreePath::root())
            .map_err(|error| self.fault(request, &error))?;
        let verification = match &request.verify {
            Some(verify) => Some(verify.check(checkout.first()?, resolved.head.name.as_deref())?),
            None => None,
        };
        if request.submodules {
            let fetched = checkout.fetch_submodules(&remote);
            fetched.map_err(|error| failure::fault(&error))?;
        }
        let parts = checkout.into_parts();
        Ok(Arc::new(Contents::new(parts, verification, self.runtime.clone())))
    }

    fn unpack_includes(
        &self,
        request: &GitRequest,
        resolved: &Resolved,
        (job, scratch): (&Job, &Path),
        parts: &[Part],
    ) -> Result<Includes, Fault> {
        let budget = Budget::default()
            .with_timeout(job.timeout)
            .with_cancellation(Arc::clone(&job.cancelled));
        let disk = self.network.disk(&request.namespace).revoked_by(&job.revoked);
        let quota = IncludeQuota::new(parts, disk.share(), budget);
        let both = request.includes.iter().zip(&resolved.includes);
        include::unpack_all(&self.storage, both, scratch, quota)
    }
}
