//! Resolves the names of a template to variables.
//!
//! A template, a block, a macro and a recursive loop are functions with slots. Scopes within a function (loops, `with`, `set`
//! blocks) have slots of their own there. As in the original, a name that a scope only reads is looked up in the context at the
//! start of the scope, and a name that it sets hides the outer variable from there on.

mod assign;
mod search;
mod table;

use std::{collections::HashSet, rc::Rc};

use crate::{
    ast::{Block, Expr, ExprKind, Piece, Scope, Stmt, StmtKind, Target, Template},
    lexer::ParseError,
    meter::Meter,
    value::Str,
};
use table::{Id, LoadKind, Table};

/// The known filters and tests.
pub(crate) trait Vocabulary {
    fn has_filter(&self, name: &str) -> bool;

    fn has_test(&self, name: &str) -> bool;
}

type Resolved<T> = Result<T, ParseError>;

/// The memory of a scope and of its tables in bytes, without its names.
const SCOPE: u64 = 1024;

/// The memory of a function in bytes, without its names.
const FUNCTION: u64 = 256;

/// The context of a statement.
#[derive(Debug, Clone, Copy)]
struct Frame {
    scope: usize,
    func: usize,
    toplevel: bool,
    in_loop: bool,
    in_block: bool,
    /// If set, a missing filter or test is an error only when it is used.
    soft: bool,
    /// True within a loop of this function.
    can_break: bool,
}

struct Resolver<'v> {
    vocabulary: &'v dyn Vocabulary,
    meter: &'v Meter,
    table: Table,
    blocks: Vec<Rc<Block>>,
    block_names: HashSet<Str>,
    extends: bool,
}

/// Resolves every name of a parsed template.
pub(crate) fn resolve(mut body: Vec<Stmt>, vocabulary: &dyn Vocabulary, meter: &Meter) -> Resolved<Template> {
    let mut resolver = Resolver {
        vocabulary,
        meter,
        table: Table::default(),
        blocks: Vec::new(),
        block_names: HashSet::new(),
        extends: false,
    };
    let func = resolver.function(None)?;
    let scope = resolver.open_scope(None, func, 0)?;
    let own = resolver
        .undeclared(&body, &["self"])?
        .contains(&"self")
        .then(|| resolver.table.declare(scope, &"self".into()).slot);
    resolver.analyze(scope, &body)?;
    let frame = Frame {
        scope,
        func,
        toplevel: true,
        in_loop: false,
        in_block: false,
        soft: false,
        can_break: false,
    };
    resolver.statements(&mut body, frame)?;
    Ok(Template {
        scope: resolver.scope(scope),
        slots: resolver.table.slots(func),
        body,
        own,
        blocks: resolver.blocks,
        extends: resolver.extends,
    })
}

