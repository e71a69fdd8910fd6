//! Reads common documents without the parser, which reads each character many times.
//!
//! These are block maps and lists of plain scalars, of quoted scalars within one line, and of literal blocks, and flow lists
//! of words. For anything else, and for anything that may be an error, it returns `None`, and the parser is used.

mod scalar;
#[cfg(test)]
mod tests;

use tree::Budget;

use super::events::Text;
use crate::{
    Position,
    node::{Content, Entry, Mapping, Node, Scalar},
};
use scalar::{Chomping, Found, trimmed, unindented};

/// Nothing deeper is simple.
const MAX_DEPTH: u32 = 50;

pub(super) struct Simple {
    pub(super) node: Node,
    /// Number of events that the parser would have made of it.
    pub(super) events: u64,
}

/// Reads a document that is simple. Entries whose keys are not `wanted` are only checked.
pub(super) fn read(text: &Text<'_>, wanted: &dyn Fn(&str) -> bool, budget: &Budget) -> Option<Simple> {
    let traits = text.traits();
    if traits.odd {
        return None;
    }
    let (text, completed) = text.parts();
    let mut reader = Reader {
        rest: text,
        number: 0,
        line: None,
        has_tabs: traits.tabs,
        completed,
        max_depth: MAX_DEPTH.min(budget.limits().yaml_depth),
        // Start and end of the stream's only document, and the start of the stream.
        events: 3,
        keeps: true,
    };
    reader.advance()?;
    let first = reader.line?;
    if first.content == "---" && first.indent == 0 {
        reader.advance()?;
    }
    let indent = reader.line?.indent;
    let node = if reader.line?.is_item() {
        reader.sequence(indent, 1)?
    } else {
        reader.mapping(indent, 1, wanted)?
    };
    let events = reader.events;
    reader.line.is_none().then_some(Simple { node, events })
}

/// A line, or the part of it after dashes.
#[derive(Debug, Clone, Copy)]
struct Line<'t> {
    number: u32,
    indent: usize,
    /// Without spaces around it.
    content: &'t str,
}

impl Line<'_> {
    fn is_item(&self) -> bool {
        self.content == "-" || self.content.starts_with("- ")
    }

    /// Returns the position of a byte of the content; everything before values is ASCII.
    fn position(&self, at: usize) -> Option<Position> {
        Some(Position {
            line: self.number,
            column: u32::try_from(self.indent + at + 1).ok()?,
        })
    }
}

struct Reader<'t> {
    /// The document after the current line.
    rest: &'t str,
    number: u32,
    /// The next line that is neither blank nor a comment; `None` at the end.
    line: Option<Line<'t>>,
    has_tabs: bool,
    /// True if the last line got a line break.
    completed: bool,
    max_depth: u32,
    events: u64,
    /// True if the nodes are returned, false if they are only checked.
    keeps: bool,
}

