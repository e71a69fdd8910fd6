//! Prints a changed document in the style of its source: quotes, flow and block style, anchors, tags and comments stay if
//! nothing was changed. It uses the parser's events, which a [`Node`] no longer has.

mod comments;
mod fold;
mod span;
#[cfg(test)]
mod tests;

use libyaml_safer::{Emitter, Encoding, Event, EventData, MappingStyle, ScalarStyle, SequenceStyle};
use tree::Budget;

use super::{events, resolve::kustomize_kind, scan::Flavour, written::Comment};
use crate::{
    Error, Problem,
    node::{Content, Node, Scalar, Tag},
};
use span::{Span, SpanKind};

pub(crate) fn restyled(text: &str, before: &Node, after: &Node, budget: &Budget) -> Result<String, Error> {
    let source = parse(text, budget)?;
    let spans: Vec<Span> = source.iter().map(Span::of).collect();
    let mut writer = Writer {
        source: source.into_iter().map(Some).collect(),
        next: 0,
        out: Vec::new(),
        origins: Vec::new(),
        flow: 0,
        folded: Vec::new(),
    };
    writer.node(before, after);
    let Writer {
        out, origins, folded, ..
    } = writer;
    let mut printed = emit(out)?;
    if !folded.is_empty() {
        let spans: Vec<Span> = parse(&printed, budget)?.iter().map(Span::of).collect();
        printed = fold::fold(&printed, &spans, &folded);
    }
    if !text.contains('#') {
        return Ok(printed);
    }
    let spans_after: Vec<Span> = parse(&printed, budget)?.iter().map(Span::of).collect();
    if spans_after.len() != origins.len() {
        return Ok(printed);
    }
    Ok(comments::keep(text, &spans, &printed, &spans_after, &origins))
}

/// Parses the events of the first document's content.
fn parse(text: &str, budget: &Budget) -> Result<Vec<Event>, Error> {
    let text = events::decode(text.as_bytes(), budget)?;
    let mut parser = events::Events::new(&text, Flavour::Go3, budget);
    let mut found = Vec::new();
    loop {
        let event = parser.next()?;
        match event.data {
            EventData::StreamStart { .. } | EventData::DocumentStart { .. } => {}
            EventData::DocumentEnd { .. } | EventData::StreamEnd => return Ok(found),
            _ => found.push(event),
        }
    }
}

/// Lists the comments of all documents, for [`super::written`].
pub(super) fn comments(text: &str, budget: &Budget) -> Result<Vec<Comment>, Error> {
    let decoded = events::decode(text.as_bytes(), budget)?;
    let mut parser = events::Events::new(&decoded, Flavour::Go3, budget);
    let mut spans = Vec::new();
    loop {
        let event = parser.next()?;
        match event.data {
            EventData::StreamStart { .. }
            | EventData::DocumentStart { .. }
            | EventData::DocumentEnd { .. } => {}
            EventData::StreamEnd => break,
            _ => spans.push(Span::of(&event)),
        }
    }
    Ok(comments::list(text, &spans))
}

fn emit(content: Vec<Event>) -> Result<String, Error> {
    let written = tree::panics::caught(|| {
        let mut bytes = Vec::new();
        let mut emitter = Emitter::new();
        emitter.set_output_string(&mut bytes);
        emitter.set_width(-1);
        emitter.set_unicode(true);
        emitter.emit(Event::stream_start(Encoding::Utf8))?;
        emitter.emit(Event::document_start(None, &[], true))?;
        content.into_iter().try_for_each(|event| emitter.emit(event))?;
        emitter.emit(Event::document_end(true))?;
        emitter.emit(Event::stream_end())?;
        emitter.flush()?;
        drop(emitter);
        Ok::<_, libyaml_safer::Error>(bytes)
    });
    let problem = |text: String| Error::new(None, Problem::Syntax(text));
    match written {
        Ok(Ok(bytes)) => String::from_utf8(bytes).map_err(|error| problem(error.to_string())),
        Ok(Err(error)) => Err(problem(error.to_string())),
        Err(tree::panics::Panicked) => Err(problem("the document can't be printed".to_owned())),
    }
}

