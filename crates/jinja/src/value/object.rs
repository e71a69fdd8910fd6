//! Objects that aren't plain data: functions, loops, modules, times.

use std::{
    cell::{Cell, RefCell},
    cmp::Ordering,
    rc::Rc,
};

use super::{Dict, Str, Tuple, Value, date::Date};
use crate::{
    eval::{call::Builtin, context::Context, loops::LoopState, macros::MacroObj},
    exc::{R, raise},
    time::Time,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViewKind {
    Keys,
    Values,
    Items,
}

/// What `keys()`, `values()` and `items()` give.
pub(crate) struct View {
    pub(crate) dict: Rc<Dict>,
    pub(crate) kind: ViewKind,
}

/// A block, with those of the templates that it extends.
pub(crate) struct BlockRef {
    pub(crate) ctx: Rc<Context>,
    pub(crate) name: Str,
    pub(crate) depth: usize,
}

/// A template that was imported.
pub(crate) struct Module {
    pub(crate) name: Str,
    pub(crate) exports: Rc<Dict>,
    pub(crate) body: Str,
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
    Loop(LoopState),
    Macro(MacroObj),
    Function(&'static Builtin),
    Method {
        on: Value,
        name: &'static str,
    },
    Module(Module),
    /// `self` of a template.
    Blocks(Rc<Context>),
    Block(BlockRef),
    Type(&'static str),
    Time(RefCell<Time>),
    Date(Date),
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
            Self::Loop(_) => "LoopContext",
            Self::Macro(_) => "Macro",
            Self::Function(function) if function.is_type => "type",
            Self::Function(_) => "function",
            Self::Method { .. } => "builtin_function_or_method",
            Self::Module(_) => "TemplateModule",
            Self::Blocks(_) => "TemplateReference",
            Self::Block(_) => "BlockReference",
            Self::Type(_) => "type",
            Self::Time(_) => "SimpleTime",
            Self::Date(date) => date.type_name(),
            Self::Library("time") => "TimeModule",
            Self::Library("images") => "Images",
            Self::Library(_) => "Version",
            Self::Slice(_) => "slice",
        }
    }

    /// The module of its type, unless it is a part of Python.
    pub(crate) fn module(&self) -> Option<&'static str> {
        match self {
            Self::Namespace(_) | Self::Cycler { .. } | Self::Joiner { .. } => Some("jinja2.utils"),
            Self::Loop(_) | Self::Macro(_) | Self::Blocks(_) | Self::Block(_) => Some("jinja2.runtime"),
            Self::Module(_) => Some("jinja2.environment"),
            Self::Time(_) | Self::Library(_) => Some("go_jinja2.ext"),
            Self::Date(_) => Some("datetime"),
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
        matches!(
            self,
            Self::Joiner { .. }
                | Self::Macro(_)
                | Self::Function(_)
                | Self::Method { .. }
                | Self::Block(_)
                | Self::Type(_)
                | Self::Loop(_)
        )
    }

    /// Methods are made anew each time they are asked for.
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Function(a), Self::Function(b)) => std::ptr::eq(*a, *b),
            (Self::Date(a), Self::Date(b)) => a == b,
            (Self::Type(a), Self::Type(b)) | (Self::Library(a), Self::Library(b)) => a == b,
            _ => false,
        }
    }

    pub(crate) fn is_time(&self) -> bool {
        matches!(self, Self::Time(_))
    }

    /// Compares a time with another one.
    pub(crate) fn time_order(&self, other: &Value) -> R<Ordering> {
        let (Self::Time(time), Value::Object(other)) = (self, other) else {
            return raise("ValueError", "value is not a SimpleTime");
        };
        match &**other {
            Self::Time(other) => time.borrow().order(&other.borrow()),
            _ => raise("ValueError", "value is not a SimpleTime"),
        }
    }
}
