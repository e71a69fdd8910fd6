//! YAML of any number of documents, with their comments.

mod print;

use print::MERGE;
pub(super) use print::print;

use tree::Budget;
use yaml::{
    Node, Position,
    node::{Content, Entry, Scalar, Tag},
    read::Comment,
};

use super::{
    json,
    loaded::{Loaded, utf8},
};
use crate::{
    Error,
    document::{Branch, Item, Value},
};

const FORMAT: &str = "YAML";

pub(super) fn load(bytes: &[u8], budget: &Budget) -> Result<Option<Loaded>, Error> {
    let text = utf8(FORMAT, bytes)?;
    let written = yaml::read::written(text, budget).map_err(|error| match error.exceeded() {
        Some(exceeded) => Error::Exceeded(exceeded.clone()),
        None => Error::syntax(FORMAT, error.to_string()),
    })?;
    let first = written.documents.first().and_then(Node::as_map);
    if !first.is_some_and(|first| first.contains_key("sops")) {
        return Ok(None);
    }
    let mut reader = Reader {
        comments: &written.comments,
        ends: ends(text, &written.documents),
    };
    let mut documents = Vec::with_capacity(written.documents.len());
    let mut metadata = None;
    for (index, document) in written.documents.iter().enumerate() {
        let mut branch = reader.document(document, index)?;
        let is_metadata = |item: &mut Item| matches!(item, Item::Entry(key, _) if key == "sops");
        let found: Vec<Item> = branch.extract_if(.., is_metadata).collect();
        if found.len() > 1 {
            return Err(Error::Metadata("`sops` is there twice in a document".to_owned()));
        }
        if index == 0 {
            metadata = found.into_iter().next();
        }
        documents.push(branch);
    }
    let Some(Item::Entry(_, metadata)) = metadata else {
        return Ok(None);
    };
    Ok(Some(Loaded {
        metadata: json::plain(metadata),
        documents,
    }))
}

/// Returns the line of the `---` after each document.
fn ends(text: &str, documents: &[Node]) -> Vec<Option<u32>> {
    let is_marker = |line: &str| {
        line.strip_prefix("---")
            .is_some_and(|rest| rest.trim_start().len() < rest.len() || rest.is_empty())
    };
    let mut markers = (1..)
        .zip(text.lines())
        .filter(|(_, line)| is_marker(line))
        .map(|(number, _)| number)
        .peekable();
    let mut last = None;
    // Documents and markers are in the order of the text.
    let begins = documents.iter().skip(1).map(|document| {
        while let Some(marker) = markers.next_if(|marker| *marker <= document.position.line) {
            last = Some(marker);
        }
        last
    });
    begins.chain([None]).collect()
}

struct Reader<'a> {
    comments: &'a [Comment],
    ends: Vec<Option<u32>>,
}

