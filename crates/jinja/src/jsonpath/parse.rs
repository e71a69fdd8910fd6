//! Parses a path. Operators bind as in the grammar of jsonpath-ng: `|` more tightly than `.`, and arithmetic least, from the
//! right.

use super::{
    Literal, Operand, Path, SortKey, Test, Word,
    lex::{self, Kind, Token},
    word,
};
use crate::value::operator::Operator;

pub(crate) const MAX_PARTS: usize = 200;

const AT_END: &str = "Parse error near the end of string!";

type Parsed<T> = Result<T, String>;

pub(super) fn parse(text: &str) -> Parsed<Path> {
    let mut parser = Parser {
        tokens: lex::tokens(text)?,
        at: 0,
        parts: 0,
    };
    let path = parser.path()?;
    match parser.tokens.get(parser.at) {
        None => Ok(path),
        Some(token) => Err(token.unexpected()),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    parts: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Kind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn is(&self, op: &str) -> bool {
        matches!(self.peek(), Some(Kind::Op(found)) if *found == op)
    }

    fn skip(&mut self, op: &str) -> bool {
        let found = self.is(op);
        self.at += usize::from(found);
        found
    }

    fn fail<T>(&self) -> Parsed<T> {
        let token = self.tokens.get(self.at);
        Err(token.map_or_else(|| AT_END.to_owned(), Token::unexpected))
    }

    fn expect(&mut self, op: &str) -> Parsed<()> {
        if self.skip(op) { Ok(()) } else { self.fail() }
    }

    fn count(&mut self) -> Parsed<()> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(format!("a path has at most {MAX_PARTS} parts"));
        }
        Ok(())
    }

    fn path(&mut self) -> Parsed<Path> {
        match self.sum()? {
            Operand::Path(path) => Ok(path),
            Operand::Literal(Literal::Int(number)) => Ok(Path::Fields(vec![number.to_string()])),
            Operand::Literal(_) => self.fail(),
        }
    }

    /// Parses operands with operators between them.
    fn sum(&mut self) -> Parsed<Operand> {
        self.count()?;
        let left = self.operand()?;
        let Some(op) = self.operator() else {
            return Ok(left);
        };
        self.at += 1;
        let right = self.sum()?;
        Ok(Operand::Path(Path::Operation(
            Box::new(as_string(left)),
            op,
            Box::new(as_string(right)),
        )))
    }

    fn operator(&self) -> Option<Operator> {
        match self.peek() {
            Some(Kind::Op("+")) => Some(Operator::Add),
            Some(Kind::Op("-")) => Some(Operator::Sub),
            Some(Kind::Op("*")) => Some(Operator::Mul),
            _ => None,
        }
    }

    fn operand(&mut self) -> Parsed<Operand> {
        let literal = match self.peek() {
            Some(Kind::Float(number)) => Some(Literal::Float(*number)),
            Some(Kind::Int(number)) => Some(Literal::Int(*number)),
            _ => None,
        };
        if let Some(literal) = literal {
            self.at += 1;
            if matches!(literal, Literal::Float(_)) || (self.binary().is_none() && !self.is("[")) {
                return Ok(Operand::Literal(literal));
            }
            self.at -= 1;
        }
        self.chain(0).map(Operand::Path)
    }

    /// Returns the operator between paths that is next, with its level.
    fn binary(&self) -> Option<(&'static str, u8)> {
        match self.peek()? {
            Kind::Op("..") => Some(("..", 1)),
            Kind::Op(".") => Some((".", 2)),
            Kind::Op("|") => Some(("|", 3)),
            Kind::Op("&") => Some(("&", 4)),
            Kind::Name(name) if name == "where" => Some(("where", 5)),
            Kind::Name(name) if name == "wherenot" => Some(("wherenot", 6)),
            _ => None,
        }
    }

    /// Parses parts with operators of a higher level than `level` between them.
    fn chain(&mut self, level: u8) -> Parsed<Path> {
        let mut path = self.part()?;
        loop {
            self.count()?;
            if level == 0 && self.is("[") {
                path = Path::Child(Box::new(path), Box::new(self.bracket(true)?));
                continue;
            }
            let Some((op, higher)) = self.binary().filter(|(_, higher)| *higher > level) else {
                return Ok(path);
            };
            self.at += 1;
            let left = Box::new(path);
            let right = Box::new(self.chain(higher)?);
            path = match op {
                ".." => Path::Descendants(left, right),
                "." => Path::Child(left, right),
                "|" => Path::Union(left, right),
                "&" => Path::Intersect(left, right),
                "where" => Path::Where(left, right, true),
                _ => Path::Where(left, right, false),
            };
        }
    }

    fn part(&mut self) -> Parsed<Path> {
        self.count()?;
        if let Some(names) = self.names() {
            return Ok(Path::Fields(names));
        }
        let Some(token) = self.tokens.get(self.at).cloned() else {
            return Err(AT_END.to_owned());
        };
        self.at += 1;
        Ok(match token.kind {
            Kind::Op("$") => Path::Root,
            Kind::Op("@") => Path::This,
            Kind::Op("*") => Path::Fields(vec!["*".to_owned()]),
            Kind::Int(number) => Path::Fields(vec![number.to_string()]),
            Kind::Special(ref text) => match word::parse(text)? {
                Some(Word::This) => Path::This,
                Some(word) => Path::Word(word),
                None => return Err(token.unknown(text)),
            },
            Kind::Op("(") => {
                let inner = self.path()?;
                self.expect(")")?;
                inner
            }
            Kind::Op("[") => {
                self.at -= 1;
                self.bracket(false)?
            }
            // It is refused at the next token, which should have been an operator.
            Kind::Float(_) => return self.fail(),
            _ => {
                self.at -= 1;
                return self.fail();
            }
        })
    }

    /// Parses names with commas between them.
    fn names(&mut self) -> Option<Vec<String>> {
        let mut names = vec![self.name(0)?];
        self.at += 1;
        while self.is(",")
            && let Some(name) = self.name(1)
        {
            names.push(name);
            self.at += 2;
        }
        Some(names)
    }

    fn name(&self, ahead: usize) -> Option<String> {
        match &self.tokens.get(self.at + ahead)?.kind {
            Kind::Name(name) if name == "where" || name == "wherenot" => None,
            Kind::Name(name) | Kind::Quoted(name) => Some(name.clone()),
            _ => None,
        }
    }

    fn integer(&mut self) -> Option<i64> {
        let Some(Kind::Int(number)) = self.peek() else {
            return None;
        };
        let number = *number;
        self.at += 1;
        Some(number)
    }

    /// Parses brackets; filters and orders need a path before them.
    fn bracket(&mut self, follows: bool) -> Parsed<Path> {
        self.expect("[")?;
        let path = if follows && self.skip("?") {
            Path::Filter(self.filter()?)
        } else if follows && matches!(self.peek(), Some(Kind::Sort(_))) {
            Path::Sorted(self.sort_keys()?)
        } else if self.skip("*") {
            Path::Slice(None, None, None)
        } else if let Some(names) = self.names() {
            Path::Fields(names)
        } else {
            self.indexes()?
        };
        self.expect("]")?;
        Ok(path)
    }

    fn indexes(&mut self) -> Parsed<Path> {
        let first = self.integer();
        if self.skip(":") {
            let second = self.integer();
            let third = if self.skip(":") { self.integer() } else { None };
            return Ok(Path::Slice(first, second, third));
        }
        let Some(first) = first else { return self.fail() };
        let mut indexes = vec![first];
        while self.skip(",") {
            match self.integer() {
                Some(index) => indexes.push(index),
                None => return self.fail(),
            }
        }
        Ok(Path::Indexes(indexes))
    }

    fn sort_keys(&mut self) -> Parsed<Vec<SortKey>> {
        let mut keys = Vec::new();
        while let Some(Kind::Sort(down)) = self.peek() {
            let descending = *down;
            self.at += 1;
            self.count()?;
            let path = self.path()?;
            keys.push(SortKey { path, descending });
        }
        Ok(keys)
    }

    fn filter(&mut self) -> Parsed<Vec<Test>> {
        self.count()?;
        let mut tests = Vec::new();
        loop {
            if self.skip("(") {
                tests.extend(self.filter()?);
                self.expect(")")?;
            } else {
                tests.push(self.test()?);
            }
            if !self.skip("&") {
                return Ok(tests);
            }
        }
    }

    fn test(&mut self) -> Parsed<Test> {
        let target = self.path()?;
        let Some(Kind::Filter(op)) = self.peek() else {
            return Ok(Test {
                target,
                op: None,
                value: Literal::Bool(true),
            });
        };
        let op = *op;
        self.at += 1;
        let value = match self.peek().cloned() {
            Some(Kind::Int(number)) => Literal::Int(number),
            Some(Kind::Float(number)) => Literal::Float(number),
            Some(Kind::Bool(flag)) => Literal::Bool(flag),
            _ => match self.name(0) {
                Some(text) => Literal::Text(text),
                None => return self.fail(),
            },
        };
        self.at += 1;
        Ok(Test {
            target,
            op: Some(op),
            value,
        })
    }
}

/// quirk: a single name beside an operator is a string.
fn as_string(operand: Operand) -> Operand {
    match operand {
        Operand::Path(Path::Fields(mut names)) if names.len() == 1 => {
            Operand::Literal(Literal::Text(names.pop().unwrap_or_default()))
        }
        operand => operand,
    }
}
