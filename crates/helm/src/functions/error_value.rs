//! Go's `error` as the result of a method.

use std::rc::Rc;

use tree::Budget;

use crate::{
    Object, Value,
    template::{FormatError, FunctionError, printed},
};

/// The message, or `None` for a nil error, which is printed as `<nil>`.
#[derive(Debug)]
pub(crate) struct ErrorValue(Option<String>);

impl ErrorValue {
    pub(crate) fn of(result: Result<(), FunctionError>) -> Value {
        Value::Object(Rc::new(Self(result.err().map(FunctionError::into_message))))
    }
}

impl Object for ErrorValue {
    fn type_name(&self) -> &str {
        match self.0 {
            Some(_) => "*errors.errorString",
            None => "<nil>",
        }
    }

    fn kind_name(&self) -> &'static str {
        match self.0 {
            Some(_) => "ptr",
            None => "invalid",
        }
    }

    fn field(&self, _: &str) -> Option<Value> {
        None
    }

    fn call(&self, name: &str, _: &[Value]) -> Option<Result<Value, FunctionError>> {
        let message = self.0.as_ref().filter(|_| name == "Error")?;
        Some(Ok(Value::string(message.as_str())))
    }

    fn data(&self) -> Option<Value> {
        Some(match self.0 {
            Some(_) => Value::dict::<&str>([]),
            None => Value::Nil,
        })
    }

    fn print(&self, budget: &Budget) -> Result<String, FormatError> {
        printed(self.0.as_deref().unwrap_or("<nil>"), budget)
    }

    fn truth(&self) -> bool {
        self.0.is_some()
    }
}
