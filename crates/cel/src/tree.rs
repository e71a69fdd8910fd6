//! The tree of a compiled expression.

use crate::{
    EvalError, Value, Variables,
    functions::{Function, type_named},
};

#[derive(Debug)]
pub(super) struct Node {
    pub(super) op: Op,
    pub(super) height: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// The effect of a macro on the items of a list or the keys of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoldKind {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

impl FoldKind {
    pub(super) fn returns_bool(self) -> bool {
        matches!(self, Self::All | Self::Exists | Self::ExistsOne)
    }
}

/// A macro over a range. Its variable is the innermost one in its parts.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) kind: FoldKind,
    pub(super) range: Node,
    pub(super) predicate: Option<Node>,
    pub(super) result: Option<Node>,
}

#[derive(Debug)]
pub(super) enum Op {
    Literal(Value),
    /// A variable of the expression, by its index.
    Global(usize),
    /// A variable of a macro, by its index from the outermost macro.
    Local(usize),
    /// A field; with true, an optional one.
    Field(Box<Node>, String, bool),
    Has(Box<Node>, String),
    Index(Box<Node>, Box<Node>, bool),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Compare(Comparison, Box<Node>, Box<Node>),
    In(Box<Node>, Box<Node>),
    Arithmetic(Arithmetic, Box<Node>, Box<Node>),
    Conditional(Box<Node>, Box<Node>, Box<Node>),
    List(Vec<(bool, Node)>),
    Map(Vec<(bool, Node, Node)>),
    Call(Function, Vec<Node>),
    Fold(Box<Fold>),
    /// The result for an optional's value, which is the innermost variable; with true, the result is an optional itself.
    OptionalMap(Box<Node>, Box<Node>, bool),
}

impl Op {
    pub(super) fn children(&self) -> Vec<&Node> {
        match self {
            Self::Literal(_) | Self::Global(_) | Self::Local(_) => Vec::new(),
            Self::Field(a, ..) | Self::Has(a, _) | Self::Not(a) | Self::Negate(a) => vec![a],
            Self::Index(a, b, _)
            | Self::And(a, b)
            | Self::Or(a, b)
            | Self::Compare(_, a, b)
            | Self::In(a, b)
            | Self::Arithmetic(_, a, b)
            | Self::OptionalMap(a, b, _) => vec![a, b],
            Self::Conditional(a, b, c) => vec![a, b, c],
            Self::List(items) => items.iter().map(|(_, item)| item).collect(),
            Self::Map(entries) => entries.iter().flat_map(|(_, key, value)| [key, value]).collect(),
            Self::Call(_, args) => args.iter().collect(),
            Self::Fold(fold) => {
                let parts = [Some(&fold.range), fold.predicate.as_ref(), fold.result.as_ref()];
                parts.into_iter().flatten().collect()
            }
        }
    }
}

/// A variable that an expression names.
#[derive(Debug)]
pub(super) struct Global {
    pub(super) name: String,
}

impl Global {
    pub(super) fn value(&self, variables: &Variables) -> Result<Value, EvalError> {
        let known = variables.get(&self.name).cloned();
        let value = known.or_else(|| type_named(&self.name).map(Value::Type));
        value.ok_or_else(|| EvalError::Missing(self.name.clone()))
    }
}