/// Walks the events of the source along with the document before and after the change.
struct Writer {
    source: Vec<Option<Event>>,
    next: usize,
    out: Vec<Event>,
    /// For each event of `out`, the event of the source that it was.
    origins: Vec<Option<usize>>,
    /// Number of open flow collections.
    flow: usize,
    /// Events of `out` to be folded, with their content. They are literal blocks at first.
    folded: Vec<(usize, String)>,
}

impl Writer {
    fn node(&mut self, before: &Node, after: &Node) {
        if before == after {
            self.copy();
            return;
        }
        let is_same = before.position == after.position;
        match (self.peek(), &before.content, &after.content) {
            (Some(EventData::Scalar { .. }), _, Content::Scalar(scalar)) => self.changed(scalar),
            (Some(EventData::SequenceStart { .. }), Content::Seq(before), Content::Seq(after)) if is_same => {
                self.step();
                for (before, after) in before.iter().zip(after) {
                    self.node(before, after);
                }
                for added in after.iter().skip(before.len()) {
                    self.added(added);
                }
                self.step();
            }
            (Some(EventData::MappingStart { .. }), Content::Map(before), Content::Map(after))
                if is_same && before.keys().eq(after.keys().take(before.len())) =>
            {
                self.step();
                let mut pairs = before.values().zip(after.values());
                while !matches!(self.peek(), None | Some(EventData::MappingEnd)) {
                    // A merge key stays; its entries follow the map's own entries in the node.
                    let is_merge = self.peek().is_some_and(is_merge);
                    self.copy();
                    match pairs.next().filter(|_| !is_merge) {
                        Some((before, after)) => self.node(before, after),
                        None => self.copy(),
                    }
                }
                for entry in after.entries().iter().skip(before.len()) {
                    self.scalar(&entry.key);
                    self.added(&entry.value);
                }
                self.step();
            }
            _ => {
                self.skip();
                self.added(after);
            }
        }
    }

    fn peek(&self) -> Option<&EventData> {
        let event = self.source.get(self.next)?.as_ref()?;
        Some(&event.data)
    }

    fn take(&mut self) -> Option<Event> {
        let event = self.source.get_mut(self.next)?.take()?;
        self.next += 1;
        Some(event)
    }

    fn push(&mut self, mut event: Event, origin: Option<usize>) {
        if let EventData::Scalar {
            value,
            style: style @ ScalarStyle::Folded,
            ..
        } = &mut event.data
            && self.flow == 0
        {
            *style = ScalarStyle::Literal;
            self.folded.push((self.out.len(), value.clone()));
        }
        match depth_of(&event.data) {
            1 if self.flow > 0 || Span::of(&event).kind == SpanKind::Flow => self.flow += 1,
            -1 => self.flow = self.flow.saturating_sub(1),
            _ => {}
        }
        self.out.push(event);
        self.origins.push(origin);
    }

    /// Copies one event.
    fn step(&mut self) {
        let origin = self.next;
        let Some(mut event) = self.take() else {
            return;
        };
        if let EventData::Scalar {
            anchor,
            tag: None,
            value,
            style,
            ..
        } = &event.data
        {
            // A merge key that was read is written with its tag. A plain scalar may get quotes without one.
            event = if is_merge(&event.data) {
                Event::scalar(None, Some(MERGE), value, false, false, *style)
            } else {
                Event::scalar(anchor.as_deref(), None, value, true, true, *style)
            };
        }
        self.push(event, Some(origin));
    }

    /// Copies a node.
    fn copy(&mut self) {
        let mut depth = 0;
        while let Some(data) = self.peek() {
            depth += depth_of(data);
            self.step();
            if depth <= 0 {
                return;
            }
        }
    }

