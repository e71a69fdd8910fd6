//! Lists and maps by indentation.

use libyaml_safer::{Event, EventData};

use super::{Kind, Parser, State, empty, event};
use crate::Error;

impl Parser<'_> {
    pub(super) fn block_sequence_entry(&mut self, first: bool) -> Result<Event, Error> {
        self.open(first)?;
        if let Some(dash) = self.take_if(&Kind::BlockEntry)? {
            let ends = |kind: &Kind| matches!(kind, Kind::BlockEntry | Kind::BlockEnd);
            return self.entry(ends, State::BlockSequenceEntry, Some(dash.end), true, false);
        }
        if self.is_next(&Kind::BlockEnd)? {
            return self.close(EventData::SequenceEnd);
        }
        Err(self.unexpected(
            "while parsing a block collection",
            "did not find expected '-' indicator",
        ))
    }

    pub(super) fn indentless_sequence_entry(&mut self) -> Result<Event, Error> {
        if let Some(dash) = self.take_if(&Kind::BlockEntry)? {
            let ends =
                |kind: &Kind| matches!(kind, Kind::BlockEntry | Kind::Key | Kind::Value | Kind::BlockEnd);
            return self.entry(ends, State::IndentlessSequenceEntry, Some(dash.end), true, false);
        }
        let token = self.scanner.peek()?;
        let end = event(EventData::SequenceEnd, token.start, token.end);
        self.pop_state();
        Ok(end)
    }

    pub(super) fn block_mapping_key(&mut self, first: bool) -> Result<Event, Error> {
        self.open(first)?;
        if let Some(key) = self.take_if(&Kind::Key)? {
            return self.entry(ends_entry, State::BlockMappingValue, Some(key.end), true, true);
        }
        if self.is_next(&Kind::BlockEnd)? {
            return self.close(EventData::MappingEnd);
        }
        Err(self.unexpected("while parsing a block mapping", "did not find expected key"))
    }

    pub(super) fn block_mapping_value(&mut self) -> Result<Event, Error> {
        if let Some(colon) = self.take_if(&Kind::Value)? {
            return self.entry(ends_entry, State::BlockMappingKey, Some(colon.end), true, true);
        }
        let at = self.scanner.peek()?.start;
        self.state = State::BlockMappingKey;
        Ok(empty(at))
    }
}

fn ends_entry(kind: &Kind) -> bool {
    matches!(kind, Kind::Key | Kind::Value | Kind::BlockEnd)
}
