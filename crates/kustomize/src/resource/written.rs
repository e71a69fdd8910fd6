//! Scalars that an object shares in several fields.
//!
//! quirk: when kustomize adds a label or annotation to several maps of an object at once, all of them share one node. A
//! later write to one of them (by a patch, an overlay's labels, a replacement) changes all of them: selectors and templates
//! follow the label. Here these scalars have a common number, [`Scalar::share`](yaml::node::Scalar::share), and every write
//! is reported. A scalar that is replaced rather than written to, as by a JSON patch, loses its number.

use std::{collections::HashMap, num::NonZeroU32};

use yaml::{Node, node::Content};

/// Writes to shared scalars that are not spread yet.
#[derive(Debug, Default)]
pub(crate) struct Written {
    values: HashMap<NonZeroU32, Node>,
}

impl Written {
    /// Changes a node by `change`, which finds its current state.
    pub(crate) fn write<T>(&mut self, node: &mut Node, change: impl FnOnce(&mut Node) -> T) -> T {
        let Some(share) = node.as_scalar().and_then(|scalar| scalar.share) else {
            return change(node);
        };
        let known = self.values.get(&share);
        let before = known.unwrap_or(node).clone();
        if known.is_some() {
            node.clone_from(&before);
        }
        let changed = change(node);
        if known.is_some() || (&before, before.position) != (node, node.position) {
            self.put(share, node);
        } else {
            *node = before;
        }
        changed
    }

    /// Records the value of a shared number. The node is one of its scalars from now on.
    pub(crate) fn put(&mut self, share: NonZeroU32, node: &mut Node) {
        if let Some(scalar) = node.as_scalar_mut() {
            scalar.share = Some(share);
        }
        self.values.insert(share, node.clone());
    }

    /// Spreads the writes to all shared scalars of an object.
    pub(crate) fn spread(&self, object: &mut Node) {
        if !self.values.is_empty() {
            self.follow(object);
        }
    }

    fn follow(&self, node: &mut Node) {
        match &mut node.content {
            Content::Seq(items) => items.iter_mut().for_each(|item| self.follow(item)),
            Content::Map(map) => map.values_mut().for_each(|value| self.follow(value)),
            Content::Scalar(scalar) => {
                if let Some(value) = scalar.share.and_then(|share| self.values.get(&share)) {
                    node.clone_from(value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{objects, text};

    /// Writes strings into fields of an object in which the scalars `x` are shared, and the scalars `y`.
    fn written(object: &str, writes: &[(&[&str], &str)]) -> String {
        let mut resources = objects(object);
        let resource = resources.iter_mut().next().unwrap();
        let shares = ["x", "y"].map(|name| (name, resource.new_share()));
        mark(resource.node_mut(), &shares);
        let mut written = Written::default();
        for (path, text) in writes {
            let node = resource.node_mut().pointer_mut(path).unwrap();
            written.write(node, |node| *node = Node::string(*text));
        }
        written.spread(resource.node_mut());
        text(&resources)
    }

    fn mark(node: &mut Node, shares: &[(&str, Option<NonZeroU32>)]) {
        match &mut node.content {
            Content::Seq(items) => items.iter_mut().for_each(|item| mark(item, shares)),
            Content::Map(map) => map.values_mut().for_each(|value| mark(value, shares)),
            Content::Scalar(scalar) => {
                let share = shares.iter().find(|(name, _)| *name == &*scalar.text);
                scalar.share = share.and_then(|(_, share)| *share);
            }
        }
    }

    #[test]
    fn shared_scalars_follow_a_write() {
        let object = "{a: x, b: [x, {c: y}], d: z}";
        for (writes, expected) in [
            (&[][..], "a: x\nb:\n- x\n- c: \"y\"\nd: z\n"),
            (&[(&["a"][..], "1")], "a: \"1\"\nb:\n- \"1\"\n- c: \"y\"\nd: z\n"),
            (&[(&["b", "1", "c"], "2")], "a: x\nb:\n- x\n- c: \"2\"\nd: z\n"),
            (&[(&["d"], "3")], "a: x\nb:\n- x\n- c: \"y\"\nd: \"3\"\n"),
            (
                &[(&["a"], "new"), (&["b", "0"], "x")],
                "a: x\nb:\n- x\n- c: \"y\"\nd: z\n",
            ),
        ] {
            assert_eq!(written(object, writes), expected, "{writes:?}");
        }
    }

    #[test]
    fn shared_scalar_change_sees_earlier_writes() {
        let mut resources = objects("{a: x, b: x}");
        let resource = resources.iter_mut().next().unwrap();
        let share = resource.new_share();
        mark(resource.node_mut(), &[("x", share)]);
        let mut written = Written::default();
        for key in ["a", "b"] {
            let node = resource.node_mut().get_mut(key).unwrap();
            written.write(node, |node| {
                let longer = format!("p-{}", crate::lookup::raw_text(node));
                *node = Node::string(longer);
            });
        }
        written.spread(resource.node_mut());
        assert_eq!(text(&resources), "a: p-p-x\nb: p-p-x\n");
    }
}
