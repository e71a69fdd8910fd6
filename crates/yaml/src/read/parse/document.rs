//! Streams, documents and directives.

use libyaml_safer::{Encoding, Event, EventData};

use super::{Kind, Parser, State, empty, event, failure};
use crate::{Error, Problem, read::events::position};

const DEFAULT_HANDLES: [(&str, &str); 2] = [("!", "!"), ("!!", "tag:yaml.org,2002:")];

impl Parser<'_> {
    pub(super) fn stream_start(&mut self) -> Result<Event, Error> {
        let token = self.scanner.take()?;
        self.state = State::ImplicitDocumentStart;
        let encoding = Encoding::Utf8;
        Ok(event(EventData::StreamStart { encoding }, token.start, token.end))
    }

    pub(super) fn document_start(&mut self, implicit: bool) -> Result<Event, Error> {
        if !implicit {
            while self.take_if(&Kind::DocumentEnd)?.is_some() {}
        }
        let token = self.scanner.peek()?;
        let (start, end) = (token.start, token.end);
        let is_marked = is_directive(&token.kind) || token.kind == Kind::DocumentStart;
        if token.kind == Kind::StreamEnd {
            self.scanner.take()?;
            self.state = State::End;
            return Ok(event(EventData::StreamEnd, start, end));
        }
        let started = |implicit| EventData::DocumentStart {
            version_directive: None,
            tag_directives: Vec::new(),
            implicit,
        };
        self.directives()?;
        if implicit && !is_marked {
            self.states.push(State::DocumentEnd);
            self.state = State::BlockNode;
            return Ok(event(started(true), start, end));
        }
        let Some(marker) = self.take_if(&Kind::DocumentStart)? else {
            let at = self.scanner.peek()?.start;
            return Err(failure("did not find expected <document start>", at, None));
        };
        self.states.push(State::DocumentEnd);
        self.state = State::DocumentContent;
        Ok(event(started(false), start, marker.end))
    }

    pub(super) fn document_content(&mut self) -> Result<Event, Error> {
        let token = self.scanner.peek()?;
        let ends = matches!(
            token.kind,
            Kind::DocumentStart | Kind::DocumentEnd | Kind::StreamEnd
        );
        if ends || is_directive(&token.kind) {
            let at = token.start;
            self.pop_state();
            return Ok(empty(at));
        }
        self.node(true, false)
    }

    pub(super) fn document_end(&mut self) -> Result<Event, Error> {
        let start = self.scanner.peek()?.start;
        let marker = self.take_if(&Kind::DocumentEnd)?;
        self.handles.clear();
        self.state = State::DocumentStart;
        let implicit = marker.is_none();
        let end = marker.map_or(start, |marker| marker.end);
        Ok(event(EventData::DocumentEnd { implicit }, start, end))
    }

    fn directives(&mut self) -> Result<(), Error> {
        let mut versions = 0;
        while is_directive(&self.scanner.peek()?.kind) {
            let token = self.scanner.take()?;
            match token.kind {
                Kind::Version { .. } if versions > 0 => {
                    return Err(failure("found duplicate %YAML directive", token.start, None));
                }
                Kind::Version { major, minor } if !self.flavour.accepts_version(major, minor) => {
                    let problem = Problem::Version { major, minor };
                    return Err(Error::new(position(token.start), problem));
                }
                Kind::Version { .. } => versions += 1,
                Kind::TagDirective { handle, .. }
                    if self.handles.iter().any(|(known, _)| *known == handle) =>
                {
                    return Err(failure("found duplicate %TAG directive", token.start, None));
                }
                Kind::TagDirective { handle, prefix } => self.handles.push((handle, prefix)),
                _ => {}
            }
        }
        for (handle, prefix) in DEFAULT_HANDLES {
            if !self.handles.iter().any(|(known, _)| known == handle) {
                self.handles.push((handle.to_owned(), prefix.to_owned()));
            }
        }
        Ok(())
    }
}

fn is_directive(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Version { .. } | Kind::TagDirective { .. } | Kind::UnknownDirective
    )
}
