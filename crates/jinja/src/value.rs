//! Values of Python: containers are shared and mutable, integers have any size.

pub(crate) mod args;
pub(crate) mod compare;
pub(crate) mod date;
pub(crate) mod delta;
pub(crate) mod dict;
pub(crate) mod frozen;
pub(crate) mod iter;
pub(crate) mod members;
pub(crate) mod number;
pub(crate) mod object;
pub(crate) mod operator;
pub(crate) mod origin;
pub(crate) mod sequence;
pub(crate) mod sort;
mod strftime;

use std::{cell::RefCell, rc::Rc, sync::Arc};

use num_bigint::BigInt;

pub(crate) use crate::text::char_count;
pub(crate) use dict::{Dict, DictMap, Key};
pub(crate) use iter::{Iter, IterObj};
pub(crate) use object::Object;
pub(crate) use sequence::{List, Range, Tuple};

use crate::{
    error::display_name,
    exc::{R, raise, type_error},
    text::quoted,
};

pub(crate) type Str = Arc<str>;

#[derive(Clone, Default)]
pub(crate) enum Value {
    /// A slot or an argument without a value.
    #[default]
    Missing,
    Undefined(Rc<Undef>),
    None,
    Bool(bool),
    Int(i64),
    Big(Rc<BigInt>),
    Float(f64),
    Str(Str),
    /// An escaped string.
    Markup(Str),
    Bytes(Rc<[u8]>),
    List(Rc<List>),
    Tuple(Rc<Tuple>),
    Dict(Rc<Dict>),
    Range(Rc<Range>),
    Iter(Rc<IterObj>),
    Object(Rc<Object>),
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.type_name())
    }
}

#[derive(Debug)]
pub(crate) enum Undef {
    Name(Str),
    /// An attribute or item of an object of this type.
    Attr {
        of: String,
        key: Str,
    },
    /// An item of a sequence.
    Element {
        of: String,
        index: String,
    },
    Hint(String),
    /// The result of an `if` without an `else`, with its position: it prints nothing.
    Nothing {
        line: u32,
        file: Str,
    },
}

impl Undef {
    /// Returns the error message of its use.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Name(name) => format!("{} is undefined", quoted(name)),
            Self::Attr { of, key } => format!("{} has no attribute {}", quoted(of), quoted(key)),
            Self::Element { of, index } => format!("{of} has no element {index}"),
            Self::Hint(text) => text.clone(),
            Self::Nothing { line, file } => format!(
                "the inline if-expression on line {line} in {} evaluated to false and no else section was defined.",
                quoted(&display_name(file))
            ),
        }
    }

    pub(crate) fn fail<T>(&self) -> R<T> {
        raise("UndefinedError", self.message())
    }
}