impl<'t> Reader<'t> {
    /// Returns the next line unchanged.
    fn raw(&mut self) -> Option<&'t str> {
        let end = memchr::memchr(b'\n', self.rest.as_bytes())?;
        let line = self.rest.get(..end)?;
        self.rest = self.rest.get(end + 1..)?;
        self.number = self.number.checked_add(1)?;
        Some(line)
    }

    /// Moves to the next line that is neither empty nor a comment; `None` if it is not simple.
    fn advance(&mut self) -> Option<()> {
        loop {
            if self.rest.is_empty() {
                self.line = None;
                return Some(());
            }
            let line = self.raw()?;
            let content = unindented(line);
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            if self.has_tabs && content.contains('\t') {
                return None;
            }
            self.line = Some(Line {
                number: self.number,
                indent: line.len() - content.len(),
                content: trimmed(content),
            });
            return Some(());
        }
    }

    fn enter(&mut self, depth: u32) -> Option<()> {
        self.events += 2;
        (depth <= self.max_depth).then_some(())
    }

    /// Reads a map or a list that starts with the current line.
    fn block(&mut self, depth: u32) -> Option<Node> {
        let line = self.line?;
        if line.is_item() {
            self.sequence(line.indent, depth)
        } else {
            self.mapping(line.indent, depth, &|_| true)
        }
    }

    fn mapping(&mut self, indent: usize, depth: u32, wanted: &dyn Fn(&str) -> bool) -> Option<Node> {
        self.enter(depth)?;
        let position = self.line?.position(0)?;
        let mut entries = Vec::new();
        while let Some(line) = self.line.filter(|line| line.indent >= indent) {
            if line.indent > indent {
                return None;
            }
            let (key, length) = scalar::key(line.content)?;
            self.events += 1;
            let outer = self.keeps;
            self.keeps &= wanted(key.text);
            let value = self.value(line, length, indent, depth + 1)?;
            if self.keeps {
                entries.push(Entry {
                    position: line.position(0)?,
                    key: found(&key),
                    value,
                });
            }
            self.keeps = outer;
        }
        Some(Node {
            position,
            content: Content::Map(Mapping::from(entries)),
        })
    }

    fn sequence(&mut self, indent: usize, depth: u32) -> Option<Node> {
        self.enter(depth)?;
        let position = self.line?.position(0)?;
        let mut items = Vec::new();
        // A list may have the indentation of its key: another key ends it.
        while let Some(line) = self.line.filter(|line| line.indent >= indent && line.is_item()) {
            if line.indent > indent {
                return None;
            }
            let item = self.item(line, indent, depth + 1)?;
            if self.keeps {
                items.push(item);
            }
        }
        Some(Node {
            position,
            content: Content::Seq(items),
        })
    }

    fn item(&mut self, line: Line<'t>, indent: usize, depth: u32) -> Option<Node> {
        let behind = unindented(line.content.get(1..)?);
        let at = line.content.len() - behind.len();
        let inner = Line {
            indent: indent + at,
            content: behind,
            ..line
        };
        if inner.is_item() || scalar::key(behind).is_some() {
            self.line = Some(inner);
            return self.block(depth);
        }
        self.value(line, 1, indent, depth)
    }

    /// Reads the value after a key or a dash that ends at byte `from` of a line.
    fn value(&mut self, line: Line<'t>, from: usize, parent: usize, depth: u32) -> Option<Node> {
        let behind = line.content.get(from..)?;
        let text = unindented(behind);
        if text.is_empty() || text.starts_with('#') {
            self.advance()?;
            return match self.line {
                Some(next) if next.indent > parent && next.content.starts_with(['[', '{']) => {
                    self.advance()?;
                    self.dedented(parent)?;
                    self.flow(next.content, next.position(0)?, depth)
                }
                Some(next) if next.indent > parent => self.block(depth),
                Some(next) if next.indent == parent && next.is_item() && !line.is_item() => {
                    self.sequence(parent, depth)
                }
                _ => self.scalar(&Found::plain(""), line.position(from)?, depth),
            };
        }
        let position = line.position(line.content.len() - text.len())?;
        if let Some(header) = text.strip_prefix('|') {
            let text = self.literal(Chomping::of(header)?, parent)?;
            self.dedented(parent)?;
            return self.scalar(&Found::quoted(&text), position, depth);
        }
        self.advance()?;
        if text.starts_with(['[', '{']) {
            self.dedented(parent)?;
            return self.flow(text, position, depth);
        }
        let first = scalar::inline(text)?;
        if self.dedented(parent).is_some() {
            return self.scalar(&first, position, depth);
        }
        let folded = self.folded(first, text, line.number, parent)?;
        self.scalar(&Found::plain(&folded), position, depth)
    }

    /// Reads a plain scalar of several lines, each of which becomes a space and its words.
    fn folded(&mut self, first: Found<'_>, all: &str, number: u32, parent: usize) -> Option<String> {
        // A comment would end it.
        let is_whole = |found: &Found<'_>, all: &str| found.plain && found.text.len() == all.len();
        if !is_whole(&first, all) {
            return None;
        }
        let (mut text, mut number) = (first.text.to_owned(), number);
        while let Some(line) = self.line.filter(|line| line.indent > parent) {
            let more = scalar::inline(line.content)?;
            // Empty lines would stay.
            if line.number != number.checked_add(1)? || !is_whole(&more, line.content) {
                return None;
            }
            text.push(' ');
            text.push_str(more.text);
            number = line.number;
            self.advance()?;
        }
        Some(text)
    }

    /// Returns `Some` if the line after a scalar does not belong to it.
    fn dedented(&self, parent: usize) -> Option<()> {
        self.line.is_none_or(|line| line.indent <= parent).then_some(())
    }

    fn scalar(&mut self, scalar: &Found<'_>, position: Position, depth: u32) -> Option<Node> {
        self.events += 1;
        if depth > self.max_depth {
            return None;
        }
        if self.keeps {
            return Some(Node {
                position,
                content: Content::Scalar(found(scalar)),
            });
        }
        // Infinite numbers are errors, which the parser reports.
        (!scalar.may_be_infinite()).then(nothing)
    }

    /// Reads a list between brackets, or an empty map.
    fn flow(&mut self, text: &str, position: Position, depth: u32) -> Option<Node> {
        self.enter(depth)?;
        if let Some(behind) = text.strip_prefix("{}") {
            let content = Content::Map(Mapping::new());
            return scalar::ends(behind).then_some(Node { position, content });
        }
        let mut items = Vec::new();
        let mut rest = text.strip_prefix('[')?.trim_start_matches(' ');
        while !rest.starts_with(']') {
            let (item, length) = scalar::word(rest)?;
            let before = text.len().checked_sub(rest.len())?;
            let position = Position {
                column: position.column.checked_add(u32::try_from(before).ok()?)?,
                ..position
            };
            let mut node = self.scalar(&item, position, depth + 1)?;
            if let Content::Scalar(scalar) = &mut node.content {
                scalar.in_flow = true;
            }
            items.push(node);
            rest = rest.get(length..)?.trim_start_matches(' ');
            match rest.strip_prefix(',') {
                Some(behind) => rest = behind.trim_start_matches(' '),
                None if rest.starts_with(']') => {}
                None => return None,
            }
        }
        scalar::ends(rest.get(1..)?).then_some(Node {
            position,
            content: Content::Seq(items),
        })
    }

    /// Reads the lines below `|`: all that are indented deeper than their parent.
    fn literal(&mut self, chomping: Chomping, parent: usize) -> Option<String> {
        let mut text = String::new();
        let mut indent = None;
        let mut breaks = 0;
        loop {
            let (rest, number) = (self.rest, self.number);
            if rest.is_empty() {
                break;
            }
            let line = self.raw()?;
            let content = unindented(line);
            let spaces = line.len() - content.len();
            if content.is_empty() && indent.is_none_or(|indent| spaces <= indent) {
                // Spaces may count before the indentation is known, and at the end of the document.
                if (indent.is_none() && spaces > 0) || (self.rest.is_empty() && self.completed) {
                    return None;
                }
                breaks += 1;
                continue;
            }
            if indent.is_none() && (spaces <= parent || content.starts_with('\t')) {
                return None;
            }
            let indent = *indent.get_or_insert(spaces);
            if spaces < indent {
                (self.rest, self.number) = (rest, number);
                break;
            }
            if self.rest.is_empty() && self.completed && content.is_empty() {
                return None;
            }
            if self.keeps {
                text.extend(std::iter::repeat_n('\n', breaks));
                text.push_str(line.get(indent..)?);
            }
            breaks = 1;
        }
        indent?;
        let at_end = self.rest.is_empty() && self.completed;
        let breaks = chomping.remaining_breaks(breaks).saturating_sub(at_end.into());
        text.extend(std::iter::repeat_n('\n', breaks));
        self.advance()?;
        Some(text)
    }
}

fn found(scalar: &Found<'_>) -> Scalar {
    Scalar {
        text: scalar.text.into(),
        tag: None,
        plain: scalar.plain,
        share: None,
        in_flow: false,
    }
}

/// Returns the placeholder for a value that isn't wanted.
fn nothing() -> Node {
    Node::new(Content::Seq(Vec::new()))
}
