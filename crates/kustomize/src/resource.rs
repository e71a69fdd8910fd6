//! An object of a build, with the state that kustomize tracks for it.

pub(crate) mod encode;
mod written;

use std::{cell::OnceCell, collections::BTreeMap, num::NonZeroU32, sync::Arc};

use tree::TreePath;
use yaml::{
    Node,
    node::{Content, Entry, Mapping, Scalar, Text},
};

pub(crate) use self::written::Written;
use crate::{
    id::{Gvk, Id},
    origin::Origin,
};

/// The treatment of a generated object if the build already holds one of its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Behavior {
    /// The default, for an unset or unknown behavior: as `create`.
    #[default]
    Unspecified,
    Create,
    Replace,
    Merge,
}

impl Behavior {
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "create" => Self::Create,
            "replace" => Self::Replace,
            "merge" => Self::Merge,
            _ => Self::Unspecified,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Merge => "merge",
        }
    }
}

/// Kind, name and effective namespace that an object had before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Previous {
    pub(crate) kind: Text,
    pub(crate) name: Text,
    pub(crate) namespace: Text,
}

/// The state of an object next to its content. The original stores it in annotations, which it removes at the end.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// From the first to the last before now.
    pub(crate) previous: Vec<Previous>,
    /// From the innermost kustomization to the outermost.
    pub(crate) prefixes: Vec<Text>,
    pub(crate) suffixes: Vec<Text>,
    pub(crate) behavior: Behavior,
    /// True if a hash of the content is added to the name.
    pub(crate) needs_hash: bool,
    /// True if the object comes from a Helm chart, which set its namespace.
    pub(crate) from_helm: bool,
    /// The number of shared numbers of its scalars; see [`Written`].
    pub(crate) shares: u32,
    /// The vars whose values come from this object.
    pub(crate) vars: Vec<String>,
    pub(crate) origin: Option<Arc<Origin>>,
    pub(crate) transformations: Vec<Arc<Origin>>,
}

impl History {
    /// Returns true if there are as many names as namespaces and kinds.
    ///
    /// quirk: the original stores them in strings with commas, where an empty one leaves no trace, and fails if they don't
    /// match.
    pub(crate) fn is_sound(&self) -> bool {
        let count = |part: fn(&Previous) -> &str| -> usize {
            let parts = self.previous.iter().map(part).filter(|part| !part.is_empty());
            parts.map(|part| part.split(',').count()).sum()
        };
        let names = count(|previous| &previous.name);
        let is_same = |other: usize| names == 0 || names == other;
        is_same(count(|previous| &previous.namespace)) && is_same(count(|previous| &previous.kind))
    }

    /// Clears the state that the original stores in annotations, after a patch removed all of them.
    pub(crate) fn forget(&mut self) {
        *self = Self {
            shares: self.shares,
            vars: std::mem::take(&mut self.vars),
            ..Self::default()
        };
    }

