//! Patches of parts of an object.

use http::Method;
use objects::ObjectRef;
use yaml::Value;

use crate::{Cluster, Error, connection::send::Call, path};

#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    Merge(Value),
    MergeStatus(Value),
    /// Operations of a JSON patch (RFC 6902). The API server refuses it if one of its tests fails.
    Json(Value),
}

impl Cluster {
    /// Patches an object as a field manager, and returns it. The patch may be repeated if an answer gets lost.
    pub async fn patch(&self, reference: &ObjectRef, patch: &Patch, manager: &str) -> Result<Value, Error> {
        let what = format!("patch {reference}");
        let kind = self
            .kind(&reference.group, &reference.version, &reference.kind)
            .await?;
        let url = path::object(&kind, reference)?;
        let (subresource, content_type, body) = match patch {
            Patch::Merge(body) => ("", "application/merge-patch+json", body),
            Patch::MergeStatus(body) => ("/status", "application/merge-patch+json", body),
            Patch::Json(body) => ("", "application/json-patch+json", body),
        };
        let call = Call {
            method: Method::PATCH,
            url: format!("{url}{subresource}?fieldManager={}", path::encode(manager)),
            accept: "application/json",
            content_type,
            body: yaml::print::json(body).into(),
        };
        let answer = self.send(&what, &call).await?.success(Some(reference))?;
        answer.value(&what)
    }
}