impl Value {
    pub(crate) fn str(text: impl Into<Str>) -> Self {
        Self::Str(text.into())
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(List::new(items)))
    }

    pub(crate) fn tuple(items: Vec<Self>) -> Self {
        Self::Tuple(Rc::new(Tuple::new(items)))
    }

    pub(crate) fn dict(map: DictMap) -> Self {
        Self::Dict(Rc::new(Dict::new(map)))
    }

    pub(crate) fn object(object: Object) -> Self {
        Self::Object(Rc::new(object))
    }

    pub(crate) fn undefined(why: Undef) -> Self {
        Self::Undefined(Rc::new(why))
    }

    pub(crate) fn hint(text: impl Into<String>) -> Self {
        Self::undefined(Undef::Hint(text.into()))
    }

    pub(crate) fn int(number: usize) -> Self {
        i64::try_from(number).map_or_else(|_| number::from_big(BigInt::from(number)), Self::Int)
    }

    /// Makes a string that is escaped if the input was.
    pub(crate) fn like(input: &Self, text: Str) -> Self {
        match input {
            Self::Markup(_) => Self::Markup(text),
            _ => Self::Str(text),
        }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Undefined(why) if matches!(**why, Undef::Nothing { .. }) => "Undefined",
            Self::Undefined(_) => "StrictUndefined",
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Big(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "str",
            Self::Markup(_) => "Markup",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Tuple(tuple) if tuple.group => "_GroupTuple",
            Self::Tuple(_) => "tuple",
            Self::Dict(_) => "dict",
            Self::Range(_) => "range",
            Self::Iter(iter) => iter.label,
            Self::Object(object) => object.type_name(),
        }
    }

    /// Returns the name of the value in messages about missing attributes.
    pub(crate) fn described(&self) -> String {
        match self {
            Self::None => "None".to_owned(),
            Self::Markup(_) => "markupsafe.Markup object".to_owned(),
            Self::Tuple(tuple) if tuple.group => "jinja2.filters._GroupTuple object".to_owned(),
            Self::Object(object) if object.module().is_some() => {
                format!(
                    "{}.{} object",
                    object.module().unwrap_or_default(),
                    self.type_name()
                )
            }
            _ => format!("{} object", self.type_name()),
        }
    }

    pub(crate) fn as_str(&self) -> Option<&Str> {
        match self {
            Self::Str(text) | Self::Markup(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined(_) | Self::Missing)
    }

    /// Fails for strictly undefined values.
    pub(crate) fn defined(&self) -> R<&Self> {
        match self {
            Self::Undefined(why) if !matches!(**why, Undef::Nothing { .. }) => why.fail(),
            _ => Ok(self),
        }
    }

    /// Returns Python's truth of the value.
    pub(crate) fn truth(&self) -> R<bool> {
        Ok(match self {
            Self::Undefined(why) => match **why {
                Undef::Nothing { .. } => false,
                _ => return why.fail(),
            },
            Self::None | Self::Missing => false,
            Self::Bool(flag) => *flag,
            Self::Int(number) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Str(text) | Self::Markup(text) => !text.is_empty(),
            Self::Bytes(bytes) => !bytes.is_empty(),
            Self::List(list) => list.len() > 0,
            Self::Tuple(tuple) => !tuple.items.is_empty(),
            Self::Dict(dict) => dict.len() > 0,
            Self::Range(range) => range.len() > 0,
            Self::Object(object) => match &**object {
                Object::Delta(delta) => !delta.is_zero(),
                object => object.len().is_none_or(|len| len > 0),
            },
            Self::Big(_) | Self::Iter(_) => true,
        })
    }

    /// Returns Python's `len`. Callers count it with `Rt::length`.
    pub(crate) fn len(&self) -> R<usize> {
        let len = match self {
            Self::Undefined(why) => match **why {
                Undef::Nothing { .. } => Some(0),
                _ => return why.fail(),
            },
            Self::Str(text) | Self::Markup(text) => Some(char_count(text)),
            Self::Bytes(bytes) => Some(bytes.len()),
            Self::List(list) => Some(list.len()),
            Self::Tuple(tuple) => Some(tuple.items.len()),
            Self::Dict(dict) => Some(dict.len()),
            Self::Range(range) => usize::try_from(range.len()).ok(),
            Self::Object(object) => object.len(),
            _ => None,
        };
        match len {
            Some(len) => Ok(len),
            None => type_error(format!("object of type '{}' has no len()", self.type_name())),
        }
    }

    /// Python's `is`, as far as it can be decided.
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Big(a), Self::Big(b)) => Rc::ptr_eq(a, b),
            (Self::Str(a), Self::Str(b)) | (Self::Markup(a), Self::Markup(b)) => Arc::ptr_eq(a, b) || a == b,
            (Self::Bytes(a), Self::Bytes(b)) => Rc::ptr_eq(a, b),
            (Self::List(a), Self::List(b)) => Rc::ptr_eq(a, b),
            (Self::Tuple(a), Self::Tuple(b)) => Rc::ptr_eq(a, b) || a.items.is_empty() && b.items.is_empty(),
            (Self::Dict(a), Self::Dict(b)) => Rc::ptr_eq(a, b),
            (Self::Range(a), Self::Range(b)) => Rc::ptr_eq(a, b),
            (Self::Iter(a), Self::Iter(b)) => Rc::ptr_eq(a, b),
            (Self::Object(a), Self::Object(b)) => Rc::ptr_eq(a, b) || a.same(b),
            (Self::Undefined(a), Self::Undefined(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }

    pub(crate) fn address(&self) -> usize {
        match self {
            Self::List(list) => Rc::as_ptr(list).addr(),
            Self::Tuple(tuple) => Rc::as_ptr(tuple).addr(),
            Self::Dict(dict) => Rc::as_ptr(dict).addr(),
            Self::Range(range) => Rc::as_ptr(range).addr(),
            Self::Iter(iter) => Rc::as_ptr(iter).addr(),
            Self::Object(object) => Rc::as_ptr(object).addr(),
            Self::Undefined(why) => Rc::as_ptr(why).addr(),
            _ => 0,
        }
    }

    /// Returns true if dropping the value may drop others.
    fn holds_others(&self) -> bool {
        matches!(
            self,
            Self::List(_) | Self::Tuple(_) | Self::Dict(_) | Self::Iter(_) | Self::Object(_)
        )
    }
}

thread_local! {
    /// Values whose owner was dropped. They are dropped from here, so that deep nesting doesn't recurse.
    static GRAVES: RefCell<(bool, Vec<Value>)> = const { RefCell::new((false, Vec::new())) };
}

/// Drops values in a loop instead of recursively.
pub(crate) fn bury(values: impl Iterator<Item = Value>) {
    let digs = GRAVES.try_with(|graves| {
        let mut graves = graves.borrow_mut();
        graves.1.extend(values.filter(Value::holds_others));
        !graves.0 && !graves.1.is_empty() && {
            graves.0 = true;
            true
        }
    });
    if digs != Ok(true) {
        return;
    }
    loop {
        let next = GRAVES.try_with(|graves| {
            let mut graves = graves.borrow_mut();
            let next = graves.1.pop();
            graves.0 = next.is_some();
            next
        });
        match next {
            Ok(Some(value)) => drop(value),
            _ => return,
        }
    }
}