impl Resolver<'_> {
    fn function(&mut self, outer: Option<usize>) -> Resolved<usize> {
        self.meter.alloc(FUNCTION)?;
        Ok(self.table.function(outer))
    }

    /// Opens a scope. `kind` separates the slots of scopes that are entered at the same time.
    fn open_scope(&mut self, parent: Option<usize>, func: usize, kind: u32) -> Resolved<usize> {
        self.meter.alloc(SCOPE)?;
        Ok(self.table.scope(parent, func, kind))
    }

    /// Returns the names that a body uses before it sets them.
    fn undeclared<'n>(&self, body: &[Stmt], names: &[&'n str]) -> Resolved<Vec<&'n str>> {
        let mut search = Undeclared {
            left: names.to_vec(),
            found: Vec::new(),
            visited: 0,
        };
        search.body(body);
        self.meter.step(search.visited)?;
        Ok(search.found)
    }

    /// Returns the slots that a scope loads when it is entered.
    fn scope(&self, scope: usize) -> Scope {
        let table = &self.table;
        let func = table.func_of(scope);
        let loads = table.loads(scope).map(|(id, load)| {
            let load = match load {
                LoadKind::Parameter => crate::ast::Load::Parameter,
                LoadKind::Resolve(name) => crate::ast::Load::Resolve(name.clone()),
                LoadKind::Alias(from) => crate::ast::Load::Alias(table.seen_from(func, *from)),
                LoadKind::Undefined => crate::ast::Load::Undefined,
            };
            (id.slot, load)
        });
        Scope {
            loads: loads.collect(),
        }
    }

    /// Records the names that the statements of a scope load and store.
    fn analyze(&mut self, scope: usize, body: &[Stmt]) -> Resolved<()> {
        body.iter().try_for_each(|stmt| self.analyze_one(scope, stmt))
    }

    fn analyze_one(&mut self, scope: usize, stmt: &Stmt) -> Resolved<()> {
        self.meter.step(1)?;
        match &stmt.kind {
            StmtKind::Output(pieces) => {
                for piece in pieces {
                    if let Piece::Expr(expr) = piece {
                        self.loads_of(scope, expr)?;
                    }
                }
            }
            StmtKind::If(branches, otherwise) => {
                if let Some((test, _)) = branches.first() {
                    self.loads_of(scope, test)?;
                }
                let before = self.table.stored(scope);
                for (index, (test, body)) in branches.iter().enumerate() {
                    if index > 0 {
                        self.loads_of(scope, test)?;
                    }
                    self.analyze(scope, body)?;
                }
                self.analyze(scope, otherwise)?;
                let stored = self.table.stored(scope).saturating_sub(before);
                self.meter
                    .step(self.lookup(scope).saturating_mul(stored as u64))?;
                self.table.branched(scope, before);
            }
            StmtKind::For(node) => self.loads_of(scope, &node.iter)?,
            StmtKind::Macro(_, name, _) => self.table.store(scope, &name.id),
            StmtKind::CallBlock(_, expr) | StmtKind::FilterBlock(expr, ..) | StmtKind::Extends(expr) => {
                self.loads_of(scope, expr)?;
            }
            StmtKind::With(pairs, ..) => {
                for (_, value) in pairs {
                    self.loads_of(scope, value)?;
                }
            }
            StmtKind::Set(target, value, _) => {
                self.loads_of(scope, value)?;
                self.stores_of(scope, target);
            }
            StmtKind::SetBlock(node) => self.stores_of(scope, &node.target),
            StmtKind::Include(node) => self.loads_of(scope, &node.template)?,
            StmtKind::Import(node) => {
                self.loads_of(scope, &node.template)?;
                self.table.store(scope, &node.target.id);
            }
            StmtKind::FromImport(node) => {
                self.loads_of(scope, &node.template)?;
                for (_, alias) in &node.names {
                    self.table.store(scope, &alias.id);
                }
            }
            StmtKind::Scoped(..)
            | StmtKind::AutoEscape(..)
            | StmtKind::Block(_)
            | StmtKind::Break
            | StmtKind::Continue => {}
        }
        Ok(())
    }

    /// Returns the steps of the lookup of a name, which goes through all outer scopes.
    fn lookup(&self, scope: usize) -> u64 {
        1 + self.table.nesting(scope) / 4
    }

    fn loads_of(&mut self, scope: usize, expr: &Expr) -> Resolved<()> {
        let lookup = self.lookup(scope);
        let table = &mut self.table;
        let nodes = walk(expr, &mut |node| {
            if let ExprKind::Name(name) = &node.kind {
                table.load(scope, &name.id);
            }
        });
        Ok(self.meter.step(nodes.saturating_mul(lookup))?)
    }

    fn stores_of(&mut self, scope: usize, target: &Target) {
        match target {
            Target::Name(name) => self.table.store(scope, &name.id),
            Target::Attr(space, _) => self.table.load(scope, &space.id),
            Target::Tuple(items) => {
                for item in items {
                    self.stores_of(scope, item);
                }
            }
        }
    }

    fn declare_target(&mut self, scope: usize, target: &Target) {
        match target {
            Target::Name(name) => {
                self.table.declare(scope, &name.id);
            }
            Target::Attr(space, _) => self.table.load(scope, &space.id),
            Target::Tuple(items) => {
                for item in items {
                    self.declare_target(scope, item);
                }
            }
        }
    }
}

/// Visits an expression and its subexpressions, and returns their number.
fn walk<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) -> u64 {
    let (mut left, mut visited) = (vec![expr], 0);
    while let Some(node) = left.pop() {
        visited += 1;
        visit(node);
        let mut children = children(node);
        children.reverse();
        left.extend(children);
    }
    visited
}

