//! The values of templates, with the types of Go.
//!
//! Maps are shared and mutable, as in Go: sprig's `set` changes the map that others see. Integers know their Go type, since
//! `kindOf`, `printf` and comparisons distinguish them; numbers of values files are floats.

use std::{any::Any, cell::RefCell, collections::BTreeMap, fmt, rc::Rc};

use tree::Budget;

use crate::template::Signature;
use crate::template::{FormatError, FunctionError};

/// A list; it is copied to be changed.
pub type List = Rc<Vec<Value>>;

pub type Dict = Rc<RefCell<BTreeMap<Rc<str>, Value>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntKind {
    /// `int`, the type of literals in templates.
    Int,
    /// `int64`, the type of sprig's arithmetic.
    Int64,
    /// `int32`, the type of characters.
    Int32,
    Uint8,
    Uint32,
    Uint64,
}

thread_local! {
    // Nil slices print differently from empty ones; pointer equality with this one marks them.
    static NIL_LIST: List = List::default();
}

#[derive(Clone, Default)]
pub enum Value {
    #[default]
    Nil,
    /// A key that a map does not have. Prints as `<no value>`.
    Missing,
    Bool(bool),
    Int(i128, IntKind),
    Float(f64),
    /// Bytes, in the form of [`go::bytes`]: a Rust string is its own form, with hardly an exception.
    String(Rc<str>),
    Bytes(Rc<[u8]>),
    /// `[]interface{}` (or `[]string`, see [`Value::Strings`]).
    List(List),
    /// `[]string`: `typeOf` and `printf "%#v"` distinguish it from a list.
    Strings(List),
    /// `[]int`, as `until` makes it.
    Ints(List),
    Dict(Dict),
    /// A type with methods and fields of its own: files, capabilities, a time, an error.
    Object(Rc<dyn Object>),
}

pub trait Object: fmt::Debug {
    /// Returns the name of the Go type, as `typeOf` prints it.
    fn type_name(&self) -> &str;

