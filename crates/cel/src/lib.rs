//! CEL, the Common Expression Language, for filters, health checks and other expressions of users: bounded in time and memory.
//!
//! ```
//! use cel::{Program, Scope, Value, Variables};
//!
//! let ready = Program::compile_bool("dep.status.replicas >= 2", Scope::Declared(&["dep"]))?;
//! let object = serde_json::json!({"status": {"replicas": 3}});
//! assert!(ready.is_true(&Variables::new().with("dep", Value::from_json(&object)))?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An expression is compiled to a tree of bounded size and height, and evaluated within [`Limits`], which count compared, copied and
//! searched bytes, too. No known library for Rust counts these ([ADR 25](../../../docs/adr/0025-own-cel.md)). The environment is the one
//! of Flux: the standard library without protocol buffers and named time zones, the extensions for strings, sets and base64, optional
//! values, comparisons of numbers of any type, and UTC as the default time zone.

#[cfg(test)]
mod bounds;
mod budget;
mod eval;
mod functions;
#[cfg(test)]
mod fuzz;
mod lexer;
mod macros;
mod operators;
mod parser;
mod pattern;
#[cfg(test)]
mod tests;
mod tree;
mod value;
mod variables;

use tree::{Global, Node, Op};

pub use budget::{Allowance, EvalError, Limits};
pub use pattern::{PatternError, compile_patterns};
pub use value::{Key, Value};
pub use variables::Variables;

/// Maximum length of an expression, in bytes.
const MAX_LENGTH: usize = 16 << 10;

/// The reason why an expression is refused, in one line. It is permanent: only another expression can help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    #[error("column {column}: {why}")]
    Syntax {
        /// Position in the expression, in characters from 1.
        column: usize,
        why: String,
    },
    /// The expression is too long, or nested too deeply.
    #[error("the expression is {0}")]
    TooLarge(&'static str),
    /// The expression may have another type than bool.
    #[error("the expression must have the type bool: compare values of unknown type, as in `… == true`")]
    NotBool,
}

impl CompileError {
    /// Formats the error in the form of cel-go, with line and column in the source.
    #[must_use]
    pub fn located(&self, source: &str) -> String {
        match self {
            Self::Syntax { column, why } => {
                let before: String = source.chars().take(column.saturating_sub(1)).collect();
                let line = before.matches('\n').count() + 1;
                let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
                format!("ERROR: <input>:{line}:{column}: {why}")
            }
            Self::TooLarge(_) | Self::NotBool => self.to_string(),
        }
    }
}

/// The variables that an expression may name.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'a> {
    /// Other names are errors of compilation.
    Declared(&'a [&'a str]),
    /// Any name, such as the top-level fields of an object. A variable without a value is an error of evaluation.
    Any,
}

/// A compiled expression.
#[derive(Debug)]
pub struct Program {
    root: Node,
    globals: Vec<Global>,
}

impl Program {
    /// Compiles an expression of any type.
    pub fn compile(source: &str, scope: Scope<'_>) -> Result<Self, CompileError> {
        if source.len() > MAX_LENGTH {
            return Err(CompileError::TooLarge("longer than 16384 bytes"));
        }
        let (root, globals) = parser::parse(source, scope)?;
        Ok(Self { root, globals })
    }

    /// Compiles an expression whose type is bool for all values of the variables.
    pub fn compile_bool(source: &str, scope: Scope<'_>) -> Result<Self, CompileError> {
        let program = Self::compile(source, scope)?;
        if !is_bool(&program.root) {
            return Err(CompileError::NotBool);
        }
        Ok(program)
    }

    /// Returns true if the expression names a variable. Others need no value.
    #[must_use]
    pub fn uses(&self, variable: &str) -> bool {
        self.globals.iter().any(|global| global.name == variable)
    }

    /// Evaluates the expression within the default limits.
    pub fn evaluate(&self, variables: &Variables) -> Result<Value, EvalError> {
        self.evaluate_within(variables, Limits::default())
    }

    pub fn evaluate_within(&self, variables: &Variables, limits: Limits) -> Result<Value, EvalError> {
        self.evaluate_all(variables, limits, &mut Allowance::new(limits))
    }

    /// Evaluates the expression within the default limits and those that it shares with other evaluations.
    pub fn evaluate_with(
        &self,
        variables: &Variables,
        allowance: &mut Allowance,
    ) -> Result<Value, EvalError> {
        self.evaluate_all(variables, Limits::default(), allowance)
    }

    fn evaluate_all(
        &self,
        variables: &Variables,
        limits: Limits,
        allowance: &mut Allowance,
    ) -> Result<Value, EvalError> {
        let globals = self.globals.iter().map(|global| global.value(variables));
        eval::evaluate(&self.root, globals.collect(), limits, allowance)
    }

    /// Evaluates the expression within the default limits; fails if its value is not a bool.
    pub fn is_true(&self, variables: &Variables) -> Result<bool, EvalError> {
        truth(self.evaluate(variables)?)
    }

    /// Evaluates the expression as [`Program::evaluate_with`] does; fails if its value is not a bool.
    pub fn is_true_with(&self, variables: &Variables, allowance: &mut Allowance) -> Result<bool, EvalError> {
        truth(self.evaluate_with(variables, allowance)?)
    }
}

fn truth(value: Value) -> Result<bool, EvalError> {
    match value {
        Value::Bool(value) => Ok(value),
        other => Err(EvalError::failed(format!(
            "the result is of the type {}, not bool",
            other.type_name()
        ))),
    }
}

/// Returns true if the expression has the type bool for all values of the variables.
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
