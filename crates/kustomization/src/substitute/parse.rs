//! A document as a list of literals and substitutions.

use super::SubstitutionError;

/// Maximum nesting of substitutions in arguments.
const DEPTH: usize = 50;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Text(String),
    Call {
        name: String,
        /// Empty for a plain variable.
        operator: String,
        arguments: Vec<Self>,
    },
}

pub(super) fn parse(text: &str) -> Result<Vec<Node>, SubstitutionError> {
    let mut parser = Parser { rest: text };
    let mut nodes = Vec::new();
    loop {
        let text = parser.literal();
        if !text.is_empty() {
            nodes.push(Node::Text(text));
        }
        if parser.rest.is_empty() {
            return Ok(nodes);
        }
        nodes.push(parser.call(DEPTH)?);
    }
}

/// The characters that a backslash or a dollar sign escapes in an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escapes {
    None,
    /// `$$`, `\/` and `\\`.
    All,
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Takes the longest start of the rest whose characters are accepted.
    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !accept(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// Takes the text up to the next substitution, in which `$$` is one dollar sign.
    fn literal(&mut self) -> String {
        let mut text = String::new();
        while !self.rest.starts_with("${") {
            let Some(at) = self.rest.find('$') else {
                text.push_str(self.rest);
                self.rest = "";
                break;
            };
            text.push_str(self.rest.get(..at).unwrap_or_default());
            self.skip(at);
            if self.rest.starts_with("${") {
                break;
            }
            text.push('$');
            self.skip(if self.rest.starts_with("$$") { 2 } else { 1 });
        }
        text
    }

    fn close(&mut self, error: SubstitutionError) -> Result<(), SubstitutionError> {
        if self.peek() != Some('}') {
            return Err(error);
        }
        self.skip(1);
        Ok(())
    }

    /// Parses a substitution, which the rest begins with.
    fn call(&mut self, depth: usize) -> Result<Node, SubstitutionError> {
        let depth = depth.checked_sub(1).ok_or(SubstitutionError::TooDeep(DEPTH))?;
        self.skip(2);
        if self.peek() == Some('#') {
            return self.length();
        }
        let name = self.name();
        if name.is_empty() {
            return Err(SubstitutionError::VariableName);
        }
        let (operator, arguments) = match self.peek() {
            Some(':') => match self.rest.chars().nth(1) {
                Some('=' | '-' | '?' | '+') => self.default(2, depth)?,
                _ => self.part(depth)?,
            },
            Some('=') => self.default(1, depth)?,
            Some(',' | '^') => (self.casing()?, Vec::new()),
            Some('/') => self.replacement(depth)?,
            Some(sign @ ('#' | '%')) => self.removal(sign, depth)?,
            _ => {
                self.close(SubstitutionError::MissingClosingBrace)?;
                (String::new(), Vec::new())
            }
        };
        Ok(Node::Call {
            name,
            operator,
            arguments,
        })
    }

    fn name(&mut self) -> String {
        self.take_while(|c| c.is_alphanumeric() || c == '_').to_owned()
    }

    fn length(&mut self) -> Result<Node, SubstitutionError> {
        self.skip(1);
        let name = self.name();
        if name.is_empty() {
            return Err(SubstitutionError::BadSubstitution);
        }
        self.close(SubstitutionError::BadSubstitution)?;
        Ok(Node::Call {
            name,
            operator: "#".to_owned(),
            arguments: Vec::new(),
        })
    }

    /// Parses an argument: a substitution, or the text before one and before the first character that is not accepted. It is not empty.
    fn argument(
        &mut self,
        accept: impl Fn(char) -> bool,
        escapes: Escapes,
        depth: usize,
    ) -> Result<Node, SubstitutionError> {
        if self.rest.starts_with("${") {
            return self.call(depth);
        }
        let mut text = String::new();
        while let Some(c) = self.peek().filter(|_| !self.rest.starts_with("${")) {
            if let Some(escaped) = self.escaped(escapes) {
                text.push(escaped);
                self.skip(2);
            } else if accept(c) {
                text.push(c);
                self.skip(c.len_utf8());
            } else {
                break;
            }
        }
        match text.is_empty() {
            true => Err(SubstitutionError::Argument),
            false => Ok(Node::Text(text)),
        }
    }

    fn escaped(&self, escapes: Escapes) -> Option<char> {
        let escaped = ["$$", r"\/", r"\\"]
            .into_iter()
            .filter(|_| escapes == Escapes::All);
        let mut found = escaped.filter(|pair| self.rest.starts_with(pair));
        found.next()?.chars().nth(1)
    }

    /// Parses an operator of `length` characters and its default, which may have several parts.
    fn default(&mut self, length: usize, depth: usize) -> Result<(String, Vec<Node>), SubstitutionError> {
        let operator: String = self.rest.chars().take(length).collect();
        self.skip(length);
        let mut parts = Vec::new();
        while self.peek() != Some('}') {
            parts.push(self.argument(|c| c != '}', Escapes::None, depth)?);
        }
        self.skip(1);
        Ok((operator, parts))
    }

    /// Parses offset and length.
    fn part(&mut self, depth: usize) -> Result<(String, Vec<Node>), SubstitutionError> {
        self.skip(1);
        let operator = ":".to_owned();
        let offset = self.argument(|c| c != ':' && c != '}', Escapes::None, depth)?;
        match self.peek() {
            Some('}') => {
                self.skip(1);
                return Ok((operator, vec![offset]));
            }
            Some(':') => self.take_while(|c| c == ':'),
            _ => return Err(SubstitutionError::BadSubstitution),
        };
        let length = self.argument(|c| c != '}', Escapes::None, depth)?;
        self.close(SubstitutionError::BadSubstitution)?;
        Ok((operator, vec![offset, length]))
    }

    /// Parses one or two signs that change the case.
    fn casing(&mut self) -> Result<String, SubstitutionError> {
        let signs = self.rest.chars().take(2).take_while(|c| matches!(c, ',' | '^'));
        let operator: String = signs.collect();
        self.skip(operator.len());
        self.close(SubstitutionError::BadSubstitution)?;
        Ok(operator)
    }

    fn removal(&mut self, sign: char, depth: usize) -> Result<(String, Vec<Node>), SubstitutionError> {
        let signs = self.rest.chars().take(2).take_while(|c| *c == sign);
        let operator: String = signs.collect();
        self.skip(operator.len());
        let pattern = self.argument(|c| c != '}', Escapes::None, depth)?;
        self.close(SubstitutionError::BadSubstitution)?;
        Ok((operator, vec![pattern]))
    }

    fn replacement(&mut self, depth: usize) -> Result<(String, Vec<Node>), SubstitutionError> {
        let operator = match self.rest.chars().nth(1) {
            Some(sign @ ('/' | '#' | '%')) => format!("/{sign}"),
            _ => "/".to_owned(),
        };
        self.skip(operator.len());
        let pattern = self.argument(|c| c != '/', Escapes::All, depth)?;
        if self.take_while(|c| c == '/').is_empty() {
            return Err(SubstitutionError::BadSubstitution);
        }
        if self.peek() == Some('}') {
            self.skip(1);
            return Ok((operator, vec![pattern]));
        }
        let replacement = self.argument(|c| c != '}', Escapes::All, depth)?;
        self.close(SubstitutionError::BadSubstitution)?;
        Ok((operator, vec![pattern, replacement]))
    }
}
