//! The labels of the object that an event is about.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
    discovery,
};

/// The longest wait for an answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Kinds whose place in the API is remembered.
const REMEMBERED: usize = 64;

/// The reason why the labels of an object could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelsError {
    /// No answer within ten seconds.
    #[error("the API server did not answer in time")]
    Timeout,
    /// The reference has parts that can't be in a URL.
    #[error("its reference is malformed")]
    Malformed,
    /// There is no such object.
    #[error("the object is not there")]
    Missing,
    /// The API server refused the request.
    #[error("{0}")]
    Refused(String),
    /// The API server gave no answer.
    #[error("the API server cannot be reached")]
    Unreachable,
    /// The kind is not served.
    #[error("the cluster does not serve {api_version} {kind}")]
    Unserved {
        /// The API version of the reference.
        api_version: String,
        /// The kind of the reference.
        kind: String,
    },
}

/// Reads the labels of objects from the API server, without a cache of labels.
pub struct LabelReader {
    client: Client,
    kinds: Mutex<HashMap<GroupVersionKind, ApiResource>>,
}

impl LabelReader {
    /// A reader with the rights of `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            kinds: Mutex::default(),
        }
    }

    /// The labels of an object.
    ///
    /// # Errors
    /// Fails when the object is missing or cannot be read, or the API server takes longer than ten seconds.
    pub async fn labels(&self, object: &ObjectReference) -> Result<BTreeMap<String, String>, LabelsError> {
        match tokio::time::timeout(ANSWER, self.read(object)).await {
            Ok(labels) => labels,
            Err(_) => Err(LabelsError::Timeout),
        }
    }

    async fn read(&self, object: &ObjectReference) -> Result<BTreeMap<String, String>, LabelsError> {
        let version = object.api_version.as_deref().unwrap_or_default();
        let place =
            [&object.namespace, &object.name, &object.kind].map(|text| text.as_deref().unwrap_or_default());
        if version.split('/').count() > 2 || !version.split('/').chain(place).all(is_segment) {
            return Err(LabelsError::Malformed);
        }
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let gvk = GroupVersionKind::gvk(group, version, object.kind.as_deref().unwrap_or_default());
        let resource = self.resource(&gvk).await?;
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

    async fn resource(&self, gvk: &GroupVersionKind) -> Result<ApiResource, LabelsError> {
        let known = self
            .kinds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(gvk)
            .cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = discovery::pinned_kind(&self.client, gvk).await;
        let (resource, _) = found.map_err(|_| LabelsError::Unserved {
            api_version: gvk.api_version(),
            kind: gvk.kind.clone(),
        })?;
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if kinds.len() >= REMEMBERED {
            kinds.clear();
        }
        kinds.insert(gvk.clone(), resource.clone());
        Ok(resource)
    }
}

/// Returns true if a string can be one segment of a URL path without changing where the path leads. The author of an
/// event chooses these strings, and must not choose what is read with the rights of this process.
fn is_segment(text: &str) -> bool {
    let plain = |c: char| !c.is_control() && !c.is_whitespace() && !matches!(c, '/' | '\\' | '%' | '?' | '#');
    !matches!(text, "" | "." | "..") && text.len() <= 253 && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_that_change_the_url_path_are_refused() {
        for name in ["shop", "v1", "source.toolkit.fluxcd.io", "system:node"] {
            assert!(is_segment(name), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "../secrets",
            "a?watch=1",
            "a#b",
            "a%2fb",
            "a b",
            "a\nb",
            "a\\b",
        ] {
            assert!(!is_segment(name), "{name}");
        }
    }
}
