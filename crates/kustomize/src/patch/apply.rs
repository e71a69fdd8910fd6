//! Applies patches to objects, for all fields.

use std::sync::Arc;

use yaml::{Node, Position, node::Content};

use super::{json6902::JsonPatch, strategic};
use crate::{
    Error,
    error::Step,
    lookup,
    measure::printed,
    model::Selector,
    read,
    resmap::ResMap,
    resource::{self, Resource},
    run::Run,
    selector,
    transform::PluginContext,
};

/// Reads the objects of an inline patch.
pub(super) fn inline_objects(text: &str, ctx: &PluginContext<'_>) -> Result<Vec<Resource>, Error> {
    let root = Arc::new(ctx.loader.root().clone());
    read::resources(text.as_bytes(), &root, ctx.run)
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The parts of an object's identity that a strategic merge patch may change.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Allowed {
    pub(super) name_change: bool,
    pub(super) kind_change: bool,
}

impl Allowed {
    pub(super) fn any(self) -> bool {
        self.name_change || self.kind_change
    }
}

/// Returns the only object that is or was the target of a patch.
pub(super) fn target_of(patch: &Resource, resources: &mut ResMap) -> Result<usize, Error> {
    let id = patch.id();
    let problem = match resources.find_any(id).as_slice() {
        [index] => return Ok(*index),
        [] => "no matches",
        _ => "multiple matches",
    };
    let problem = format!("{problem} for Id {id}; failed to find unique target for patch {id}");
    Err(Error::new(Step::Patch, problem))
}

/// Prepares a patch to be merged into objects which it doesn't name.
///
/// quirk: the values of its labels and annotations become strings, null too, and without any the field has no meaning.
pub(super) fn detached(patch: &Resource) -> Node {
    let mut patch = patch.clone();
    for field in ["labels", "annotations"] {
        let map = patch.metadata_map(field);
        patch.set_metadata_map(field, &map);
    }
    let mut node = patch.into_node();
    let without_namespace = node
        .pointer(&["metadata", "namespace"])
        .is_some_and(|namespace| namespace.as_text().unwrap_or_default().is_empty());
    if without_namespace && let Some(metadata) = node.get_mut("metadata") {
        metadata.remove("namespace");
    }
    node
}

/// Merges a patch into an object which it doesn't name: its own apiVersion becomes the object's.
pub(super) fn merge_detached(
    resources: &mut ResMap,
    index: usize,
    patch: &mut Node,
    allowed: Allowed,
    run: &Run<'_>,
) -> Result<(), Error> {
    let api_version = resources.get(index).map(|resource| resource.gvk().api_version());
    patch.set("apiVersion", Node::plain(api_version.unwrap_or_default()));
    merge_into(resources, index, patch, allowed, run)
}

/// Merges a patch into one object. Its identity changes only as far as allowed.
pub(super) fn merge_into(
    resources: &mut ResMap,
    index: usize,
    patch: &Node,
    allowed: Allowed,
    run: &Run<'_>,
) -> Result<(), Error> {
    let Some(resource) = resources.get_mut_keeping_id(index) else {
        return Ok(());
    };
    let id = resource.id().clone();
    let dir = resource.file.clone();
    run.check(&dir)?;
    if allowed.any() {
        resource.store_previous_id();
    }
    let schema = run.schema.borrow();
    let step = |n| run.step(n, &dir);
    let object = std::mem::replace(resource.node_mut(), Node::null());
    let before = printed(&object);
    let merged =
        strategic::merge(object, patch, &schema, &step)?.filter(|merged| !resource::is_empty(merged));
    let is_left = merged.is_some();
    if let Some(mut merged) = merged {
        if !allowed.kind_change {
            restore(&mut merged, "kind", &id.gvk.kind);
        }
        if merged.get("metadata").is_none_or(Node::is_null) {
            merged.set("metadata", Node::map());
        }
        if let Some(metadata) = merged.get_mut("metadata") {
            if !allowed.name_change {
                restore(metadata, "name", &id.name);
            }
            if id.namespace.is_empty() {
                metadata.remove("namespace");
            } else {
                restore(metadata, "namespace", &id.namespace);
            }
        }
        run.grow(printed(&merged).saturating_sub(before), &dir)?;
        *resource.node_mut() = merged;
        if loses_annotations(patch) {
            resource.history.forget();
        }
    }
    if allowed.any() || !is_left {
        resources.forget_indices();
        // The identities of all are compared again.
        run.step(resources.len() as u64, &dir)?;
    }
    Ok(())
}

/// Returns true if a strategic merge patch removes the annotations of an object, or replaces all of them.
fn loses_annotations(patch: &Node) -> bool {
    let paths = [&["metadata"][..], &["metadata", "annotations"]];
    paths.into_iter().any(|root| {
        patch.pointer(root).is_some_and(|node| {
            let directive = node.get("$patch").map(lookup::raw_text);
            node.is_null() || matches!(directive, Some("replace" | "delete"))
        })
    })
}

/// Resets a string of an object to its old value, as plain or quoted as it is. A plain scalar is resolved from its content
/// from then on, whatever is written over it.
fn restore(map: &mut Node, key: &str, text: &str) {
    match map.get_mut(key) {
        Some(Node {
            position,
            content: Content::Scalar(scalar),
        }) if !scalar.is_null()
            && (*scalar.text != *text || scalar.tag.is_none() || Node::plain(text).as_str().is_some()) =>
        {
            *position = Position::default();
            scalar.text = text.into();
            scalar.tag = None;
        }
        Some(Node {
            content: Content::Scalar(scalar),
            ..
        }) if *scalar.text == *text => {}
        _ => {
            map.set(key, Node::string(text));
        }
    }
}

/// Applies a JSON patch to the objects that a selector selects.
pub(super) fn apply_json(
    patch: &JsonPatch,
    target: &Selector,
    resources: &mut ResMap,
    remember: bool,
    ctx: &PluginContext<'_>,
) -> Result<(), Error> {
    let run = ctx.run;
    for index in selector::select(resources, target, run, ctx.loader.root())? {
        let Some(resource) = resources.get_mut(index) else {
            continue;
        };
        if remember {
            resource.store_previous_id();
        }
        run.step(1, &resource.file)?;
        run.check(&resource.file)?;
        let noted = resource.history.is_noted();
        let (mut patched, are_kept) = patch.apply(resource.node(), noted, run, &resource.file)?;
        patched.unshare();
        *resource.node_mut() = patched;
        // quirk: annotations become strings, null too.
        let annotations = resource.metadata_map("annotations");
        resource.set_metadata_map("annotations", &annotations);
        if !are_kept {
            // The original restores its other annotations, but not these.
            resource.history.origin = None;
            resource.history.transformations.clear();
        }
        if noted {
            resource.note();
        }
    }
    Ok(())
}
