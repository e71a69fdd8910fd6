//! Tokens and syntax errors.

use num_bigint::BigInt;

use crate::value::Str;

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
