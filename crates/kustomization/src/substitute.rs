//! Substitution of variables in a document, as the original does after a build. Pure.
//!
//! Only `${` is special, and `$$`, which is printed as `$` everywhere. Variables have names of letters, digits and underscores. The operators
//! are like a shell's, with differences that users rely on: `:-`, `:=`, `:+`, `:?` and `=` all give a default to a variable that is unset or
//! empty; lengths and offsets count bytes; patterns match across slashes.

mod glob;
mod operators;
mod parse;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::BTreeMap};

use tree::{Budget, Exceeded};

use parse::Node;

/// The reason why a document can't be substituted. It holds no value of a variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubstitutionError {
    #[error("bad substitution")]
    BadSubstitution,
    #[error("missing closing brace")]
    MissingClosingBrace,
    #[error("unable to parse variable name")]
    VariableName,
    #[error("unable to parse substitution within function")]
    Argument,
    #[error("substitutions are nested more than {0} deep")]
    TooDeep(usize),
    #[error("variable not set (strict mode): \"{0}\"")]
    NotSet(String),
    #[error("the length of a part of \"{0}\" is negative")]
    NegativeLength(String),
    #[error("the result is not valid UTF-8")]
    NotUtf8,
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
}

/// The variables of a substitution.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Substitution<'a> {
    pub(crate) variables: &'a BTreeMap<String, String>,
    /// If set, a variable without a value and without a default is an error; otherwise it is empty.
    pub(crate) strict: bool,
}

impl Substitution<'_> {
    /// Substitutes all variables of a document. The budget bounds the result.
    pub(crate) fn apply<'t>(
        &self,
        text: &'t str,
        budget: &Budget,
    ) -> Result<Cow<'t, str>, SubstitutionError> {
        if !text.contains('$') {
            return Ok(Cow::Borrowed(text));
        }
        let nodes = parse::parse(text)?;
        let mut out = Vec::with_capacity(text.len());
        for node in &nodes {
            out.extend_from_slice(&self.evaluate(node, budget)?);
        }
        let text = String::from_utf8(out).map_err(|_| SubstitutionError::NotUtf8)?;
        Ok(Cow::Owned(text))
    }

    fn evaluate<'n>(&self, node: &'n Node, budget: &Budget) -> Result<Cow<'n, [u8]>, SubstitutionError> {
        let (name, operator, arguments) = match node {
            Node::Text(text) => {
                budget.output(text.len() as u64)?;
                return Ok(Cow::Borrowed(text.as_bytes()));
            }
            Node::Call {
                name,
                operator,
                arguments,
            } => (name, operator, arguments),
        };
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.evaluate(argument, budget)?);
        }
        let value = self.variables.get(name);
        if self.strict && value.is_none() && !operators::gives_default(operator) {
            return Err(SubstitutionError::NotSet(name.clone()));
        }
        let value = value.map(String::as_bytes).unwrap_or_default();
        let call = operators::Call { name, value, budget };
        Ok(Cow::Owned(call.apply(operator, &values)?))
    }
}
