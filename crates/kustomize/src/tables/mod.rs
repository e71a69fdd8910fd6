//! What kustomize has built in: the fields that its transformers change, and what Kubernetes says about merging and scope.
//!
//! hack/kustomize writes the tables, `make gen-check` compares them with their source. Here is only how they are read.

// One row to a line: wider than the formatter would have them.
#[rustfmt::skip]
pub(crate) mod rows;
#[rustfmt::skip]
mod schema;
#[rustfmt::skip]
mod scope;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

/// The name of the field that stands for all keys of a map.
const ANY: &str = "*";

/// The fields of an object that matter to a strategic merge, by name.
#[derive(Debug)]
pub(crate) struct Type {
    fields: &'static [Field],
}

/// A field that the schema knows, and that has something to merge in it or may hold anything at all.
///
/// A merge takes the schema of a field that is not here from the apiVersion and kind in its value, if it has such: so an
/// open field is listed though nothing in it is described.
#[derive(Debug)]
pub(crate) struct Field {
    name: &'static str,
    list: Option<&'static [&'static str]>,
    to: Option<u16>,
}

impl Type {
    /// The field of that name.
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        let find = |name: &str| {
            let at = self.fields.binary_search_by(|field| field.name.cmp(name));
            self.fields.get(at.ok()?)
        };
        find(name).or_else(|| find(ANY))
    }
}

impl Field {
    /// The keys by which the elements of a list are merged; empty for a set of scalars, `None` for what is no merged list.
    pub(crate) fn merge_keys(&self) -> Option<&'static [&'static str]> {
        self.list
    }

    /// The type of the field, of the elements if it is a list; `None` if nothing below has anything to merge.
    pub(crate) fn target(&self) -> Option<&'static Type> {
        schema::TYPES.get(usize::from(self.to?))
    }
}

/// The type of the objects of a kind of Kubernetes.
pub(crate) fn root(api_version: &str, kind: &str) -> Option<&'static Type> {
    let row = find(schema::ROOTS, |row| (row.0, row.1).cmp(&(api_version, kind)))?;
    schema::TYPES.get(usize::from(row.2))
}

/// Whether the objects of a kind are in a namespace, if that is known.
pub(crate) fn namespaced(api_version: &str, kind: &str) -> Option<bool> {
    find(scope::SCOPES, |row| (row.0, row.1).cmp(&(api_version, kind))).map(|row| row.2)
}

fn find<T>(rows: &'static [T], order: impl Fn(&T) -> Ordering) -> Option<&'static T> {
    rows.get(rows.binary_search_by(order).ok()?)
}