    fn skip(&mut self) {
        let mut depth = 0;
        while let Some(event) = self.take() {
            depth += depth_of(&event.data);
            if depth <= 0 {
                return;
            }
        }
    }

    /// Writes a changed scalar in its former style.
    fn changed(&mut self, scalar: &Scalar) {
        let origin = self.next;
        let Some(Event {
            data: EventData::Scalar {
                anchor, tag, style, ..
            },
            ..
        }) = self.take()
        else {
            return;
        };
        let event = match tag {
            Some(tag) => Event::scalar(anchor.as_deref(), Some(&tag), &scalar.text, false, false, style),
            None => self.styled(anchor.as_deref(), scalar, style),
        };
        self.push(event, Some(origin));
    }

    /// Returns a scalar in a style, if its type stays the same.
    fn styled(&self, anchor: Option<&str>, scalar: &Scalar, style: ScalarStyle) -> Event {
        let text = &*scalar.text;
        let is_plain = !matches!(
            style,
            ScalarStyle::SingleQuoted
                | ScalarStyle::DoubleQuoted
                | ScalarStyle::Literal
                | ScalarStyle::Folded
        );
        let plain_kind = kustomize_kind(text);
        let style = match scalar.tag {
            Some(Tag::Str) if is_plain && plain_kind != Tag::Str => ScalarStyle::DoubleQuoted,
            _ if is_plain && text.contains('\n') && self.flow > 0 => ScalarStyle::DoubleQuoted,
            _ if is_plain && text.contains('\n') => ScalarStyle::Literal,
            _ => style,
        };
        let tag = scalar.tag.filter(|tag| *tag != Tag::Str && *tag != plain_kind);
        match tag.and_then(long_form) {
            Some(tag) => Event::scalar(anchor, Some(tag), text, false, false, style),
            None => Event::scalar(anchor, None, text, true, true, style),
        }
    }

    /// Writes a scalar that the source lacks.
    fn scalar(&mut self, scalar: &Scalar) {
        let style = if scalar.plain || scalar.tag.is_some() {
            ScalarStyle::Plain
        } else {
            ScalarStyle::DoubleQuoted
        };
        let event = self.styled(None, scalar, style);
        self.push(event, None);
    }

    /// Writes a node that the source lacks.
    fn added(&mut self, node: &Node) {
        match &node.content {
            Content::Scalar(scalar) => self.scalar(scalar),
            Content::Seq(items) => {
                self.push(
                    Event::sequence_start(None, None, true, SequenceStyle::Block),
                    None,
                );
                items.iter().for_each(|item| self.added(item));
                self.push(Event::sequence_end(), None);
            }
            Content::Map(map) => {
                self.push(Event::mapping_start(None, None, true, MappingStyle::Block), None);
                for entry in map.entries() {
                    self.scalar(&entry.key);
                    self.added(&entry.value);
                }
                self.push(Event::mapping_end(), None);
            }
        }
    }
}

const MERGE: &str = "tag:yaml.org,2002:merge";

fn is_merge(data: &EventData) -> bool {
    matches!(data, EventData::Scalar { value, tag: None, style: ScalarStyle::Plain, .. } if value == "<<")
}

fn depth_of(data: &EventData) -> i32 {
    match data {
        EventData::SequenceStart { .. } | EventData::MappingStart { .. } => 1,
        EventData::SequenceEnd | EventData::MappingEnd => -1,
        _ => 0,
    }
}

fn long_form(tag: Tag) -> Option<&'static str> {
    Some(match tag {
        Tag::Null => "tag:yaml.org,2002:null",
        Tag::Bool => "tag:yaml.org,2002:bool",
        Tag::Int => "tag:yaml.org,2002:int",
        Tag::Float => "tag:yaml.org,2002:float",
        Tag::Timestamp => "tag:yaml.org,2002:timestamp",
        Tag::Binary => "tag:yaml.org,2002:binary",
        Tag::Str | Tag::Other => return None,
    })
}
