//! Documents as PyYAML's `safe_dump` prints them in block style, with anchors for shared nodes.

use std::collections::{HashMap, HashSet};

use super::{
    analysis::is_break,
    dialect::{INDENT, KEY_BYTES, PYTHON},
    emit::Emitter,
    style::{Context, Style},
};
use crate::graph::{Graph, GraphContent};

/// Returns `None` if the document is longer than `limit` bytes.
pub(super) fn print(graph: &Graph, limit: usize) -> Option<String> {
    let mut printer = Printer {
        graph,
        emitter: Emitter::new(&PYTHON).with_limit(limit),
        anchors: HashMap::new(),
        printed: HashSet::new(),
    };
    printer.name(graph.root(), &mut HashSet::new());
    printer.root();
    if printer.emitter.is_full() {
        return None;
    }
    Some(printer.emitter.finish())
}

struct Printer<'g> {
    graph: &'g Graph,
    emitter: Emitter<'static>,
    /// Names of the shared nodes.
    anchors: HashMap<usize, String>,
    printed: HashSet<usize>,
}

/// The notation of a shared node at one parent.
enum Reference {
    Alias(String),
    Anchor(String),
    Plain,
}

impl<'g> Printer<'g> {
    fn content(&self, number: usize) -> Option<&'g GraphContent> {
        self.graph.get(number).map(|node| &node.content)
    }

    /// Names are given in the order in which nodes are met a second time.
    fn name(&mut self, number: usize, met: &mut HashSet<usize>) {
        if !met.insert(number) {
            let next = self.anchors.len() + 1;
            self.anchors
                .entry(number)
                .or_insert_with(|| format!("id{next:03}"));
            return;
        }
        match self.content(number) {
            Some(GraphContent::Seq(items)) => items.iter().for_each(|item| self.name(*item, met)),
            Some(GraphContent::Map(entries)) => {
                for (key, value) in entries {
                    self.name(*key, met);
                    self.name(*value, met);
                }
            }
            _ => {}
        }
    }

    fn reference(&mut self, number: usize) -> Reference {
        match self.anchors.get(&number) {
            None => Reference::Plain,
            Some(name) if self.printed.insert(number) => Reference::Anchor(format!("&{name}")),
            Some(name) => Reference::Alias(format!("*{name}")),
        }
    }

    fn root(&mut self) {
        let number = self.graph.root();
        let reference = self.reference(number);
        let named = matches!(reference, Reference::Anchor(_));
        if let Reference::Anchor(name) = &reference {
            self.emitter.put(name);
        }
        match self.content(number) {
            Some(GraphContent::Map(entries)) if !entries.is_empty() => {
                self.emitter.line_at(0);
                self.map(entries, 0);
            }
            Some(GraphContent::Seq(items)) if !items.is_empty() => {
                self.emitter.line_at(0);
                self.seq(items, 0);
            }
            _ => {
                if named {
                    self.emitter.put(" ");
                }
                self.leaf(number, 0, true);
            }
        }
    }

    fn map(&mut self, entries: &'g [(usize, usize)], indent: usize) {
        for (index, (key, value)) in entries.iter().enumerate() {
            if index > 0 {
                self.emitter.line_at(indent);
            }
            if self.is_simple_key(*key) {
                self.simple_key(*key, indent);
                self.emitter.put(":");
                self.value(*value, indent, true);
            } else {
                self.emitter.put("?");
                self.value(*key, indent, false);
                self.emitter.line_at(indent);
                self.emitter.put(":");
                self.value(*value, indent, false);
            }
        }
    }

    /// Returns true if a key fits before its colon. Its tag is counted, though it isn't printed.
    fn is_simple_key(&self, number: usize) -> bool {
        let anchor = self.anchors.get(&number).map_or(0, String::len);
        if anchor > 0 && self.printed.contains(&number) {
            return true;
        }
        let length = match self.content(number) {
            Some(GraphContent::Scalar { text, plain: true }) => text.chars().count() + 5,
            Some(GraphContent::Scalar { text, .. }) => {
                if text.is_empty() || text.contains(|c| c != '\r' && is_break(c)) {
                    return false;
                }
                text.chars().count() + 5
            }
            Some(GraphContent::Seq(items)) if items.is_empty() => 5,
            Some(GraphContent::Map(entries)) if entries.is_empty() => 5,
            _ => return false,
        };
        length + anchor < KEY_BYTES
    }

    fn simple_key(&mut self, number: usize, indent: usize) {
        match self.reference(number) {
            Reference::Alias(name) => return self.emitter.put(&name),
            Reference::Anchor(name) => {
                self.emitter.put(&name);
                self.emitter.put(" ");
            }
            Reference::Plain => {}
        }
        match self.content(number) {
            Some(GraphContent::Scalar { text, plain: false }) => {
                let context = Context {
                    indent: indent + INDENT,
                    key: true,
                    root: false,
                };
                self.emitter.text(text, Style::python(text, true), context);
            }
            _ => self.leaf(number, indent, false),
        }
    }

    /// Writes the value after a dash, a question mark or a colon. Only after a simple key a collection starts on a line of
    /// its own, and a list is not indented further.
    fn value(&mut self, number: usize, indent: usize, behind_key: bool) {
        let reference = self.reference(number);
        if let Reference::Alias(name) | Reference::Anchor(name) = &reference {
            self.emitter.put(" ");
            self.emitter.put(name);
        }
        let own_line = behind_key || matches!(reference, Reference::Anchor(_));
        match (reference, self.content(number)) {
            (Reference::Alias(_), _) => {}
            (_, Some(GraphContent::Map(entries))) if !entries.is_empty() => {
                self.enter(indent + INDENT, own_line);
                self.map(entries, indent + INDENT);
            }
            (_, Some(GraphContent::Seq(items))) if !items.is_empty() => {
                let inner = if behind_key { indent } else { indent + INDENT };
                self.enter(inner, own_line);
                self.seq(items, inner);
            }
            _ => {
                self.emitter.put(" ");
                self.leaf(number, indent, false);
            }
        }
    }

    fn enter(&mut self, indent: usize, own_line: bool) {
        if own_line {
            self.emitter.line_at(indent);
        } else {
            self.emitter.put(" ");
        }
    }

    fn seq(&mut self, items: &'g [usize], indent: usize) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.emitter.line_at(indent);
            }
            self.emitter.put("-");
            self.value(*item, indent, false);
        }
    }

    fn leaf(&mut self, number: usize, indent: usize, root: bool) {
        match self.content(number) {
            Some(GraphContent::Scalar { text, plain: false }) => {
                let context = Context {
                    indent: indent + INDENT,
                    key: false,
                    root,
                };
                self.emitter.text(text, Style::python(text, false), context);
            }
            Some(GraphContent::Scalar { text, .. }) => {
                self.emitter.put(text);
                self.emitter.open_ended = root;
            }
            Some(GraphContent::Seq(_)) => self.emitter.put("[]"),
            _ => self.emitter.put("{}"),
        }
    }
}
