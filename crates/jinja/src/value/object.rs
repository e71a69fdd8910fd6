//! Objects that aren't plain data: functions, loops, modules, times.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    cmp::Ordering,
    rc::Rc,
};

use super::{Dict, Str, Tuple, Value, date::Date, delta::Delta};
use crate::{
    exc::{R, raise},
    rt::Rt,
    time::Time,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViewKind {
    Keys,
    Values,
    Items,
}

pub(crate) struct View {
    pub(crate) dict: Rc<Dict>,
    pub(crate) kind: ViewKind,
}

pub(crate) struct Module {
    pub(crate) name: Str,
    pub(crate) exports: Rc<Dict>,
    pub(crate) body: Str,
}

/// An object of the evaluator, with the properties that Python has for every object.
pub(crate) trait RuntimeObject: Any {
    fn type_name(&self) -> &'static str;

    /// Returns the module of its type; `None` for a type of Python.
    fn module(&self) -> Option<&'static str> {
        Some("jinja2.runtime")
    }

    fn is_callable(&self) -> bool {
        true
    }

    /// Returns true for the same object, though it was made twice.
    fn is_same(&self, _: &dyn RuntimeObject) -> bool {
        false
    }

    fn methods(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns an attribute that is not a method.
    fn attribute(&self, rt: &Rt, name: &str) -> R<Option<Value>>;

    fn item(&self, _: &Str) -> Option<Value> {
        None
    }

    /// Returns true if it can be iterated by [`Self::next`].
    fn is_iterable(&self) -> bool {
        false
    }

    fn next(&self, _: &Rt) -> R<Option<Value>> {
        Ok(None)
    }

    /// Returns its own `repr`, if there is one; `address` is the constant address.
    fn repr(&self, _: &Rt, _address: &str) -> R<Option<String>> {
        Ok(None)
    }
}

pub(crate) enum Object {
    View(View),
    Namespace(Rc<Dict>),
    Cycler {
        items: Tuple,
        at: Cell<usize>,
    },
    Joiner {
        separator: Value,
        used: Cell<bool>,
    },
    /// A function, a macro, a loop or a block of a template.
    Runtime(Box<dyn RuntimeObject>),
    Method {
        on: Value,
        name: &'static str,
    },
    Module(Module),
    Type(&'static str),
    Time(RefCell<Time>),
    Date(Date),
    Delta(Delta),
    /// `time`, `images` and `version`.
    Library(&'static str),
    Slice([Value; 3]),
}

impl Object {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::View(view) => match view.kind {
                ViewKind::Keys => "dict_keys",
                ViewKind::Values => "dict_values",
                ViewKind::Items => "dict_items",
            },
            Self::Namespace(_) => "Namespace",
            Self::Cycler { .. } => "Cycler",
            Self::Joiner { .. } => "Joiner",
            Self::Runtime(object) => object.type_name(),
            Self::Method { .. } => "builtin_function_or_method",
            Self::Module(_) => "TemplateModule",
            Self::Type(_) => "type",
            Self::Time(_) => "SimpleTime",
            Self::Date(date) => date.type_name(),
            Self::Delta(_) => "timedelta",
            Self::Library("time") => "TimeModule",
            Self::Library("images") => "Images",
            Self::Library(_) => "Version",
            Self::Slice(_) => "slice",
        }
    }

    /// Returns the module of its type; `None` for a type of Python.
    pub(crate) fn module(&self) -> Option<&'static str> {
        match self {
            Self::Namespace(_) | Self::Cycler { .. } | Self::Joiner { .. } => Some("jinja2.utils"),
            Self::Runtime(object) => object.module(),
            Self::Module(_) => Some("jinja2.environment"),
            Self::Time(_) | Self::Library(_) => Some("go_jinja2.ext"),
            Self::Date(_) | Self::Delta(_) => Some("datetime"),
            _ => None,
        }
    }

    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Self::View(view) => Some(view.dict.len()),
            _ => None,
        }
    }

    pub(crate) fn is_callable(&self) -> bool {
        match self {
            Self::Joiner { .. } | Self::Method { .. } | Self::Type(_) => true,
            Self::Runtime(object) => object.is_callable(),
            _ => false,
        }
    }

    pub(crate) fn runtime<T: RuntimeObject>(&self) -> Option<&T> {
        let Self::Runtime(object) = self else { return None };
        let object: &dyn Any = &**object;
        object.downcast_ref()
    }

    /// Methods are made anew each time they are used.
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Runtime(a), Self::Runtime(b)) => a.is_same(&**b),
            (Self::Date(a), Self::Date(b)) => a.order(b) == Some(Ordering::Equal),
            (Self::Delta(a), Self::Delta(b)) => a == b,
            (Self::Type(a), Self::Type(b)) | (Self::Library(a), Self::Library(b)) => a == b,
            _ => false,
        }
    }

    pub(crate) fn is_time(&self) -> bool {
        matches!(self, Self::Time(_))
    }

    /// Compares two times; other values fail.
    pub(crate) fn time_equals(&self, other: &Value) -> R<bool> {
        self.times(other, |own, other| Ok(own.equals(other)))
    }

    pub(crate) fn time_order(&self, other: &Value) -> R<Ordering> {
        self.times(other, Time::order)
    }

    fn times<T>(&self, other: &Value, compare: impl FnOnce(&Time, &Time) -> R<T>) -> R<T> {
        if let (Self::Time(time), Value::Object(other)) = (self, other)
            && let Self::Time(other) = &**other
        {
            return compare(&time.borrow(), &other.borrow());
        }
        raise("ValueError", "value is not a SimpleTime")
    }
}
