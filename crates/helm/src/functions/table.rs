//! Tables of functions.

use super::context::Context;
use crate::{
    Value,
    template::{FunctionError, Signature, Type},
};

pub(super) type Answer = Result<Value, FunctionError>;
pub(super) type Run = fn(&Context<'_>, &[Value]) -> Answer;

pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) signature: Signature,
    pub(super) run: Run,
}

pub(super) const fn fixed(name: &'static str, parameters: &'static [Type], run: Run) -> Entry {
    Entry {
        name,
        signature: Signature::fixed(parameters),
        run,
    }
}

pub(super) const fn variadic(name: &'static str, parameters: &'static [Type], run: Run) -> Entry {
    Entry {
        name,
        signature: Signature::variadic(parameters),
        run,
    }
}
