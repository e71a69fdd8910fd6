//! Expressions, from the loosest operator to the tightest.

use super::{Parsed, Parser, is_word, name, quoted};
use crate::{
    ast::{Call, CallArgs, Cond, Expr, ExprKind, Filter, Test},
    lexer::TokenKind,
    value::{
        Str, Value, number,
        operator::{Comparison, Operator},
    },
};

fn expr(line: u32, kind: ExprKind) -> Expr {
    Expr { line, kind }
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.deeper(Self::conditional)
    }

    /// Parses an expression without `if`, which follows the list of a loop.
    pub(super) fn unconditional(&mut self) -> Parsed<Expr> {
        self.deeper(Self::or)
    }

    fn conditional(&mut self) -> Parsed<Expr> {
        let line = self.line();
        let mut then = self.or()?;
        let mut length = 0;
        while self.skip_word("if") {
            length += 1;
            self.check_chain(length)?;
            let test = self.or()?;
            let otherwise = if self.skip_word("else") {
                Some(self.deeper(Self::conditional)?)
            } else {
                None
            };
            then = expr(
                line,
                ExprKind::Cond(Box::new(Cond {
                    test,
                    then,
                    otherwise,
                })),
            );
        }
        Ok(then)
    }

    fn or(&mut self) -> Parsed<Expr> {
        let mut line = self.line();
        let mut left = self.and()?;
        let mut length = 0;
        while self.skip_word("or") {
            length += 1;
            self.check_chain(length)?;
            let right = self.and()?;
            left = expr(line, ExprKind::Or(Box::new((left, right))));
            line = self.line();
        }
        Ok(left)
    }

    fn and(&mut self) -> Parsed<Expr> {
        let mut line = self.line();
        let mut left = self.not()?;
        let mut length = 0;
        while self.skip_word("and") {
            length += 1;
            self.check_chain(length)?;
            let right = self.not()?;
            left = expr(line, ExprKind::And(Box::new((left, right))));
            line = self.line();
        }
        Ok(left)
    }

    fn not(&mut self) -> Parsed<Expr> {
        if self.is_word("not") {
            let line = self.line();
            self.next();
            let inner = self.deeper(Self::not)?;
            return Ok(expr(line, ExprKind::Not(Box::new(inner))));
        }
        self.compare()
    }

    fn compare(&mut self) -> Parsed<Expr> {
        let line = self.line();
        let first = self.sum()?;
        let mut rest = Vec::new();
        loop {
            self.check_chain(rest.len())?;
            let op = match self.current() {
                TokenKind::Op("==") => Comparison::Eq,
                TokenKind::Op("!=") => Comparison::Ne,
                TokenKind::Op("<") => Comparison::Lt,
                TokenKind::Op("<=") => Comparison::Le,
                TokenKind::Op(">") => Comparison::Gt,
                TokenKind::Op(">=") => Comparison::Ge,
                word if is_word(word, "in") => Comparison::In,
                word if is_word(word, "not") && is_word(self.ahead(), "in") => {
                    self.next();
                    Comparison::NotIn
                }
                _ => break,
            };
            self.next();
            rest.push((op, self.sum()?));
        }
        Ok(if rest.is_empty() {
            first
        } else {
            expr(line, ExprKind::Compare(Box::new(first), rest))
        })
    }

    fn binary(
        &mut self,
        operand: fn(&mut Self) -> Parsed<Expr>,
        operator: fn(&TokenKind) -> Option<Operator>,
    ) -> Parsed<Expr> {
        let mut line = self.line();
        let mut left = operand(self)?;
        let mut length = 0;
        while let Some(op) = operator(self.current()) {
            length += 1;
            self.check_chain(length)?;
            self.next();
            let right = operand(self)?;
            left = expr(line, ExprKind::Binary(op, Box::new((left, right))));
            line = self.line();
        }
        Ok(left)
    }

    fn sum(&mut self) -> Parsed<Expr> {
        self.binary(Self::concat, |kind| match kind {
            TokenKind::Op("+") => Some(Operator::Add),
            TokenKind::Op("-") => Some(Operator::Sub),
            _ => None,
        })
    }

    fn concat(&mut self) -> Parsed<Expr> {
        let line = self.line();
        let first = self.product()?;
        if !self.is_op("~") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.skip_op("~") {
            self.check_chain(parts.len())?;
            parts.push(self.product()?);
        }
        Ok(expr(line, ExprKind::Concat(parts)))
    }

    fn product(&mut self) -> Parsed<Expr> {
        self.binary(Self::power, |kind| match kind {
            TokenKind::Op("*") => Some(Operator::Mul),
            TokenKind::Op("/") => Some(Operator::Div),
            TokenKind::Op("//") => Some(Operator::FloorDiv),
            TokenKind::Op("%") => Some(Operator::Mod),
            _ => None,
        })
    }

    fn power(&mut self) -> Parsed<Expr> {
        self.binary(
            |parser| parser.unary(true),
            |kind| match kind {
                TokenKind::Op("**") => Some(Operator::Pow),
                _ => None,
            },
        )
    }

    fn unary(&mut self, with_filter: bool) -> Parsed<Expr> {
        let line = self.line();
        let node = if self.skip_op("-") {
            let inner = self.deeper(|parser| parser.unary(false))?;
            expr(line, ExprKind::Negative(Box::new(inner)))
        } else if self.skip_op("+") {
            let inner = self.deeper(|parser| parser.unary(false))?;
            expr(line, ExprKind::Positive(Box::new(inner)))
        } else {
            self.primary()?
        };
        let node = self.postfix(node)?;
        if with_filter { self.filters(node) } else { Ok(node) }
    }

    pub(super) fn primary(&mut self) -> Parsed<Expr> {
        let line = self.line();
        match self.current().clone() {
            TokenKind::Name(word) => {
                self.next();
                let constant = match &*word {
                    "true" | "True" => Some(Value::Bool(true)),
                    "false" | "False" => Some(Value::Bool(false)),
                    "none" | "None" => Some(Value::None),
                    _ => None,
                };
                Ok(expr(
                    line,
                    match constant {
                        Some(constant) => ExprKind::Const(constant),
                        None => ExprKind::Name(name(word)),
                    },
                ))
            }
            TokenKind::String(_) => {
                let mut text = String::new();
                while let TokenKind::String(part) = self.current() {
                    text.push_str(part);
                    self.next();
                }
                Ok(expr(line, ExprKind::Const(Value::Str(text.into()))))
            }
            TokenKind::Integer(number) => {
                self.next();
                Ok(expr(line, ExprKind::Const(number::from_big(number))))
            }
            TokenKind::Float(number) => {
                self.next();
                Ok(expr(line, ExprKind::Const(Value::Float(number))))
            }
            TokenKind::Op("(") => {
                self.next();
                let inner = self.tuple(true, true, &[])?;
                self.expect_op(")")?;
                Ok(inner)
            }
            TokenKind::Op("[") => self.list(),
            TokenKind::Op("{") => self.dict(),
            other => self.fail(format!("unexpected {}", quoted(&other.describe()))),
        }
    }

    /// Parses an expression, or several between commas. `explicit` allows none.
    pub(super) fn tuple(&mut self, conditional: bool, explicit: bool, ends: &[&str]) -> Parsed<Expr> {
        let line = self.line();
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            if !items.is_empty() {
                self.expect_op(",")?;
            }
            if self.is_tuple_end(ends) {
                break;
            }
            items.push(if conditional {
                self.expression()?
            } else {
                self.unconditional()?
            });
            if !self.is_op(",") {
                break;
            }
            is_tuple = true;
        }
        match items.pop() {
            Some(only) if !is_tuple => Ok(only),
            None if !explicit => self.fail(format!(
                "Expected an expression, got {}",
                quoted(&self.current().describe())
            )),
            last => {
                items.extend(last);
                Ok(expr(line, ExprKind::Tuple(items)))
            }
        }
    }

    pub(super) fn is_tuple_end(&self, ends: &[&str]) -> bool {
        matches!(
            self.current(),
            TokenKind::VariableEnd | TokenKind::BlockEnd | TokenKind::Op(")")
        ) || ends.iter().any(|word| self.is_word(word))
    }

    fn list(&mut self) -> Parsed<Expr> {
        let line = self.line();
        self.expect_op("[")?;
        let mut items = Vec::new();
        while !self.is_op("]") {
            if !items.is_empty() {
                self.expect_op(",")?;
            }
            if self.is_op("]") {
                break;
            }
            items.push(self.expression()?);
        }
        self.expect_op("]")?;
        Ok(expr(line, ExprKind::List(items)))
    }

    fn dict(&mut self) -> Parsed<Expr> {
        let line = self.line();
        self.expect_op("{")?;
        let mut items = Vec::new();
        while !self.is_op("}") {
            if !items.is_empty() {
                self.expect_op(",")?;
            }
            if self.is_op("}") {
                break;
            }
            let key = self.expression()?;
            self.expect_op(":")?;
            items.push((key, self.expression()?));
        }
        self.expect_op("}")?;
        Ok(expr(line, ExprKind::Dict(items)))
    }

    pub(super) fn postfix(&mut self, mut node: Expr) -> Parsed<Expr> {
        let mut length = 0;
        loop {
            length += 1;
            self.check_chain(length * 10)?;
            node = match self.current() {
                TokenKind::Op(".") => self.dotted(node)?,
                TokenKind::Op("[") => self.subscript(node)?,
                TokenKind::Op("(") => self.call(node)?,
                _ => return Ok(node),
            };
        }
    }

    fn filters(&mut self, mut node: Expr) -> Parsed<Expr> {
        let mut length = 0;
        loop {
            length += 1;
            self.check_chain(length * 10)?;
            node = match self.current() {
                TokenKind::Op("|") => {
                    self.next();
                    self.filter(Some(node))?
                }
                TokenKind::Op("(") => self.call(node)?,
                word if is_word(word, "is") => self.test(node)?,
                _ => return Ok(node),
            };
        }
    }

    fn dotted(&mut self, node: Expr) -> Parsed<Expr> {
        let line = self.line();
        self.next();
        let here = self.line();
        match self.next() {
            TokenKind::Name(attribute) => Ok(expr(line, ExprKind::Attr(Box::new(node), attribute))),
            TokenKind::Integer(number) => {
                let index = expr(here, ExprKind::Const(number::from_big(number)));
                Ok(expr(line, ExprKind::Item(Box::new((node, index)))))
            }
            _ => self.fail_at(here, "expected name or number"),
        }
    }

    fn subscript(&mut self, node: Expr) -> Parsed<Expr> {
        let line = self.line();
        self.next();
        let mut items = Vec::new();
        let mut commas = 0;
        while !self.is_op("]") {
            if !items.is_empty() {
                self.expect_op(",")?;
                commas += 1;
            }
            items.push(self.deeper(Self::subscribed)?);
        }
        self.expect_op("]")?;
        let index = match items.pop() {
            Some(only) if commas == 0 => only,
            last => {
                items.extend(last);
                expr(line, ExprKind::Tuple(items))
            }
        };
        Ok(expr(line, ExprKind::Item(Box::new((node, index)))))
    }

    fn subscribed(&mut self) -> Parsed<Expr> {
        let line = self.line();
        let ends = |parser: &Self| matches!(parser.current(), TokenKind::Op("]" | ","));
        let first = if self.is_op(":") {
            None
        } else {
            let index = self.expression()?;
            if !self.is_op(":") {
                return Ok(index);
            }
            Some(index)
        };
        self.expect_op(":")?;
        let second = if self.is_op(":") || ends(self) {
            None
        } else {
            Some(self.expression()?)
        };
        let third = if self.skip_op(":") && !ends(self) {
            Some(self.expression()?)
        } else {
            None
        };
        Ok(expr(line, ExprKind::Slice(Box::new([first, second, third]))))
    }

    fn call(&mut self, func: Expr) -> Parsed<Expr> {
        let line = self.line();
        let args = self.call_args()?;
        Ok(expr(
            line,
            ExprKind::Call(Box::new(Call {
                func,
                args,
                in_loop: false,
                in_block: false,
            })),
        ))
    }

    fn dotted_name(&mut self) -> Parsed<Str> {
        let mut text = self.expect_name()?.to_string();
        while self.skip_op(".") {
            text.push('.');
            text.push_str(&self.expect_name()?);
        }
        Ok(text.into())
    }

    /// Parses the filters after a bar.
    pub(super) fn filter(&mut self, target: Option<Expr>) -> Parsed<Expr> {
        let line = self.line();
        let name = self.dotted_name()?;
        let args = if self.is_op("(") {
            self.call_args()?
        } else {
            CallArgs::default()
        };
        Ok(expr(
            line,
            ExprKind::Filter(Box::new(Filter { target, name, args })),
        ))
    }

    fn test(&mut self, target: Expr) -> Parsed<Expr> {
        let line = self.line();
        self.next();
        let negated = self.skip_word("not");
        let name = self.dotted_name()?;
        let starts = matches!(
            self.current(),
            TokenKind::Name(_)
                | TokenKind::String(_)
                | TokenKind::Integer(_)
                | TokenKind::Float(_)
                | TokenKind::Op("[" | "{")
        );
        let word = ["else", "or", "and"].iter().any(|word| self.is_word(word));
        let args = if self.is_op("(") {
            self.call_args()?
        } else if starts && !word {
            if self.is_word("is") {
                return self.fail("You cannot chain multiple tests with is");
            }
            let only = self.primary()?;
            let only = self.postfix(only)?;
            CallArgs {
                args: vec![only],
                ..CallArgs::default()
            }
        } else {
            CallArgs::default()
        };
        let test = expr(line, ExprKind::Test(Box::new(Test { target, name, args })));
        Ok(if negated {
            expr(line, ExprKind::Not(Box::new(test)))
        } else {
            test
        })
    }
}
