//! The syntax tree of a template. `symbols` resolves the slots of names.

use std::rc::Rc;

use crate::value::operator::{Comparison, Operator};
use crate::value::{Str, Value};

/// The slot of a variable: the number of enclosing functions to go out, and the index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Slot {
    pub(crate) out: u16,
    pub(crate) at: u32,
}

/// The initial value of a slot in its scope.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Load {
    /// Set by the caller.
    Parameter,
    /// Looked up in the context.
    Resolve(Str),
    /// A copy of the variable of an outer scope.
    Alias(Slot),
    Undefined,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    pub(crate) loads: Vec<(u32, Load)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub(crate) id: Str,
    pub(crate) slot: Slot,
    /// Parameters always exist.
    pub(crate) parameter: bool,
}

/// The variables that a statement sees.
#[derive(Debug, Clone, Default)]
pub(crate) struct Visible {
    /// `None` if the statement sees none.
    pub(crate) scope: Option<Rc<VisibleScope>>,
    /// The nesting of the function of the statement.
    pub(crate) depth: u16,
}

/// The variables of a scope, which all its statements share.
#[derive(Debug)]
pub(crate) struct VisibleScope {
    pub(crate) variables: Vec<VisibleVariable>,
    pub(crate) outer: Option<Rc<VisibleScope>>,
}

#[derive(Debug)]
pub(crate) struct VisibleVariable {
    pub(crate) name: Str,
    /// The nesting of its function.
    pub(crate) depth: u16,
    pub(crate) at: u32,
}

impl VisibleVariable {
    /// Returns the slot as a function of this nesting reaches it.
    pub(crate) fn seen_from(&self, depth: u16) -> Slot {
        Slot {
            out: depth.saturating_sub(self.depth),
            at: self.at,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) line: u32,
    pub(crate) kind: ExprKind,
}

#[derive(Debug, Clone)]
pub(crate) enum ExprKind {
    Name(Name),
    Const(Value),
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Cond(Box<Cond>),
    Filter(Box<Filter>),
    Test(Box<Test>),
    Call(Box<Call>),
    Item(Box<(Expr, Expr)>),
    Attr(Box<Expr>, Str),
    Slice(Box<[Option<Expr>; 3]>),
    Concat(Vec<Expr>),
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    And(Box<(Expr, Expr)>),
    Or(Box<(Expr, Expr)>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Positive(Box<Expr>),
    Binary(Operator, Box<(Expr, Expr)>),
}

#[derive(Debug, Clone)]
pub(crate) struct Cond {
    pub(crate) test: Expr,
    pub(crate) then: Expr,
    pub(crate) otherwise: Option<Expr>,
}

#[derive(Debug, Clone)]
pub(crate) struct Filter {
    /// `None` in a filter block, whose filters apply to its body.
    pub(crate) target: Option<Expr>,
    pub(crate) name: Str,
    pub(crate) args: CallArgs,
}

#[derive(Debug, Clone)]
pub(crate) struct Test {
    pub(crate) target: Expr,
    pub(crate) name: Str,
    pub(crate) args: CallArgs,
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) func: Expr,
    pub(crate) args: CallArgs,
    /// In a loop: its variables are visible to functions that take the context.
    pub(crate) in_loop: bool,
    /// Likewise, in a block.
    pub(crate) in_block: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct CallArgs {
    pub(crate) args: Vec<Expr>,
    pub(crate) kwargs: Vec<(Str, Expr)>,
    pub(crate) star: Option<Expr>,
    pub(crate) double_star: Option<Expr>,
}

impl CallArgs {
    pub(crate) fn each(&self) -> impl Iterator<Item = &Expr> {
        let named = self.kwargs.iter().map(|(_, value)| value);
        self.args
            .iter()
            .chain(named)
            .chain(&self.star)
            .chain(&self.double_star)
    }

