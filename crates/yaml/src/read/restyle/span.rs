//! The extents of events in their source.

use libyaml_safer::{Event, EventData, MappingStyle, Mark, ScalarStyle, SequenceStyle};

/// Counted from 0.
pub(super) type LineColumn = (usize, usize);

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    pub(super) start: LineColumn,
    pub(super) end: LineColumn,
    pub(super) kind: SpanKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanKind {
    Leaf,
    Block,
    Map,
    Seq,
    /// A list or map in brackets.
    Flow,
    End,
}

impl Span {
    pub(super) fn of(event: &Event) -> Self {
        let kind = match &event.data {
            EventData::Scalar {
                style: ScalarStyle::Literal | ScalarStyle::Folded,
                ..
            } => SpanKind::Block,
            EventData::SequenceStart {
                style: SequenceStyle::Flow,
                ..
            }
            | EventData::MappingStart {
                style: MappingStyle::Flow,
                ..
            } => SpanKind::Flow,
            EventData::SequenceStart { .. } => SpanKind::Seq,
            EventData::MappingStart { .. } => SpanKind::Map,
            EventData::SequenceEnd | EventData::MappingEnd => SpanKind::End,
            _ => SpanKind::Leaf,
        };
        Self {
            start: line_column(event.start_mark),
            end: line_column(event.end_mark),
            kind,
        }
    }
}

fn line_column(mark: Mark) -> LineColumn {
    let number = |n| usize::try_from(n).unwrap_or(usize::MAX);
    (number(mark.line), number(mark.column))
}
