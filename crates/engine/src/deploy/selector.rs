//! The objects that an item names, to delete them or to wait for them.

use cluster::Cluster;
use kluctl::ObjectSelector;
use objects::ObjectRef;

use super::Run;

pub(super) enum SelectError {
    /// No kind matches; the message.
    UnknownKind(String),
    Cluster(cluster::Error),
}

/// Returns the objects that a selector names: one of each kind that matches.
pub(super) async fn select(run: &Run<'_>, selector: &ObjectSelector) -> Result<Vec<ObjectRef>, SelectError> {
    let (group, kind) = (selector.group.as_deref(), selector.kind.as_deref());
    let refs = named(run.session.cluster, selector).await;
    let refs = refs.map_err(SelectError::Cluster)?;
    if refs.is_empty() && !(run.options.dry_run && run.session.definitions.define(group, kind)) {
        return Err(SelectError::UnknownKind(unknown(selector)));
    }
    Ok(refs)
}

/// Returns the existing objects that a selector names.
pub(crate) async fn existing(
    cluster: &Cluster,
    selector: &ObjectSelector,
) -> Result<Vec<ObjectRef>, cluster::Error> {
    let mut found = Vec::new();
    for reference in named(cluster, selector).await? {
        if cluster.get(&reference).await?.is_some() {
            found.push(reference);
        }
    }
    Ok(found)
}

async fn named(cluster: &Cluster, selector: &ObjectSelector) -> Result<Vec<ObjectRef>, cluster::Error> {
    let (group, kind) = (selector.group.as_deref(), selector.kind.as_deref());
    let namespace = selector.namespace.as_deref();
    apply::resolve_kinds(cluster, group, kind, namespace, &selector.name).await
}

/// Returns the message of kluctl for an unknown kind, which is the same for deletions.
fn unknown(selector: &ObjectSelector) -> String {
    let (group, kind) = (
        selector.group.as_deref().unwrap_or_default(),
        selector.kind.as_deref().unwrap_or_default(),
    );
    let namespace = selector.namespace.iter().map(|namespace| format!("{namespace}/"));
    let selected: String = namespace.chain([format!("{kind}/{}", selector.name)]).collect();
    let group_kind = if group.is_empty() {
        kind.to_owned()
    } else {
        format!("{kind}.{group}")
    };
    format!("failed to wait for readiness of {selected}. resource with group/kind {group_kind} not found")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_group_and_kind() {
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
