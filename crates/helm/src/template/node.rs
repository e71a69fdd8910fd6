//! Nodes of parsed templates.

use super::{
    builtin::Builtin,
    index::{List, NodeIndex, Span},
};

pub(super) fn is_empty(body: &[Node], text: &str) -> bool {
    body.iter().all(|node| match node.kind {
        NodeKind::Text(span) => span.of(text).trim().is_empty(),
        _ => false,
    })
}

/// A node of a template's body, with its byte offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) at: u32,
    pub(super) kind: NodeKind,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum NodeKind {
    Text(Span),
    Action(NodeIndex<Pipe>),
    If(NodeIndex<Branch>),
    With(NodeIndex<Branch>),
    Range(NodeIndex<Branch>),
    Template(NodeIndex<Call>),
    Break,
    Continue,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Branch {
    pub(super) pipe: Pipe,
    pub(super) body: List<Node>,
    pub(super) otherwise: Option<List<Node>>,
}

/// A call of another template with the value of the pipeline.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) name: u32,
    pub(super) pipe: Option<Pipe>,
}

/// Commands, each with the result of the previous one as last argument, and the variables for the final result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pipe {
    pub(super) at: u32,
    pub(super) assigns: bool,
    pub(super) variables: List<Span>,
    pub(super) commands: List<Command>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Command {
    pub(super) at: u32,
    pub(super) operands: List<Operand>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Operand {
    pub(super) at: u32,
    pub(super) term: Term,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Term {
    Dot,
    Nil,
    Bool(bool),
    Number(u32, Span),
    String(u32),
    Field(Span),
    /// `$x`, and the end of the fields after it.
    Variable(Span, u32),
    Chain(NodeIndex<Operand>, Span),
    Pipe(NodeIndex<Pipe>),
    Function(u16, Span),
    Builtin(Builtin),
}

pub(super) fn first_field(fields: &str) -> &str {
    let second = fields.bytes().skip(1).position(|byte| byte == b'.');
    second.and_then(|length| fields.get(..=length)).unwrap_or(fields)
}
