//! Puts calls of counted filters in the place of operators, before the engine compiles a template.
//!
//! Nothing is inserted but text within a line, so lines keep their numbers. A template that can't be parsed stays as
//! it is: the engine then says what is wrong with it.

mod places;

use std::borrow::Cow;

use minijinja::{
    machinery::{
        Span, Token,
        ast::{BinOpKind, CallArg, Expr, Stmt},
        parse,
    },
    syntax::SyntaxConfig,
};

use crate::{
    comparing::{EQ, GE, GT, IN, KEY, LE, LT, NE, WHOLE},
    operators::{ADD, JOIN, RAW, SLICED, TIMES},
};

/// Text of a template up to this length isn't counted where it is captured; the steps bound it.
const SMALL: usize = 64;

/// The text of a template as it is compiled. What is `included` can be so where its output becomes a value.
pub(crate) fn guarded(text: &str, included: bool) -> Cow<'_, str> {
    let marks = ['~', '+', '*', ':', '[', '=', '<', '>'];
    if !included
        && !text.contains(marks)
        && !text.contains("{%")
        && !text.contains("in")
        && !text.contains("changed")
    {
        return Cow::Borrowed(text);
    }
    let Ok(tree) = parse(text, "", SyntaxConfig::default()) else {
        return Cow::Borrowed(text);
    };
    let mut guard = Guard {
        text,
        tokens: None,
        edits: Vec::new(),
        captured: included,
    };
    guard.statement(&tree);
    if guard.edits.is_empty() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(guard.apply())
    }
}

/// The filter that stands for an operator.
fn filter_of(operator: BinOpKind) -> Option<&'static str> {
    match operator {
        BinOpKind::Concat => Some(JOIN),
        BinOpKind::Add => Some(ADD),
        BinOpKind::Mul => Some(TIMES),
        BinOpKind::Eq => Some(EQ),
        BinOpKind::Ne => Some(NE),
        BinOpKind::Lt => Some(LT),
        BinOpKind::Lte => Some(LE),
        BinOpKind::Gt => Some(GT),
        BinOpKind::Gte => Some(GE),
        BinOpKind::In => Some(IN),
        _ => None,
    }
}

fn is_comparison(operator: BinOpKind) -> bool {
    use BinOpKind::{Eq, Gt, Gte, In, Lt, Lte, Ne};
    matches!(operator, Eq | Ne | Lt | Lte | Gt | Gte | In)
}

/// Replaces `length` bytes at `at`.
struct Edit {
    at: usize,
    /// Whether it ends what comes before.
    closing: bool,
    length: usize,
    text: String,
}

struct Guard<'a> {
    text: &'a str,
    tokens: Option<Vec<(Token<'a>, Span)>>,
    edits: Vec<Edit>,
    /// Whether the statements are ones whose output becomes a value.
    captured: bool,
}

impl<'a> Guard<'a> {
    fn apply(mut self) -> String {
        // The outer of two that begin at the same place comes first, as does what ends at the place.
        self.edits.sort_by_key(|edit| (edit.at, !edit.closing));
        let mut out = String::with_capacity(self.text.len() + self.edits.len() * 16);
        let mut from = 0;
        for edit in self.edits {
            out.push_str(self.text.get(from..edit.at).unwrap_or_default());
            out.push_str(&edit.text);
            from = edit.at + edit.length;
        }
        out.push_str(self.text.get(from..).unwrap_or_default());
        out
    }

    fn insert(&mut self, at: usize, text: impl Into<String>) {
        let text = text.into();
        self.edits.push(Edit {
            at,
            closing: false,
            length: 0,
            text,
        });
    }

    /// Inserts what ends at a place.
    fn close(&mut self, at: usize, text: impl Into<String>) {
        let text = text.into();
        self.edits.push(Edit {
            at,
            closing: true,
            length: 0,
            text,
        });
    }

    fn statements(&mut self, statements: &[Stmt<'a>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn captured(&mut self, statements: &[Stmt<'a>]) {
        let before = std::mem::replace(&mut self.captured, true);
        self.statements(statements);
        self.captured = before;
    }

