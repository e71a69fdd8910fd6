//! Questions about rights.

use bytes::Bytes;
use http::Method;
use serde_json::json;

use crate::{Cluster, Error, ResourceKind, connection::send::Call};

const URL: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const IDENTITY_URL: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

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

    /// Returns the name of the user that the API server sees; `None` if it does not say.
    pub async fn user(&self) -> Result<Option<String>, Error> {
        let what = "ask for the own user name";
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let call = Call {
            method: Method::POST,
            url: IDENTITY_URL.to_owned(),
            accept: "application/json",
            content_type: "application/json",
            body: Bytes::from(review.to_string()),
        };
        let answer = self.send(what, &call).await?;
        if answer.status >= 400 {
            return Ok(None);
        }
        let name = answer.value(what)?;
        let name = name.pointer(&["status", "userInfo", "username"]);
        Ok(name.and_then(yaml::Value::as_str).map(str::to_owned))
    }
}
