//! Parses a path.

use super::{Literal, Path, Test};

pub(crate) const MAX_PARTS: usize = 200;

const AT_END: &str = "Parse error near the end of string!";

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Op(&'static str),
    Name(String),
    Quoted(String),
    /// A word between backquotes.
    Special(String),
    Number(f64),
}

const OPS: [&str; 23] = [
    "..", "==", "!=", "<=", ">=", "=~", ".", "[", "]", "(", ")", "*", "$", "@", ",", ":", "|", "?", "&", "=",
    "<", ">", "~",
];

type Parsed<T> = Result<T, String>;

pub(super) fn parse(text: &str) -> Parsed<Path> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        parts: 0,
    };
    if parser.tokens.is_empty() {
        return Err(AT_END.to_owned());
    }
    let path = parser.path()?;
    match parser.tokens.get(parser.at) {
        None => Ok(path),
        Some(token) => Err(unexpected(token)),
    }
}

fn unexpected(token: &Token) -> String {
    let text = match token {
        Token::Op(text) => (*text).to_owned(),
        Token::Name(text) | Token::Quoted(text) | Token::Special(text) => text.clone(),
        Token::Number(number) => number.to_string(),
    };
    format!("Parse error near token {text}")
}

fn tokens(text: &str) -> Parsed<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            return Ok(tokens);
        };
        if let quote @ ('\'' | '"' | '`') = first {
            let body = rest.get(1..).unwrap_or_default();
            let (inner, after) = quoted(body, quote)?;
            tokens.push(if quote == '`' {
                Token::Special(inner)
            } else {
                Token::Quoted(inner)
            });
            rest = after;
            continue;
        }
        let digits = rest.strip_prefix('-').unwrap_or(rest);
        if digits.starts_with(|letter: char| letter.is_ascii_digit()) {
            let sign = rest.len() - digits.len();
            let end = digits
                .find(|letter: char| !letter.is_ascii_digit())
                .unwrap_or(digits.len());
            let fraction = digits
                .get(end..)
                .and_then(|tail| tail.strip_prefix('.'))
                .map_or(0, |tail| {
                    let end = tail
                        .find(|letter: char| !letter.is_ascii_digit())
                        .unwrap_or(tail.len());
                    if end > 0 { end + 1 } else { 0 }
                });
            let (number, after) = rest.split_at_checked(sign + end + fraction).unwrap_or((rest, ""));
            tokens.push(Token::Number(number.parse().unwrap_or_default()));
            rest = after;
            continue;
        }
        let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '@' | '-' | '*');
        let length = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
        let name = rest.get(..length).unwrap_or_default();
        if !name.is_empty() && name != "*" && name != "@" && !name.starts_with('-') {
            tokens.push(Token::Name(name.to_owned()));
            rest = rest.get(length..).unwrap_or_default();
            continue;
        }
        let Some(op) = OPS.iter().find(|op| rest.starts_with(**op)) else {
            return Err(format!("Unexpected character: {first}"));
        };
        tokens.push(Token::Op(op));
        rest = rest.get(op.len()..).unwrap_or_default();
    }
}

