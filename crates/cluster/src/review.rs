//! Questions about rights.

use bytes::Bytes;
use http::Method;
use serde_json::json;

use crate::{Cluster, Error, ResourceKind, connection::send::Call};

const URL: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

impl Cluster {
    /// Returns true if the identity of this connection has the right to a verb (`create`, `patch`, ...) for all objects of a
    /// kind in a namespace, or in the whole cluster.
    pub async fn may(&self, verb: &str, kind: &ResourceKind, namespace: Option<&str>) -> Result<bool, Error> {
        let attributes = json!({
            "verb": verb,
            "group": kind.group,
            "resource": kind.plural,
            // Empty for the whole cluster.
            "namespace": namespace.filter(|_| kind.namespaced).unwrap_or_default(),
        });
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": attributes },
        });
        let what = format!("review the right to {verb} {}", kind.plural);
        let call = Call {
            method: Method::POST,
            url: URL.to_owned(),
            accept: "application/json",
            content_type: "application/json",
            body: Bytes::from(review.to_string()),
        };
        let answer = self.send(&what, &call).await?.success(None)?;
        let value = answer.value(&what)?;
        let allowed = value.get("status").and_then(|status| status.get("allowed"));
        Ok(allowed.and_then(yaml::Value::as_bool).unwrap_or_default())
    }
}
