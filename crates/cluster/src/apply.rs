//! Server-side apply.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use objects::{ObjectRef, orphans::MANAGER};
use yaml::Value;

use crate::{Cluster, Error, connection::Call, path};

/// How often, and in which steps, a resource that is known but not yet served is asked for again.
const NOT_YET_SERVED: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
    Duration::from_millis(1500),
];

/// How to apply.
#[derive(Debug, Clone, Copy)]
pub struct ApplyOptions {
    /// The API server does everything but store the result.
    pub dry_run: bool,
    /// Take over the fields of other managers. To be used only on a patch that was trimmed to what may be taken over,
    /// or because the user said so.
    pub force: bool,
    /// In whose name.
    pub manager: &'static str,
}

impl Default for ApplyOptions {
    fn default() -> Self {
        Self {
            dry_run: false,
            force: false,
            manager: MANAGER,
        }
    }
}

/// An applied object.
#[derive(Debug, Clone)]
pub struct Applied {
    /// The object as it is now.
    pub object: Value,
    /// What the API server warned of.
    pub warnings: Vec<String>,
}

impl Cluster {
    /// Replaces an object as a whole. With a `metadata.resourceVersion` in it, the API server refuses when the object was
    /// changed since, and the request can be sent again without harm.
    ///
    /// # Errors
    /// When the API server refuses or can't be asked.
    pub async fn replace(&self, object: &Value, dry_run: bool) -> Result<Applied, Error> {
        let reference = ObjectRef::of(object)?;
        let what = format!("replace {reference}");
        let kind = self
            .kind(&reference.group, &reference.version, &reference.kind)
            .await?;
        let mut url = format!("{}?fieldManager={MANAGER}", path::object(&kind, &reference)?);
        if dry_run {
            url.push_str("&dryRun=All");
        }
        let call = Call {
            method: Method::PUT,
            url,
            accept: "application/json",
            content_type: "application/json",
            body: body(object, &what)?,
        };
        let answer = self.send(&what, &call).await?.success(Some(&reference))?;
        Ok(Applied {
            object: answer.value(&what)?,
            warnings: answer.warnings,
        })
    }

    /// Applies an object as a manager, `kluctl` unless told otherwise. A `metadata.resourceVersion` in it makes the API server refuse when the
    /// object was changed since.
    ///
    /// # Errors
    /// [`Error::NoMatch`] when the kind is not served, [`Error::Api`] with causes when other managers own fields.
    pub async fn apply(&self, object: &Value, options: ApplyOptions) -> Result<Applied, Error> {
        let reference = ObjectRef::of(object)?;
        let what = format!("apply {reference}");
        let body = body(object, &what)?;
        let mut pauses = NOT_YET_SERVED.iter();
        loop {
            let kind = self
                .kind(&reference.group, &reference.version, &reference.kind)
                .await?;
            let url = path::object(&kind, &reference)?;
            let mut url = format!("{url}?fieldManager={}", options.manager);
            if options.dry_run {
                url.push_str("&dryRun=All");
            }
            if options.force {
                url.push_str("&force=true");
            }
            let call = Call {
                method: Method::PATCH,
                url,
                accept: "application/json",
                content_type: "application/apply-patch+yaml",
                body: body.clone(),
            };
            let answer = match self.send(&what, &call).await?.success(Some(&reference)) {
                Ok(answer) => answer,
                // Discovery is ahead of the handlers when a definition is new, and behind when it is gone.
                Err(Error::Api(error)) if error.is_unknown_resource() => {
                    let Some(pause) = pauses.next() else {
                        return Err(Error::Api(error));
                    };
                    self.pause(*pause).await?;
                    let seen = self.snapshot().await?;
                    self.refresh(Some(&seen)).await?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            return Ok(Applied {
                object: answer.value(&what)?,
                warnings: answer.warnings,
            });
        }
    }
}

fn body(object: &Value, what: &str) -> Result<Bytes, Error> {
    let body = serde_json::to_vec(object).map_err(|error| Error::Malformed {
        what: what.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(Bytes::from(body))
}
