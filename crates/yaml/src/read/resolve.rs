//! Resolves plain scalars in the dialects of Go: booleans, numbers, times and strings.

use std::borrow::Cow;

use super::{
    number::{decimal_float, go_integer},
    timestamp,
};
use crate::{Value, tag::Tag};

/// The meaning of a plain scalar, before its conversion to JSON.
pub(super) enum Resolved {
    Null,
    Bool(bool),
    Int(Value),
    Float(f64),
    /// With the time in full.
    Timestamp(String),
    Text,
}

pub(super) fn kustomize(text: &str) -> Resolved {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Resolved::Null,
        "true" | "True" | "TRUE" => Resolved::Bool(true),
        "false" | "False" | "FALSE" => Resolved::Bool(false),
        _ => number(text),
    }
}

/// Returns the tag that kustomize gives to a plain scalar without one.
pub(crate) fn kustomize_kind(text: &str) -> Tag {
    match kustomize(text) {
        Resolved::Null => Tag::Null,
        Resolved::Bool(_) => Tag::Bool,
        Resolved::Int(_) => Tag::Int,
        Resolved::Float(_) => Tag::Float,
        Resolved::Timestamp(_) => Tag::Timestamp,
        Resolved::Text => Tag::Str,
    }
}

/// Returns true if sigs.k8s.io/yaml reads a plain scalar as another type than a string.
pub(crate) fn goyaml_resolves(text: &str) -> bool {
    !matches!(goyaml(text), Resolved::Text)
}

pub(super) fn goyaml(text: &str) -> Resolved {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Resolved::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Resolved::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Resolved::Bool(false);
        }
        _ => {}
    }
    number(text)
}

/// Resolves numbers and times, which versions 2 and 3 of go-yaml do alike.
fn number(text: &str) -> Resolved {
    if let Some(float) = not_finite(text) {
        return Resolved::Float(float);
    }
    match text.as_bytes() {
        [b'.', ..] => decimal_float(text).map_or(Resolved::Text, Resolved::Float),
        [b'0'..=b'9' | b'+' | b'-', ..] => {
            if let Some(full) = timestamp::parse(text) {
                return Resolved::Timestamp(full);
            }
            let plain: Cow<'_, str> = if text.contains('_') {
                text.replace('_', "").into()
            } else {
                text.into()
            };
            match go_integer(&plain) {
                Some(value) => Resolved::Int(value),
                None => decimal_float(&plain).map_or(Resolved::Text, Resolved::Float),
            }
        }
        _ => Resolved::Text,
    }
}

fn not_finite(text: &str) -> Option<f64> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}