fn quoted(body: &str, quote: char) -> Parsed<(String, &str)> {
    let mut text = String::new();
    let mut letters = body.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => text.extend(letters.next().map(|(_, letter)| letter)),
            letter if letter == quote => {
                return Ok((text, body.get(at + quote.len_utf8()..).unwrap_or_default()));
            }
            letter => text.push(letter),
        }
    }
    Err("Error on line 1, col 0: Unexpected EOF in string literal or identifier".to_owned())
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    parts: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn is(&self, op: &str) -> bool {
        matches!(self.peek(), Some(Token::Op(found)) if *found == op)
    }

    fn skip(&mut self, op: &str) -> bool {
        let found = self.is(op);
        self.at += usize::from(found);
        found
    }

    fn fail<T>(&self) -> Parsed<T> {
        Err(self.peek().map_or_else(|| AT_END.to_owned(), unexpected))
    }

    fn expect(&mut self, op: &str) -> Parsed<()> {
        if self.skip(op) { Ok(()) } else { self.fail() }
    }

    fn path(&mut self) -> Parsed<Path> {
        let mut path = self.chain()?;
        loop {
            if self.skip("|") {
                path = Path::Union(Box::new(path), Box::new(self.chain()?));
            } else if self.peek() == Some(&Token::Name("where".to_owned())) {
                self.at += 1;
                path = Path::Where(Box::new(path), Box::new(self.chain()?));
            } else {
                return Ok(path);
            }
        }
    }

    fn count(&mut self) -> Parsed<()> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(format!("a path has at most {MAX_PARTS} parts"));
        }
        Ok(())
    }

    fn chain(&mut self) -> Parsed<Path> {
        let mut path = self.part()?;
        loop {
            self.count()?;
            path = if self.skip("..") {
                Path::Descendants(Box::new(path), Box::new(self.part()?))
            } else if self.skip(".") {
                Path::Child(Box::new(path), Box::new(self.part()?))
            } else if self.is("[") {
                Path::Child(Box::new(path), Box::new(self.bracket()?))
            } else {
                return Ok(path);
            };
        }
    }

    fn part(&mut self) -> Parsed<Path> {
        self.count()?;
        let token = self.peek().cloned();
        self.at += usize::from(token.is_some());
        Ok(match token {
            Some(Token::Op("$")) => Path::Root,
            Some(Token::Op("@")) => Path::This,
            Some(Token::Op("*")) => Path::Fields(vec!["*".to_owned()]),
            Some(Token::Name(name) | Token::Quoted(name)) => {
                let mut names = vec![name];
                while self.is(",") {
                    let Some(Token::Name(name) | Token::Quoted(name)) = self.tokens.get(self.at + 1).cloned()
                    else {
                        break;
                    };
                    names.push(name);
                    self.at += 2;
                }
                Path::Fields(names)
            }
            Some(Token::Special(word)) => match word.as_str() {
                "this" => Path::This,
                "parent" => Path::Parent,
                "len" => Path::Len,
                "keys" => Path::Keys,
                other => return Err(format!("Unknown named operator `{other}`")),
            },
            Some(Token::Op("(")) => {
                let inner = self.path()?;
                self.expect(")")?;
                inner
            }
            Some(Token::Op("[")) => {
                self.at -= 1;
                self.bracket()?
            }
            _ => {
                self.at -= usize::from(token.is_some());
                return self.fail();
            }
        })
    }

    fn integer(&mut self) -> Option<i64> {
        match self.peek() {
            Some(Token::Number(number)) if number.fract() == 0.0 && number.abs() < 1e15 => {
                let number = *number as i64;
                self.at += 1;
                Some(number)
            }
            _ => None,
        }
    }

    fn bracket(&mut self) -> Parsed<Path> {
        self.expect("[")?;
        if self.skip("?") {
            let path = Path::Filter(self.filter()?);
            self.expect("]")?;
            return Ok(path);
        }
        if self.skip("*") {
            self.expect("]")?;
            return Ok(Path::Slice(None, None, None));
        }
        if let Some(Token::Quoted(_) | Token::Name(_)) = self.peek() {
            let path = self.part()?;
            self.expect("]")?;
            return Ok(path);
        }
        let first = self.integer();
        if self.skip(":") {
            let second = self.integer();
            let third = if self.skip(":") { self.integer() } else { None };
            self.expect("]")?;
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
        self.expect("]")?;
        Ok(Path::Indexes(indexes))
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
        let target = self.chain()?;
        let ops = ["==", "!=", "<=", ">=", "=~", "=", "<", ">"];
        let Some(op) = ops.into_iter().find(|op| self.is(op)) else {
            return Ok(Test {
                target,
                op: None,
                value: Literal::None,
            });
        };
        self.at += 1;
        let value = match self.peek().cloned() {
            Some(Token::Number(number)) => Literal::Number(number),
            Some(Token::Quoted(text)) => Literal::Text(text),
            Some(Token::Name(name)) => match name.as_str() {
                "true" | "True" => Literal::Bool(true),
                "false" | "False" => Literal::Bool(false),
                "null" | "None" => Literal::None,
                _ => Literal::Text(name),
            },
            _ => return self.fail(),
        };
        self.at += 1;
        Ok(Test {
            target,
            op: Some(op),
            value,
        })
    }
}
