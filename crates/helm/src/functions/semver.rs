//! Semantic versions and their ranges.

use std::{any::Any, rc::Rc};

use versions::{Constraint, Version, VersionError};

use super::{
    arguments::text,
    context::Context,
    table::{Answer, Entry, fixed},
};
use crate::template::FunctionError;
use crate::{Object, Value, template::Type};

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
    let plain = false;
    Ok(Semver { version, plain }.object())
}

fn compare(context: &Context<'_>, arguments: &[Value]) -> Answer {
    context.text(text(arguments, 0).len().saturating_mul(64))?;
    let constraint = constraint(context, text(arguments, 0))?;
    Ok(Value::Bool(
        constraint.matches(&version(context, text(arguments, 1))?),
    ))
}

#[derive(Debug, Clone)]
struct Semver {
    version: Version,
    /// True for a Go value, false for a pointer to it, which methods that return new versions make.
    plain: bool,
}

impl Semver {
    fn object(self) -> Value {
        Value::Object(Rc::new(self))
    }

    fn raised(&self, (major, minor, patch): (u64, u64, u64)) -> Value {
        let next = Version::parse(&format!("{}{major}.{minor}.{patch}", self.v()));
        let version = next.unwrap_or_else(|_| self.version.clone());
        let plain = true;
        Self { version, plain }.object()
    }

    /// Returns the prefix `v` if the original string has it.
    fn v(&self) -> &'static str {
        if self.version.original().starts_with('v') {
            "v"
        } else {
            ""
        }
    }

    fn with(&self, pre: &str, metadata: &str) -> Result<Value, FunctionError> {
        let Version {
            major, minor, patch, ..
        } = self.version;
        let dash = if pre.is_empty() { "" } else { "-" };
        let plus = if metadata.is_empty() { "" } else { "+" };
        let v = self.v();
        let version = Version::parse(&format!("{v}{major}.{minor}.{patch}{dash}{pre}{plus}{metadata}"))?;
        let plain = true;
        Ok(Self { version, plain }.object())
    }
}

fn number(value: u64) -> Value {
    Value::Int(value.into(), crate::IntKind::Uint64)
}

impl Object for Semver {
    fn type_name(&self) -> &str {
        if self.plain {
            "semver.Version"
        } else {
            "*semver.Version"
        }
    }

    fn kind_name(&self) -> &'static str {
        if self.plain { "struct" } else { "ptr" }
    }

    fn field(&self, name: &str) -> Option<Value> {
        Some(match name {
            "Major" => number(self.version.major),
            "Minor" => number(self.version.minor),
            "Patch" => number(self.version.patch),
            "Prerelease" => Value::string(self.version.pre.as_str()),
            "Metadata" => Value::string(self.version.metadata.as_str()),
            "Original" if !self.plain => Value::string(self.version.original()),
            "String" => Value::string(self.version.to_string()),
            "IncMajor" => self.raised((self.version.major.saturating_add(1), 0, 0)),
            "IncMinor" => self.raised((self.version.major, self.version.minor.saturating_add(1), 0)),
            "IncPatch" if self.version.pre.is_empty() => self.raised((
                self.version.major,
                self.version.minor,
                self.version.patch.saturating_add(1),
            )),
            "IncPatch" => self.raised((self.version.major, self.version.minor, self.version.patch)),
            _ => return None,
        })
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, FunctionError>> {
        let other = match arguments.first() {
            Some(Value::Object(object)) => object.as_any().and_then(<dyn Any>::downcast_ref::<Self>),
            _ => None,
        };
        // These are methods of the pointer.
        if let Some(other) = other.filter(|_| !self.plain) {
            let order = self.version.precedence(&other.version);
            return Some(Ok(match name {
                "Compare" => Value::int(order as i64),
                "Equal" => Value::Bool(order.is_eq()),
                "LessThan" => Value::Bool(order.is_lt()),
                "LessThanEqual" => Value::Bool(order.is_le()),
                "GreaterThan" => Value::Bool(order.is_gt()),
                "GreaterThanEqual" => Value::Bool(order.is_ge()),
                _ => return None,
            }));
        }
        match (name, arguments) {
            ("SetPrerelease", [Value::String(pre)]) => Some(self.with(pre, &self.version.metadata)),
            ("SetMetadata", [Value::String(metadata)]) => Some(self.with(&self.version.pre, metadata)),
            (name, []) => self.field(name).map(Ok),
            _ => None,
        }
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn print(&self) -> String {
        self.version.to_string()
    }
}
