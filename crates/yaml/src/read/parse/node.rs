//! Nodes with their anchors and tags.

use libyaml_safer::{Event, EventData, MappingStyle, Mark, ScalarStyle, SequenceStyle};

use super::{Flavour, Kind, Parser, State, event, failure};
use crate::Error;

/// The anchor and the tag before a node.
struct Properties {
    anchor: Option<String>,
    /// Handle and suffix.
    tag: Option<(String, String)>,
    tag_mark: Mark,
    start: Mark,
    end: Mark,
}

impl Parser<'_> {
    pub(super) fn is_python(&self) -> bool {
        self.flavour == Flavour::Python
    }

    pub(super) fn node(&mut self, block: bool, indentless: bool) -> Result<Event, Error> {
        if matches!(self.scanner.peek()?.kind, Kind::Alias(_)) {
            let token = self.scanner.take()?;
            self.pop_state();
            let anchor = match token.kind {
                Kind::Alias(anchor) => anchor,
                _ => String::new(),
            };
            return Ok(event(EventData::Alias { anchor }, token.start, token.end));
        }
        let properties = self.properties()?;
        let tag = self.resolved(&properties)?;
        let Properties {
            anchor, start, end, ..
        } = properties;
        let implicit = tag.as_deref().is_none_or(str::is_empty);
        let bare = anchor.is_none() && tag.is_none();
        let token = self.scanner.peek()?;
        let (at, token_end) = (token.start, token.end);
        let sequence = |style| EventData::SequenceStart {
            anchor: anchor.clone(),
            tag: tag.clone(),
            implicit,
            style,
        };
        let mapping = |style| EventData::MappingStart {
            anchor: anchor.clone(),
            tag: tag.clone(),
            implicit,
            style,
        };
        let (data, state) = match token.kind {
            Kind::BlockEntry if indentless => {
                (sequence(SequenceStyle::Block), State::IndentlessSequenceEntry)
            }
            Kind::Scalar { .. } => return self.scalar(anchor, tag, start),
            Kind::FlowSequenceStart => (sequence(SequenceStyle::Flow), State::FlowSequenceFirstEntry),
            Kind::FlowMappingStart => (mapping(MappingStyle::Flow), State::FlowMappingFirstKey),
            Kind::BlockSequenceStart if block => {
                (sequence(SequenceStyle::Block), State::BlockSequenceFirstEntry)
            }
            Kind::BlockMappingStart if block => (mapping(MappingStyle::Block), State::BlockMappingFirstKey),
            _ if bare => {
                let context = if block {
                    "while parsing a block node"
                } else {
                    "while parsing a flow node"
                };
                return Err(failure(
                    "did not find expected node content",
                    at,
                    (context, start),
                ));
            }
            _ => {
                self.pop_state();
                let data = EventData::Scalar {
                    anchor,
                    tag,
                    value: String::new(),
                    plain_implicit: implicit,
                    quoted_implicit: false,
                    style: ScalarStyle::Plain,
                };
                return Ok(event(data, start, end));
            }
        };
        self.state = state;
        Ok(event(data, start, token_end))
    }

    /// Reads an anchor and a tag in any order.
    fn properties(&mut self) -> Result<Properties, Error> {
        let at = self.scanner.peek()?.start;
        let mut found = Properties {
            anchor: None,
            tag: None,
            tag_mark: at,
            start: at,
            end: at,
        };
        loop {
            match &self.scanner.peek()?.kind {
                Kind::Anchor(_) if found.anchor.is_none() => {}
                Kind::Tag { .. } if found.tag.is_none() => {}
                _ => return Ok(found),
            }
            let token = self.scanner.take()?;
            found.end = token.end;
            match token.kind {
                Kind::Anchor(name) => found.anchor = Some(name),
                Kind::Tag { handle, suffix } => {
                    found.tag = Some((handle, suffix));
                    found.tag_mark = token.start;
                }
                _ => {}
            }
        }
    }

    /// Returns the full form of the tag.
    fn resolved(&self, properties: &Properties) -> Result<Option<String>, Error> {
        let Some((handle, suffix)) = &properties.tag else {
            return Ok(None);
        };
        if handle.is_empty() {
            return Ok(Some(suffix.clone()));
        }
        match self.handles.iter().find(|(known, _)| known == handle) {
            Some((_, prefix)) => Ok(Some(format!("{prefix}{suffix}"))),
            None => Err(failure(
                "found undefined tag handle",
                properties.tag_mark,
                ("while parsing a node", properties.start),
            )),
        }
    }

    fn scalar(&mut self, anchor: Option<String>, tag: Option<String>, start: Mark) -> Result<Event, Error> {
        let token = self.scanner.take()?;
        self.pop_state();
        let (value, style) = match token.kind {
            Kind::Scalar { value, style } => (value, style),
            _ => (String::new(), ScalarStyle::Plain),
        };
        let plain_implicit = style == ScalarStyle::Plain && tag.is_none() || tag.as_deref() == Some("!");
        let data = EventData::Scalar {
            anchor,
            plain_implicit,
            quoted_implicit: !plain_implicit && tag.is_none(),
            tag,
            value,
            style,
        };
        Ok(event(data, start, token.end))
    }
}
