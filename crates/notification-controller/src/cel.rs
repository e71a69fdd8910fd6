//! CEL, the Common Expression Language, as far as filters need it: bounded in time and memory.
//!
//! An expression is compiled to a tree whose size and height are bounded, and evaluated with a budget of steps that counts what is
//! compared, copied and searched, too. No known library for Rust counts these ([ADR 25](../../../docs/adr/0025-own-cel.md)). The
//! standard operators, macros and functions are here, besides those of timestamps, durations and protocol buffers; and the
//! extensions for strings (without `format`), sets, base64 and optional values.

mod eval;
mod functions;
mod lexer;
mod parser;
#[cfg(test)]
mod tests;
mod value;

use parser::{Node, Op};

pub(crate) use eval::EvalError;
pub(crate) use value::Value;

/// Maximum length of an expression, in bytes.
const MAX_TEXT: usize = 16 << 10;

/// The reason why an expression can't be used. It is one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CompileError {
    /// The text is no expression.
    #[error("column {column}: {why}")]
    Syntax {
        /// Position in the text, in characters from 1.
        column: usize,
        /// The reason, which names the place.
        why: String,
    },
    /// The expression is too long, or nested too deeply.
    #[error("the expression is {0}")]
    TooLarge(&'static str),
    /// The expression may have another type than bool.
    #[error("the expression must have the type bool: compare values of unknown type, as in `… == true`")]
    NotBool,
}

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Program {
    root: Node,
}

impl Program {
    /// Compiles an expression of any type over these variables.
    pub(crate) fn compile(text: &str, variables: &[&str]) -> Result<Self, CompileError> {
        if text.len() > MAX_TEXT {
            return Err(CompileError::TooLarge("longer than 16384 bytes"));
        }
        let root = parser::parse(text, variables)?;
        Ok(Self { root })
    }

    /// Compiles an expression whose type is bool for all values of the variables.
    pub(crate) fn compile_bool(text: &str, variables: &[&str]) -> Result<Self, CompileError> {
        let program = Self::compile(text, variables)?;
        if !is_bool(&program.root) {
            return Err(CompileError::NotBool);
        }
        Ok(program)
    }

    /// Evaluates the expression with the values of its variables, in their order.
    pub(crate) fn evaluate(&self, variables: &[Value]) -> Result<Value, EvalError> {
        eval::evaluate(&self.root, variables)
    }

    /// Evaluates an expression of the type bool.
    pub(crate) fn holds(&self, variables: &[Value]) -> Result<bool, EvalError> {
        match self.evaluate(variables)? {
            Value::Bool(holds) => Ok(holds),
            other => Err(EvalError::failed(format!(
                "the result is of the type {}, not bool",
                other.type_name()
            ))),
        }
    }
}

/// Returns true if the expression has the type bool whatever the variables are.
fn is_bool(node: &Node) -> bool {
    match &node.op {
        Op::Literal(value) => matches!(value, Value::Bool(_)),
        Op::Not(_) | Op::And(..) | Op::Or(..) | Op::Compare(..) | Op::In(..) | Op::Has(..) => true,
        Op::Conditional(_, yes, no) => is_bool(yes) && is_bool(no),
        Op::Call(function, _) => function.returns_bool(),
        Op::Fold(fold) => fold.kind.returns_bool(),
        _ => false,
    }
}
