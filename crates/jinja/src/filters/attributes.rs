//! The argument `attribute` of filters: dotted paths, with numbers for items.

use crate::{
    eval::{attr, context::Cx},
    exc::R,
    text,
    value::{Str, Value},
};

/// Gets a part of each item.
#[derive(Debug, Clone)]
pub(crate) struct Getter {
    parts: Vec<Value>,
    default: Option<Value>,
    /// Compares strings without case.
    folds: bool,
}

impl Getter {
    /// Parses a path; none means the item itself.
    pub(crate) fn new(path: &Value, default: Option<Value>, folds: bool) -> Self {
        let parts = match path {
            Value::None | Value::Missing => Vec::new(),
            Value::Str(path) | Value::Markup(path) => path.split('.').map(part).collect(),
            other => vec![other.clone()],
        };
        Self {
            parts,
            default,
            folds,
        }
    }

    pub(crate) fn get(&self, cx: &Cx<'_>, item: &Value) -> R<Value> {
        let mut found = item.clone();
        for part in &self.parts {
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
pub(crate) fn several(path: &Value, folds: bool) -> Vec<Getter> {
    match path {
        Value::Str(paths) | Value::Markup(paths) => {
            let paths = paths.split(',');
            paths
                .map(|path| Getter::new(&Value::str(path), None, folds))
                .collect()
        }
        other => vec![Getter::new(other, None, folds)],
    }
}
