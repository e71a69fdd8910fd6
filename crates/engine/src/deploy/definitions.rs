//! The kinds that a deployment brings itself.
//!
//! A custom resource can be applied only when its definition is served, which takes a moment after the definition was
//! applied. Objects wait for definitions that come before them in the deployment, and for no others.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use kluctl::Rendered;
use objects::ObjectRef;
use yaml::Value;

/// Where an object stands in a deployment: its item, and its place in it.
pub(crate) type Place = (usize, usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Pending,
    Applied,
    Failed,
}

/// What is known of the definition of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Definition {
    /// It was applied, or will be in a moment.
    Coming,
    /// The deployment does not bring it in time.
    Absent,
}

/// The definitions of a deployment.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    by_kind: Mutex<HashMap<(String, String), (Place, State)>>,
}

impl Definitions {
    /// Finds the definitions in what was rendered.
    pub(crate) fn of(rendered: &Rendered) -> Self {
        let mut by_kind = HashMap::new();
        for (i, item) in rendered.items.iter().enumerate() {
            for (j, object) in item.objects.iter().enumerate() {
                if let Some(kind) = defined_kind(object) {
                    by_kind.insert(kind, ((i, j), State::Pending));
                }
            }
        }
        Self {
            by_kind: Mutex::new(by_kind),
        }
    }

    /// Notes that an object, which may be a definition, was applied or refused.
    pub(crate) fn note(&self, manifest: &Value, applied: bool) {
        let Some(kind) = defined_kind(manifest) else {
            return;
        };
        let mut by_kind = self.by_kind.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, state)) = by_kind.get_mut(&kind) {
            *state = if applied { State::Applied } else { State::Failed };
        }
    }

    /// Whether the deployment brings a kind in this group, with this name, or both.
    pub(crate) fn brings(&self, group: Option<&str>, kind: Option<&str>) -> bool {
        let by_kind = self.by_kind.lock().unwrap_or_else(PoisonError::into_inner);
        by_kind.keys().any(|(found_group, found_kind)| {
            group.is_none_or(|group| found_group == group) && kind.is_none_or(|kind| found_kind == kind)
        })
    }

    /// Whether an object at this place may expect its kind to be served soon.
    pub(crate) fn expect(&self, reference: &ObjectRef, place: Place) -> Definition {
        let by_kind = self.by_kind.lock().unwrap_or_else(PoisonError::into_inner);
        match by_kind.get(&(reference.group.clone(), reference.kind.clone())) {
            Some((_, State::Applied)) => Definition::Coming,
            Some((at, State::Pending)) if *at < place => Definition::Coming,
            _ => Definition::Absent,
        }
    }
}

/// The group and kind that a definition defines.
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
    use kluctl::Item;
    use serde_json::json;

    #[test]
    fn only_what_comes_before_is_waited_for() {
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
        let items = vec![
            Item::default(),
            Item {
                objects: vec![definition.clone()],
                ..Item::default()
            },
        ];
        let definitions = Definitions::of(&Rendered {
            items,
            ..Rendered::default()
        });
        assert_eq!(definitions.expect(&thing, (0, 0)), Definition::Absent);
        assert_eq!(definitions.expect(&thing, (1, 1)), Definition::Coming);
        assert_eq!(definitions.expect(&thing, (2, 0)), Definition::Coming);
        assert_eq!(definitions.expect(&other, (2, 0)), Definition::Absent);
        definitions.note(&definition, false);
        assert_eq!(definitions.expect(&thing, (2, 0)), Definition::Absent);
        definitions.note(&definition, true);
        assert_eq!(definitions.expect(&thing, (0, 0)), Definition::Coming);
    }
}
