//! Semantic versions and their ranges.

use std::{any::Any, borrow::Cow, cell::RefCell, rc::Rc};

use tree::Budget;
use versions::{Constraint, Version, VersionError};

use super::{
    arguments::{NIL_POINTER, text},
    context::Context,
    error_value::ErrorValue,
    table::{Answer, Entry, fixed},
};
use crate::{
    Object, Value,
    template::{FormatError, FunctionError, Signature, Type},
};

pub(super) const TABLE: &[Entry] = &[
    fixed("semver", &[Type::String], semver),
    fixed("semverCompare", &[Type::String, Type::String], compare),
];

/// Maximum lengths and number of alternatives of the library of Helm 4; Helm 3 has none, and ours apply.
const MAX_VERSION: usize = 256;
const MAX_CONSTRAINT: usize = 512;
const MAX_GROUPS: usize = 32;

fn version(context: &Context<'_>, given: &str) -> Result<Version, FunctionError> {
    if context.helm.is_four() && given.len() > MAX_VERSION {
        return Err(format!("version string is too long (max {MAX_VERSION} bytes)").into());
    }
    Ok(Version::parse(given)?)
}

fn constraint(context: &Context<'_>, given: &str) -> Result<Constraint, FunctionError> {
    if !context.helm.is_four() {
        return Ok(Constraint::parse(given)?);
    }
    if given.len() > MAX_CONSTRAINT {
        return Err(format!("constraint string is too long (max {MAX_CONSTRAINT} bytes)").into());
    }
    if given.matches("||").count() >= MAX_GROUPS {
        return Err(format!("too many constraint groups (max {MAX_GROUPS})").into());
    }
    Constraint::parse(given).map_err(|error| match error {
        VersionError::ImproperConstraint(given) => {
            format!("improper constraint: {}", go::strconv::quote(&given)).into()
        }
        error => error.into(),
    })
}

fn semver(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let version = version(context, text(arguments, 0))?;
    Ok(object(version, false))
}

fn compare(context: &Context<'_>, arguments: &[Value]) -> Answer {
    context.text(text(arguments, 0).len().saturating_mul(64))?;
    let constraint = constraint(context, text(arguments, 0))?;
    Ok(Value::Bool(
        constraint.matches(&version(context, text(arguments, 1))?),
    ))
}

/// A version. `Scan` and similar methods change it.
#[derive(Debug)]
struct Semver {
    version: RefCell<Version>,
    /// True for a Go value, false for a pointer to it, which methods that return new versions make.
    plain: bool,
}

const POINTER: &str = "*semver.Version";

fn object(version: Version, plain: bool) -> Value {
    let version = RefCell::new(version);
    Value::Object(Rc::new(Semver { version, plain }))
}

fn raised(version: &Version, (major, minor, patch): (u64, u64, u64)) -> Value {
    let next = Version::parse(&format!("{}{major}.{minor}.{patch}", v(version)));
    object(next.unwrap_or_else(|_| version.clone()), true)
}

/// Returns the prefix `v` if the original string has it.
fn v(version: &Version) -> &'static str {
    if version.original().starts_with('v') {
        "v"
    } else {
        ""
    }
}

fn with(version: &Version, pre: &str, metadata: &str) -> Result<Value, FunctionError> {
    let Version {
        major, minor, patch, ..
    } = version;
    let dash = if pre.is_empty() { "" } else { "-" };
    let plus = if metadata.is_empty() { "" } else { "+" };
    let v = v(version);
    let version = Version::parse(&format!("{v}{major}.{minor}.{patch}{dash}{pre}{plus}{metadata}"))?;
    Ok(object(version, true))
}

fn number(value: u64) -> Value {
    Value::Int(value.into(), crate::IntKind::Uint64)
}

