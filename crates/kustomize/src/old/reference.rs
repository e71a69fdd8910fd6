//! References that name a namespace follow the objects that moved.

use std::collections::HashMap;

use yaml::{Map, Value};

use crate::{Error, identity::Id, resource::Resource};

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

/// Where an object was, and where it is.
#[derive(Debug)]
struct Move {
    from: String,
    to: String,
}

/// Moved objects by kind and name.
type Moves = HashMap<(&'static str, String), Vec<Move>>;

/// Lets subjects of role bindings and services of webhooks follow.
pub(crate) fn fix(resources: &mut [Resource]) -> Result<(), Error> {
    let moves = moves(resources);
    if moves.is_empty() {
        return Ok(());
    }
    for resource in resources {
        let id = resource.id();
        let ambiguous = |name: &str| Error::Ambiguous {
            file: resource.file.as_ref().clone(),
            line: resource.line,
            name: name.to_owned(),
        };
        for (kind, reference) in references(&mut resource.object, &id) {
            let name = reference.get_str("name").unwrap_or_default().to_owned();
            let Some(candidates) = moves.get(&(kind, name.clone())) else {
                continue;
            };
            let written = reference.get_str("namespace").unwrap_or_default();
            if let Some(to) = target(candidates, written, &id).map_err(|()| ambiguous(&name))? {
                reference.insert("namespace", to);
            }
        }
    }
    Ok(())
}

fn moves(resources: &[Resource]) -> Moves {
    let mut moves = Moves::new();
    for resource in resources.iter().filter(|resource| resource.moved) {
        let id = resource.id();
        let kind = match id.kind.as_str() {
            "ServiceAccount" if id.group.is_empty() => "ServiceAccount",
            "Service" if id.group.is_empty() => "Service",
            _ => continue,
        };
        let moved = Move {
            from: resource.original.namespace.clone(),
            to: id.namespace,
        };
        moves.entry((kind, id.name)).or_default().push(moved);
    }
    moves
}

/// The maps in an object that refer by name and namespace.
fn references<'a>(object: &'a mut Value, id: &Id) -> Vec<(&'static str, &'a mut Map)> {
    if id.is(RBAC, "RoleBinding") || id.is(RBAC, "ClusterRoleBinding") {
        let subjects = object
            .get_mut("subjects")
            .and_then(Value::as_seq_mut)
            .into_iter()
            .flatten();
        let accounts = subjects.filter_map(Value::as_map_mut);
        return accounts
            .filter(|subject| subject.get_str("kind") == Some("ServiceAccount"))
            .map(|subject| ("ServiceAccount", subject))
            .collect();
    }
    if id.group == ADMISSION && id.kind.ends_with("WebhookConfiguration") {
        let webhooks = object
            .get_mut("webhooks")
            .and_then(Value::as_seq_mut)
            .into_iter()
            .flatten();
        let services = webhooks.filter_map(|webhook| webhook.pointer_mut(&["clientConfig", "service"]));
        return services
            .filter_map(Value::as_map_mut)
            .map(|service| ("Service", service))
            .collect();
    }
    Vec::new()
}

/// The namespace of the one object that is meant; `Err` when several could be.
fn target(candidates: &[Move], written: &str, referrer: &Id) -> Result<Option<String>, ()> {
    let same = |a: &str, b: &str| plain(a) == plain(b);
    let mut fitting: Vec<&Move> = match written {
        "" if referrer.is_cluster_scoped() => candidates.iter().collect(),
        "" => candidates
            .iter()
            .filter(|candidate| same(&candidate.to, &referrer.namespace))
            .collect(),
        written => candidates
            .iter()
            .filter(|candidate| same(&candidate.from, written))
            .collect(),
    };
    if fitting.is_empty() && !written.is_empty() {
        fitting = candidates
            .iter()
            .filter(|candidate| same(&candidate.to, written))
            .collect();
    }
    let Some(first) = fitting.first() else {
        return Ok(None);
    };
    if fitting.iter().any(|other| other.to != first.to) {
        return Err(());
    }
    Ok(Some(first.to.clone()))
}

/// No namespace and `default` are the same.
fn plain(namespace: &str) -> &str {
    if namespace == "default" { "" } else { namespace }
}