    /// Returns the kind of the Go type, as `kindOf` prints it.
    fn kind_name(&self) -> &'static str {
        "struct"
    }

    fn field(&self, name: &str) -> Option<Value>;

    fn signature(&self, name: &str) -> Option<Signature> {
        let _ = name;
        None
    }

    /// Calls a method; returns `None` if the name is unknown.
    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, FunctionError>>;

    /// Calls a method that counts its own work within a budget; all others as [`Object::call`].
    fn call_within(
        &self,
        name: &str,
        arguments: &[Value],
        budget: &Budget,
    ) -> Option<Result<Value, FunctionError>> {
        let _ = budget;
        self.call(name, arguments)
    }

    /// Returns the budget steps of a call, without the steps for the size of its result.
    fn cost(&self, name: &str, arguments: &[Value]) -> u64 {
        let _ = (name, arguments);
        0
    }

    fn as_dict(&self) -> Option<Dict> {
        None
    }

    /// Returns a copy of the object that is the given map.
    fn with_dict(&self, map: Dict) -> Value {
        Value::Dict(map)
    }

    /// Returns true if the values of the map are of type `interface {}`, false if all are strings.
    fn has_any_values(&self) -> bool {
        true
    }

    fn as_list(&self) -> Option<List> {
        None
    }

    /// Returns the number of a named integer type, such as `time.Duration`.
    fn integer(&self) -> Option<i64> {
        None
    }

    /// Returns another number of the same integer type.
    fn with_integer(&self, number: i64) -> Value {
        Value::int64(number)
    }

    /// Returns true if `==` of Go holds for two values that are not the same pointer.
    fn equals(&self, other: &dyn Object) -> bool {
        let _ = other;
        false
    }

    /// Returns the plain data that `toYaml` and `toJson` print; `None` if it is the string of [`Object::print`].
    fn data(&self) -> Option<Value> {
        match self.as_dict() {
            Some(map) => Some(Value::Dict(map)),
            None => self.as_list().map(Value::List),
        }
    }

    /// Returns the plain data that `toYamlPretty` and `toToml` print, which don't convert through JSON.
    fn text_data(&self) -> Option<Value> {
        self.data()
    }

    /// Returns the form in which `toToml` writes a time.
    fn toml(&self) -> Option<String> {
        None
    }

    /// Returns names and values of the JSON fields of structs, in their order.
    fn members(&self) -> Option<Vec<(&'static str, Value)>> {
        None
    }

    /// Returns the object for downcasts of functions that take one type.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// Formats the object as `{{ . }}` does. Fails if a limit of the budget is reached.
    fn print(&self, budget: &Budget) -> Result<String, FormatError>;

    /// Formats the object as an argument of functions, which don't call `String` of pointers. Fails as [`Object::print`].
    fn print_as_argument(&self, budget: &Budget) -> Result<String, FormatError> {
        self.print(budget)
    }

    /// Returns true if `if` considers the object true.
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
    /// Makes a string of another's form; [`Value::utf8`] and [`Value::bytes`] make the form.
    pub fn string(text: impl Into<Rc<str>>) -> Self {
        Self::String(text.into())
    }

    /// Makes a string of a Rust string from outside of templates.
    #[must_use]
    pub fn utf8(text: &str) -> Self {
        Self::String(go::bytes::of_utf8(text).into())
    }

    /// Makes a string of any bytes.
    #[must_use]
    pub fn bytes(bytes: &[u8]) -> Self {
        Self::String(go::bytes::to_string(bytes).into())
    }

    /// Gives a string that a function joined its one form.
    #[must_use]
    pub(crate) fn joined(self) -> Self {
        match &self {
            Self::String(text) => go::bytes::joined(text).map_or(self, Self::string),
            _ => self,
        }
    }

    #[must_use]
    pub fn int(value: i64) -> Self {
        Self::Int(value.into(), IntKind::Int)
    }

    #[must_use]
    pub fn int64(value: i64) -> Self {
        Self::Int(value.into(), IntKind::Int64)
    }

    #[must_use]
    pub fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(items))
    }

    /// Returns a nil `[]interface {}`: empty, but `null` in JSON and YAML.
    #[must_use]
    pub fn nil_list() -> Self {
        Self::List(NIL_LIST.with(Rc::clone))
    }

    #[must_use]
    pub fn nil_strings() -> Self {
        Self::Strings(NIL_LIST.with(Rc::clone))
    }

    #[must_use]
    pub fn is_nil_list(&self) -> bool {
        match self {
            Self::List(items) | Self::Strings(items) | Self::Ints(items) => {
                NIL_LIST.with(|nil| Rc::ptr_eq(nil, items))
            }
            _ => false,
        }
    }

    /// Returns the number of an integer, also of a named type.
    #[must_use]
    pub fn as_integer(&self) -> Option<i128> {
        match self {
            Self::Int(number, _) => Some(*number),
            Self::Object(object) => object.integer().map(i128::from),
            _ => None,
        }
    }

    /// Returns the entries of a map, or of an object that is a map.
    #[must_use]
    pub fn as_dict(&self) -> Option<Dict> {
        match self {
            Self::Dict(map) => Some(map.clone()),
            Self::Object(object) => object.as_dict(),
            _ => None,
        }
    }

    /// Returns the items of a list, or of an object that is a list.
    #[must_use]
    pub fn as_list(&self) -> Option<List> {
        match self {
            Self::List(items) | Self::Strings(items) | Self::Ints(items) => Some(items.clone()),
            Self::Object(object) => object.as_list(),
            _ => None,
        }
    }

    pub fn dict<K: Into<Rc<str>>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        let map = entries
            .into_iter()
            .map(|(key, value)| (key.into(), value))
            .collect();
        Self::Dict(Rc::new(RefCell::new(map)))
    }
}
