//! Parsed templates, and how Go writes their parts in errors.

use std::{
    fmt::{self, Display, Formatter},
    rc::Rc,
};

use super::{
    builtin::Builtin,
    number::Number,
    quote::quote,
    source::{Excerpt, Literal, Source},
};

/// A parsed template.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) name: Rc<str>,
    /// The text it stands in, and the name of that.
    pub(super) source: Rc<Source>,
    pub(super) body: Vec<Node>,
}

/// A part of the body of a template; where it is, in bytes.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) at: usize,
    pub(super) kind: NodeKind,
}

#[derive(Debug)]
pub(super) enum NodeKind {
    Text(Excerpt),
    Action(Pipe),
    If(Box<Branch>),
    With(Box<Branch>),
    Range(Box<Branch>),
    Template(Rc<str>, Option<Pipe>),
    Break,
    Continue,
}

/// `if`, `with` or `range`.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) pipe: Pipe,
    pub(super) body: Vec<Node>,
    pub(super) otherwise: Option<Vec<Node>>,
}

/// Commands, each of which gets what the one before it made, and the variables that get the last of it.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) at: usize,
    pub(super) assigns: bool,
    pub(super) variables: Vec<Excerpt>,
    pub(super) commands: Vec<Command>,
}

/// A value, or a function and its arguments.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) at: usize,
    pub(super) first: Operand,
    pub(super) arguments: Vec<Operand>,
}

/// A part of a command.
#[derive(Debug)]
pub(super) struct Operand {
    pub(super) at: usize,
    pub(super) term: Term,
}

#[derive(Debug)]
pub(super) enum Term {
    Dot,
    Nil,
    Bool(bool),
    Number(Box<Number>),
    String(Literal),
    /// `.a.b`
    Field(Excerpt),
    /// `$x` and `.a.b`
    Variable(Excerpt, Excerpt),
    /// `(pipe)` and `.a.b`
    Chain(Box<Operand>, Excerpt),
    Pipe(Box<Pipe>),
    Function(Excerpt),
    Builtin(Builtin),
}

/// What an error happened at.
#[derive(Clone, Copy)]
pub(super) enum At<'t> {
    Node(&'t Node),
    Pipe(&'t Pipe),
    Command(&'t Command),
    Operand(&'t Operand),
}

impl At<'_> {
    /// Where it is, in bytes.
    pub(super) fn offset(self) -> usize {
        match self {
            Self::Node(node) => node.at,
            Self::Pipe(pipe) => pipe.at,
            Self::Command(command) => command.at,
            Self::Operand(operand) => operand.at,
        }
    }
}

impl Display for At<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => node.fmt(f),
            Self::Pipe(pipe) => pipe.fmt(f),
            Self::Command(command) => command.fmt(f),
            Self::Operand(operand) => operand.fmt(f),
        }
    }
}

/// Whether a body has nothing but space.
pub(super) fn is_empty(body: &[Node]) -> bool {
    body.iter().all(|node| match &node.kind {
        NodeKind::Text(text) => text.trim().is_empty(),
        _ => false,
    })
}

impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            NodeKind::Text(text) => f.write_str(text),
            NodeKind::Action(pipe) => write!(f, "{{{{{pipe}}}}}"),
            NodeKind::If(branch) => branch.write(f, "if"),
            NodeKind::With(branch) => branch.write(f, "with"),
            NodeKind::Range(branch) => branch.write(f, "range"),
            NodeKind::Template(name, None) => write!(f, "{{{{template {}}}}}", quote(name)),
            NodeKind::Template(name, Some(pipe)) => write!(f, "{{{{template {} {pipe}}}}}", quote(name)),
            NodeKind::Break => f.write_str("{{break}}"),
            NodeKind::Continue => f.write_str("{{continue}}"),
        }
    }
}

impl Branch {
    fn write(&self, f: &mut Formatter<'_>, word: &str) -> fmt::Result {
        write!(f, "{{{{{word} {}}}}}", self.pipe)?;
        self.body.iter().try_for_each(|node| node.fmt(f))?;
        if let Some(otherwise) = &self.otherwise {
            f.write_str("{{else}}")?;
            otherwise.iter().try_for_each(|node| node.fmt(f))?;
        }
        f.write_str("{{end}}")
    }
}

impl Display for Pipe {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.variables.is_empty() {
            for (index, variable) in self.variables.iter().enumerate() {
                f.write_str(if index > 0 { ", " } else { "" })?;
                f.write_str(variable)?;
            }
            f.write_str(if self.assigns { " = " } else { " := " })?;
        }
        for (index, command) in self.commands.iter().enumerate() {
            if index > 0 {
                f.write_str(" | ")?;
            }
            command.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Command {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.first.write(f)?;
        for argument in &self.arguments {
            f.write_str(" ")?;
            argument.write(f)?;
        }
        Ok(())
    }
}

impl Operand {
    /// As a part of something else: a pipe is in parentheses then.
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.term {
            Term::Pipe(pipe) => write!(f, "({pipe})"),
            _ => self.fmt(f),
        }
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let fields = match &self.term {
            Term::Dot => return f.write_str("."),
            Term::Nil => return f.write_str("nil"),
            Term::Bool(value) => return value.fmt(f),
            Term::Number(number) => return f.write_str(&number.text),
            Term::String(literal) => return f.write_str(&literal.quoted),
            Term::Pipe(pipe) => return pipe.fmt(f),
            Term::Function(name) => return f.write_str(name),
            Term::Builtin(builtin) => return f.write_str(builtin.name()),
            Term::Field(fields) => fields,
            Term::Variable(name, fields) => {
                f.write_str(name)?;
                fields
            }
            Term::Chain(operand, fields) => {
                operand.write(f)?;
                fields
            }
        };
        f.write_str(fields)
    }
}
