//! Texts that are one and the same in several places of an object.
//!
//! quirk: where kustomize adds a label or annotation to several maps of an object at once, all of them get the same piece of
//! memory. Whoever changes it in one place later (a patch, an overlay's labels, a replacement) changes it in the others too:
//! selectors and templates follow the label. A JSON patch makes a new object of it, and ends that.

use std::borrow::Cow;

use yaml::{Node, node::Content};

use crate::{fieldspec::split, lookup::raw_text};

/// An entry that was added to several maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shared {
    key: Box<str>,
    /// What all of them hold.
    text: Box<str>,
    /// The paths of the maps.
    paths: Vec<Cow<'static, str>>,
}

impl Shared {
    pub(crate) fn new(key: &str, text: &str, mut paths: Vec<Cow<'static, str>>) -> Self {
        // A merge goes through the fields by name: what it wrote last is what all places have then.
        paths.sort_unstable();
        Self {
            key: key.into(),
            text: text.into(),
            paths,
        }
    }

    /// Leaves out the annotations of the object itself, which were written anew.
    pub(crate) fn without_annotations(&mut self) {
        self.paths.retain(|path| path != "metadata/annotations");
    }

    /// Leaves out the places in maps that a strategic merge patch puts in the place of others.
    pub(crate) fn without_replaced(&mut self, patch: &Node) {
        self.paths.retain(|path| {
            let mut node = patch;
            for part in split(path, '/') {
                let directive = node.get("$patch").map(raw_text);
                match node.get(name(&part)) {
                    _ if directive == Some("replace") => return false,
                    Some(next) => node = next,
                    None => return true,
                }
            }
            node.get("$patch").map(raw_text) != Some("replace")
        });
    }

    /// Has all places follow one that was changed; of several, the last. What a patch holds was written, though it be what
    /// was there before. A place that is gone is forgotten: what comes there later is something else.
    pub(super) fn settle(&mut self, object: &mut Node, patch: Option<&Node>) {
        let mut changed: Option<Node> = None;
        let (key, text) = (&self.key, &self.text);
        self.paths
            .retain(|path| match find(object, &split(path, '/'), key) {
                Place::Here(value) => {
                    let is_patched = || {
                        let place = patch.map(|patch| find(patch, &split(path, '/'), key));
                        matches!(place, Some(Place::Here(_)))
                    };
                    if raw_text(value) != &**text || is_patched() {
                        changed = Some(value.clone());
                    }
                    true
                }
                // An item of a list may have been moved: it follows, but is not followed.
                Place::InList => true,
                Place::Gone => false,
            });
        let Some(changed) = changed else {
            return;
        };
        for path in &self.paths {
            self.follow(object, &split(path, '/'), &changed, false);
        }
        self.text = raw_text(&changed).into();
    }

    fn follow(&self, node: &mut Node, path: &[Cow<'_, str>], changed: &Node, in_list: bool) {
        match (&mut node.content, path.split_first()) {
            (Content::Seq(items), _) => items
                .iter_mut()
                .for_each(|item| self.follow(item, path, changed, true)),
            (Content::Map(map), Some((first, rest))) => {
                if let Some(next) = map.get_mut(name(first)) {
                    self.follow(next, rest, changed, in_list);
                }
            }
            (Content::Map(map), None) => {
                let value = map.get_mut(&self.key).filter(|value| value.as_scalar().is_some());
                if let Some(value) = value.filter(|value| !in_list || raw_text(value) == &*self.text) {
                    value.content = changed.content.clone();
                }
            }
            (Content::Scalar(_), _) => {}
        }
    }
}

enum Place<'a> {
    Here(&'a Node),
    InList,
    Gone,
}

fn find<'a>(object: &'a Node, path: &[Cow<'_, str>], key: &str) -> Place<'a> {
    let mut node = object;
    for part in path.iter().map(|part| name(part)).chain([key]) {
        node = match (&node.content, node.get(part)) {
            (Content::Seq(_), _) => return Place::InList,
            (_, Some(next)) => next,
            (_, None) => return Place::Gone,
        };
    }
    match node.content {
        Content::Scalar(_) => Place::Here(node),
        _ => Place::Gone,
    }
}

fn name(part: &str) -> &str {
    part.strip_suffix("[]").unwrap_or(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{objects, text};

    fn settled(object: &str) -> String {
        let mut resources = objects(object);
        let paths = ["m", "l[]/m", "s"].map(Cow::Borrowed).to_vec();
        for resource in resources.iter_mut() {
            resource
                .history
                .shared
                .push(Shared::new("k", "old", paths.clone()));
            resource.settle();
        }
        text(&resources)
    }

    #[test]
    fn what_is_shared_follows_what_is_changed() {
        for (object, expected) in [
            ("{m: {k: new}, s: {k: old}}", "m:\n  k: new\ns:\n  k: new\n"),
            ("{m: {k: old}, s: {k: new}}", "m:\n  k: new\ns:\n  k: new\n"),
            ("{m: {k: one}, s: {k: two}}", "m:\n  k: two\ns:\n  k: two\n"),
            (
                "{m: {k: '1'}, l: [{m: {k: old}}, {m: {j: old}}]}",
                "l:\n- m:\n    k: \"1\"\n- m:\n    j: old\nm:\n  k: \"1\"\n",
            ),
            (
                "{m: {k: old}, l: [{m: {k: new}}]}",
                "l:\n- m:\n    k: new\nm:\n  k: old\n",
            ),
            ("{m: {}, s: {k: new}}", "m: {}\ns:\n  k: new\n"),
            ("{m: {k: old}, s: {k: {}}}", "m:\n  k: old\ns:\n  k: {}\n"),
        ] {
            assert_eq!(settled(object), expected, "{object}");
        }
    }
}
