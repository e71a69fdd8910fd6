//! Tokens to a tree of bounded height, with names resolved.

use crate::{
    CompileError, Scope, Value,
    functions::{Function, type_named},
    lexer::{Kind, Token, tokens},
    tree::{Arithmetic, Comparison, Fold, FoldKind, Global, Node, Op},
};

/// Maximum height of a tree: evaluating and dropping it recurse.
const MAX_HEIGHT: usize = 60;

/// Parses an expression, and returns the variables that it names.
pub(super) fn parse(source: &str, scope: Scope<'_>) -> Result<(Node, Vec<Global>), CompileError> {
    let mut parser = Parser {
        tokens: tokens(source)?,
        at: 0,
        scope,
        globals: Vec::new(),
        locals: Vec::new(),
        nesting: 0,
    };
    let root = parser.expression()?;
    match parser.peek() {
        Kind::End => Ok((root, parser.globals)),
        _ => parser.error("Syntax error: unexpected text after the expression"),
    }
}

struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    scope: Scope<'a>,
    globals: Vec<Global>,
    locals: Vec<String>,
    nesting: usize,
}

type Parsed = Result<Node, CompileError>;

impl Parser<'_> {
    fn peek(&self) -> &Kind {
        self.tokens.get(self.at).map_or(&Kind::End, |token| &token.kind)
    }

    fn error<T>(&self, why: impl Into<String>) -> Result<T, CompileError> {
        let last = self.tokens.get(self.at).or(self.tokens.last());
        Err(CompileError::Syntax {
            column: last.map_or(1, |token| token.column),
            why: why.into(),
        })
    }

    fn node(&self, op: Op) -> Parsed {
        let height = 1 + op.children().iter().map(|child| child.height).max().unwrap_or(0);
        if height > MAX_HEIGHT {
            return Err(CompileError::TooLarge("nested too deeply"));
        }
        Ok(Node { op, height })
    }

    /// Takes one of these signs if it comes next.
    fn sign(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        let Kind::Sign(next) = self.peek() else {
            return None;
        };
        let found = signs.iter().find(|sign| *sign == next).copied()?;
        self.at += 1;
        Some(found)
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), CompileError> {
        match self.sign(&[sign]) {
            Some(_) => Ok(()),
            None => self.error(format!("Syntax error: expected {sign:?}")),
        }
    }

    fn name(&mut self) -> Result<String, CompileError> {
        let Kind::Name(name) = self.peek() else {
            let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
            return match (self.peek(), before.map(|token| &token.kind)) {
                (Kind::End, Some(Kind::Sign("."))) => {
                    self.error("Syntax error: no viable alternative at input '.'")
                }
                _ => self.error("Syntax error: expected a name"),
            };
        };
        let name = name.clone();
        self.at += 1;
        Ok(name)
    }

    fn expression(&mut self) -> Parsed {
        self.nesting += 1;
        if self.nesting > MAX_HEIGHT {
            return Err(CompileError::TooLarge("nested too deeply"));
        }
        let condition = self.or()?;
        let parsed = if self.sign(&["?"]).is_some() {
            let yes = self.or()?;
            self.expect(":")?;
            let no = self.expression()?;
            self.node(Op::Conditional(condition.into(), yes.into(), no.into()))
        } else {
            Ok(condition)
        };
        self.nesting -= 1;
        parsed
    }

    fn or(&mut self) -> Parsed {
        let mut left = self.and()?;
        while self.sign(&["||"]).is_some() {
            let right = self.and()?;
            left = self.node(Op::Or(left.into(), right.into()))?;
        }
        Ok(left)
    }

    fn and(&mut self) -> Parsed {
        let mut left = self.relation()?;
        while self.sign(&["&&"]).is_some() {
            let right = self.relation()?;
            left = self.node(Op::And(left.into(), right.into()))?;
        }
        Ok(left)
    }

    fn relation(&mut self) -> Parsed {
        let mut left = self.sum()?;
        loop {
            if matches!(self.peek(), Kind::Name(name) if name == "in") {
                self.at += 1;
                let right = self.sum()?;
                left = self.node(Op::In(left.into(), right.into()))?;
                continue;
            }
            let Some(sign) = self.sign(&["==", "!=", "<=", ">=", "<", ">"]) else {
                return Ok(left);
            };
            let comparison = match sign {
                "==" => Comparison::Equal,
                "!=" => Comparison::NotEqual,
                "<=" => Comparison::LessEqual,
                ">=" => Comparison::GreaterEqual,
                "<" => Comparison::Less,
                _ => Comparison::Greater,
            };
            let right = self.sum()?;
            left = self.node(Op::Compare(comparison, left.into(), right.into()))?;
        }
    }

    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        while let Some(sign) = self.sign(&["+", "-"]) {
            let right = self.product()?;
            let operation = match sign {
                "+" => Arithmetic::Add,
                _ => Arithmetic::Subtract,
            };
            left = self.node(Op::Arithmetic(operation, left.into(), right.into()))?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.unary()?;
        while let Some(sign) = self.sign(&["*", "/", "%"]) {
            let right = self.unary()?;
            let operation = match sign {
                "*" => Arithmetic::Multiply,
                "/" => Arithmetic::Divide,
                _ => Arithmetic::Remainder,
            };
            left = self.node(Op::Arithmetic(operation, left.into(), right.into()))?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed {
        let mut signs = Vec::new();
        while let Some(sign) = self.sign(&["!", "-"]) {
            signs.push(sign);
        }
        let mut node = self.member()?;
        for sign in signs.into_iter().rev() {
            node = self.node(match sign {
                "!" => Op::Not(node.into()),
                _ => Op::Negate(node.into()),
            })?;
        }
        Ok(node)
    }

    fn member(&mut self) -> Parsed {
        let mut node = self.primary()?;
        loop {
            if self.sign(&["["]).is_some() {
                let optional = self.sign(&["?"]).is_some();
                let index = self.expression()?;
                self.expect("]")?;
                node = self.node(Op::Index(node.into(), index.into(), optional))?;
            } else if self.sign(&["."]).is_some() {
                let optional = self.sign(&["?"]).is_some();
                let name = self.name()?;
                node = if !optional && self.sign(&["("]).is_some() {
                    self.method(node, &name)?
                } else {
                    self.node(Op::Field(node.into(), name, optional))?
                };
            } else {
                return Ok(node);
            }
        }
    }

    fn primary(&mut self) -> Parsed {
        let kind = self.peek().clone();
        match kind {
            Kind::Literal(value) => {
                self.at += 1;
                self.node(Op::Literal(value))
            }
            Kind::Name(name) => {
                self.at += 1;
                self.named(&name)
            }
            Kind::Sign("(") => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            Kind::Sign("[") => {
                self.at += 1;
                self.list()
            }
            Kind::Sign("{") => {
                self.at += 1;
                self.map()
            }
            _ => self.error("Syntax error: expected a value"),
        }
    }

    /// Parses a variable, a function, a function of a namespace, or a type.
    fn named(&mut self, name: &str) -> Parsed {
        if self.sign(&["("]).is_some() {
            if name == "has" {
                return self.has();
            }
            let args = self.arguments()?;
            return self.call(name, args, false);
        }
        if let Some(at) = self.locals.iter().rposition(|known| known == name) {
            return self.node(Op::Local(at));
        }
        if matches!(self.scope, Scope::Declared(names) if names.contains(&name)) {
            return self.global(name);
        }
        if let Some(function) = self.namespaced(name) {
            self.at += 3;
            let args = self.arguments()?;
            return self.call(&function, args, false);
        }
        match (self.scope, type_named(name)) {
            (Scope::Any, _) => self.global(name),
            (Scope::Declared(_), Some(name)) => self.node(Op::Literal(Value::Type(name))),
            (Scope::Declared(_), None) => {
                self.at -= 1;
                self.error(format!("undeclared reference to '{name}' (in container '')"))
            }
        }
    }

    fn global(&mut self, name: &str) -> Parsed {
        let known = self.globals.iter().position(|global| global.name == name);
        let at = known.unwrap_or_else(|| {
            self.globals.push(Global {
                name: name.to_owned(),
            });
            self.globals.len() - 1
        });
        self.node(Op::Global(at))
    }

    /// Returns the function of the namespace `name` that is called next, such as `sets.contains`.
    fn namespaced(&self, name: &str) -> Option<String> {
        let [dot, function, open] =
            [0, 1, 2].map(|ahead| self.tokens.get(self.at + ahead).map(|token| &token.kind));
        match (dot, function, open) {
            (Some(Kind::Sign(".")), Some(Kind::Name(function)), Some(Kind::Sign("("))) => {
                let function = format!("{name}.{function}");
                let is_called = matches!(self.scope, Scope::Declared(_)) || Function::is_known(&function);
                is_called.then_some(function)
            }
            _ => None,
        }
    }

    fn arguments(&mut self) -> Result<Vec<Node>, CompileError> {
        let mut args = Vec::new();
        if self.sign(&[")"]).is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.expression()?);
            if self.sign(&[","]).is_none() {
                self.expect(")")?;
                return Ok(args);
            }
        }
    }

    fn call(&mut self, name: &str, args: Vec<Node>, method: bool) -> Parsed {
        match Function::find(name, method, args.len()) {
            Some(function) => self.node(Op::Call(function, args)),
            None => self.error(format!(
                "there is no function {name:?} with {} arguments",
                args.len()
            )),
        }
    }

    fn has(&mut self) -> Parsed {
        let argument = self.expression()?;
        self.expect(")")?;
        match argument.op {
            Op::Field(of, name, false) => self.node(Op::Has(of, name)),
            _ => self.error("has() needs a field, as in has(a.b)"),
        }
    }

    fn method(&mut self, target: Node, name: &str) -> Parsed {
        let kind = match name {
            "all" => FoldKind::All,
            "exists" => FoldKind::Exists,
            "exists_one" | "existsOne" => FoldKind::ExistsOne,
            "filter" => FoldKind::Filter,
            "map" => FoldKind::Map,
            "optMap" | "optFlatMap" => {
                let (mut parts, end) = (self.bound(2)?, name == "optFlatMap");
                let result = parts.pop();
                return match result {
                    Some(result) => self.node(Op::OptionalMap(target.into(), result.into(), end)),
                    None => self.error("expected an expression"),
                };
            }
            _ => {
                let mut args = vec![target];
                args.extend(self.arguments()?);
                return self.call(name, args, true);
            }
        };
        let mut parts = self.bound(if kind == FoldKind::Map { 3 } else { 2 })?;
        let result = (kind == FoldKind::Map).then(|| parts.pop()).flatten();
        let predicate = parts.pop();
        let range = target;
        self.node(Op::Fold(Box::new(Fold {
            kind,
            range,
            predicate,
            result,
        })))
    }

    /// Parses the arguments of a macro, at most `most`: the name of its variable, and expressions with that variable.
    fn bound(&mut self, most: usize) -> Result<Vec<Node>, CompileError> {
        let name = self.name()?;
        self.locals.push(name);
        let mut parts = Vec::new();
        while parts.len() + 1 < most && self.sign(&[","]).is_some() {
            parts.push(self.expression()?);
        }
        self.locals.pop();
        if parts.is_empty() {
            return self.error("a macro needs a name and an expression");
        }
        self.expect(")")?;
        Ok(parts)
    }

    fn list(&mut self) -> Parsed {
        let mut items = Vec::new();
        while self.sign(&["]"]).is_none() {
            let optional = self.sign(&["?"]).is_some();
            items.push((optional, self.expression()?));
            if self.sign(&[","]).is_none() {
                self.expect("]")?;
                break;
            }
        }
        self.node(Op::List(items))
    }

    fn map(&mut self) -> Parsed {
        let mut entries = Vec::new();
        while self.sign(&["}"]).is_none() {
            let optional = self.sign(&["?"]).is_some();
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((optional, key, self.expression()?));
            if self.sign(&[","]).is_none() {
                self.expect("}")?;
                break;
            }
        }
        self.node(Op::Map(entries))
    }
}