    pub(crate) fn each_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let named = self.kwargs.iter_mut().map(|(_, value)| value);
        self.args
            .iter_mut()
            .chain(named)
            .chain(&mut self.star)
            .chain(&mut self.double_star)
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Target {
    Name(Name),
    /// An attribute of a namespace.
    Attr(Name, Str),
    Tuple(Vec<Target>),
}

#[derive(Debug, Clone)]
pub(crate) struct Stmt {
    pub(crate) line: u32,
    pub(crate) kind: StmtKind,
}

#[derive(Debug, Clone)]
pub(crate) enum StmtKind {
    Output(Vec<Piece>),
    If(Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    For(Rc<For>),
    Macro(Rc<Macro>, Name, Track),
    CallBlock(Rc<Macro>, Expr),
    FilterBlock(Expr, Vec<Stmt>, Scope),
    With(Vec<(Target, Expr)>, Vec<Stmt>, Scope),
    Set(Target, Expr, Track),
    SetBlock(Box<SetBlock>),
    Scoped(Vec<Stmt>, Scope),
    AutoEscape(Expr, Vec<Stmt>),
    Block(Box<BlockUse>),
    Extends(Expr),
    Include(Box<Include>),
    Import(Box<Import>),
    FromImport(Box<FromImport>),
    Break,
    Continue,
}

#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Data(Str),
    Expr(Expr),
}

/// Another variable that an assignment updates besides its own slot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Track {
    pub(crate) kind: TrackKind,
    pub(crate) names: Vec<Name>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TrackKind {
    #[default]
    Nobody,
    Loop,
    Block,
    Context,
}

#[derive(Debug, Clone)]
pub(crate) struct For {
    pub(crate) target: Target,
    pub(crate) iter: Expr,
    pub(crate) body: Vec<Stmt>,
    pub(crate) otherwise: Vec<Stmt>,
    pub(crate) test: Option<Expr>,
    /// The target in the loop's test.
    pub(crate) test_target: Option<Target>,
    pub(crate) recursive: bool,
    /// The slot of `loop`, if it is used.
    pub(crate) loop_slot: Option<u32>,
    pub(crate) scope: Scope,
    pub(crate) test_scope: Scope,
    pub(crate) else_scope: Scope,
    /// The number of slots of a recursive loop, which is a function of its own.
    pub(crate) slots: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct Macro {
    pub(crate) name: Str,
    pub(crate) params: Vec<Name>,
    /// Of the last parameters.
    pub(crate) defaults: Vec<Expr>,
    pub(crate) body: Vec<Stmt>,
    pub(crate) scope: Scope,
    pub(crate) slots: u32,
    pub(crate) caller: Option<u32>,
    pub(crate) kwargs: Option<u32>,
    pub(crate) varargs: Option<u32>,
    /// True if `caller` is used.
    pub(crate) uses_caller: bool,
    /// True if `caller` is a parameter with a default.
    pub(crate) explicit_caller: bool,
    pub(crate) line: u32,
    /// The slot of a call block's function.
    pub(crate) is_caller: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct SetBlock {
    pub(crate) target: Target,
    pub(crate) filter: Option<Expr>,
    pub(crate) body: Vec<Stmt>,
    pub(crate) scope: Scope,
    pub(crate) track: Track,
}

/// The use of a block in its template: it is rendered here unless a child template overrides it.
#[derive(Debug, Clone)]
pub(crate) struct BlockUse {
    pub(crate) name: Str,
    pub(crate) scoped: bool,
    pub(crate) required: bool,
    /// At the top level a child template prints no blocks.
    pub(crate) toplevel: bool,
    pub(crate) body: Vec<Stmt>,
    pub(crate) visible: Visible,
}

#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) name: Str,
    pub(crate) body: Vec<Stmt>,
    pub(crate) scope: Scope,
    pub(crate) slots: u32,
    pub(crate) own: Option<u32>,
    pub(crate) parent: Option<u32>,
}

#[derive(Debug, Clone)]
pub(crate) struct Include {
    pub(crate) template: Expr,
    pub(crate) with_context: bool,
    pub(crate) ignore_missing: bool,
    pub(crate) visible: Visible,
}

#[derive(Debug, Clone)]
pub(crate) struct Import {
    pub(crate) template: Expr,
    pub(crate) target: Name,
    pub(crate) with_context: bool,
    pub(crate) toplevel: bool,
    pub(crate) visible: Visible,
}

#[derive(Debug, Clone)]
pub(crate) struct FromImport {
    pub(crate) template: Expr,
    pub(crate) names: Vec<(Str, Name)>,
    pub(crate) with_context: bool,
    pub(crate) toplevel: bool,
    pub(crate) visible: Visible,
}

#[derive(Debug, Default)]
pub(crate) struct Template {
    pub(crate) body: Vec<Stmt>,
    pub(crate) scope: Scope,
    pub(crate) slots: u32,
    /// The slot of `self`, if it is used.
    pub(crate) own: Option<u32>,
    pub(crate) blocks: Vec<Rc<Block>>,
    pub(crate) extends: bool,
}
