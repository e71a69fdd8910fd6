//! Template sources and their syntax trees.
//!
//! Templates have thousands of small nodes. They are stored in a few lists per source and refer to each other, and to the source,
//! by index: this avoids reference counts and most deallocations.

use std::{borrow::Cow, cell::OnceCell, rc::Rc};

use go::strconv::unquote;

use super::{
    index::{List, NodeIndex, Span},
    node::{Branch, Call, Command, Node, Operand, Pipe, Term, is_empty},
    number::Number,
};

/// The memory of a name in bytes, without its characters.
const NAME: usize = 48;

#[derive(Debug)]
pub(super) struct TemplateText<'t> {
    pub(super) name: Rc<str>,
    pub(super) text: Cow<'t, str>,
    pub(super) parts: Nodes,
}

#[derive(Debug)]
pub(super) struct Template<'t> {
    pub(super) name: Rc<str>,
    pub(super) source: Rc<TemplateText<'t>>,
    pub(super) body: List<Node>,
}

impl Template<'_> {
    pub(super) fn is_empty(&self) -> bool {
        is_empty(self.source.all(self.body), &self.source.text)
    }
}

/// All nodes of a source's templates. Nodes of a list are consecutive.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub(super) nodes: Vec<Node>,
    pub(super) pipes: Vec<Pipe>,
    pub(super) branches: Vec<Branch>,
    pub(super) calls: Vec<Call>,
    pub(super) commands: Vec<Command>,
    pub(super) operands: Vec<Operand>,
    pub(super) variables: Vec<Span>,
    pub(super) numbers: Vec<Number>,
    pub(super) literals: Vec<Literal>,
    pub(super) names: Vec<Rc<str>>,
}

impl Nodes {
    /// Moves all nodes to lists of their exact length; the buffers keep their capacity.
    pub(super) fn take(&mut self) -> Self {
        #[expect(clippy::drain_collect, reason = "the capacity stays")]
        fn moved<T>(list: &mut Vec<T>) -> Vec<T> {
            list.drain(..).collect()
        }
        Self {
            nodes: moved(&mut self.nodes),
            pipes: moved(&mut self.pipes),
            branches: moved(&mut self.branches),
            calls: moved(&mut self.calls),
            commands: moved(&mut self.commands),
            operands: moved(&mut self.operands),
            variables: moved(&mut self.variables),
            numbers: moved(&mut self.numbers),
            literals: moved(&mut self.literals),
            names: moved(&mut self.names),
        }
    }

    /// Returns the memory of all nodes, and of the definitions that refer to them, in bytes.
    fn memory(&self) -> usize {
        self.nodes.len() * size_of::<Node>()
            + self.pipes.len() * size_of::<Pipe>()
            + self.branches.len() * size_of::<Branch>()
            + self.calls.len() * size_of::<Call>()
            + self.commands.len() * size_of::<Command>()
            + self.operands.len() * size_of::<Operand>()
            + self.variables.len() * size_of::<Span>()
            + self.numbers.len() * size_of::<Number>()
            + self.literals.len() * size_of::<Literal>()
            + self.names.iter().map(|name| name.len() + NAME).sum::<usize>()
    }

    /// Keeps the capacity.
    pub(super) fn clear(&mut self) {
        drop(self.take());
    }

    pub(super) fn all<T: Part>(&self, list: List<T>) -> &[T] {
        T::list(self).get(list.range()).unwrap_or_default()
    }
}

/// A node that others refer to by lists.
pub(super) trait Part: Sized + 'static {
    fn list(parts: &Nodes) -> &[Self];
}

/// A node that others also refer to by index.
pub(super) trait Indexed: Part {
    /// Stands in for a missing node; no index refers to one.
    const MISSING: &'static Self;
}

impl Part for Node {
    fn list(parts: &Nodes) -> &[Self] {
        &parts.nodes
    }
}

impl Part for Pipe {
    fn list(parts: &Nodes) -> &[Self] {
        &parts.pipes
    }
}

impl Indexed for Pipe {
    const MISSING: &'static Self = &Self {
        at: 0,
        assigns: false,
        variables: List::EMPTY,
        commands: List::EMPTY,
    };
}

impl Part for Branch {
    fn list(parts: &Nodes) -> &[Self] {
        &parts.branches
    }
}

impl Indexed for Branch {
    const MISSING: &'static Self = &Self {
        pipe: *Pipe::MISSING,
        body: List::EMPTY,
        otherwise: None,
    };
}

impl Part for Call {
    fn list(parts: &Nodes) -> &[Self] {
        &parts.calls
    }
}

impl Indexed for Call {
    const MISSING: &'static Self = &Self {
        name: u32::MAX,
        pipe: None,
    };
}

impl Part for Command {
    fn list(parts: &Nodes) -> &[Self] {
        &parts.commands
    }
}

impl Part for Operand {
    fn list(parts: &Nodes) -> &[Self] {
        &parts.operands
    }
}

impl Indexed for Operand {
    const MISSING: &'static Self = &Self {
        at: 0,
        term: Term::Dot,
    };
}

impl Part for Span {
    fn list(parts: &Nodes) -> &[Self] {
        &parts.variables
    }
}

impl TemplateText<'_> {
    /// Returns the memory of the text, unless it is borrowed, and of its syntax tree in bytes.
    pub(super) fn memory(&self) -> u64 {
        let text = match &self.text {
            Cow::Borrowed(_) => 0,
            Cow::Owned(text) => text.len(),
        };
        (text + self.parts.memory()) as u64
    }

    pub(super) fn text(&self, span: Span) -> &str {
        span.of(&self.text)
    }

    pub(super) fn all<T: Part>(&self, list: List<T>) -> &[T] {
        self.parts.all(list)
    }

    pub(super) fn at<T: Indexed>(&self, id: NodeIndex<T>) -> &T {
        T::list(&self.parts).get(id.index as usize).unwrap_or(T::MISSING)
    }

    pub(super) fn number(&self, id: u32) -> Number {
        let number = self.parts.numbers.get(id as usize);
        number.copied().unwrap_or_default()
    }

    pub(super) fn literal(&self, id: u32) -> Rc<str> {
        let literal = self.parts.literals.get(id as usize);
        literal
            .map(|literal| literal.text(&self.text))
            .unwrap_or_default()
    }

    /// Returns a string literal with its quotes.
    pub(super) fn quoted(&self, id: u32) -> &str {
        let literal = self.parts.literals.get(id as usize);
        literal.map_or("", |literal| self.text(literal.quoted))
    }

    pub(super) fn name(&self, id: u32) -> &str {
        self.parts.names.get(id as usize).map_or("", AsRef::as_ref)
    }
}

/// A string literal, and its value after the first use.
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
