//! Reads the labels of the object that an event is about.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Api, Client, api::DynamicObject, core::GroupVersionKind};
use limits::FairPermits;
use runtime::names::is_path_segment;

use crate::served::ServedKinds;

const ANSWER: Duration = Duration::from_secs(10);
/// Maximum number of requests for labels at the same time, shared by the namespaces of the objects.
const REQUESTS: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelsError {
    #[error("the API server did not answer in time")]
    Timeout,
    /// The reference has parts that can't be in a URL.
    #[error("its reference is malformed")]
    Malformed,
    #[error("the object is not there")]
    Missing,
    #[error("{0}")]
    Refused(String),
    #[error("the API server cannot be reached")]
    Unreachable,
    #[error("the cluster does not serve {api_version} {kind}")]
    Unserved { api_version: String, kind: String },
}

/// Reads the labels of objects from the API server, without a cache of labels.
pub struct LabelReader {
    client: Client,
    kinds: ServedKinds,
    permits: FairPermits,
}

impl LabelReader {
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            kinds: ServedKinds::new(client.clone()),
            client,
            permits: FairPermits::new(REQUESTS),
        }
    }

    /// Fails when the object is missing or cannot be read, or the API server takes longer than ten seconds.
    pub async fn labels(&self, object: &ObjectReference) -> Result<BTreeMap<String, String>, LabelsError> {
        let namespace = object.namespace.as_deref().unwrap_or_default();
        let _permit = self.permits.acquire(namespace).await;
        match tokio::time::timeout(ANSWER, self.read(object)).await {
            Ok(labels) => labels,
            Err(_) => Err(LabelsError::Timeout),
        }
    }

    async fn read(&self, object: &ObjectReference) -> Result<BTreeMap<String, String>, LabelsError> {
        let version = object.api_version.as_deref().unwrap_or_default();
        let place =
            [&object.namespace, &object.name, &object.kind].map(|text| text.as_deref().unwrap_or_default());
        if version.split('/').count() > 2 || !version.split('/').chain(place).all(is_path_segment) {
            return Err(LabelsError::Malformed);
        }
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let gvk = GroupVersionKind::gvk(group, version, object.kind.as_deref().unwrap_or_default());
        let resource = self.kinds.find(&gvk).await;
        let resource = resource.ok_or_else(|| LabelsError::Unserved {
            api_version: gvk.api_version(),
            kind: gvk.kind.clone(),
        })?;
        let namespace = object.namespace.as_deref().unwrap_or_default();
        let api = Api::<DynamicObject>::namespaced_with(self.client.clone(), namespace, &resource);
        let name = object.name.as_deref().unwrap_or_default();
        match api.get_metadata_opt(name).await {
            Ok(Some(found)) => Ok(found.metadata.labels.unwrap_or_default()),
            Ok(None) => Err(LabelsError::Missing),
            Err(kube::Error::Api(status)) => Err(LabelsError::Refused(status.message.clone())),
            Err(_) => Err(LabelsError::Unreachable),
        }
    }
}
