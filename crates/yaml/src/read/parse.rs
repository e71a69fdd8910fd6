//! Turns tokens to events.

mod block;
mod document;
mod flow;
mod node;

use libyaml_safer::{Event, EventData, Mark, ScalarStyle};

use super::scan::{
    Flavour, Scanner,
    token::{Kind, Token, failure},
};
use crate::Error;

/// The production of the grammar that follows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    StreamStart,
    /// The start of the first document, which needs no marker.
    ImplicitDocumentStart,
    DocumentStart,
    DocumentContent,
    DocumentEnd,
    BlockNode,
    BlockSequenceFirstEntry,
    BlockSequenceEntry,
    /// An entry of a list that is indented like the key before it.
    IndentlessSequenceEntry,
    BlockMappingFirstKey,
    BlockMappingKey,
    BlockMappingValue,
    FlowSequenceFirstEntry,
    FlowSequenceEntry,
    /// The key of a map with one entry, without braces.
    FlowSequencePairKey,
    FlowSequencePairValue,
    FlowSequencePairEnd,
    FlowMappingFirstKey,
    FlowMappingKey,
    FlowMappingValue,
    /// The value of a key without a colon.
    FlowMappingEmptyValue,
    End,
}

/// Parses a document that [`super::events::decode`] has checked.
pub(super) struct Parser<'t> {
    scanner: Scanner<'t>,
    flavour: Flavour,
    state: State,
    states: Vec<State>,
    /// Starts of the open collections.
    marks: Vec<Mark>,
    /// Handles of tags with their prefixes.
    handles: Vec<(String, String)>,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, flavour: Flavour) -> Self {
        Self {
            scanner: Scanner::new(text, flavour),
            flavour,
            state: State::StreamStart,
            states: Vec::new(),
            marks: Vec::new(),
            handles: Vec::new(),
        }
    }

    /// Returns the next event; after the last one, the end of the stream.
    pub(super) fn next(&mut self) -> Result<Event, Error> {
        match self.state {
            State::StreamStart => self.stream_start(),
            State::ImplicitDocumentStart => self.document_start(true),
            State::DocumentStart => self.document_start(false),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd => self.document_end(),
            State::BlockNode => self.node(true, false),
            State::BlockSequenceFirstEntry => self.block_sequence_entry(true),
            State::BlockSequenceEntry => self.block_sequence_entry(false),
            State::IndentlessSequenceEntry => self.indentless_sequence_entry(),
            State::BlockMappingFirstKey => self.block_mapping_key(true),
            State::BlockMappingKey => self.block_mapping_key(false),
            State::BlockMappingValue => self.block_mapping_value(),
            State::FlowSequenceFirstEntry => self.flow_sequence_entry(true),
            State::FlowSequenceEntry => self.flow_sequence_entry(false),
            State::FlowSequencePairKey => self.flow_sequence_pair_key(),
            State::FlowSequencePairValue => self.flow_sequence_pair_value(),
            State::FlowSequencePairEnd => self.flow_sequence_pair_end(),
            State::FlowMappingFirstKey => self.flow_mapping_key(true),
            State::FlowMappingKey => self.flow_mapping_key(false),
            State::FlowMappingValue => self.flow_mapping_value(false),
            State::FlowMappingEmptyValue => self.flow_mapping_value(true),
            State::End => Ok(Event::stream_end()),
        }
    }

    fn pop_state(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    /// Skips the token that opens a collection, if it is still there.
    fn open(&mut self, first: bool) -> Result<(), Error> {
        if first {
            let token = self.scanner.take()?;
            self.marks.push(token.start);
        }
        Ok(())
    }

    /// Ends a collection at a token, which is skipped.
    fn close(&mut self, data: EventData) -> Result<Event, Error> {
        let token = self.scanner.take()?;
        self.marks.pop();
        self.pop_state();
        Ok(event(data, token.start, token.end))
    }

    /// Returns the error of a collection with a wrong token.
    fn unexpected(&mut self, context: &str, problem: &str) -> Error {
        let start = self.marks.last().copied().unwrap_or_default();
        match self.scanner.peek() {
            Ok(token) => failure(problem, token.start, (context, start)),
            Err(error) => error,
        }
    }

    /// Reads an entry: nothing before the tokens of `ends`, otherwise a node.
    fn entry(
        &mut self,
        ends: fn(&Kind) -> bool,
        next: State,
        empty_at: Option<Mark>,
        block: bool,
        indentless: bool,
    ) -> Result<Event, Error> {
        let token = self.scanner.peek()?;
        if ends(&token.kind) {
            let at = empty_at.unwrap_or(token.start);
            self.state = next;
            return Ok(empty(at));
        }
        self.states.push(next);
        self.node(block, indentless)
    }

    fn is_next(&mut self, kind: &Kind) -> Result<bool, Error> {
        Ok(self.scanner.peek()?.kind == *kind)
    }

    /// Takes the token of this kind, if it is next.
    fn take_if(&mut self, kind: &Kind) -> Result<Option<Token>, Error> {
        if self.is_next(kind)? {
            self.scanner.take().map(Some)
        } else {
            Ok(None)
        }
    }
}

fn event(data: EventData, start: Mark, end: Mark) -> Event {
    let mut event = Event::stream_end();
    event.data = data;
    event.start_mark = start;
    event.end_mark = end;
    event
}

/// Returns a null without characters.
fn empty(at: Mark) -> Event {
    let data = EventData::Scalar {
        anchor: None,
        tag: None,
        value: String::new(),
        plain_implicit: true,
        quoted_implicit: false,
        style: ScalarStyle::Plain,
    };
    event(data, at, at)
}
