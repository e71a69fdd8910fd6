//! Charts in a registry, for HelmCharts of a HelmRepository of the type `oci`.

use api::{Fault, source::OCIRepository};
use oci::{Archive, Wanted};

use super::{
    OciRepositories, OciRequest, OciResolved, credentials,
    spec::{self, Selector},
};
use crate::{blocking::Job, source_kind::SourceSecrets};

impl OciRepositories {
    /// Returns the request for a chart of a HelmRepository, whose Secret may have a user name and a password.
    pub(in crate::kinds) fn chart_request(
        object: &OCIRepository,
        secrets: &SourceSecrets,
    ) -> Result<OciRequest, Fault> {
        let reference = spec::repository(&object.spec)?;
        let access = credentials::access_of_charts(&object.spec, &reference, secrets)?;
        Self::request_with(object, reference, access, secrets)
    }

    pub(in crate::kinds) fn chart_tags(&self, request: &OciRequest, job: &Job) -> Result<Vec<String>, Fault> {
        let failed = format!("could not get tags for {}", request.url);
        let tags = async {
            let registry = self.open(request, job).await?.0;
            let tags = registry.tags().await;
            tags.map_err(|error| self.fault(request, &failed, &error))
        };
        self.run(job, &failed, tags)
    }

    pub(in crate::kinds) fn chart(
        &self,
        request: &OciRequest,
        resolved: &OciResolved,
        job: &Job,
    ) -> Result<Archive, Fault> {
        let failed = format!("failed to get {}", request.url);
        let pulled = async {
            let registry = self.registry(request, resolved.plain_http, job).await?;
            let wanted = Wanted::Digest(resolved.digest.clone());
            let chart = registry.chart(&wanted).await;
            chart.map_err(|error| self.fault(request, &failed, &error))
        };
        self.run(job, &failed, pulled)
    }
}

impl OciRequest {
    pub(in crate::kinds) fn with_tag(self, tag: String) -> Self {
        Self {
            selector: Selector::Tag(tag),
            ..self
        }
    }
}
