//! Server-side apply.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use objects::ObjectRef;
use yaml::Value;

use crate::{Cluster, Error, connection::send::Call, path};

/// Pauses between the attempts to apply an object of a known kind that is not served yet.
const NOT_YET_SERVED: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
    Duration::from_millis(1500),
];

#[derive(Debug, Clone, Copy)]
pub struct ApplyOptions<'a> {
    pub dry_run: bool,
    /// Takes over fields of other managers. Only for a patch without fields that are left to others, or at the user's request.
    pub force: bool,
    pub manager: &'a str,
}

impl<'a> ApplyOptions<'a> {
    #[must_use]
    pub const fn new(manager: &'a str) -> Self {
        Self {
            dry_run: false,
            force: false,
            manager,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Applied {
    pub object: Value,
    pub warnings: Vec<String>,
}

impl Cluster {
    /// Replaces an object as a whole. With a `metadata.resourceVersion`, the API server refuses if the object changed since,
    /// and the request can be repeated safely.
    pub async fn replace(&self, object: &Value, options: ApplyOptions<'_>) -> Result<Applied, Error> {
        let reference = ObjectRef::of(object)?;
        let what = format!("replace {reference}");
        let kind = self
            .kind(&reference.group, &reference.version, &reference.kind)
            .await?;
        let url = path::object(&kind, &reference)?;
        let mut url = format!("{url}?fieldManager={}", path::encode(options.manager));
        if options.dry_run {
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

    /// Applies an object as a field manager. With a `metadata.resourceVersion`, the API server refuses if the object changed
    /// since.
    ///
    /// # Errors
    /// Fails when the kind is not served ([`Error::NoMatch`]), other managers own fields ([`Error::Api`] with causes), or the
    /// API server refuses or can't be reached.
    pub async fn apply(&self, object: &Value, options: ApplyOptions<'_>) -> Result<Applied, Error> {
        let reference = ObjectRef::of(object)?;
        let what = format!("apply {reference}");
        let body = body(object, &what)?;
        let mut pauses = NOT_YET_SERVED.iter();
        loop {
            let kind = self
                .kind(&reference.group, &reference.version, &reference.kind)
                .await?;
            let url = path::object(&kind, &reference)?;
            let mut url = format!("{url}?fieldManager={}", path::encode(options.manager));
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
                // Discovery is ahead of the handlers if a definition is new, and behind if it is gone.
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
