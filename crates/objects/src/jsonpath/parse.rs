//! The parser of paths.

use go::regexp::{Pattern, PatternQuota};
use yaml::Value;

use super::{Comparison, Filter, JsonPathError, MAX_DEPTH, MAX_LENGTH, Operand, Segment, Selector};

pub(super) fn path(text: &str) -> Result<Vec<Segment>, JsonPathError> {
    if text.len() > MAX_LENGTH {
        return Err(JsonPathError::TooLong);
    }
    let mut parser = Parser {
        rest: text.trim(),
        whole: text.trim(),
        depth: 0,
        patterns: PatternQuota::default(),
    };
    if parser.rest.is_empty() {
        return Err(JsonPathError::Empty);
    }
    if !parser.eat("$") && !parser.eat("@") && parser.peek().is_some_and(is_name) {
        let name = parser.name()?;
        let mut segments = vec![Segment::Children(vec![Selector::Name(name)])];
        segments.extend(parser.segments()?);
        return parser.finish(segments);
    }
    if parser.rest.is_empty() {
        return Ok(Vec::new());
    }
    let segments = parser.segments()?;
    parser.finish(segments)
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

struct Parser<'a> {
    rest: &'a str,
    whole: &'a str,
    depth: u32,
    patterns: PatternQuota,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn expect(&mut self, token: &str) -> Result<(), JsonPathError> {
        self.space();
        if self.eat(token) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("'{token}'")))
        }
    }

    fn unexpected(&self, wanted: &str) -> JsonPathError {
        let wanted = wanted.to_owned();
        match self.peek() {
            Some(found) => JsonPathError::Unexpected {
                wanted,
                found,
                column: self.whole.len() - self.rest.len() + 1,
            },
            None => JsonPathError::Incomplete { wanted },
        }
    }

    fn finish(&self, segments: Vec<Segment>) -> Result<Vec<Segment>, JsonPathError> {
        if self.rest.is_empty() {
            Ok(segments)
        } else {
            Err(self.unexpected("'.' or '['"))
        }
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !accept(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn name(&mut self) -> Result<String, JsonPathError> {
        let name = self.take_while(is_name);
        if name.is_empty() {
            Err(self.unexpected("a name"))
        } else {
            Ok(name.to_owned())
        }
    }

    fn segments(&mut self) -> Result<Vec<Segment>, JsonPathError> {
        let mut segments = Vec::new();
        loop {
            if self.eat("..") {
                segments.push(Segment::Descendants);
                match self.peek() {
                    None => return Ok(segments),
                    Some('[') => segments.push(Segment::Children(self.bracket()?)),
                    Some(_) => segments.push(Segment::Children(vec![self.dotted()?])),
                }
            } else if self.eat(".") {
                segments.push(Segment::Children(vec![self.dotted()?]));
            } else if self.peek() == Some('[') {
                segments.push(Segment::Children(self.bracket()?));
            } else {
                return Ok(segments);
            }
        }
    }

    fn dotted(&mut self) -> Result<Selector, JsonPathError> {
        if self.eat("*") {
            Ok(Selector::Wildcard)
        } else {
            self.name().map(Selector::Name)
        }
    }

    fn bracket(&mut self) -> Result<Vec<Selector>, JsonPathError> {
        self.expect("[")?;
        let mut selectors = Vec::new();
        loop {
            self.space();
            selectors.push(self.selector()?);
            self.space();
            if self.eat(",") {
                continue;
            }
            self.expect("]")?;
            return Ok(selectors);
        }
    }

    fn selector(&mut self) -> Result<Selector, JsonPathError> {
        match self.peek() {
            Some('*') => {
                self.eat("*");
                Ok(Selector::Wildcard)
            }
            Some('\'' | '"') => self.quoted().map(Selector::Name),
            Some('?') => {
                self.eat("?");
                self.or().map(Selector::Filter)
            }
            Some(c) if c.is_ascii_digit() || c == '-' || c == ':' => self.index_or_slice(),
            _ => Err(self.unexpected("a quoted name, a number, '*' or '?'")),
        }
    }

    fn quoted(&mut self) -> Result<String, JsonPathError> {
        let Some(quote) = self.peek() else {
            return Err(self.unexpected("a quote"));
        };
        let inner = self.rest.get(1..).unwrap_or_default();
        let Some(end) = inner.find(quote) else {
            return Err(JsonPathError::Unclosed("quote"));
        };
        let (text, rest) = inner.split_at(end);
        if text.contains('\\') {
            return Err(JsonPathError::Escape);
        }
        self.rest = rest.get(1..).unwrap_or_default();
        Ok(text.to_owned())
    }

    fn integer(&mut self) -> Result<Option<i64>, JsonPathError> {
        let text = self.take_while(|c| c.is_ascii_digit() || c == '-');
        if text.is_empty() {
            return Ok(None);
        }
        text.parse()
            .map(Some)
            .map_err(|_| JsonPathError::Index(text.to_owned()))
    }

    fn index_or_slice(&mut self) -> Result<Selector, JsonPathError> {
        let start = self.integer()?;
        self.space();
        if !self.eat(":") {
            return start
                .map(Selector::Index)
                .ok_or_else(|| self.unexpected("an index"));
        }
        self.space();
        let end = self.integer()?;
        self.space();
        let step = if self.eat(":") {
            self.integer()?.unwrap_or(1)
        } else {
            1
        };
        Ok(Selector::Slice { start, end, step })
    }

    fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, JsonPathError>,
    ) -> Result<T, JsonPathError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(JsonPathError::TooDeep);
        }
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn or(&mut self) -> Result<Filter, JsonPathError> {
        self.nested(|parser| {
            let mut left = parser.and()?;
            loop {
                parser.space();
                if !parser.eat("||") {
                    return Ok(left);
                }
                left = Filter::Or(Box::new(left), Box::new(parser.and()?));
            }
        })
    }

    fn and(&mut self) -> Result<Filter, JsonPathError> {
        let mut left = self.term()?;
        loop {
            self.space();
            if !self.eat("&&") {
                return Ok(left);
            }
            left = Filter::And(Box::new(left), Box::new(self.term()?));
        }
    }

    fn term(&mut self) -> Result<Filter, JsonPathError> {
        self.space();
        if self.eat("(") {
            let inner = self.or()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.peek() == Some('!') && !self.rest.starts_with("!=") {
            self.eat("!");
            return self.nested(Self::term).map(|inner| Filter::Not(Box::new(inner)));
        }
        let left = self.operand()?;
        self.space();
        if self.eat("=~") {
            return self.pattern().map(|pattern| Filter::Matches(left, pattern));
        }
        for (token, comparison) in [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ] {
            if self.eat(token) {
                return Ok(Filter::Compare(left, comparison, self.operand()?));
            }
        }
        Ok(Filter::Exists(left))
    }

    fn pattern(&mut self) -> Result<Pattern, JsonPathError> {
        self.space();
        let text = if matches!(self.peek(), Some('\'' | '"')) {
            self.quoted()?
        } else {
            self.expect("/")?;
            let Some(end) = self.rest.find('/') else {
                return Err(JsonPathError::Unclosed("'/'"));
            };
            let (text, rest) = self.rest.split_at(end);
            self.rest = rest.get(1..).unwrap_or_default();
            text.to_owned()
        };
        Ok(self.patterns.compile(&text)?)
    }

    fn operand(&mut self) -> Result<Operand, JsonPathError> {
        self.space();
        match self.peek() {
            Some('@') => {
                self.eat("@");
                self.nested(Self::segments).map(Operand::Current)
            }
            Some('$') => {
                self.eat("$");
                self.nested(Self::segments).map(Operand::Root)
            }
            Some('\'' | '"') => Ok(Operand::Literal(Value::String(self.quoted()?))),
            _ => self.literal(),
        }
    }

    fn literal(&mut self) -> Result<Operand, JsonPathError> {
        let text = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'));
        let value = match text {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            "" => return Err(self.unexpected("'@', '$' or a literal")),
            number => match (number.parse::<i64>(), number.parse::<f64>()) {
                (Ok(integer), _) => Value::Int(integer),
                (_, Ok(float)) => Value::Float(float),
                _ => return Err(JsonPathError::Literal(text.to_owned())),
            },
        };
        Ok(Operand::Literal(value))
    }
}
