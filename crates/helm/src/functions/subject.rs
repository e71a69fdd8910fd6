//! Strings that are searched by regular expressions, to which each invalid byte is a replacement character.

use std::{borrow::Cow, ops::Range};

use go::{bytes, regexp::Captures};

use super::context::Context;
use crate::template::FunctionError;

pub(super) struct Subject<'t> {
    text: &'t str,
    searched: Cow<'t, str>,
    /// Offsets in the searched string and in the string itself, behind each character that differs.
    moved: Vec<(usize, usize)>,
}

impl<'t> Subject<'t> {
    pub(super) fn new(context: &Context<'_>, text: &'t str) -> Result<Self, FunctionError> {
        let (mut moved, mut at) = (Vec::new(), 0);
        let searched = bytes::to_valid_utf8(text);
        if let Cow::Owned(searched) = &searched {
            context.text(searched.len())?;
            context.memory(text.len().saturating_mul(size_of::<(usize, usize)>()))?;
            for (start, c) in searched.char_indices() {
                let form = match text.get(at..).and_then(|rest| rest.chars().next()) {
                    Some(first) if first == c => c.len_utf8(),
                    // A character that stands for a byte has a form of four of them.
                    Some(first) if c != char::REPLACEMENT_CHARACTER => first.len_utf8() * c.len_utf8(),
                    first => first.map_or(0, char::len_utf8),
                };
                at += form;
                if form != c.len_utf8() {
                    moved.push((start + c.len_utf8(), at));
                }
            }
        }
        Ok(Self {
            text,
            searched,
            moved,
        })
    }

    /// Returns the string that expressions search.
    pub(super) fn searched(&self) -> &str {
        &self.searched
    }

    fn offset(&self, searched: usize) -> usize {
        let behind = self.moved.partition_point(|(at, _)| *at <= searched);
        let before = behind.checked_sub(1).and_then(|last| self.moved.get(last));
        before.map_or(searched, |(at, own)| own + (searched - at))
    }

    pub(super) fn part(&self, found: Range<usize>) -> &'t str {
        let own = self.offset(found.start)..self.offset(found.end);
        self.text.get(own).unwrap_or_default()
    }

    pub(super) fn captures<'o>(&'o self, found: Captures<'o>) -> Captures<'o> {
        found.of(self.text, |at| self.offset(at))
    }
}
