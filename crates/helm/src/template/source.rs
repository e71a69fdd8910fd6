//! Texts with templates, and what they are parsed to.
//!
//! Templates are made of thousands of small parts. They lie in a few lists that belong to the text, refer to each other by
//! places in these lists, and to the text by places in it: nothing has to be counted, and little be given back one by one.

use std::{cell::OnceCell, fmt, marker::PhantomData, ops::Range, rc::Rc};

use super::{
    node::{Command, Node, Operand},
    number::Number,
    quote::unquote,
};

/// A place in a text: no budget allows one of more than 4 GiB.
pub(super) fn short(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// A text with templates, and what it was parsed to.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: Rc<str>,
    pub(super) text: Box<str>,
    pub(super) parts: Parts,
}

/// All parts of the templates of a text. What belongs together stands one behind the other.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) nodes: Vec<Node>,
    pub(super) commands: Vec<Command>,
    pub(super) operands: Vec<Operand>,
    pub(super) variables: Vec<Span>,
    pub(super) numbers: Vec<Number>,
    pub(super) literals: Vec<Literal>,
    /// The names of the templates that are called.
    pub(super) names: Vec<Rc<str>>,
}

impl Parts {
    /// Room for about as many parts as texts of that length have.
    pub(super) fn of(length: usize) -> Self {
        Self {
            nodes: Vec::with_capacity(length / 40),
            commands: Vec::with_capacity(length / 60),
            operands: Vec::with_capacity(length / 30),
            literals: Vec::with_capacity(length / 150),
            ..Self::default()
        }
    }

    pub(super) fn nodes(&self, list: List<Node>) -> &[Node] {
        self.nodes.get(list.range()).unwrap_or_default()
    }

    pub(super) fn operands(&self, list: List<Operand>) -> &[Operand] {
        self.operands.get(list.range()).unwrap_or_default()
    }
}

impl Source {
    /// Where a byte of the text is: `name:line:column`.
    pub(super) fn place(&self, at: u32) -> String {
        let before = self.text.get(..at as usize).unwrap_or(&self.text);
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1);
        format!("{}:{line}:{column}", self.name)
    }

    pub(super) fn text(&self, span: Span) -> &str {
        span.of(&self.text)
    }

    pub(super) fn nodes(&self, list: List<Node>) -> &[Node] {
        self.parts.nodes(list)
    }

    pub(super) fn commands(&self, list: List<Command>) -> &[Command] {
        self.parts.commands.get(list.range()).unwrap_or_default()
    }

    pub(super) fn operands(&self, list: List<Operand>) -> &[Operand] {
        self.parts.operands(list)
    }

    pub(super) fn variables(&self, list: List<Span>) -> &[Span] {
        self.parts.variables.get(list.range()).unwrap_or_default()
    }

    pub(super) fn number(&self, place: u32) -> Number {
        let number = self.parts.numbers.get(place as usize);
        number.copied().unwrap_or_default()
    }

    /// What a string means.
    pub(super) fn literal(&self, place: u32) -> Rc<str> {
        let literal = self.parts.literals.get(place as usize);
        literal
            .map(|literal| literal.text(&self.text))
            .unwrap_or_default()
    }

    /// A string as it is written.
    pub(super) fn quoted(&self, place: u32) -> &str {
        let literal = self.parts.literals.get(place as usize);
        literal.map_or("", |literal| self.text(literal.quoted))
    }

    /// The name of a template that is called.
    pub(super) fn name(&self, place: u32) -> &str {
        self.parts.names.get(place as usize).map_or("", AsRef::as_ref)
    }
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    pub(super) fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }

    pub(super) fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// Parts of one kind that stand one behind the other.
pub(super) struct List<T> {
    start: u32,
    end: u32,
    of: PhantomData<fn() -> T>,
}

impl<T> List<T> {
    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The parts of a list from a place to its end.
    pub(super) fn behind(parts: &[T], start: usize) -> Self {
        Self {
            start: short(start),
            end: short(parts.len()),
            of: PhantomData,
        }
    }

    pub(super) fn len(self) -> usize {
        self.range().len()
    }

    pub(super) fn is_empty(self) -> bool {
        self.start == self.end
    }
}

impl<T: Copy> List<T> {
    /// Moves what was collected behind a mark to the end of all parts.
    pub(super) fn collected(parts: &mut Vec<T>, collected: &mut Vec<T>, mark: usize) -> Self {
        let start = parts.len();
        parts.extend_from_slice(collected.get(mark..).unwrap_or_default());
        collected.truncate(mark);
        Self::behind(parts, start)
    }
}

// Derived ones would ask for the same of the parts.
impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<T> {}

impl<T> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.range().fmt(f)
    }
}

/// A string as it is written, and, once somebody asks, as it is meant.
#[derive(Debug)]
pub(super) struct Literal {
    pub(super) quoted: Span,
    meant: OnceCell<Rc<str>>,
}

impl Literal {
    pub(super) fn new(quoted: Span) -> Self {
        Self {
            quoted,
            meant: OnceCell::new(),
        }
    }

    fn text(&self, source: &str) -> Rc<str> {
        let meant = || unquote(self.quoted.of(source)).unwrap_or_default().into();
        Rc::clone(self.meant.get_or_init(meant))
    }
}