impl Semver {
    /// Returns the result of a method of both, the version and a pointer to it.
    fn property(&self, name: &str, arguments: &[Value]) -> Result<Value, FunctionError> {
        let version = self.version.borrow();
        let (major, minor) = (version.major, version.minor);
        Ok(match name {
            "Major" => number(major),
            "Minor" => number(minor),
            "Patch" => number(version.patch),
            "Prerelease" => Value::string(version.pre.as_str()),
            "Metadata" => Value::string(version.metadata.as_str()),
            "Original" => Value::string(version.original()),
            "IncMajor" => raised(&version, (major.saturating_add(1), 0, 0)),
            "IncMinor" => raised(&version, (major, minor.saturating_add(1), 0)),
            "IncPatch" if version.pre.is_empty() => {
                raised(&version, (major, minor, version.patch.saturating_add(1)))
            }
            "IncPatch" => raised(&version, (major, minor, version.patch)),
            "SetPrerelease" => with(&version, text(arguments, 0), &version.metadata)?,
            "SetMetadata" => with(&version, &version.pre, text(arguments, 0))?,
            "MarshalJSON" => Value::Bytes(format!("\"{version}\"").into_bytes().into()),
            "MarshalText" => Value::Bytes(version.to_string().into_bytes().into()),
            _ => Value::string(version.to_string()),
        })
    }

    fn compare(&self, name: &str, other: Option<&Value>) -> Result<Value, FunctionError> {
        let other = match other {
            Some(Value::Object(object)) => object.as_any().and_then(<dyn Any>::downcast_ref::<Self>),
            _ => None,
        };
        let other = other.ok_or(NIL_POINTER)?;
        let order = self.version.borrow().precedence(&other.version.borrow());
        Ok(match name {
            "Compare" => Value::int(order as i64),
            "Equal" => Value::Bool(order.is_eq()),
            "LessThan" => Value::Bool(order.is_lt()),
            "LessThanEqual" => Value::Bool(order.is_le()),
            "GreaterThan" => Value::Bool(order.is_gt()),
            _ => Value::Bool(order.is_ge()),
        })
    }

    /// Replaces the version, unless the new one is invalid.
    fn replace(&self, name: &str, by: Option<&Value>) -> Result<(), FunctionError> {
        let json: serde_json::Value;
        let text = match by {
            Some(Value::String(text)) => Cow::from(text.as_ref()),
            Some(Value::Bytes(bytes)) if name == "UnmarshalJSON" => {
                json = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
                Cow::from(json.as_str().unwrap_or_default())
            }
            Some(Value::Bytes(bytes)) => go::bytes::to_string(bytes).into(),
            _ => Cow::from(""),
        };
        let version = Version::parse(&text)?;
        *self.version.borrow_mut() = version;
        Ok(())
    }
}

impl Object for Semver {
    fn type_name(&self) -> &str {
        if self.plain { "semver.Version" } else { POINTER }
    }

    fn kind_name(&self) -> &'static str {
        if self.plain { "struct" } else { "ptr" }
    }

    fn field(&self, _: &str) -> Option<Value> {
        None
    }

    fn signature(&self, name: &str) -> Option<Signature> {
        match name {
            "Major" | "Minor" | "Patch" | "Prerelease" | "Metadata" | "String" | "Value" | "IncMajor"
            | "IncMinor" | "IncPatch" | "MarshalJSON" | "MarshalText" => Some(Signature::fixed(&[])),
            "SetPrerelease" | "SetMetadata" => Some(Signature::fixed(&[Type::String])),
            _ if self.plain => None,
            "Original" => Some(Signature::fixed(&[])),
            "Compare" | "Equal" | "LessThan" | "LessThanEqual" | "GreaterThan" | "GreaterThanEqual" => {
                Some(Signature::fixed(&[Type::Object(POINTER)]))
            }
            "Scan" => Some(Signature::fixed(&[Type::Any])),
            "UnmarshalText" | "UnmarshalJSON" => Some(Signature::fixed(&[Type::Bytes])),
            _ => None,
        }
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, FunctionError>> {
        self.signature(name)?;
        Some(match name {
            "Compare" | "Equal" | "LessThan" | "LessThanEqual" | "GreaterThan" | "GreaterThanEqual" => {
                self.compare(name, arguments.first())
            }
            "Scan" | "UnmarshalText" | "UnmarshalJSON" => {
                Ok(ErrorValue::of(self.replace(name, arguments.first())))
            }
            _ => self.property(name, arguments),
        })
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn print(&self, _: &Budget) -> Result<String, FormatError> {
        Ok(self.version.borrow().to_string())
    }
}
