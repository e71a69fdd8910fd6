//! Texts with templates, and excerpts of them.

use std::{cell::OnceCell, fmt, ops::Deref, rc::Rc};

use super::quote::unquote;

/// A text with templates.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: Rc<str>,
    pub(super) text: Box<str>,
}

impl Source {
    /// Where a byte of the text is: `name:line:column`.
    pub(super) fn place(&self, at: usize) -> String {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1);
        format!("{}:{line}:{column}", self.name)
    }

    /// A part of the text.
    pub(super) fn excerpt(self: &Rc<Self>, start: usize, end: usize) -> Excerpt {
        Excerpt {
            source: Rc::clone(self),
            start: short(start),
            end: short(end),
        }
    }
}

/// A part of a text. Templates are made of thousands of them: the text itself is kept, and they say where in it they are.
#[derive(Clone)]
pub(super) struct Excerpt {
    source: Rc<Source>,
    start: u32,
    end: u32,
}

/// A place in a text: no budget allows one of more than 4 GiB.
fn short(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl Excerpt {
    /// Makes it longer: up to a byte of the text.
    pub(super) fn extend_to(&mut self, end: usize) {
        self.end = short(end);
    }
}

impl Deref for Excerpt {
    type Target = str;

    fn deref(&self) -> &str {
        let (start, end) = (self.start as usize, self.end as usize);
        self.source.text.get(start..end).unwrap_or_default()
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// A string as it is written, and, once somebody asks, as it is meant.
#[derive(Debug)]
pub(super) struct Literal {
    pub(super) quoted: Excerpt,
    meant: OnceCell<Rc<str>>,
}

impl Literal {
    pub(super) fn new(quoted: Excerpt) -> Self {
        Self {
            quoted,
            meant: OnceCell::new(),
        }
    }

    pub(super) fn text(&self) -> Rc<str> {
        let meant = || unquote(&self.quoted).unwrap_or_default().into();
        Rc::clone(self.meant.get_or_init(meant))
    }
}
