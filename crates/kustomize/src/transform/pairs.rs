//! Sets entries of maps, for labels and annotations.

use std::collections::BTreeMap;

use yaml::{Node, node::Content};

use crate::{
    Error,
    fieldspec::{self, Create, FieldSpec},
    lookup,
    resmap::ResMap,
    resource::{self, Resource, Written},
    transform::{PluginContext, Transformer, set},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pairs {
    pub(super) pairs: BTreeMap<String, String>,
    pub(super) specs: Vec<FieldSpec>,
}

/// A pair that is set in maps of one object, shared by all to which it is added.
struct Pair<'p> {
    key: &'p str,
    value: Node,
    is_added: bool,
}

impl<'p> Pair<'p> {
    fn new(key: &'p str, text: &str, resource: &mut Resource) -> Self {
        let mut value = Node::string(text);
        if let Some(scalar) = value.as_scalar_mut() {
            scalar.share = resource.new_share();
        }
        let is_added = false;
        Self { key, value, is_added }
    }

    /// Sets the entry of a map, and returns true if it was added. Nothing is set in null.
    fn set(&mut self, node: &mut Node, written: &mut Written) -> Result<bool, Error> {
        if node.is_null() {
            return Ok(false);
        }
        let Some(map) = node.as_map_mut() else {
            return Err(set::wrong_kind("MappingNode", node));
        };
        let Some(old) = map.get_mut(self.key) else {
            let entry = resource::entry(self.key, self.value.clone());
            map.push(entry);
            self.is_added = true;
            return Ok(true);
        };
        self.take_style(old);
        let mut new = self.value.clone();
        new.unshare();
        written.write(old, |old| *old = new);
        let share = self.value.as_scalar().and_then(|scalar| scalar.share);
        if let Some(share) = share.filter(|_| self.is_added) {
            written.put(share, &mut self.value);
        }
        Ok(false)
    }

    /// quirk: a value that replaces an older one is written in its style, and so are the fields to which it was added
    /// already, and those to which it will be.
    fn take_style(&mut self, old: &Node) {
        if let (Content::Scalar(value), Some(_)) = (&mut self.value.content, old.as_scalar()) {
            value.plain = !lookup::is_quoted(old);
            self.value.position = old.position;
        }
    }
}

impl Pairs {
    fn apply(&self, resource: &mut Resource, ctx: &PluginContext<'_>) -> Result<(), Error> {
        let pairs = self.pairs.iter();
        let mut pairs: Vec<_> = pairs.map(|(key, text)| Pair::new(key, text, resource)).collect();
        for spec in &self.specs {
            if !resource.gvk().is_selected_by(&spec.gvk) {
                continue;
            }
            fieldspec::visit_shared(resource.node_mut(), spec, Create::Map, &mut |node, written| {
                for pair in &mut pairs {
                    if pair.set(node, written)? {
                        ctx.grow(pair.key)?;
                        ctx.grow(lookup::raw_text(&pair.value))?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl Transformer for Pairs {
    fn transform(&self, resources: &mut ResMap, ctx: &PluginContext<'_>) -> Result<(), Error> {
        if self.pairs.is_empty() {
            return Ok(());
        }
        for resource in resources.iter_mut() {
            ctx.step(self.pairs.len() + self.specs.len())?;
            self.apply(resource, ctx)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::testing::{row, text, transformed, transformed_all};

    fn labelled(object: &str, paths: &[&'static str]) -> String {
        let pairs = Pairs {
            pairs: [("a".to_owned(), "b".to_owned())].into(),
            specs: paths.iter().map(|path| row(path, true)).collect(),
        };
        let object = format!("{{apiVersion: v1, kind: A, metadata: {{name: x}}, {object}}}");
        let text = transformed(&object, &pairs);
        text.split_once("name: x\n")
            .map_or(text.clone(), |(_, rest)| rest.to_owned())
    }

    #[test]
    fn labels_need_a_map() {
        assert_eq!(labelled("s: {a: 1, c: d}", &["s"]), "s:\n  a: b\n  c: d\n");
        assert_eq!(
            labelled("s: [null, {}]", &["s/m"]),
            "s:\n- null\n- m:\n    a: b\n"
        );
        assert!(
            labelled("s: x", &["s"]).ends_with("wrong node kind: expected MappingNode but got ScalarNode")
        );
    }

    #[test]
    fn label_added_to_several_maps_is_shared() {
        let pairs = Pairs {
            pairs: [("a".to_owned(), "b".to_owned())].into(),
            specs: vec![row("m", true), row("n", true)],
        };
        let other = Pairs {
            pairs: [("a".to_owned(), "c".to_owned())].into(),
            specs: vec![row("m", true)],
        };
        let object = "{apiVersion: v1, kind: A, metadata: {name: x}}";
        let resources = transformed_all(object, &[&pairs, &other]).unwrap();
        let text = text(&resources);
        assert!(
            text.ends_with("m:\n  a: c\nmetadata:\n  name: x\n\"n\":\n  a: c\n"),
            "{text}"
        );
    }
}
