//! Functions of templates.

use super::{Executor, FunctionError, Signature};
use crate::Value;

pub trait Functions {
    /// Returns the number of a function; `None` if the name is unknown. Called when a template is parsed.
    fn find(&self, name: &str) -> Option<u16>;

    /// Returns the parameters of a function. The executor checks the arguments before it calls `call`.
    fn signature(&self, function: u16) -> Signature;

    /// Calls a function. Missing values among the arguments are [`Value::Nil`].
    fn call(
        &self,
        function: u16,
        arguments: Vec<Value>,
        executor: &mut Executor<'_>,
    ) -> Result<Value, FunctionError>;
}
