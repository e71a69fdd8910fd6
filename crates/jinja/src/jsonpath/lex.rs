//! Splits a path into tokens, by the rules of jsonpath-ng with its extensions.

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Op(&'static str),
    Name(String),
    /// A string in quotation marks, which is a name, too.
    Quoted(String),
    /// A word between backquotes.
    Special(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    /// An operator of filters.
    Filter(&'static str),
    /// `/` or `\` before the key of a sorted list; true for descending order.
    Sort(bool),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    line: usize,
    /// Column, in characters.
    column: usize,
    /// Position of its last character.
    end: usize,
}

impl Token {
    /// Returns the message about a token that can't be here.
    pub(super) fn unexpected(&self) -> String {
        let literal = |text: &str| (text.to_owned(), text.to_owned());
        let (value, kind) = match &self.kind {
            Kind::Op("..") => ("..".to_owned(), "DOUBLEDOT".to_owned()),
            Kind::Op(text) => literal(text),
            Kind::Name(text) if text == "where" || text == "wherenot" => (text.clone(), text.to_uppercase()),
            Kind::Name(text) | Kind::Quoted(text) => (text.clone(), "ID".to_owned()),
            Kind::Special(text) => (text.clone(), "NAMED_OPERATOR".to_owned()),
            Kind::Int(number) => (number.to_string(), "NUMBER".to_owned()),
            Kind::Float(number) => (crate::format::repr::float(*number), "FLOAT".to_owned()),
            Kind::Bool(flag) => (if *flag { "True" } else { "False" }.to_owned(), "BOOL".to_owned()),
            Kind::Filter(text) => ((*text).to_owned(), "FILTER_OP".to_owned()),
            Kind::Sort(down) => (
                if *down { "\\" } else { "/" }.to_owned(),
                "SORT_DIRECTION".to_owned(),
            ),
        };
        format!(
            "Parse error at {}:{} near token {value} ({kind})",
            self.line, self.column
        )
    }

    /// Returns the message about an unknown word between backquotes.
    pub(super) fn unknown(&self, word: &str) -> String {
        format!("Unknown named operator `{word}` at {}:{}", self.line, self.end)
    }
}

const FILTERS: [&str; 8] = ["=~", "==", "<=", ">=", "!=", "=", "<", ">"];
const OPS: [&str; 16] = [
    "..", ".", "[", "]", "(", ")", "*", "$", "@", ",", ":", "|", "?", "&", "+", "~",
];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut lexer = Lexer {
        letters: text.chars().collect(),
        at: 0,
        line: 1,
        line_start: 0,
    };
    let mut tokens = Vec::new();
    loop {
        while let Some(letter @ (' ' | '\t' | '\n')) = lexer.peek(0) {
            if letter == '\n' {
                lexer.line += 1;
                lexer.line_start = lexer.at;
            }
            lexer.at += 1;
        }
        let (line, start) = (lexer.line, lexer.at);
        if lexer.peek(0).is_none() {
            return Ok(tokens);
        }
        let kind = lexer.kind()?;
        let is_quoted = matches!(kind, Kind::Quoted(_) | Kind::Special(_));
        let end = lexer.at.saturating_sub(1);
        tokens.push(Token {
            kind,
            line,
            column: if is_quoted { end } else { start } - lexer.line_start,
            end,
        });
    }
}

struct Lexer {
    letters: Vec<char>,
    at: usize,
    line: usize,
    line_start: usize,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.letters.get(self.at + ahead).copied()
    }

    fn starts_with(&self, text: &str) -> bool {
        text.chars()
            .enumerate()
            .all(|(ahead, letter)| self.peek(ahead) == Some(letter))
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(letter) = self.peek(0).filter(|letter| belongs(*letter)) {
            taken.push(letter);
            self.at += 1;
        }
        taken
    }

    fn kind(&mut self) -> Result<Kind, String> {
        for (word, value) in [("true", true), ("false", false)] {
            // quirk: a longer name that starts with such a word is split behind it.
            if self.starts_with(word) {
                self.at += word.len();
                return Ok(Kind::Bool(value));
            }
        }
        if let Some(kind) = self.sort_direction() {
            return Ok(kind);
        }
        if let Some(kind) = self.name() {
            return Ok(kind);
        }
        if let Some(kind) = self.number() {
            return Ok(kind);
        }
        if let Some(quote @ ('\'' | '"' | '`')) = self.peek(0) {
            self.at += 1;
            let inner = self.quoted(quote)?;
            return Ok(if quote == '`' {
                Kind::Special(inner)
            } else {
                Kind::Quoted(inner)
            });
        }
        if let Some(op) = FILTERS.iter().find(|op| self.starts_with(op)) {
            self.at += op.len();
            return Ok(Kind::Filter(op));
        }
        if let Some(op) = OPS.iter().chain(&["-"]).find(|op| self.starts_with(op)) {
            self.at += op.len();
            return Ok(Kind::Op(op));
        }
        Err(format!(
            "Error on line {}, col {}: Unexpected character: {} ",
            self.line,
            self.at - self.line_start,
            self.peek(0).unwrap_or_default()
        ))
    }

    /// Reads `/` or `\`, with a comma before it.
    fn sort_direction(&mut self) -> Option<Kind> {
        let mut ahead = usize::from(self.peek(0) == Some(','));
        while self.peek(ahead).is_some_and(char::is_whitespace) {
            ahead += 1;
        }
        let letter = self.peek(ahead).filter(|letter| matches!(letter, '/' | '\\'))?;
        self.at += ahead + 1;
        Some(Kind::Sort(letter == '\\'))
    }

    /// Reads a name, which may contain stars.
    fn name(&mut self) -> Option<Kind> {
        let is_start = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
        let is_star = self.peek(0) == Some('*') && self.peek(1).is_some_and(is_start);
        let skipped = usize::from(self.peek(0) == Some('@') || is_star);
        self.peek(skipped).filter(|letter| is_start(*letter))?;
        let name = self
            .take_while(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '@' | '-' | '*'));
        Some(Kind::Name(name))
    }

    fn number(&mut self) -> Option<Kind> {
        let sign = usize::from(self.peek(0) == Some('-'));
        let is_digit = |letter: char| letter.is_ascii_digit();
        self.peek(sign).filter(|letter| is_digit(*letter))?;
        let mut text = if sign == 1 { "-" } else { "" }.to_owned();
        self.at += sign;
        text += &self.take_while(is_digit);
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(is_digit) {
            self.at += 1;
            text = format!("{text}.{}", self.take_while(is_digit));
            return text.parse().ok().map(Kind::Float);
        }
        // An index beyond 64 bits is behind the end of every list.
        Some(Kind::Int(text.parse().unwrap_or(i64::MAX)))
    }

    fn quoted(&mut self, quote: char) -> Result<String, String> {
        let mut text = String::new();
        while let Some(letter) = self.peek(0) {
            self.at += 1;
            match letter {
                '\\' => {
                    text.extend(self.peek(0));
                    self.at += 1;
                }
                letter if letter == quote => return Ok(text),
                letter => text.push(letter),
            }
        }
        Err("Unexpected EOF in string literal or identifier".to_owned())
    }
}