impl Reader<'_> {
    fn document(&mut self, document: &Node, index: usize) -> Result<Branch, Error> {
        let end = match self.ends.get(index).copied().flatten() {
            Some(line) => (line, 0),
            None => (u32::MAX, u32::MAX),
        };
        let mut branch = Branch::new();
        match &document.content {
            Content::Map(_) => branch = self.branch(document, end)?,
            Content::Scalar(scalar) if scalar.is_null() => {}
            Content::Scalar(_) | Content::Seq(_) => {
                let line = document.position.line;
                return Err(Error::syntax(
                    FORMAT,
                    format!("line {line}: a document is no map, and only maps can be encrypted"),
                ));
            }
        }
        let comments = self.before(end);
        branch.extend(comments.into_iter().map(Item::Comment));
        Ok(branch)
    }

    /// Takes the comments at the front that `belong`.
    fn take(&mut self, belong: impl Fn(&Comment) -> bool) -> Vec<String> {
        let count = self.comments.iter().take_while(|comment| belong(comment)).count();
        let (taken, rest) = self.comments.split_at_checked(count).unwrap_or_default();
        self.comments = rest;
        let texts = taken.iter().map(|comment| comment.text.clone());
        texts.filter(|text| !text.is_empty()).collect()
    }

    fn before(&mut self, end: LineColumn) -> Vec<String> {
        self.take(|comment| position(comment.position) < end)
    }

    fn beside(&mut self, line: u32) -> Vec<String> {
        self.take(|comment| comment.position.line <= line && !comment.alone)
    }

    /// Takes the comments after the last part of a list or map, before `end`, with at least its indentation.
    fn behind(&mut self, column: u32, end: LineColumn) -> Vec<String> {
        self.take(|comment| {
            comment.alone && comment.position.column >= column && position(comment.position) < end
        })
    }

    /// Reads the entries of a map; the next node begins at `end`.
    fn branch(&mut self, node: &Node, end: LineColumn) -> Result<Branch, Error> {
        let Content::Map(mapping) = &node.content else {
            return Ok(Branch::new());
        };
        let mut branch = Branch::new();
        let mut entries = mapping.entries().iter().peekable();
        while let Some(entry) = entries.next() {
            let end = entries.peek().map_or(end, |next| position(next.position));
            let name = name(entry)?;
            let mut comments = self.before(position(entry.position));
            let inner = match &entry.value.content {
                Content::Scalar(scalar) => {
                    let line = entry.value.position.line.max(entry.position.line);
                    comments.extend(self.before(position(entry.value.position)));
                    if !is_block(scalar) {
                        comments.extend(self.beside(line));
                    }
                    self::scalar(scalar, &entry.value)?
                }
                _ => self.value(&entry.value, end)?,
            };
            branch.extend(comments.into_iter().map(Item::Comment));
            branch.push(Item::Entry(name, inner));
        }
        // The entries of an alias are at its anchor.
        if let Some(first) = mapping.entries().first()
            && first.position.column > 1
            && position(first.position) >= position(node.position)
        {
            let comments = self.behind(first.position.column, end);
            branch.extend(comments.into_iter().map(Item::Comment));
        }
        Ok(branch)
    }

    fn value(&mut self, node: &Node, end: LineColumn) -> Result<Value, Error> {
        Ok(match &node.content {
            Content::Scalar(scalar) => self::scalar(scalar, node)?,
            Content::Map(_) => Value::Map(self.branch(node, end)?),
            Content::Seq(nodes) => Value::Seq(self.seq(node, nodes, end)?),
        })
    }

    fn seq(&mut self, node: &Node, nodes: &[Node], end: LineColumn) -> Result<Vec<Value>, Error> {
        let mut items = Vec::with_capacity(nodes.len());
        let mut rest = nodes.iter().peekable();
        while let Some(item) = rest.next() {
            let end = rest.peek().map_or(end, |next| position(next.position));
            let mut comments = self.before(position(item.position));
            if let Content::Scalar(scalar) = &item.content
                && !is_block(scalar)
            {
                comments.extend(self.beside(item.position.line));
            }
            items.extend(comments.into_iter().map(Value::Comment));
            items.push(self.value(item, end)?);
        }
        if nodes
            .first()
            .is_some_and(|first| position(first.position) >= position(node.position))
            && node.position.column > 1
        {
            let comments = self.behind(node.position.column, end);
            items.extend(comments.into_iter().map(Value::Comment));
        }
        Ok(items)
    }
}

/// Line and column.
type LineColumn = (u32, u32);

fn position(position: Position) -> LineColumn {
    (position.line, position.column)
}

fn is_block(scalar: &Scalar) -> bool {
    !scalar.plain && scalar.text.contains('\n')
}

fn name(entry: &Entry) -> Result<String, Error> {
    let kind = entry.key.kind();
    if entry.key.plain && entry.key.tag.is_none() && &*entry.key.text == "<<" {
        return Ok(MERGE.to_owned());
    }
    if !matches!(kind, Tag::Str | Tag::Other | Tag::Binary) {
        let line = entry.position.line;
        return Err(Error::syntax(
            FORMAT,
            format!("line {line}: a key is no text, and only text can be a key"),
        ));
    }
    match resolved(&entry.key, entry.position)? {
        Value::Text(text) => Ok(text),
        _ => Err(Error::syntax(FORMAT, "a key is no UTF-8")),
    }
}

fn scalar(scalar: &Scalar, node: &Node) -> Result<Value, Error> {
    resolved(scalar, node.position)
}

/// Resolves a scalar to its value as go-yaml does.
fn resolved(scalar: &Scalar, position: Position) -> Result<Value, Error> {
    let kind = scalar.kind();
    if matches!(kind, Tag::Str | Tag::Other) {
        return Ok(Value::Text(scalar.text.to_string()));
    }
    if kind == Tag::Float
        && let Some(number) = not_finite(&scalar.text)
    {
        return Ok(Value::Float(number));
    }
    let wrong = |why: &str| Error::syntax(FORMAT, format!("line {}: {why}", position.line));
    let node = Node {
        position,
        content: Content::Scalar(scalar.clone()),
    };
    let value = node
        .into_value()
        .map_err(|error| Error::syntax(FORMAT, error.to_string()))?;
    Ok(match value {
        yaml::Value::Null => Value::Null,
        yaml::Value::Bool(flag) => Value::Bool(flag),
        yaml::Value::Int(number) => Value::Int(number),
        yaml::Value::Float(number) => Value::Float(number),
        yaml::Value::String(text) if kind == Tag::Timestamp => Value::Time(text),
        yaml::Value::String(text) => Value::Text(text),
        yaml::Value::UInt(_) => return Err(wrong("a number is too large to be encrypted")),
        yaml::Value::Seq(_) | yaml::Value::Map(_) => return Err(wrong("a value is no scalar")),
    })
}

fn not_finite(text: &str) -> Option<f64> {
    match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        _ => None,
    }
}