    fn statement(&mut self, statement: &Stmt<'a>) {
        match statement {
            Stmt::Template(node) => self.statements(&node.children),
            Stmt::EmitExpr(node) => self.expression(&node.expr),
            Stmt::EmitRaw(node) => self.raw(node.raw),
            Stmt::ForLoop(node) => {
                self.expression(&node.target);
                self.expression(&node.iter);
                self.maybe(node.filter_expr.as_ref());
                // A recursive loop gives its output as a value.
                let before = self.captured;
                self.captured |= node.recursive;
                self.statements(&node.body);
                self.captured = before;
                self.statements(&node.else_body);
            }
            Stmt::IfCond(node) => {
                self.expression(&node.expr);
                self.statements(&node.true_body);
                self.statements(&node.false_body);
            }
            Stmt::WithBlock(node) => {
                for (target, value) in &node.assignments {
                    self.expression(target);
                    self.expression(value);
                }
                self.statements(&node.body);
            }
            Stmt::Set(node) => {
                let place = self.assigned(&node.target, &node.expr);
                if let Some((start, ..)) = &place {
                    self.insert(*start, "(");
                }
                self.expression(&node.expr);
                if let Some((_, end, check)) = place {
                    self.close(end, format!("){check}"));
                }
            }
            Stmt::SetBlock(node) => {
                self.maybe(node.filter.as_ref());
                if node.filter.is_some() {
                    self.filtered(&node.target);
                }
                self.captured(&node.body);
            }
            Stmt::AutoEscape(node) => {
                self.expression(&node.enabled);
                self.statements(&node.body);
            }
            Stmt::FilterBlock(node) => {
                self.expression(&node.filter);
                self.captured(&node.body);
            }
            Stmt::Block(node) => self.captured(&node.body),
            Stmt::Import(node) => {
                self.expression(&node.expr);
                self.expression(&node.name);
            }
            Stmt::FromImport(node) => self.expression(&node.expr),
            Stmt::Extends(node) => self.expression(&node.name),
            Stmt::Include(node) => self.expression(&node.name),
            Stmt::Macro(node) => {
                self.expressions(&node.defaults);
                self.captured(&node.body);
            }
            Stmt::CallBlock(node) => {
                self.expression(&node.call.expr);
                self.arguments(&node.call.args);
                self.expressions(&node.macro_decl.defaults);
                self.captured(&node.macro_decl.body);
            }
            Stmt::Do(node) => {
                self.expression(&node.call.expr);
                self.arguments(&node.call.args);
            }
            Stmt::Continue(_) | Stmt::Break(_) => {}
        }
    }

