//! The treatment of an object that its annotations or labels ask for.

use objects::vocabulary::is_marked;
use yaml::Value;

use crate::Owner;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    Apply,
    Delete,
    Skip,
}

impl Owner {
    /// Returns the treatment of an object, given its live state as far as it exists.
    #[must_use]
    pub fn treatment(&self, manifest: &Value, live: Option<&Value>) -> Treatment {
        let vocabulary = &self.vocabulary;
        let says =
            |markers| is_marked(manifest, markers) || live.is_some_and(|live| is_marked(live, markers));
        if says(vocabulary.ignore) {
            Treatment::Skip
        } else if is_marked(manifest, vocabulary.delete) {
            Treatment::Delete
        } else if live.is_some() && is_marked(manifest, vocabulary.create_only) {
            Treatment::Skip
        } else {
            Treatment::Apply
        }
    }

    /// Returns true if the treatment depends on the live object, so that it must be readable.
    pub(crate) fn needs_live(&self, manifest: &Value) -> bool {
        is_marked(manifest, self.vocabulary.create_only)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::owner;
    use objects::{Marker, Vocabulary};
    use serde_json::json;

    #[test]
    fn treatment_follows_the_markers_of_manifest_and_live_object() {
        let owner = Owner {
            vocabulary: Vocabulary {
                delete: &[Marker::Flag("example.com/delete")],
                ..owner().vocabulary
            },
            ..owner()
        };
        let object = |part: &str, name: &str, value: &str| {
            Value::from_json(json!({"kind": "A", "metadata": {part: {name: value}}}))
        };
        let apply = |value: &str| object("annotations", "example.com/apply", value);
        let label = object("labels", "example.com/apply", "Ignore");
        let delete = object("annotations", "example.com/delete", "true");
        let plain = object("labels", "a", "b");
        for (title, manifest, live, expected) in [
            ("new", &plain, None, Treatment::Apply),
            ("existing", &plain, Some(&plain), Treatment::Apply),
            ("marked for deletion", &delete, Some(&plain), Treatment::Delete),
            ("ignored by its manifest", &apply("IGNORE"), None, Treatment::Skip),
            ("ignored by a label", &label, None, Treatment::Skip),
            (
                "ignored by the live object",
                &plain,
                Some(&label),
                Treatment::Skip,
            ),
            (
                "ignored and to be deleted",
                &delete,
                Some(&label),
                Treatment::Skip,
            ),
            (
                "created only, new",
                &apply("if-not-present"),
                None,
                Treatment::Apply,
            ),
            ("another value", &apply("other"), Some(&plain), Treatment::Apply),
            (
                "created only, present",
                &apply("If-Not-Present"),
                Some(&plain),
                Treatment::Skip,
            ),
            (
                "created only by the live object",
                &plain,
                Some(&apply("if-not-present")),
                Treatment::Apply,
            ),
        ] {
            assert_eq!(owner.treatment(manifest, live), expected, "{title}");
        }
    }
}
