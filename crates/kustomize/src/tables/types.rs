//! The rows of the schema tables: what a strategic merge has to know of a type and of its fields.

/// The name of the field that stands for all keys of a map.
const ANY: &str = "*";

/// The fields of an object that matter to a strategic merge, by name.
#[derive(Debug)]
pub(crate) struct Type {
    pub(super) fields: &'static [Field],
}

/// A field that the schema knows, and that has something to merge in it or may hold anything at all.
///
/// A merge takes the schema of a field that is not here from the apiVersion and kind in its value, if it has such: so an
/// open field is listed though nothing in it is described.
#[derive(Debug)]
pub(crate) struct Field {
    pub(super) name: &'static str,
    pub(super) list: Option<&'static [&'static str]>,
    pub(super) to: Option<u16>,
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

    /// Returns the number of the type of the field, or of the elements of a list; `None` if nothing below it is merged.
    pub(super) fn target(&self) -> Option<u16> {
        self.to
    }
}
