//! Reads files of objects: splits documents and lists, and checks each object.

#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::VecDeque, fmt::Write as _, iter, ops::Range, sync::Arc};

use tree::TreePath;
use yaml::{
    Node, Value,
    node::{Content, Mapping},
};

use crate::{
    Error,
    error::{Context as _, Step},
    metadata,
    resource::{self, Resource},
    run::Run,
};

/// Returns true if an entry that is not an object can be the path of a file. Messages don't print entries that may contain
/// secrets.
pub(crate) fn is_path(entry: &str) -> bool {
    !entry.contains('\n') && !entry.contains(": ") && !entry.starts_with(['{', '['])
}

/// Reads the objects of a file. Items of lists come after the other documents, as in the original. Fails if it is not YAML,
/// or holds documents that are not objects; the error has file and line.
pub(crate) fn resources(text: &[u8], file: &Arc<TreePath>, run: &Run<'_>) -> Result<Vec<Resource>, Error> {
    let objects = nodes(text, file, run)?.into_iter();
    let mut schema = run.schema.borrow_mut();
    Ok(objects
        .map(|node| {
            let line = node.position.line.max(1);
            let text = |key: &str| node.get(key).and_then(Node::as_text).unwrap_or_default();
            let cluster_scoped = schema.note_kind(text("apiVersion"), text("kind"));
            let resource = Resource::new(node, file.clone(), line);
            let mut resource = resource.with_cluster_scope(cluster_scoped);
            metadata::adopt(&mut resource);
            resource
        })
        .collect())
}

/// Reads the objects of a file, as [`resources`] does, without their history.
pub(crate) fn nodes(text: &[u8], file: &TreePath, run: &Run<'_>) -> Result<Vec<Node>, Error> {
    let mut queue = VecDeque::from(documents(text, file, run)?);
    let mut objects = Vec::with_capacity(queue.len());
    while let Some(node) = queue.pop_front() {
        run.step(1, file)?;
        let line = node.position.line.max(1);
        match unpack(node).map_err(|error| error.at(file, line))? {
            Unpacked::Object(node) => objects.push(node),
            Unpacked::Items(items) => queue.extend(items),
        }
    }
    Ok(objects)
}

/// Reads the documents of a file; a lone `List` is split, empty ones are dropped, the others must be objects.
fn documents(text: &[u8], file: &TreePath, run: &Run<'_>) -> Result<Vec<Node>, Error> {
    let (text, separators) = separated(text).map_err(|(line, error)| error.at(file, line))?;
    run.parses(&text, file)?;
    let read = yaml::read::nodes(text, run.budget).map_err(|source| Error::malformed(file, source))?;
    let unwrapped = unwrap(read, separators == 0);
    checked(unwrapped).map_err(|(line, error)| error.at(file, line))
}

/// Splits a `List` that is alone in its file.
fn unwrap(mut documents: Vec<Node>, alone: bool) -> Vec<Node> {
    let is_list = |node: &Node| {
        let kind = node.get("kind").and_then(Node::as_text).unwrap_or_default();
        (kind == "List" || kind == "ResourceList")
            && (node.get("items").is_some() || node.get("functionConfig").is_some())
    };
    match documents.as_mut_slice() {
        [list] if alone && is_list(list) => match list.remove("items").map(|items| items.content) {
            Some(Content::Seq(items)) => items,
            _ => Vec::new(),
        },
        _ => documents,
    }
}

/// Drops empty documents, and refuses those that are not objects.
fn checked(nodes: Vec<Node>) -> Result<Vec<Node>, (u32, Error)> {
    let mut objects = Vec::with_capacity(nodes.len());
    for node in nodes {
        if resource::is_empty(&node) {
            continue;
        }
        check(&node).map_err(|error| (node.position.line.max(1), error))?;
        objects.push(node);
    }
    Ok(objects)
}

/// Checks that a node is an object: it has a kind, and a name unless it is a list.
pub(crate) fn check(node: &Node) -> Result<(), Error> {
    let fail = |problem: String| Err(Error::new(Step::Resource, problem));
    let filled = |node: Option<&Node>| node.filter(|node| !resource::is_empty(node)).is_some();
    let metadata = node.get("metadata").filter(|node| !resource::is_empty(node));
    let in_metadata = |key: &str| filled(metadata.and_then(|metadata| metadata.get(key)));
    let anything = filled(node.get("apiVersion"))
        || filled(node.get("kind"))
        || ["name", "namespace", "labels", "annotations"]
            .into_iter()
            .any(in_metadata);
    if !anything {
        return fail("missing Resource metadata".to_owned());
    }
    let text = |node: Option<&Node>| node.and_then(Node::as_text).unwrap_or_default().to_owned();
    let kind = text(node.get("kind"));
    if kind.is_empty() {
        return fail(format!("missing kind in object {}", described(node)));
    }
    if !kind.ends_with("List") && text(metadata.and_then(|metadata| metadata.get("name"))).is_empty() {
        return fail(format!("missing metadata.name in object {}", described(node)));
    }
    Ok(())
}

