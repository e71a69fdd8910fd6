//! The custom resource definitions among the manifests.
//!
//! A custom resource can be applied only when its definition is served, which takes a moment after the definition was
//! applied. Objects wait for definitions that come before them among the manifests, and for no others.

use std::collections::HashMap;

use objects::ObjectRef;
use parking_lot::Mutex;
use yaml::Value;

/// The position of an object in the order of application: its group, and its index in the group.
pub type Position = (usize, usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Pending,
    Applied,
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Definition {
    /// It was applied, or will be in a moment.
    Expected,
    /// It is not among the manifests, or comes later, or failed.
    Absent,
}

#[derive(Debug, Default)]
pub struct Definitions {
    by_kind: Mutex<HashMap<(String, String), (Position, State)>>,
}

impl Definitions {
    #[must_use]
    pub fn of<'m>(manifests: impl IntoIterator<Item = (Position, &'m Value)>) -> Self {
        let defined = manifests
            .into_iter()
            .filter_map(|(position, manifest)| Some((defined_kind(manifest)?, (position, State::Pending))));
        Self {
            by_kind: Mutex::new(defined.collect()),
        }
    }

    /// Notes that an object, which may be a definition, was applied or failed.
    pub(crate) fn note(&self, manifest: &Value, applied: bool) {
        let Some(kind) = defined_kind(manifest) else {
            return;
        };
        let mut by_kind = self.by_kind.lock();
        if let Some((_, state)) = by_kind.get_mut(&kind) {
            *state = if applied { State::Applied } else { State::Failed };
        }
    }

    /// Returns true if a kind in this group, with this name, or both, is among the definitions.
    #[must_use]
    pub fn define(&self, group: Option<&str>, kind: Option<&str>) -> bool {
        let by_kind = self.by_kind.lock();
        by_kind.keys().any(|(found_group, found_kind)| {
            group.is_none_or(|group| found_group == group) && kind.is_none_or(|kind| found_kind == kind)
        })
    }

    pub(crate) fn expect(&self, reference: &ObjectRef, position: Position) -> Definition {
        let by_kind = self.by_kind.lock();
        match by_kind.get(&(reference.group.clone(), reference.kind.clone())) {
            Some((_, State::Applied)) => Definition::Expected,
            Some((at, State::Pending)) if *at < position => Definition::Expected,
            _ => Definition::Absent,
        }
    }
}

fn defined_kind(object: &Value) -> Option<(String, String)> {
    let text = |path: &[&str]| object.pointer(path).and_then(Value::as_str);
    if text(&["kind"])? != "CustomResourceDefinition"
        || !text(&["apiVersion"])?.starts_with("apiextensions.k8s.io/")
    {
        return None;
    }
    Some((
        text(&["spec", "group"])?.to_owned(),
        text(&["spec", "names", "kind"])?.to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_definitions_that_come_before_are_expected() {
        let definition = Value::from_json(json!({"apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition", "metadata": {"name": "things.x.io"},
            "spec": {"group": "x.io", "names": {"kind": "Thing"}}}));
        let thing = ObjectRef {
            group: "x.io".to_owned(),
            version: "v1".to_owned(),
            kind: "Thing".to_owned(),
            namespace: None,
            name: "a".to_owned(),
        };
        let other = ObjectRef {
            kind: "Other".to_owned(),
            ..thing.clone()
        };
        let definitions = Definitions::of([((1, 0), &definition)]);
        assert_eq!(definitions.expect(&thing, (0, 0)), Definition::Absent);
        assert_eq!(definitions.expect(&thing, (1, 1)), Definition::Expected);
        assert_eq!(definitions.expect(&thing, (2, 0)), Definition::Expected);
        assert_eq!(definitions.expect(&other, (2, 0)), Definition::Absent);
        definitions.note(&definition, false);
        assert_eq!(definitions.expect(&thing, (2, 0)), Definition::Absent);
        definitions.note(&definition, true);
        assert_eq!(definitions.expect(&thing, (0, 0)), Definition::Expected);
    }
}
