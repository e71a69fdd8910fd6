//! The rows of the schema tables: the types and fields that strategic merges need.

/// The name of the field that stands for all keys of a map.
const ANY: &str = "*";

/// The fields of an object that matter to a strategic merge, by name.
#[derive(Debug)]
pub(crate) struct Type {
    pub(super) fields: &'static [Field],
}

/// A field that the schema knows, and that has something to merge in it or may hold anything at all.
///
/// A merge takes the schema of a missing field from the apiVersion and kind in its value, if it has these: so an open field
/// is listed though nothing in it is described.
#[derive(Debug)]
pub(crate) struct Field {
    pub(super) name: &'static str,
    pub(super) list: Option<&'static [&'static str]>,
    pub(super) to: Option<u16>,
}

impl Type {
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        let find = |name: &str| {
            let at = self.fields.binary_search_by(|field| field.name.cmp(name));
            self.fields.get(at.ok()?)
        };
        find(name).or_else(|| find(ANY))
    }
}

impl Field {
    /// Returns the keys by which the elements of a list are merged; empty for a set of scalars, `None` for a list that is
    /// not merged, or no list.
    pub(crate) fn merge_keys(&self) -> Option<&'static [&'static str]> {
        self.list
    }

    /// Returns the number of the type of the field, or of the elements of a list; `None` if nothing below it is merged.
    pub(super) fn target(&self) -> Option<u16> {
        self.to
    }
}
