//! The argument `attribute` of filters: dotted paths, with numbers for items.

use crate::{
    eval::{attr, context::Cx},
    exc::R,
    rt::{ENTRY, Rt},
    text,
    value::{Str, Value},
};

/// Steps of the lookup of one part of a path, which takes longer than reading a few bytes.
const LOOKUP: u64 = 16;

/// Gets a part of each item.
#[derive(Debug, Clone)]
pub(crate) struct Getter {
    parts: Vec<Value>,
    default: Option<Value>,
    /// Compares strings without case.
    folds: bool,
}

impl Getter {
    /// Parses a path, and counts its parts; none means the item itself.
    pub(crate) fn new(rt: &Rt, path: &Value, default: Option<Value>, folds: bool) -> R<Self> {
        let parts = match path {
            Value::None | Value::Missing => Vec::new(),
            Value::Str(path) | Value::Markup(path) => {
                let dots = path.bytes().filter(|byte| *byte == b'.').count();
                rt.step(path.len() as u64 / 64 + dots as u64)?;
                rt.alloc(dots.saturating_mul(ENTRY))?;
                path.split('.').map(part).collect()
            }
            other => vec![other.clone()],
        };
        Ok(Self {
            parts,
            default,
            folds,
        })
    }

    pub(crate) fn get(&self, cx: &Cx<'_>, item: &Value) -> R<Value> {
        let mut found = item.clone();
        for part in &self.parts {
            cx.rt.step(LOOKUP)?;
            found = attr::item(cx.rt, &found, part)?;
            if let (true, Some(default)) = (found.is_undefined(), &self.default) {
                found = default.clone();
            }
        }
        match (&found, self.folds) {
            (Value::Str(text) | Value::Markup(text), true) => {
                let lower: Str = if text.is_ascii() {
                    text.to_ascii_lowercase().into()
                } else {
                    text::folded_only(text).into()
                };
                cx.rt.step(text.len() as u64 / 64)?;
                cx.rt.alloc(text.len())?;
                Ok(Value::Str(lower))
            }
            _ => Ok(found),
        }
    }
}

fn part(part: &str) -> Value {
    let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match part.parse() {
        Ok(index) if digits => Value::Int(index),
        _ => Value::str(part),
    }
}

/// Parses paths separated by commas.
pub(crate) fn several(rt: &Rt, path: &Value, folds: bool) -> R<Vec<Getter>> {
    match path {
        Value::Str(paths) | Value::Markup(paths) => {
            let paths = paths.split(',');
            paths
                .map(|path| Getter::new(rt, &Value::str(path), None, folds))
                .collect()
        }
        other => Ok(vec![Getter::new(rt, other, None, folds)?]),
    }
}
