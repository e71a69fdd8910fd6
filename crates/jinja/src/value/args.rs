//! The arguments of a call.

use super::{Str, Value};
use crate::exc::{R, type_error};

#[derive(Debug, Clone, Default)]
pub(crate) struct Args {
    pub(crate) plain: Vec<Value>,
    pub(crate) named: Vec<(Str, Value)>,
}

/// Arguments by their names.
pub(crate) struct Bound<const N: usize> {
    values: [Option<Value>; N],
}

impl Args {
    pub(crate) fn of(plain: Vec<Value>) -> Self {
        Self {
            plain,
            named: Vec::new(),
        }
    }

    /// Assigns arguments to names; the first `required` ones must be given.
    pub(crate) fn bind<const N: usize>(
        self,
        function: &str,
        names: [&str; N],
        required: usize,
    ) -> R<Bound<N>> {
        let given = self.plain.len();
        if given > N {
            return type_error(format!(
                "{function}() takes at most {N} argument{} ({given} given)",
                if N == 1 { "" } else { "s" }
            ));
        }
        let mut values: [Option<Value>; N] = std::array::from_fn(|_| None);
        for (slot, value) in values.iter_mut().zip(self.plain) {
            *slot = Some(value);
        }
        for (name, value) in self.named {
            let slot = names.iter().position(|known| **known == *name);
            let Some(slot) = slot.and_then(|slot| values.get_mut(slot)) else {
                return type_error(format!(
                    "{function}() got an unexpected keyword argument '{name}'"
                ));
            };
            if slot.replace(value).is_some() {
                return type_error(format!("{function}() got multiple values for argument '{name}'"));
            }
        }
        let missing = names
            .iter()
            .zip(&values)
            .take(required)
            .find(|(_, value)| value.is_none());
        if let Some((name, _)) = missing {
            return type_error(format!(
                "{function}() missing 1 required positional argument: '{name}'"
            ));
        }
        Ok(Bound { values })
    }

    /// Likewise, for functions without named arguments.
    pub(crate) fn plain<const N: usize>(self, function: &str, required: usize) -> R<Bound<N>> {
        if !self.named.is_empty() {
            return type_error(format!("{function}() takes no keyword arguments"));
        }
        self.bind(function, [""; N], required)
    }

    pub(crate) fn none(self, function: &str) -> R<()> {
        self.plain::<0>(function, 0).map(|_| ())
    }

    pub(crate) fn take_named(&mut self, name: &str) -> Option<Value> {
        let at = self.named.iter().position(|(known, _)| **known == *name)?;
        Some(self.named.remove(at).1)
    }
}

impl<const N: usize> Bound<N> {
    pub(crate) fn get(&self, index: usize) -> Option<&Value> {
        self.values.get(index).and_then(Option::as_ref)
    }

    pub(crate) fn value(&self, index: usize) -> Value {
        self.get(index).cloned().unwrap_or(Value::None)
    }

    pub(crate) fn flag(&self, index: usize, default: bool) -> R<bool> {
        self.get(index).map_or(Ok(default), Value::truth)
    }

    pub(crate) fn int(&self, index: usize, default: i64) -> R<i64> {
        match self.get(index) {
            None => Ok(default),
            Some(value) => to_int(value),
        }
    }

    pub(crate) fn optional_int(&self, index: usize) -> R<Option<i64>> {
        match self.get(index) {
            None | Some(Value::None) => Ok(None),
            Some(value) => to_int(value).map(Some),
        }
    }

    /// Returns a string; other types fail.
    pub(crate) fn text(&self, index: usize, default: &str) -> R<Str> {
        match self.get(index) {
            None => Ok(default.into()),
            Some(value) => to_text(value),
        }
    }

    pub(crate) fn optional_text(&self, index: usize) -> R<Option<Str>> {
        match self.get(index) {
            None | Some(Value::None) => Ok(None),
            Some(value) => to_text(value).map(Some),
        }
    }
}

/// Converts to an integer; one that is too large counts as the largest.
pub(crate) fn to_int(value: &Value) -> R<i64> {
    match value {
        Value::Int(number) => Ok(*number),
        Value::Bool(flag) => Ok(i64::from(*flag)),
        Value::Big(number) if number.sign() == num_bigint::Sign::Minus => Ok(i64::MIN),
        Value::Big(_) => Ok(i64::MAX),
        _ => type_error(format!(
            "'{}' object cannot be interpreted as an integer",
            value.type_name()
        )),
    }
}

pub(crate) fn to_text(value: &Value) -> R<Str> {
    match value.as_str() {
        Some(text) => Ok(text.clone()),
        None => type_error(format!("expected str, not {}", value.type_name())),
    }
}
