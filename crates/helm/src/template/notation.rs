//! Go's notation of nodes and positions in errors.

use std::fmt::{self, Display, Formatter};

use go::{bytes, strconv::quote};

use super::{
    index::{List, short},
    node::{Branch, Command, Node, NodeKind, Operand, Pipe, Term, first_field},
    source::TemplateText,
};

#[derive(Clone, Copy)]
pub(super) enum At<'t> {
    Node(&'t Node),
    Pipe(&'t Pipe),
    Command(&'t Command),
    Operand(&'t Operand),
}

impl At<'_> {
    /// Returns the byte offset that Go reports; for a chain of fields, the offset of the second field.
    fn offset(self, text: &str) -> u32 {
        match self {
            Self::Node(node) => node.at,
            Self::Pipe(pipe) => pipe.at,
            Self::Command(command) => command.at,
            Self::Operand(operand) => match operand.term {
                Term::Field(fields) => {
                    let behind = first_field(fields.of(text)).len();
                    if behind < fields.len() {
                        fields.start + short(behind)
                    } else {
                        operand.at
                    }
                }
                _ => operand.at,
            },
        }
    }
}

impl TemplateText<'_> {
    /// Formats the position of a node as `name:line:column`.
    pub(super) fn position(&self, what: At<'_>) -> String {
        let at = what.offset(&self.text) as usize;
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        let column = bytes::len(before.rsplit('\n').next().unwrap_or(before));
        format!("{}:{line}:{column}", self.name)
    }

    pub(super) fn display<'s>(&'s self, what: At<'s>) -> NodeDisplay<'s> {
        NodeDisplay { source: self, what }
    }
}

/// A node in Go's notation.
pub(super) struct NodeDisplay<'s> {
    source: &'s TemplateText<'s>,
    what: At<'s>,
}

impl Display for NodeDisplay<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.what {
            At::Node(node) => self.source.node(f, node),
            At::Pipe(pipe) => self.source.pipe(f, pipe),
            At::Command(command) => self.source.command(f, command),
            At::Operand(operand) => self.source.operand(f, operand),
        }
    }
}

impl TemplateText<'_> {
    fn body(&self, f: &mut Formatter<'_>, body: List<Node>) -> fmt::Result {
        self.all(body).iter().try_for_each(|node| self.node(f, node))
    }

    fn node(&self, f: &mut Formatter<'_>, node: &Node) -> fmt::Result {
        match &node.kind {
            NodeKind::Text(text) => f.write_str(self.text(*text)),
            NodeKind::Action(pipe) => {
                f.write_str("{{")?;
                self.pipe(f, self.at(*pipe))?;
                f.write_str("}}")
            }
            NodeKind::If(branch) => self.branch(f, self.at(*branch), "if"),
            NodeKind::With(branch) => self.branch(f, self.at(*branch), "with"),
            NodeKind::Range(branch) => self.branch(f, self.at(*branch), "range"),
            NodeKind::Template(call) => {
                let call = self.at(*call);
                write!(f, "{{{{template {}", quote(self.name(call.name)))?;
                if let Some(pipe) = &call.pipe {
                    f.write_str(" ")?;
                    self.pipe(f, pipe)?;
                }
                f.write_str("}}")
            }
            NodeKind::Break => f.write_str("{{break}}"),
            NodeKind::Continue => f.write_str("{{continue}}"),
        }
    }

    fn branch(&self, f: &mut Formatter<'_>, branch: &Branch, word: &str) -> fmt::Result {
        write!(f, "{{{{{word} ")?;
        self.pipe(f, &branch.pipe)?;
        f.write_str("}}")?;
        self.body(f, branch.body)?;
        if let Some(otherwise) = branch.otherwise {
            f.write_str("{{else}}")?;
            self.body(f, otherwise)?;
        }
        f.write_str("{{end}}")
    }

    fn pipe(&self, f: &mut Formatter<'_>, pipe: &Pipe) -> fmt::Result {
        let variables = self.all(pipe.variables);
        if !variables.is_empty() {
            for (index, variable) in variables.iter().enumerate() {
                f.write_str(if index > 0 { ", " } else { "" })?;
                f.write_str(self.text(*variable))?;
            }
            f.write_str(if pipe.assigns { " = " } else { " := " })?;
        }
        for (index, command) in self.all(pipe.commands).iter().enumerate() {
            if index > 0 {
                f.write_str(" | ")?;
            }
            self.command(f, command)?;
        }
        Ok(())
    }

    fn command(&self, f: &mut Formatter<'_>, command: &Command) -> fmt::Result {
        for (index, operand) in self.all(command.operands).iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            self.inner(f, operand)?;
        }
        Ok(())
    }

    /// Writes an operand that is a part of another node: a pipe gets parentheses.
    fn inner(&self, f: &mut Formatter<'_>, operand: &Operand) -> fmt::Result {
        if let Term::Pipe(pipe) = operand.term {
            f.write_str("(")?;
            self.pipe(f, self.at(pipe))?;
            f.write_str(")")
        } else {
            self.operand(f, operand)
        }
    }

    fn operand(&self, f: &mut Formatter<'_>, operand: &Operand) -> fmt::Result {
        match &operand.term {
            Term::Dot => f.write_str("."),
            Term::Nil => f.write_str("nil"),
            Term::Bool(value) => value.fmt(f),
            Term::Number(_, written) => f.write_str(self.text(*written)),
            Term::String(position) => f.write_str(self.quoted(*position)),
            Term::Pipe(pipe) => self.pipe(f, self.at(*pipe)),
            Term::Builtin(builtin) => f.write_str(builtin.name()),
            Term::Function(_, text) | Term::Field(text) => f.write_str(self.text(*text)),
            Term::Variable(name, end) => {
                f.write_str(self.text(*name))?;
                f.write_str(self.text(name.up_to(*end)))
            }
            Term::Chain(base, fields) => {
                self.inner(f, self.at(*base))?;
                f.write_str(self.text(*fields))
            }
        }
    }
}