    /// Returns true if the original would have stored something in annotations of the object.
    pub(crate) fn is_noted(&self) -> bool {
        !self.previous.is_empty()
            || !self.prefixes.is_empty()
            || !self.suffixes.is_empty()
            || !self.vars.is_empty()
            || self.needs_hash
            || self.from_helm
            || self.behavior != Behavior::default()
            || self.origin.is_some()
            || !self.transformations.is_empty()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Resource {
    node: Node,
    id: OnceCell<Arc<Id>>,
    /// True if a custom schema says that its kind is cluster-scoped.
    cluster_scoped: bool,
    pub(crate) history: History,
    /// The file that it was read from, or the one that configures its generator.
    pub(crate) file: Arc<TreePath>,
    /// The line of its start.
    pub(crate) line: u32,
}

impl Resource {
    pub(crate) fn new(node: Node, file: Arc<TreePath>, line: u32) -> Self {
        Self {
            node,
            id: OnceCell::new(),
            cluster_scoped: false,
            history: History::default(),
            file,
            line,
        }
    }

    /// Sets the scope that a custom schema gives the kind.
    #[must_use]
    pub(crate) fn with_cluster_scope(self, cluster_scoped: bool) -> Self {
        Self {
            cluster_scoped,
            ..self
        }
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    pub(crate) fn node_mut(&mut self) -> &mut Node {
        self.id.take();
        &mut self.node
    }

    pub(crate) fn into_node(self) -> Node {
        self.node
    }

    pub(crate) fn id(&self) -> &Arc<Id> {
        self.id.get_or_init(|| {
            let id = Id::read(&self.node);
            Arc::new(if self.cluster_scoped {
                id.cluster_scoped()
            } else {
                id
            })
        })
    }

    pub(crate) fn gvk(&self) -> &Gvk {
        &self.id().gvk
    }

    /// Returns the earlier identities, the first one first, with the current group and version.
    pub(crate) fn previous_ids(&self) -> impl DoubleEndedIterator<Item = Id> + '_ {
        let gvk = self.gvk();
        self.history.previous.iter().map(move |previous| {
            let gvk = Gvk {
                kind: String::from(&previous.kind).into(),
                ..gvk.clone()
            };
            Id::previous(gvk, (&previous.name).into(), (&previous.namespace).into())
        })
    }

    /// Returns the identity that the object was read with.
    pub(crate) fn original_id(&self) -> Arc<Id> {
        match self.previous_ids().next() {
            Some(first) => Arc::new(first),
            None => self.id().clone(),
        }
    }

    /// Returns all past identities, then the current one.
    pub(crate) fn all_ids(&self) -> Vec<Arc<Id>> {
        let mut ids: Vec<_> = self.previous_ids().map(Arc::new).collect();
        ids.push(self.id().clone());
        ids
    }

    /// Stores the current identity before it changes.
    pub(crate) fn store_previous_id(&mut self) {
        let id = self.id().clone();
        let previous = Previous {
            kind: id.gvk.kind.as_ref().into(),
            name: id.name.as_str().into(),
            namespace: id.effective_namespace().into(),
        };
        push(&mut self.history.previous, previous);
        self.note();
    }

    /// quirk: the original stores its state in annotations. From the first one on, an object has a map of them, which
    /// patches and field specs find that would not create it; it is removed at the end if it is empty.
    pub(crate) fn note(&mut self) {
        if let Some(metadata) = self.node.get_mut("metadata")
            && metadata.get("annotations").is_none_or(Node::is_null)
        {
            metadata.set("annotations", Node::map());
        }
    }

    /// Gives the annotations of the object their own scalars.
    pub(crate) fn renew_annotations(&mut self) {
        if self.history.shares > 0
            && let Some(annotations) = self.node.pointer_mut(&["metadata", "annotations"])
        {
            annotations.unshare();
        }
    }

    /// Returns an unused number for shared scalars of the object; see [`Written`].
    pub(crate) fn new_share(&mut self) -> Option<NonZeroU32> {
        self.history.shares = self.history.shares.saturating_add(1);
        NonZeroU32::new(self.history.shares)
    }

    /// Returns true if nothing is left of the object.
    pub(crate) fn is_empty(&self) -> bool {
        is_empty(&self.node)
    }

    pub(crate) fn name(&self) -> &str {
        &self.id().name
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.id().namespace
    }

    /// Sets the name, as plain or quoted as it was; a plain scalar is resolved from its content, as in the original.
    pub(crate) fn set_name(&mut self, name: &str) {
        self.set_metadata_text("name", name);
    }

    /// Sets the namespace as [`Self::set_name`] sets the name, or removes it if it is empty.
    pub(crate) fn set_namespace(&mut self, namespace: &str) {
        if namespace.is_empty() {
            if let Some(metadata) = self.node_mut().get_mut("metadata") {
                metadata.remove("namespace");
            }
        } else {
            self.set_metadata_text("namespace", namespace);
        }
    }

    fn set_metadata_text(&mut self, key: &str, text: &str) {
        let old = self.node.pointer(&["metadata", key]).and_then(Node::as_scalar);
        let plain = old.is_none_or(|old| old.plain);
        let text = Scalar {
            plain,
            ..Scalar::plain(text)
        };
        self.set_metadata(key, text.into());
    }

    fn set_metadata(&mut self, key: &str, value: Node) {
        let node = self.node_mut();
        if node.get("metadata").is_none_or(Node::is_null) {
            node.set("metadata", Node::map());
        }
        if let Some(metadata) = node.get_mut("metadata") {
            metadata.set(key, value);
        }
    }

    /// Returns the strings of a map in the metadata: labels or annotations.
    pub(crate) fn metadata_map(&self, field: &str) -> BTreeMap<String, String> {
        let map = self.node.pointer(&["metadata", field]).and_then(Node::as_map);
        let text = |node: &Node| match &node.content {
            Content::Scalar(scalar) => scalar.text.to_string(),
            _ => String::new(),
        };
        map.into_iter()
            .flat_map(|map| map.iter())
            .map(|(key, value)| (key.to_owned(), text(value)))
            .collect()
    }

    /// Sets a map in the metadata to strings, sorted; an empty one is removed.
    pub(crate) fn set_metadata_map(&mut self, field: &str, map: &BTreeMap<String, String>) {
        if let Some(metadata) = self.node_mut().get_mut("metadata") {
            metadata.remove(field);
        }
        if map.is_empty() {
            return;
        }
        let entries = map
            .iter()
            .map(|(key, value)| entry(key, Node::string(value.as_str())));
        self.set_metadata(field, Node::new(Content::Map(entries.collect::<Mapping>())));
    }

    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.node
            .pointer(&["metadata", "annotations", name])
            .and_then(Node::as_text)
    }
}

/// Appends to one of the lists that every object has: most stay short, and doubling would leave half of the memory unused.
pub(crate) fn push<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 4 + 1);
    }
    list.push(item);
}