    fn expressions(&mut self, expressions: &[Expr<'a>]) {
        for expression in expressions {
            self.expression(expression);
        }
    }

    fn maybe(&mut self, expression: Option<&Expr<'a>>) {
        if let Some(expression) = expression {
            self.expression(expression);
        }
    }

    fn arguments(&mut self, arguments: &[CallArg<'a>]) {
        for argument in arguments {
            match argument {
                CallArg::Pos(value)
                | CallArg::Kwarg(_, value)
                | CallArg::PosSplat(value)
                | CallArg::KwargSplat(value) => self.expression(value),
            }
        }
    }

    fn expression(&mut self, expression: &Expr<'a>) {
        match expression {
            Expr::Var(_) | Expr::Const(_) => {}
            Expr::Slice(node) => {
                self.expression(&node.expr);
                self.maybe(node.start.as_ref());
                self.maybe(node.stop.as_ref());
                self.maybe(node.step.as_ref());
                self.close(node.span().end_offset as usize, format!(".{SLICED}()"));
            }
            Expr::UnaryOp(node) => self.expression(&node.expr),
            Expr::BinOp(node) => {
                let filter = filter_of(node.op);
                let mut span = node.span();
                if is_comparison(node.op) {
                    span = self.compared(span);
                }
                let replaced = filter.is_some_and(|filter| {
                    let chained = matches!(&node.left, Expr::BinOp(left) if filter_of(left.op).is_some()
                        && !is_comparison(left.op) && left.span().start_offset == span.start_offset);
                    self.operator(span, filter, chained)
                });
                self.expression(&node.left);
                self.expression(&node.right);
                if replaced {
                    self.close(node.span().end_offset as usize, ")");
                }
            }
            Expr::Compare(node) => {
                let span = self.compared(node.span());
                let parts = self.operands(span);
                self.wrap(&parts);
                self.expression(&node.expr);
                for operation in &node.ops {
                    self.expression(&operation.expr);
                }
                self.wrap_end(&parts, WHOLE);
            }
            Expr::IfExpr(node) => {
                self.expression(&node.test_expr);
                self.expression(&node.true_expr);
                self.maybe(node.false_expr.as_ref());
            }
            Expr::Filter(node) => {
                self.maybe(node.expr.as_ref());
                self.arguments(&node.args);
            }
            Expr::Test(node) => {
                self.expression(&node.expr);
                self.arguments(&node.args);
            }
            Expr::GetAttr(node) => self.expression(&node.expr),
            Expr::GetItem(node) => {
                let end = node.span().end_offset as usize;
                let parts = match &node.subscript_expr {
                    Expr::Const(_) => Vec::new(),
                    _ => self.bracketed(end, false),
                };
                self.wrap(&parts);
                self.expression(&node.expr);
                self.expression(&node.subscript_expr);
                self.wrap_end(&parts, WHOLE);
            }
            Expr::Call(node) => {
                // The method of a loop compares what it gets with what it got before.
                let changed = matches!(&node.expr, Expr::GetAttr(method) if method.name == "changed");
                let parts = match changed {
                    true => self.bracketed(node.span().end_offset as usize, false),
                    false => Vec::new(),
                };
                self.wrap(&parts);
                self.expression(&node.expr);
                self.arguments(&node.args);
                self.wrap_end(&parts, WHOLE);
            }
            Expr::List(node) => self.expressions(&node.items),
            Expr::Tuple(node) => self.expressions(&node.items),
            Expr::Map(node) => {
                let plain = node.keys.iter().all(|key| matches!(key, Expr::Const(_)));
                let parts = match plain {
                    true => Vec::new(),
                    false => self.bracketed(node.span().end_offset as usize, true),
                };
                self.wrap(&parts);
                self.expressions(&node.keys);
                self.expressions(&node.values);
                self.wrap_end(&parts, KEY);
            }
        }
    }

    /// Turns `left operator right` into `(left)|filter(right)`; the caller closes it. What is chained to such a filter
    /// needs no parentheses, and must have none: the engine bounds how deep they nest.
    fn operator(&mut self, span: Span, filter: &'static str, chained: bool) -> bool {
        let Some(place) = self.operator_place(span, filter) else {
            return false;
        };
        if !chained {
            self.insert(span.start_offset as usize, "(");
        }
        let close = if chained { "" } else { ")" };
        self.edits.push(Edit {
            at: place.at,
            closing: false,
            length: place.length,
            text: format!("{close}|{}(", place.filter),
        });
        true
    }

    /// Counts text where it becomes a part of a value.
    fn raw(&mut self, raw: &'a str) {
        if !self.captured || raw.len() <= SMALL {
            return;
        }
        let start = (raw.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let before = self.text.get(..start).unwrap_or_default();
        let count = format!("''|{RAW}({})", raw.len());
        // Nothing can be inserted into a raw block, but before its tag.
        let tag = before
            .rfind("{%")
            .map(|at| (at, before.get(at + 2..).unwrap_or_default()));
        match tag {
            Some((at, tag)) if is_raw_tag(tag) => {
                let trim = if tag.starts_with('-') { "-" } else { "" };
                self.insert(at, format!("{{{{{trim} {count} }}}}"));
            }
            // A brace at the end would become a part of the tag.
            _ => {
                let end = raw.trim_end_matches('{').len();
                self.insert(start + end, format!("{{{{ {count} }}}}"));
            }
        }
    }
}

/// Whether a tag, from behind its opening up to its text, begins a raw block.
fn is_raw_tag(tag: &str) -> bool {
    let Some((tag, space)) = tag.split_once("%}") else {
        return false;
    };
    let name = tag.trim_matches(['-', '+']).trim();
    name == "raw" && space.trim().is_empty()
}
