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
    pack,
    shared::Contents,
    words,
};
use crate::{
    blocking::Job,
    builder::BuildError,
    source_kind::{Details, Pack, PackOptions, Verification},
};

pub(crate) struct Fetched {
    pub(super) parts: Vec<Part>,
    pub(super) sparse: Sparse,
    pub(super) included: Includes,
    pub(super) verification: Option<Verification>,
    /// Removes the temporary directories of the parts, and is dropped after them.
    pub(super) _contents: Arc<Contents>,
}

impl Pack for GitRepositories {
    type Fetched = Fetched;

    fn fetch(
        &self,
        request: &GitRequest,
        resolved: &Resolved,
        job: &Job,
        scratch: &Path,
    ) -> Result<Fetched, Fault> {
        let contents = resolved.fetch.get_or(
            &self.runtime,
            job,
            |_| true,
            |timeout| {
                let job = Job {
                    timeout,
                    ..job.clone()
                };
                self.contents(request, resolved, &job, scratch)
            },
        )?;
        let parts = contents.parts();
        let included = self.unpack_includes(request, resolved, (job, scratch), &parts)?;
        Ok(Fetched {
            sparse: Sparse::new(&request.sparse, &parts)?,
            parts,
            included,
            verification: contents.verification.clone(),
            _contents: contents,
        })
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
        let quota = IncludeQuota::new(parts, self.network.disk(&request.namespace).share(), budget);
        let both = request.includes.iter().zip(&resolved.includes);
        include::unpack_all(&self.storage, both, scratch, quota)
    }
}