/// Formats apiVersion, kind and metadata as the original prints them, without the values of annotations: those may hold
/// whole objects.
fn described(node: &Node) -> String {
    let text = |path: &[&str]| node.pointer(path).and_then(Node::as_text).unwrap_or_default();
    let map = |field: &str| {
        let map = node.pointer(&["metadata", field]).and_then(Node::as_map);
        let mut entries: Vec<_> = map.into_iter().flat_map(Mapping::iter).collect();
        entries.sort_by_key(|(key, _)| *key);
        let mut printed = String::new();
        for (key, value) in entries {
            let gap = if printed.is_empty() { "" } else { " " };
            let text = value.as_text().filter(|_| field == "labels");
            let _ = write!(printed, "{gap}{key}:{}", text.unwrap_or_default());
        }
        printed
    };
    format!(
        "{{{{{} {}}} {{{{{} {}}} map[{}] map[{}]}}}}",
        text(&["apiVersion"]),
        text(&["kind"]),
        text(&["metadata", "name"]),
        text(&["metadata", "namespace"]),
        map("labels"),
        map("annotations"),
    )
}

enum Unpacked {
    Object(Node),
    Items(Vec<Node>),
}

/// Splits an object whose kind says that it is a list.
fn unpack(mut node: Node) -> Result<Unpacked, Error> {
    let kind = node
        .get("kind")
        .and_then(Node::as_text)
        .unwrap_or_default()
        .to_owned();
    if !kind.ends_with("List") {
        return Ok(Unpacked::Object(node));
    }
    let line = node.position;
    let Some(items) = node.remove("items") else {
        return Ok(Unpacked::Object(node));
    };
    let items = match items.content {
        Content::Seq(items) => items,
        _ if items.is_null() => return Ok(Unpacked::Items(Vec::new())),
        other => {
            let problem = format!("expected array in {kind}/items, but found {}", go_type(&other));
            return Err(Error::new(Step::Resource, problem));
        }
    };
    let mut objects = Vec::with_capacity(items.len());
    for item in items {
        let position = if item.position.line == 0 {
            line
        } else {
            item.position
        };
        // The original sends them through JSON, which normalises numbers.
        let value = item
            .into_value()
            .map_err(|error| Error::new(Step::Resource, error.message()))
            .context(|| format!("trouble expanding list of {kind}"))?;
        let mut inner = unwrap(vec![Node::from_value(&value)], true);
        for node in &mut inner {
            node.position = position;
        }
        objects.extend(checked(inner).map_err(|(_, error)| error)?);
    }
    Ok(Unpacked::Items(objects))
}

/// Returns the name of Go's type of a value.
fn go_type(content: &Content) -> &'static str {
    match content {
        Content::Map(_) => "map[string]interface {}",
        Content::Seq(_) => "[]interface {}",
        Content::Scalar(scalar) => match Node::new(Content::Scalar(scalar.clone())).into_value() {
            Ok(Value::Bool(_)) => "bool",
            Ok(Value::Int(_) | Value::UInt(_)) => "int",
            Ok(Value::Float(_)) => "float64",
            _ => "string",
        },
    }
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The text as YAML has it, and the number of lines that separate documents.
type Separated<'a> = (Cow<'a, [u8]>, usize);

/// Finds the lines that separate documents. As in the original, a line that begins
/// with `---` separates, even if a comment follows without a blank; the line after it may begin with a byte order mark, as
/// in files that were joined, and is never a separator itself.
fn separated(text: &[u8]) -> Result<Separated<'_>, (u32, Error)> {
    let (mut removed, mut found) = (Vec::new(), 0);
    let (mut end, mut is_separator) = (0, false);
    for (number, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let (start, after_separator) = (end, is_separator);
        end += line.len();
        if after_separator && line.starts_with(BYTE_ORDER_MARK) {
            removed.push(start..start + BYTE_ORDER_MARK.len());
        }
        is_separator = number > 0 && !after_separator && line.starts_with(b"---") && line.ends_with(b"\n");
        if !is_separator {
            continue;
        }
        found += 1;
        let rest = line.get(3..).unwrap_or_default();
        let comment = String::from_utf8_lossy(rest);
        if !(comment.trim().is_empty() || comment.trim_start().starts_with('#')) {
            // The content may be secret.
            let number = u32::try_from(number + 1).unwrap_or(u32::MAX);
            let problem = "invalid document separator: only a comment may follow ---";
            return Err((number, Error::new(Step::Resource, problem)));
        }
        if !rest.trim_ascii().is_empty() {
            removed.push(start + 3..end - 1);
        }
    }
    Ok((without(text, &removed), found))
}

/// Returns the text without some of its parts, which are in their order.
fn without<'t>(text: &'t [u8], removed: &[Range<usize>]) -> Cow<'t, [u8]> {
    if removed.is_empty() {
        return text.into();
    }
    let starts = iter::once(0).chain(removed.iter().map(|part| part.end));
    let ends = removed.iter().map(|part| part.start).chain([text.len()]);
    let parts = starts.zip(ends).filter_map(|(start, end)| text.get(start..end));
    parts.collect::<Vec<_>>().concat().into()
}
