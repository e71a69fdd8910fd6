//! What a deployment deletes itself: what its items name, what is annotated for it, and what hooks leave.

use std::time::Duration;

use cluster::{DeleteOptions, Deleted, Kind};
use kluctl::ObjectSelector;
use objects::{ObjectRef, meta};

use super::Run;

/// How long an object may take to go.
const GONE_TIMEOUT: Duration = Duration::from_secs(600);
/// How often an object that was created anew meanwhile is deleted.
const ATTEMPTS: u32 = 5;

/// Deletes an object and waits until it is gone; tells whether it was there.
pub(super) async fn delete(run: &Run<'_>, reference: &ObjectRef) -> Result<bool, cluster::Error> {
    let dry_run = run.options.dry_run;
    if dry_run && run.is_pretended_gone(reference) {
        return Ok(false);
    }
    for _ in 0..ATTEMPTS {
        let Some(object) = run.cluster.get(reference).await? else {
            return Ok(false);
        };
        let uid = meta::uid(&object);
        let options = DeleteOptions {
            dry_run,
            uid,
            resource_version: None,
        };
        match run.cluster.delete(reference, options).await? {
            Deleted::Changed => {}
            _ if dry_run => {
                run.pretend_gone(reference);
                return Ok(true);
            }
            _ => {
                run.cluster.wait_gone(reference, uid, GONE_TIMEOUT).await?;
                return Ok(true);
            }
        }
    }
    Err(cluster::Error::Malformed {
        what: format!("delete {reference}"),
        reason: "the object is created anew all the time".to_owned(),
    })
}

/// The objects that a selector names: one of each kind that matches.
pub(super) async fn select(
    run: &Run<'_>,
    selector: &ObjectSelector,
) -> Result<Vec<ObjectRef>, Result<String, cluster::Error>> {
    let (group, kind) = (selector.group.as_deref(), selector.kind.as_deref());
    let kinds = run.cluster.kinds(group, kind).await.map_err(Err)?;
    if kinds.is_empty() {
        if run.options.dry_run && run.definitions.brings(group, kind) {
            return Ok(Vec::new());
        }
        return Err(Ok(unknown(selector)));
    }
    Ok(kinds.iter().map(|kind| reference(kind, selector)).collect())
}

fn reference(kind: &Kind, selector: &ObjectSelector) -> ObjectRef {
    ObjectRef {
        group: kind.group.clone(),
        version: kind.version.clone(),
        kind: kind.kind.clone(),
        namespace: selector.namespace.clone().filter(|_| kind.namespaced),
        name: selector.name.clone(),
    }
}

/// The words of the original, for deletions as well.
fn unknown(selector: &ObjectSelector) -> String {
    let (group, kind) = (
        selector.group.as_deref().unwrap_or_default(),
        selector.kind.as_deref().unwrap_or_default(),
    );
    let place = selector.namespace.iter().map(|namespace| format!("{namespace}/"));
    let shown: String = place.chain([format!("{kind}/{}", selector.name)]).collect();
    let group_kind = if group.is_empty() {
        kind.to_owned()
    } else {
        format!("{kind}.{group}")
    };
    format!("failed to wait for readiness of {shown}. resource with group/kind {group_kind} not found")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kind_is_named() {
        let selector = ObjectSelector {
            group: Some("x.io".to_owned()),
            kind: Some("Thing".to_owned()),
            name: "a".to_owned(),
            namespace: Some("n".to_owned()),
        };
        assert_eq!(
            unknown(&selector),
            "failed to wait for readiness of n/Thing/a. resource with group/kind Thing.x.io not found"
        );
    }
}
