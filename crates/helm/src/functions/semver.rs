//! Semantic versions and their ranges, as the Masterminds library has them.

mod constraint;

use std::{any::Any, cmp::Ordering, fmt, rc::Rc};

use super::{Answer, Context, Entry, arguments::text, fixed};
use crate::{Object, Value, template::Type};

pub use constraint::Constraint;

pub(super) const TABLE: &[Entry] = &[
    fixed("semver", &[Type::String], semver),
    fixed("semverCompare", &[Type::String, Type::String], compare),
];

fn semver(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let version = Version::parse(text(arguments, 0))?;
    Ok(Value::Object(Rc::new(version)))
}

fn compare(context: &Context<'_>, arguments: &[Value]) -> Answer {
    context.text(text(arguments, 0).len().saturating_mul(64))?;
    let constraint = Constraint::parse(text(arguments, 0))?;
    Ok(Value::Bool(
        constraint.matches(&Version::parse(text(arguments, 1))?),
    ))
}

/// A version: numbers that are left out are zero, a `v` in front does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The first number.
    pub major: u64,
    /// The second number.
    pub minor: u64,
    /// The third number.
    pub patch: u64,
    /// What stands behind `-`.
    pub pre: String,
    /// What stands behind `+`.
    pub metadata: String,
    original: String,
    /// Whether this is Go's value rather than a pointer to it, as the methods that make new versions give it.
    plain: bool,
}

const INVALID: &str = "invalid semantic version";

impl Version {
    /// Reads a version.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix('v').unwrap_or(text);
        let (rest, metadata) = rest
            .split_once('+')
            .map_or((rest, None), |(rest, data)| (rest, Some(data)));
        let (numbers, pre) = rest
            .split_once('-')
            .map_or((rest, None), |(rest, pre)| (rest, Some(pre)));
        let words = |text: &str| {
            text.split('.')
                .all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'))
        };
        if pre.is_some_and(|pre| !words(pre)) || metadata.is_some_and(|data| !words(data)) {
            return Err(INVALID.to_owned());
        }
        let mut parts = Vec::new();
        for part in numbers.split('.') {
            if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) || parts.len() == 3 {
                return Err(INVALID.to_owned());
            }
            parts.push(part);
        }
        let number = |index: usize| {
            let part: &str = parts.get(index).copied().unwrap_or("0");
            part.parse::<u64>().map_err(|_| {
                format!(
                    "error parsing version segment: strconv.ParseUint: parsing {part:?}: value out of range"
                )
            })
        };
        let (major, minor, patch) = (number(0)?, number(1)?, number(2)?);
        let pre = pre.unwrap_or_default();
        let leading =
            |word: &str| word.len() > 1 && word.starts_with('0') && word.bytes().all(|b| b.is_ascii_digit());
        if pre.split('.').any(leading) {
            return Err("version segment starts with 0".to_owned());
        }
        let metadata = metadata.unwrap_or_default().to_owned();
        Ok(Self {
            major,
            minor,
            patch,
            pre: pre.to_owned(),
            metadata,
            original: text.to_owned(),
            plain: false,
        })
    }

    /// The text that it was read from.
    #[must_use]
    pub fn original(&self) -> &str {
        &self.original
    }

    /// The order of two versions; metadata does not count.
    #[must_use]
    pub fn precedence(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self)
            .cmp(&numbers(other))
            .then_with(|| compare_pre(&self.pre, &other.pre))
    }

    fn object(&self) -> Value {
        Value::Object(Rc::new(self.clone()))
    }

    /// A new version with other numbers, as `IncMajor` and its like make them.
    fn raised(&self, numbers: (u64, u64, u64)) -> Value {
        let mut next = Self {
            pre: String::new(),
            metadata: String::new(),
            plain: true,
            ..self.clone()
        };
        (next.major, next.minor, next.patch) = numbers;
        let v = if self.original.starts_with('v') { "v" } else { "" };
        next.original = format!("{v}{next}");
        next.object()
    }

    /// A new version with another pre-release or other metadata.
    fn with(&self, pre: &str, metadata: &str) -> Result<Value, String> {
        let numbers = format!("{}.{}.{}", self.major, self.minor, self.patch);
        let dash = if pre.is_empty() { "" } else { "-" };
        let plus = if metadata.is_empty() { "" } else { "+" };
        let v = if self.original.starts_with('v') { "v" } else { "" };
        let next = Self::parse(&format!("{v}{numbers}{dash}{pre}{plus}{metadata}"))?;
        Ok(Self { plain: true, ..next }.object())
    }
}

/// No pre-release is above all; numbers compare as numbers and are below words.
fn compare_pre(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let words = |text: &str| {
        text.split('.')
            .map(|word| (word.parse::<u64>().ok(), word.to_owned()))
            .collect::<Vec<_>>()
    };
    let (left, right) = (words(left), words(right));
    for ((one, left), (other, right)) in left.iter().zip(&right) {
        let order = match (one, other) {
            (Some(one), Some(other)) => one.cmp(other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => left.cmp(right),
        };
        if order.is_ne() {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn number(value: u64) -> Value {
    Value::Int(value.into(), crate::Kind::Uint64)
}

impl Object for Version {
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
            "Major" => number(self.major),
            "Minor" => number(self.minor),
            "Patch" => number(self.patch),
            "Prerelease" => Value::string(self.pre.as_str()),
            "Metadata" => Value::string(self.metadata.as_str()),
            "Original" if !self.plain => Value::string(self.original.as_str()),
            "String" => Value::string(self.to_string()),
            "IncMajor" => self.raised((self.major.saturating_add(1), 0, 0)),
            "IncMinor" => self.raised((self.major, self.minor.saturating_add(1), 0)),
            "IncPatch" if self.pre.is_empty() => {
                self.raised((self.major, self.minor, self.patch.saturating_add(1)))
            }
            "IncPatch" => self.raised((self.major, self.minor, self.patch)),
            _ => return None,
        })
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        let other = match arguments.first() {
            Some(Value::Object(object)) => object.as_any().and_then(<dyn Any>::downcast_ref::<Self>),
            _ => None,
        };
        // These are methods of the pointer.
        if let Some(other) = other.filter(|_| !self.plain) {
            let order = self.precedence(other);
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
            ("SetPrerelease", [Value::String(pre)]) => Some(self.with(pre, &self.metadata)),
            ("SetMetadata", [Value::String(metadata)]) => Some(self.with(&self.pre, metadata)),
            (name, []) => self.field(name).map(Ok),
            _ => None,
        }
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn print(&self) -> String {
        self.to_string()
    }
}
