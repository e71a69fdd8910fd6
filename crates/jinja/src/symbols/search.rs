//! Searches in bodies and expressions.

use crate::ast::{Expr, ExprKind, Name, Stmt, StmtKind, Target};

pub(super) fn names_loop(target: &Target) -> bool {
    let mut names = Vec::new();
    target_names(target, &mut names);
    names.iter().any(|name| &*name.id == "loop")
}

/// Returns true if the body of a loop sets `loop` anywhere.
pub(super) fn sets_loop(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match &stmt.kind {
        StmtKind::Set(target, ..) => names_loop(target),
        StmtKind::SetBlock(node) => names_loop(&node.target) || sets_loop(&node.body),
        StmtKind::If(branches, otherwise) => {
            branches.iter().any(|(_, body)| sets_loop(body)) || sets_loop(otherwise)
        }
        StmtKind::With(pairs, body, _) => {
            pairs.iter().any(|(target, _)| names_loop(target)) || sets_loop(body)
        }
        _ => false,
    })
}

pub(super) fn scoped_block(body: &[Stmt]) -> bool {
    body.iter().any(|stmt| match &stmt.kind {
        StmtKind::Block(node) => node.scoped || scoped_block(&node.body),
        StmtKind::If(branches, otherwise) => {
            branches.iter().any(|(_, body)| scoped_block(body)) || scoped_block(otherwise)
        }
        StmtKind::With(_, body, _) | StmtKind::FilterBlock(_, body, _) | StmtKind::Scoped(body, _) => {
            scoped_block(body)
        }
        StmtKind::For(node) => scoped_block(&node.body),
        _ => false,
    })
}

pub(super) fn children_mut(node: &mut Expr) -> Vec<&mut Expr> {
    match &mut node.kind {
        ExprKind::Name(_) | ExprKind::Const(_) => Vec::new(),
        ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::Concat(items) => {
            items.iter_mut().collect()
        }
        ExprKind::Dict(items) => items.iter_mut().flat_map(|(key, value)| [key, value]).collect(),
        ExprKind::Cond(cond) => {
            let cond = &mut **cond;
            [&mut cond.test, &mut cond.then]
                .into_iter()
                .chain(&mut cond.otherwise)
                .collect()
        }
        ExprKind::Filter(filter) => {
            let filter = &mut **filter;
            filter.target.iter_mut().chain(filter.args.each_mut()).collect()
        }
        ExprKind::Test(test) => {
            let test = &mut **test;
            std::iter::once(&mut test.target)
                .chain(test.args.each_mut())
                .collect()
        }
        ExprKind::Call(call) => {
            let call = &mut **call;
            std::iter::once(&mut call.func)
                .chain(call.args.each_mut())
                .collect()
        }
        ExprKind::Slice(parts) => parts.iter_mut().flatten().collect(),
        ExprKind::Compare(first, rest) => std::iter::once(&mut **first)
            .chain(rest.iter_mut().map(|(_, operand)| operand))
            .collect(),
        ExprKind::Item(pair) | ExprKind::And(pair) | ExprKind::Or(pair) | ExprKind::Binary(_, pair) => {
            let pair = &mut **pair;
            vec![&mut pair.0, &mut pair.1]
        }
        ExprKind::Attr(inner, _)
        | ExprKind::Not(inner)
        | ExprKind::Negative(inner)
        | ExprKind::Positive(inner) => vec![inner],
    }
}

pub(super) fn target_names(target: &Target, names: &mut Vec<Name>) {
    match target {
        Target::Name(name) => names.push(name.clone()),
        Target::Attr(..) => {}
        Target::Tuple(items) => items.iter().for_each(|item| target_names(item, names)),
    }
}
