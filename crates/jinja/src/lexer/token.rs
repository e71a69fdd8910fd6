//! Tokens and syntax errors.

use num_bigint::BigInt;
use tree::Exceeded;

use crate::value::Str;

/// The memory of a token in bytes, without its text: a list that grows has up to twice the size of its items.
pub(crate) const TOKEN: usize = 2 * size_of::<Token>();

/// The memory that a token of the densest templates takes in the syntax tree and in the tables of its names, in bytes, without
/// scopes and functions.
const NODE: usize = 192;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) line: u32,
    pub(crate) message: String,
    /// Unknown names have an exception of their own.
    pub(crate) assertion: bool,
}

impl SyntaxError {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
            assertion: false,
        }
    }
}

/// The reason why a template has no syntax tree.
#[derive(Debug)]
pub(crate) enum ParseError {
    Syntax(SyntaxError),
    Exceeded(Exceeded),
}

impl From<SyntaxError> for ParseError {
    fn from(error: SyntaxError) -> Self {
        Self::Syntax(error)
    }
}

impl From<Exceeded> for ParseError {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    Data(Str),
    VariableBegin,
    VariableEnd,
    BlockBegin,
    BlockEnd,
    Name(Str),
    String(Str),
    Integer(BigInt),
    Float(f64),
    Op(&'static str),
    End,
    Bad(SyntaxError),
}

impl TokenKind {
    /// Returns the length of its text in bytes.
    fn len(&self) -> usize {
        match self {
            Self::Data(text) | Self::Name(text) | Self::String(text) => text.len(),
            Self::Integer(number) => usize::try_from(number.bits() / 8).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    /// Returns the memory of the token and of its part of the syntax tree, in bytes.
    pub(super) fn memory(&self) -> usize {
        TOKEN
            .saturating_add(NODE)
            .saturating_add(self.len().saturating_mul(2))
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Data(_) => "template data / text".to_owned(),
            Self::VariableBegin => "begin of print statement".to_owned(),
            Self::VariableEnd => "end of print statement".to_owned(),
            Self::BlockBegin => "begin of statement block".to_owned(),
            Self::BlockEnd => "end of statement block".to_owned(),
            Self::Name(text) => text.to_string(),
            Self::String(_) => "string".to_owned(),
            Self::Integer(_) => "integer".to_owned(),
            Self::Float(_) => "float".to_owned(),
            Self::Op(text) => (*text).to_owned(),
            Self::End => "end of template".to_owned(),
            Self::Bad(error) => error.message.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) line: u32,
    pub(crate) kind: TokenKind,
}
