//! Lists and maps in brackets.

use libyaml_safer::{Event, EventData, MappingStyle};

use super::{Kind, Parser, State, empty, event};
use crate::Error;

impl Parser<'_> {
    pub(super) fn flow_sequence_entry(&mut self, first: bool) -> Result<Event, Error> {
        self.open(first)?;
        if !self.is_next(&Kind::FlowSequenceEnd)? {
            if !first && self.take_if(&Kind::FlowEntry)?.is_none() {
                return Err(self.unexpected(
                    "while parsing a flow sequence",
                    "did not find expected ',' or ']'",
                ));
            }
            if let Some(key) = self.take_if(&Kind::Key)? {
                let pair = EventData::MappingStart {
                    anchor: None,
                    tag: None,
                    implicit: true,
                    style: MappingStyle::Flow,
                };
                self.state = State::FlowSequencePairKey;
                return Ok(event(pair, key.start, key.end));
            }
            if !self.is_next(&Kind::FlowSequenceEnd)? {
                self.states.push(State::FlowSequenceEntry);
                return self.node(false, false);
            }
        }
        self.close(EventData::SequenceEnd)
    }

    pub(super) fn flow_sequence_pair_key(&mut self) -> Result<Event, Error> {
        let ends = |kind: &Kind| matches!(kind, Kind::Value | Kind::FlowEntry | Kind::FlowSequenceEnd);
        let token = self.scanner.peek()?;
        if ends(&token.kind) {
            let end = token.end;
            // quirk: go-yaml and libyaml skip the token, so that the value is lost.
            if !self.is_python() {
                self.scanner.take()?;
            }
            self.state = State::FlowSequencePairValue;
            return Ok(empty(end));
        }
        self.states.push(State::FlowSequencePairValue);
        self.node(false, false)
    }

    pub(super) fn flow_sequence_pair_value(&mut self) -> Result<Event, Error> {
        let found = self.take_if(&Kind::Value)?.is_some();
        self.value(found, State::FlowSequencePairEnd, |kind| {
            matches!(kind, Kind::FlowEntry | Kind::FlowSequenceEnd)
        })
    }

    pub(super) fn flow_sequence_pair_end(&mut self) -> Result<Event, Error> {
        let token = self.scanner.peek()?;
        let end = event(EventData::MappingEnd, token.start, token.end);
        self.state = State::FlowSequenceEntry;
        Ok(end)
    }

    pub(super) fn flow_mapping_key(&mut self, first: bool) -> Result<Event, Error> {
        self.open(first)?;
        if !self.is_next(&Kind::FlowMappingEnd)? {
            if !first && self.take_if(&Kind::FlowEntry)?.is_none() {
                return Err(
                    self.unexpected("while parsing a flow mapping", "did not find expected ',' or '}'")
                );
            }
            if self.take_if(&Kind::Key)?.is_some() {
                let ends = |kind: &Kind| matches!(kind, Kind::Value | Kind::FlowEntry | Kind::FlowMappingEnd);
                return self.entry(ends, State::FlowMappingValue, None, false, false);
            }
            if !self.is_next(&Kind::FlowMappingEnd)? {
                self.states.push(State::FlowMappingEmptyValue);
                return self.node(false, false);
            }
        }
        self.close(EventData::MappingEnd)
    }

    pub(super) fn flow_mapping_value(&mut self, empty: bool) -> Result<Event, Error> {
        let found = !empty && self.take_if(&Kind::Value)?.is_some();
        self.value(found, State::FlowMappingKey, |kind| {
            matches!(kind, Kind::FlowEntry | Kind::FlowMappingEnd)
        })
    }

    /// Reads the value behind a colon, if one was found.
    fn value(&mut self, found: bool, next: State, ends: fn(&Kind) -> bool) -> Result<Event, Error> {
        if found {
            return self.entry(ends, next, None, false, false);
        }
        let at = self.scanner.peek()?.start;
        self.state = next;
        Ok(empty(at))
    }
}
