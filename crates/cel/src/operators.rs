//! Comparison, membership and arithmetic.

use std::{cmp::Ordering, sync::Arc};

use jiff::SignedDuration;

use crate::{
    EvalError, Value,
    eval::{Evaluated, Evaluation, no_overload, overflow},
    tree::{Arithmetic, Comparison},
    value::Key,
};

impl Evaluation {
    pub(crate) fn compare(
        &mut self,
        comparison: Comparison,
        a: &Value,
        b: &Value,
    ) -> Result<bool, EvalError> {
        match comparison {
            Comparison::Equal => return self.equal(a, b),
            Comparison::NotEqual => return Ok(!self.equal(a, b)?),
            _ => {}
        }
        match (a, b) {
            (Value::String(a), Value::String(b)) => self.budget.spend_bytes(a.len().min(b.len()))?,
            (Value::Bytes(a), Value::Bytes(b)) => self.budget.spend_bytes(a.len().min(b.len()))?,
            _ => {}
        }
        let nan = |value: &Value| matches!(value, Value::Double(value) if value.is_nan());
        let Some(ordering) = a.compare(b) else {
            if nan(a) || nan(b) {
                return Ok(false);
            }
            return no_overload("<", &[a.clone(), b.clone()]).map(|_| false);
        };
        Ok(match comparison {
            Comparison::Less => ordering == Ordering::Less,
            Comparison::LessEqual => ordering != Ordering::Greater,
            Comparison::Greater => ordering == Ordering::Greater,
            _ => ordering != Ordering::Less,
        })
    }

    /// Returns true if two values are equal. Values of different types, except numbers, are not.
    pub(crate) fn equal(&mut self, a: &Value, b: &Value) -> Result<bool, EvalError> {
        self.budget.spend(1)?;
        Ok(match (a, b) {
            (Value::Null, Value::Null) => true,
            (Value::Type(a), Value::Type(b)) => a == b,
            (Value::String(a), Value::String(b)) => {
                self.budget.spend_bytes(a.len().min(b.len()))?;
                a == b
            }
            (Value::Bytes(a), Value::Bytes(b)) => {
                self.budget.spend_bytes(a.len().min(b.len()))?;
                a == b
            }
            (Value::List(a), Value::List(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (a, b) in a.iter().zip(b.iter()) {
                    if !self.equal(a, b)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Map(a), Value::Map(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for ((key, a), (other, b)) in a.iter().zip(b.iter()) {
                    if let Key::String(text) = key {
                        self.budget.spend_bytes(text.len())?;
                    }
                    if key != other || !self.equal(a, b)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Optional(Some(a)), Value::Optional(Some(b))) => self.equal(a, b)?,
            (Value::Optional(None), Value::Optional(None)) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Bool(_), _) | (_, Value::Bool(_)) => false,
            _ => a.compare(b) == Some(Ordering::Equal),
        })
    }

    /// Returns true if a list has the item, or a map the key.
    pub(crate) fn contains(&mut self, of: &Value, item: &Value) -> Result<bool, EvalError> {
        match of {
            Value::Map(fields) => {
                let Some(key) = item.key() else {
                    return Ok(false);
                };
                self.budget.spend_search(fields.len(), &key)?;
                Ok(fields.contains_key(&key))
            }
            Value::List(items) => {
                for each in items.iter() {
                    if self.equal(each, item)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            other => no_overload("in", std::slice::from_ref(other)).map(|_| false),
        }
    }

    pub(crate) fn arithmetic(&mut self, operation: Arithmetic, a: Value, b: Value) -> Evaluated {
        use Arithmetic::{Add, Divide, Multiply, Remainder, Subtract};
        let zero = || EvalError::failed("division by zero");
        match (operation, &a, &b) {
            (_, Value::Int(a), Value::Int(b)) => {
                let result = match operation {
                    Add => a.checked_add(*b),
                    Subtract => a.checked_sub(*b),
                    Multiply => a.checked_mul(*b),
                    Divide | Remainder if *b == 0 => return Err(zero()),
                    Divide => a.checked_div(*b),
                    Remainder => a.checked_rem(*b),
                };
                result.map(Value::Int).ok_or_else(overflow)
            }
            (_, Value::Uint(a), Value::Uint(b)) => {
                let result = match operation {
                    Add => a.checked_add(*b),
                    Subtract => a.checked_sub(*b),
                    Multiply => a.checked_mul(*b),
                    Divide | Remainder if *b == 0 => return Err(zero()),
                    Divide => a.checked_div(*b),
                    Remainder => a.checked_rem(*b),
                };
                result.map(Value::Uint).ok_or_else(overflow)
            }
            (Add, Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
            (Subtract, Value::Double(a), Value::Double(b)) => Ok(Value::Double(a - b)),
            (Multiply, Value::Double(a), Value::Double(b)) => Ok(Value::Double(a * b)),
            (Divide, Value::Double(a), Value::Double(b)) => Ok(Value::Double(a / b)),
            (Add, Value::String(a), Value::String(b)) => {
                self.budget.spend_bytes(a.len() + b.len())?;
                self.budget.allocate(a.len() + b.len())?;
                Ok(format!("{a}{b}").into())
            }
            (Add, Value::Bytes(a), Value::Bytes(b)) => {
                self.budget.spend_bytes(a.len() + b.len())?;
                self.budget.allocate(a.len() + b.len())?;
                Ok(Value::Bytes([&a[..], &b[..]].concat().into()))
            }
            (Add, Value::List(a), Value::List(b)) => {
                self.budget.spend(a.len() + b.len())?;
                self.budget.allocate_items(a.len() + b.len())?;
                Ok(Value::List(Arc::new(a.iter().chain(b.iter()).cloned().collect())))
            }
            _ => time(operation, &a, &b).unwrap_or_else(|| no_overload("arithmetic", &[a, b])),
        }
    }
}

/// Adds and subtracts timestamps and durations; `None` for other operands.
fn time(operation: Arithmetic, a: &Value, b: &Value) -> Option<Evaluated> {
    use Arithmetic::{Add, Subtract};
    let result = match (operation, a, b) {
        (Add, Value::Duration(a), Value::Duration(b)) => a.checked_add(*b).map(Value::Duration),
        (Subtract, Value::Duration(a), Value::Duration(b)) => a.checked_sub(*b).map(Value::Duration),
        (Add, Value::Timestamp(at), Value::Duration(by))
        | (Add, Value::Duration(by), Value::Timestamp(at)) => at
            .checked_add(SignedDuration::from_nanos(*by))
            .ok()
            .and_then(Value::timestamp),
        (Subtract, Value::Timestamp(at), Value::Duration(by)) => at
            .checked_sub(SignedDuration::from_nanos(*by))
            .ok()
            .and_then(Value::timestamp),
        (Subtract, Value::Timestamp(a), Value::Timestamp(b)) => {
            i64::try_from(a.as_nanosecond() - b.as_nanosecond())
                .ok()
                .map(Value::Duration)
        }
        _ => return None,
    };
    Some(result.ok_or_else(|| EvalError::failed("a time is out of range")))
}
