//! Tokens to a tree of bounded height, with names resolved.

use super::{
    CompileError, Value,
    functions::Function,
    lexer::{Kind, Token, tokens},
};

/// Maximum height of a tree: evaluation and the end of its life recurse.
const MAX_HEIGHT: usize = 60;

/// A part of an expression.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) op: Op,
    height: usize,
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
    /// A variable, by its place: the given ones first, then those of macros from the outermost one.
    Variable(usize),
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
    /// The result for the value of an optional, which is the innermost variable; with true, the result is an optional itself.
    OptionalMap(Box<Node>, Box<Node>, bool),
}

impl Op {
    fn children(&self) -> Vec<&Node> {
        match self {
            Self::Literal(_) | Self::Variable(_) => Vec::new(),
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

/// Parses an expression over these variables.
pub(super) fn parse(text: &str, variables: &[&str]) -> Result<Node, CompileError> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        scope: variables.iter().map(|name| (*name).to_owned()).collect(),
        nesting: 0,
    };
    let root = parser.expression()?;
    match parser.peek() {
        Kind::End => Ok(root),
        _ => parser.error("unexpected text after the expression"),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    scope: Vec<String>,
    nesting: usize,
}

type Parsed = Result<Node, CompileError>;

impl Parser {
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
            None => self.error(format!("expected {sign:?}")),
        }
    }

    fn name(&mut self) -> Result<String, CompileError> {
        let Kind::Name(name) = self.peek() else {
            return self.error("expected a name");
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
            _ => self.error("expected a value"),
        }
    }

    /// Parses what begins with a name: a variable, a function, or a function of a namespace.
    fn named(&mut self, name: &str) -> Parsed {
        if self.sign(&["("]).is_some() {
            if name == "has" {
                return self.has();
            }
            let args = self.arguments()?;
            return self.call(name, args, false);
        }
        if let Some(at) = self.scope.iter().rposition(|known| known == name) {
            return self.node(Op::Variable(at));
        }
        let [dot, function, open] =
            [0, 1, 2].map(|ahead| self.tokens.get(self.at + ahead).map(|token| &token.kind));
        if let (Some(Kind::Sign(".")), Some(Kind::Name(function)), Some(Kind::Sign("("))) =
            (dot, function, open)
        {
            let function = format!("{name}.{function}");
            self.at += 3;
            let args = self.arguments()?;
            return self.call(&function, args, false);
        }
        match super::functions::type_named(name) {
            Some(name) => self.node(Op::Literal(Value::Type(name))),
            None => {
                self.at -= 1;
                self.error(format!("undeclared name {name:?}"))
            }
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
        self.scope.push(name);
        let mut parts = Vec::new();
        while parts.len() + 1 < most && self.sign(&[","]).is_some() {
            parts.push(self.expression()?);
        }
        self.scope.pop();
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