/// Sets an entry of a map; see [`entry`] for a new one.
pub(crate) fn put(map: &mut Mapping, key: &str, value: Node) {
    match map.get_mut(key) {
        Some(old) => *old = value,
        None => map.push(entry(key, value)),
    }
}

/// Makes a new entry of a map.
///
/// quirk: kustomize adds keys without a tag, so that one that looks like a number, a boolean or null is not a string, and is
/// refused when the object is printed.
pub(crate) fn entry(key: &str, value: Node) -> Entry {
    Entry {
        key: Scalar::plain(key),
        ..Entry::new("", value)
    }
}

/// Returns true if a node is null, or an empty map or list.
pub(crate) fn is_empty(node: &Node) -> bool {
    match &node.content {
        Content::Scalar(_) => node.is_null(),
        Content::Seq(items) => items.is_empty(),
        Content::Map(map) => map.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn put_adds_keys_as_plain_scalars() {
        let mut map = Mapping::new();
        put(&mut map, "yes", Node::string("1"));
        let node = Node::from(map.clone());
        assert_eq!(yaml::print::goyaml(&node.to_value().unwrap()), "\"yes\": \"1\"\n");
        put(&mut map, "true", Node::string("1"));
        assert!(Node::from(map).to_value().is_err());
    }
    use crate::testing::objects;

    fn object(text: &str) -> Resource {
        objects(text).into_list().remove(0)
    }

    #[test]
    fn renamed_object_counts_as_annotated() {
        for (metadata, expected) in [
            ("{name: x}", 0),
            ("{name: x, annotations: null}", 0),
            ("{name: x, annotations: {a: b}}", 1),
        ] {
            let mut object = object(&format!("{{apiVersion: v1, kind: A, metadata: {metadata}}}"));
            object.store_previous_id();
            let annotations = object.node().pointer(&["metadata", "annotations"]);
            assert_eq!(
                annotations.and_then(Node::as_map).map(Mapping::len),
                Some(expected),
                "{metadata}"
            );
        }
    }

    #[test]
    fn names_stay_in_quotes() {
        for (old, expected) in [("'1'", "2"), ("1", "2"), ("a", "b")] {
            let mut object = object(&format!(
                "{{apiVersion: v1, kind: A, metadata: {{name: {old}, namespace: {old}}}}}"
            ));
            object.set_name(expected);
            object.set_namespace(expected);
            for key in ["name", "namespace"] {
                let text = object
                    .node()
                    .pointer(&["metadata", key])
                    .and_then(Node::as_scalar)
                    .unwrap();
                assert_eq!(
                    (&*text.text, text.plain),
                    (expected, !old.starts_with('\'')),
                    "{key}"
                );
            }
        }
    }
}
