//! Kustomize's built-in tables: the fields that its transformers change, and the merge keys and scopes of Kubernetes' kinds.
//! hack/kustomize writes the tables, `make gen-check` compares them with their source. This module reads them.

// One row to a line, wider than the formatter allows.
#[rustfmt::skip]
pub(crate) mod rows;
#[rustfmt::skip]
mod schema;
#[rustfmt::skip]
mod scope;
mod types;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

pub(crate) use types::{Field, Type};

/// Returns the type of a field, or of its elements if it is a list; `None` if nothing below it is merged.
pub(crate) fn target(field: &Field) -> Option<&'static Type> {
    schema::TYPES.get(usize::from(field.target()?))
}

/// Returns the type of the objects of a kind of Kubernetes.
pub(crate) fn root(api_version: &str, kind: &str) -> Option<&'static Type> {
    let row = find(schema::ROOTS, |row| (row.0, row.1).cmp(&(api_version, kind)))?;
    schema::TYPES.get(usize::from(row.2))
}

/// Returns true if the objects of a kind are namespaced; `None` for an unknown kind.
pub(crate) fn namespaced(api_version: &str, kind: &str) -> Option<bool> {
    find(scope::SCOPES, |row| (row.0, row.1).cmp(&(api_version, kind))).map(|row| row.2)
}

fn find<T>(rows: &'static [T], order: impl Fn(&T) -> Ordering) -> Option<&'static T> {
    rows.get(rows.binary_search_by(order).ok()?)
}
