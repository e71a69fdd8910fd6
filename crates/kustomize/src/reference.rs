//! Updates the references to renamed objects.

mod candidates;
#[cfg(test)]
mod tests;

use std::{mem, sync::Arc};

use yaml::{
    Node,
    node::{Content, Scalar},
};

use self::candidates::{Candidates, Identical, Question};
use crate::{
    Error,
    error::{Context as _, Step},
    fieldspec::{self, ByKind, Create, NameReference, Path},
    id::{Gvk, Id},
    lookup::raw_text,
    resmap::ResMap,
    resource::{History, Resource, Written},
    run::Run,
};

/// A field that may hold the name of an object.
struct Row<'a> {
    target: &'a Gvk,
    path: Path<'a>,
}

/// Writes the new names of objects into the fields that refer to them. Fails if a field can't hold a name, or several
/// objects fit one.
pub(crate) fn fix(resources: &mut ResMap, rows: &[NameReference], run: &Run<'_>) -> Result<(), Error> {
    let list = resources.list_mut();
    let ids: Vec<Arc<Id>> = list.iter().map(|resource| resource.id().clone()).collect();
    // Identities are read while the fields of the objects change.
    let histories: Vec<History> = list
        .iter_mut()
        .map(|resource| mem::take(&mut resource.history))
        .collect();
    let fixed = fix_all(list, &Candidates::new(&ids, &histories), rows, run);
    for (resource, history) in list.iter_mut().zip(histories) {
        resource.history = history;
    }
    fixed
}

fn fix_all(
    list: &mut [Resource],
    candidates: &Candidates<'_>,
    rows: &[NameReference],
    run: &Run<'_>,
) -> Result<(), Error> {
    let rows = rows.iter().flat_map(|target| {
        target.fields.iter().map(|field| {
            let path = Path::of(field);
            (
                &field.gvk,
                Row {
                    target: &target.target,
                    path,
                },
            )
        })
    });
    let mut rows = ByKind::new(rows);
    for (index, resource) in list.iter_mut().enumerate() {
        let Some(object) = candidates.object(index) else {
            continue;
        };
        run.step(1 + candidates.looked_at(), &resource.file)?;
        let kind = object.original_kind();
        let mut rows = rows.of(&kind).peekable();
        if rows.peek().is_none() {
            continue;
        }
        let (file, line) = (resource.file.clone(), resource.line);
        let node = resource.node_mut();
        let fixed = candidates.referrer(object, node).and_then(|referrer| {
            rows.try_for_each(|row| {
                let question = candidates.question(&referrer, row.target, row.path.text);
                let mut set = |node: &mut Node, written: &mut Written| set(node, &question, written);
                let fixed = fieldspec::visit_path(node, &row.path, Create::Nothing, &mut set);
                fixed.context(|| {
                    format!(
                        "updating name reference in '{}' field of '{}'",
                        row.path.text, object.id
                    )
                })
            })
        });
        fixed.map_err(|error| error.at(&file, line))?;
    }
    Ok(())
}

/// Writes new names into a field: a name, a map with a name in it, or a list of those.
fn set(node: &mut Node, question: &Question<'_>, written: &mut Written) -> Result<(), Error> {
    match &mut node.content {
        Content::Seq(items) => items.iter_mut().try_for_each(|item| match item.content {
            Content::Seq(_) => {
                let problem = "a list in a list is expected to be either a string or a map of string";
                Err(Error::new(Step::Reference, problem))
            }
            _ => set_one(item, question, written),
        }),
        _ => set_one(node, question, written),
    }
}

fn set_one(node: &mut Node, question: &Question<'_>, written: &mut Written) -> Result<(), Error> {
    match &mut node.content {
        Content::Scalar(scalar) if !scalar.is_null() => written.write(node, |node| {
            if let Some(scalar) = node.as_scalar_mut()
                && let Some(found) = question.ask(&scalar.text, None, Identical::Names)?
            {
                rename(scalar, &found.id.name);
            }
            Ok(())
        }),
        Content::Map(_) => set_in_map(node, question, written),
        Content::Scalar(_) | Content::Seq(_) => Ok(()),
    }
}

fn set_in_map(node: &mut Node, question: &Question<'_>, written: &mut Written) -> Result<(), Error> {
    let Some(name) = node.get("name").map(raw_text) else {
        let problem = "path config error; no 'name' field in node";
        return Err(Error::new(Step::Reference, problem));
    };
    let namespace = node.get("namespace").map(raw_text);
    let found = question.ask(name, namespace, Identical::NamesAndNamespaces)?;
    if let Some(found) = found {
        put(node, "name", &found.id.name, written);
        // A missing namespace means any: it does not stand for the default one.
        if !found.id.namespace.is_empty() {
            put(node, "namespace", &found.id.namespace, written);
        }
    }
    Ok(())
}

fn put(node: &mut Node, key: &str, text: &str, written: &mut Written) {
    match node.get_mut(key) {
        Some(field) => written.write(field, |field| match &mut field.content {
            Content::Scalar(scalar) => rename(scalar, text),
            _ => *field = Node::string(text),
        }),
        None => {
            node.set(key, Node::string(text));
        }
    }
}

/// Replaces a string in the same style.
fn rename(scalar: &mut Scalar, text: &str) {
    if &*scalar.text != text {
        scalar.text = text.into();
        scalar.tag = None;
    }
}