fn children(node: &Expr) -> Vec<&Expr> {
    match &node.kind {
        ExprKind::Name(_) | ExprKind::Const(_) => Vec::new(),
        ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::Concat(items) => items.iter().collect(),
        ExprKind::Dict(items) => items.iter().flat_map(|(key, value)| [key, value]).collect(),
        ExprKind::Cond(cond) => [&cond.test, &cond.then]
            .into_iter()
            .chain(&cond.otherwise)
            .collect(),
        ExprKind::Filter(filter) => filter.target.iter().chain(filter.args.each()).collect(),
        ExprKind::Test(test) => std::iter::once(&test.target).chain(test.args.each()).collect(),
        ExprKind::Call(call) => std::iter::once(&call.func).chain(call.args.each()).collect(),
        ExprKind::Slice(parts) => parts.iter().flatten().collect(),
        ExprKind::Compare(first, rest) => std::iter::once(&**first)
            .chain(rest.iter().map(|(_, operand)| operand))
            .collect(),
        ExprKind::Item(pair) | ExprKind::And(pair) | ExprKind::Or(pair) | ExprKind::Binary(_, pair) => {
            vec![&pair.0, &pair.1]
        }
        ExprKind::Attr(inner, _)
        | ExprKind::Not(inner)
        | ExprKind::Negative(inner)
        | ExprKind::Positive(inner) => vec![inner],
    }
}

struct Undeclared<'n> {
    left: Vec<&'n str>,
    found: Vec<&'n str>,
    visited: u64,
}

impl Undeclared<'_> {
    fn load(&mut self, expr: &Expr) {
        self.visited += walk(expr, &mut |node| {
            if let ExprKind::Name(name) = &node.kind {
                let known = self.left.iter().find(|left| ***left == *name.id);
                if let Some(known) = known.copied().filter(|known| !self.found.contains(known)) {
                    self.found.push(known);
                }
            }
        });
    }

    fn store(&mut self, name: &Str) {
        self.left.retain(|left| **left != **name);
    }

    fn target(&mut self, target: &Target) {
        match target {
            Target::Name(name) => self.store(&name.id),
            Target::Attr(..) => {}
            Target::Tuple(items) => items.iter().for_each(|item| self.target(item)),
        }
    }

    fn body(&mut self, body: &[Stmt]) {
        body.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        self.visited += 1;
        match &stmt.kind {
            StmtKind::Output(pieces) => {
                for piece in pieces {
                    if let Piece::Expr(expr) = piece {
                        self.load(expr);
                    }
                }
            }
            StmtKind::If(branches, otherwise) => {
                for (test, body) in branches {
                    self.load(test);
                    self.body(body);
                }
                self.body(otherwise);
            }
            StmtKind::For(node) => {
                self.target(&node.target);
                self.load(&node.iter);
                self.body(&node.body);
                self.body(&node.otherwise);
                node.test.iter().for_each(|test| self.load(test));
            }
            StmtKind::Macro(node, ..) | StmtKind::CallBlock(node, _) => {
                if let StmtKind::CallBlock(_, call) = &stmt.kind {
                    self.load(call);
                }
                node.params.iter().for_each(|param| self.store(&param.id));
                node.defaults.iter().for_each(|default| self.load(default));
                self.body(&node.body);
            }
            StmtKind::FilterBlock(expr, body, _) => {
                self.body(body);
                self.load(expr);
            }
            StmtKind::AutoEscape(expr, body) => {
                self.load(expr);
                self.body(body);
            }
            StmtKind::With(pairs, body, _) => {
                for (target, value) in pairs {
                    self.target(target);
                    self.load(value);
                }
                self.body(body);
            }
            StmtKind::Set(target, value, _) => {
                self.target(target);
                self.load(value);
            }
            StmtKind::SetBlock(node) => {
                self.target(&node.target);
                node.filter.iter().for_each(|filter| self.load(filter));
                self.body(&node.body);
            }
            StmtKind::Scoped(body, _) => self.body(body),
            StmtKind::Extends(expr) => self.load(expr),
            StmtKind::Include(node) => self.load(&node.template),
            StmtKind::Import(node) => self.load(&node.template),
            StmtKind::FromImport(node) => self.load(&node.template),
            StmtKind::Block(_) | StmtKind::Break | StmtKind::Continue => {}
        }
    }
}

fn is_parameter(table: &Table, scope: usize, id: Id) -> bool {
    matches!(table.find_load(scope, id), Some(LoadKind::Parameter))
}
