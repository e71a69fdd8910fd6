//! Deleting objects.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use objects::{ObjectRef, meta};
use yaml::{Map, Value};

use crate::{Cluster, Error, connection::send::Call, path};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Propagation {
    #[default]
    Background,
    Foreground,
    Orphan,
}

impl Propagation {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct DeleteOptions<'a> {
    pub dry_run: bool,
    /// Only the object with this UID: one that was recreated under the name stays.
    pub uid: Option<&'a str>,
    pub resource_version: Option<&'a str>,
    pub propagation: Propagation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    Yes,
    AlreadyGone,
    /// Another object has the name, or it changed: nothing was done.
    Changed,
}

impl Cluster {
    pub async fn delete(&self, reference: &ObjectRef, options: DeleteOptions<'_>) -> Result<Deleted, Error> {
        let kind = match self
            .kind(&reference.group, &reference.version, &reference.kind)
            .await
        {
            Ok(kind) => kind,
            Err(Error::NoMatch { .. }) => return Ok(Deleted::AlreadyGone),
            Err(error) => return Err(error),
        };
        let what = format!("delete {reference}");
        let call = Call {
            method: Method::DELETE,
            url: path::object(&kind, reference)?,
            accept: "application/json",
            content_type: "application/json",
            body: Bytes::from(body(options).to_json().to_string()),
        };
        let answer = self.send(&what, &call).await?;
        match answer.status {
            404 => Ok(Deleted::AlreadyGone),
            409 if options.uid.is_some() || options.resource_version.is_some() => Ok(Deleted::Changed),
            _ => answer.success(Some(reference)).map(|_| Deleted::Yes),
        }
    }

    /// Waits until an object, or the one with this UID, is gone.
    ///
    /// # Errors
    /// Fails after the timeout (the error names the finalizers of the object), when the API server refuses or can't be reached,
    /// or the operation is cancelled.
    pub async fn wait_gone(
        &self,
        reference: &ObjectRef,
        uid: Option<&str>,
        limit: Duration,
    ) -> Result<(), Error> {
        let polled = self.within_wait();
        self.waiting(polled.poll_gone(reference, uid, limit)).await
    }

    async fn poll_gone(
        &self,
        reference: &ObjectRef,
        uid: Option<&str>,
        limit: Duration,
    ) -> Result<(), Error> {
        let deadline = tokio::time::Instant::now() + limit;
        let mut pause = Duration::from_millis(50);
        loop {
            let Some(object) = self.get(reference).await? else {
                return Ok(());
            };
            if uid.is_some() && meta::uid(&object) != uid {
                return Ok(());
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(Error::Timeout {
                    what: finalizers_wait(reference, &object),
                    after: limit,
                });
            }
            self.pause_wait(pause).await?;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }
}

fn body(options: DeleteOptions<'_>) -> Value {
    let mut body = Map::from([
        ("apiVersion", Value::from("v1")),
        ("kind", Value::from("DeleteOptions")),
        ("propagationPolicy", Value::from(options.propagation.as_str())),
    ]);
    if options.dry_run {
        body.insert("dryRun", vec![Value::from("All")]);
    }
    let mut preconditions = Map::new();
    if let Some(uid) = options.uid {
        preconditions.insert("uid", uid);
    }
    if let Some(resource_version) = options.resource_version {
        preconditions.insert("resourceVersion", resource_version);
    }
    if !preconditions.is_empty() {
        body.insert("preconditions", preconditions);
    }
    Value::Map(body)
}

fn finalizers_wait(reference: &ObjectRef, object: &Value) -> String {
    let finalizers: Vec<_> = meta::metadata(object)
        .and_then(|metadata| metadata.get("finalizers"))
        .and_then(Value::as_seq)
        .unwrap_or_default()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    if finalizers.is_empty() {
        format!("waiting until {reference} is deleted")
    } else {
        format!(
            "waiting until {reference} is deleted, which is held by the finalizers {}",
            finalizers.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn delete_body_contains_preconditions() {
        let options = DeleteOptions {
            dry_run: true,
            uid: Some("u"),
            resource_version: Some("7"),
            propagation: Propagation::Foreground,
        };
        assert_eq!(
            body(options).to_json(),
            json!({"apiVersion": "v1", "kind": "DeleteOptions",
            "propagationPolicy": "Foreground", "dryRun": ["All"], "preconditions": {"uid": "u", "resourceVersion": "7"}})
        );
        let body = body(DeleteOptions::default());
        assert_eq!(body.get("preconditions"), None);
        assert_eq!(body.get("propagationPolicy"), Some(&Value::from("Background")));
    }

    #[test]
    fn timeout_of_a_deletion_names_the_finalizers() {
        let reference = ObjectRef {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "A".to_owned(),
            namespace: None,
            name: "a".to_owned(),
        };
        let object = Value::from_json(json!({"metadata": {"finalizers": ["x/y", "z"]}}));
        assert!(finalizers_wait(&reference, &object).ends_with("finalizers x/y, z"));
    }
}
