//! The values of templates: what Go's text/template works on.
//!
//! Maps are shared and mutable, as in Go: sprig's `set` changes the map that others see too. Integers know which of Go's
//! types they have, since `kindOf`, `printf` and comparisons tell them apart; numbers of values files are floats.

use std::{any::Any, cell::RefCell, collections::BTreeMap, fmt, rc::Rc};

use crate::template::FunctionError;
use crate::template::Signature;

/// A list; it is never changed, only copied with more.
pub type List = Rc<Vec<Value>>;

/// A map, in key order as templates see it, shared by all that hold it.
pub type Dict = Rc<RefCell<BTreeMap<Rc<str>, Value>>>;

/// Which integer type of Go a number has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `int`, as literals in templates have it.
    Int,
    /// `int64`, as sprig's arithmetic gives it.
    Int64,
    /// `int32`, as a character is.
    Int32,
    /// `uint8`.
    Uint8,
    /// `uint32`.
    Uint32,
    /// `uint64`.
    Uint64,
}

thread_local! {
    // Nil slices are empty ones that can be told from others: there is only one.
    static NIL_LIST: List = List::default();
}

/// A value in a template.
#[derive(Clone, Default)]
pub enum Value {
    /// `nil`, an interface without a value.
    #[default]
    Nil,
    /// No value at all: a key that a map does not have. Prints as `<no value>`.
    Missing,
    /// `bool`.
    Bool(bool),
    /// An integer, and its type.
    Int(i128, Kind),
    /// `float64`.
    Float(f64),
    /// `string`.
    String(Rc<str>),
    /// `[]byte`.
    Bytes(Rc<[u8]>),
    /// `[]interface{}` (or `[]string`, see [`Value::Strings`]).
    List(List),
    /// `[]string`: `typeOf` and `printf "%#v"` tell it from a list.
    Strings(List),
    /// `[]int`, as `until` makes it.
    Ints(List),
    /// `map[string]interface{}`.
    Dict(Dict),
    /// Something with methods and fields of its own: files, capabilities, a time, an error.
    Object(Rc<dyn Object>),
}

/// Something of Go's world that templates see through methods and fields.
pub trait Object: fmt::Debug {
    /// The name of its Go type, as `typeOf` prints it.
    fn type_name(&self) -> &str;

    /// The kind of its Go type, as `kindOf` prints it.
    fn kind_name(&self) -> &'static str {
        "struct"
    }

    /// A field, or a method without arguments; `None` when it has none of that name.
    fn field(&self, name: &str) -> Option<Value>;

    /// The parameters of a method, so that wrong arguments are refused as Go refuses them; `None` when it doesn't tell.
    fn signature(&self, name: &str) -> Option<Signature> {
        let _ = name;
        None
    }

    /// Calls a method; `None` when it has none of that name.
    ///
    /// # Errors
    /// What the method answers instead of a value.
    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, FunctionError>>;

    /// How many steps a call takes, apart from what its answer weighs.
    fn cost(&self, name: &str, arguments: &[Value]) -> u64 {
        let _ = (name, arguments);
        0
    }

    /// What `range`, `index`, `len` and the functions on maps see, when it is a map.
    fn as_dict(&self) -> Option<Dict> {
        None
    }

    /// Whether the values of the map that it is may be anything, or are all of one type.
    fn has_any_values(&self) -> bool {
        true
    }

    /// What `range`, `index`, `len` and the functions on lists see, when it is a list.
    fn as_list(&self) -> Option<List> {
        None
    }

    /// What it is as plain data: what `toYaml` and `toJson` write.
    fn data(&self) -> Value {
        match (self.as_dict(), self.as_list()) {
            (Some(map), _) => Value::Dict(map),
            (None, Some(items)) => Value::List(items),
            (None, None) => Value::string(self.print()),
        }
    }

    /// Its members as JSON has them, in their order, when it is a struct.
    fn members(&self) -> Option<Vec<(&'static str, Value)>> {
        None
    }

    /// Itself, for functions that take objects of one kind, such as times.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// How `{{ . }}` prints it.
    fn print(&self) -> String;

    /// How functions print it: they don't ask what a pointer leads to for its own words.
    fn print_as_argument(&self) -> String {
        self.print()
    }

    /// Whether `if` takes it for true.
    fn truth(&self) -> bool {
        true
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => f.write_str("nil"),
            Self::Missing => f.write_str("<no value>"),
            Self::Bool(value) => value.fmt(f),
            Self::Int(value, _) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::String(value) => value.fmt(f),
            Self::Bytes(value) => value.fmt(f),
            Self::List(items) | Self::Strings(items) | Self::Ints(items) => {
                f.debug_list().entries(items.iter()).finish()
            }
            Self::Dict(map) => match map.try_borrow() {
                Ok(map) => f.debug_map().entries(map.iter()).finish(),
                Err(_) => f.write_str("{..}"),
            },
            Self::Object(object) => object.fmt(f),
        }
    }
}

impl Value {
    /// A string.
    pub fn string(text: impl Into<Rc<str>>) -> Self {
        Self::String(text.into())
    }

    /// An `int`.
    #[must_use]
    pub fn int(value: i64) -> Self {
        Self::Int(value.into(), Kind::Int)
    }

    /// An `int64`.
    #[must_use]
    pub fn int64(value: i64) -> Self {
        Self::Int(value.into(), Kind::Int64)
    }

    /// A list.
    #[must_use]
    pub fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(items))
    }

    /// A nil `[]interface {}`: empty, but `null` in JSON and YAML.
    #[must_use]
    pub fn nil_list() -> Self {
        Self::List(NIL_LIST.with(Rc::clone))
    }

    /// A nil `[]string`.
    #[must_use]
    pub fn nil_strings() -> Self {
        Self::Strings(NIL_LIST.with(Rc::clone))
    }

    /// Whether this is a list that is nil.
    #[must_use]
    pub fn is_nil_list(&self) -> bool {
        match self {
            Self::List(items) | Self::Strings(items) | Self::Ints(items) => {
                NIL_LIST.with(|nil| Rc::ptr_eq(nil, items))
            }
            _ => false,
        }
    }

    /// The map of a map, or of an object that is one.
    #[must_use]
    pub fn as_dict(&self) -> Option<Dict> {
        match self {
            Self::Dict(map) => Some(map.clone()),
            Self::Object(object) => object.as_dict(),
            _ => None,
        }
    }

    /// The items of a list, or of an object that is one.
    #[must_use]
    pub fn as_list(&self) -> Option<List> {
        match self {
            Self::List(items) | Self::Strings(items) | Self::Ints(items) => Some(items.clone()),
            Self::Object(object) => object.as_list(),
            _ => None,
        }
    }

    /// A map.
    pub fn dict<K: Into<Rc<str>>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        let map = entries
            .into_iter()
            .map(|(key, value)| (key.into(), value))
            .collect();
        Self::Dict(Rc::new(RefCell::new(map)))
    }
}
