//! Python's `str.format`.

use super::{escape, repr, spec};
use crate::{
    eval::{attr, context::Cx},
    exc::{R, raise, type_error, value_error},
    value::{Str, Value, args::Args},
};

/// The maximum nesting of fields in specifications.
const MAX_NESTING: u32 = 2;

struct Fields<'a> {
    cx: &'a Cx<'a>,
    args: &'a Args,
    /// The number of the next field without a name; `None` once a field had a number.
    next: Option<usize>,
    numbered: bool,
    /// If set, the only arguments are the entries of a map.
    named_only: bool,
    /// If set, inserted values are escaped.
    escapes: bool,
}

pub(crate) fn format(cx: &Cx<'_>, text: &Value, args: &Args) -> R<String> {
    replaced(cx, text, args, false)
}

/// Likewise, with the entries of a map.
pub(crate) fn format_map(cx: &Cx<'_>, text: &Value, args: &Args) -> R<String> {
    replaced(cx, text, args, true)
}

fn replaced(cx: &Cx<'_>, text: &Value, args: &Args, named_only: bool) -> R<String> {
    let escapes = matches!(text, Value::Markup(_));
    let mut fields = Fields {
        cx,
        args,
        next: Some(0),
        numbered: false,
        named_only,
        escapes,
    };
    let text = text.as_str().cloned().unwrap_or_else(|| "".into());
    fields.replace(&text, MAX_NESTING)
}

impl Fields<'_> {
    fn replace(&mut self, text: &str, depth: u32) -> R<String> {
        if depth == 0 {
            return value_error("Max string recursion exceeded");
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            self.cx.rt.step(1)?;
            let (before, brace) = rest.split_at_checked(at).unwrap_or((rest, ""));
            out.push_str(before);
            if brace.starts_with("{{") || brace.starts_with("}}") {
                out.push_str(brace.get(..1).unwrap_or_default());
                rest = brace.get(2..).unwrap_or_default();
                continue;
            }
            if brace.starts_with('}') {
                return value_error("Single '}' encountered in format string");
            }
            let (field, after) = field_end(brace.get(1..).unwrap_or_default())?;
            out.push_str(&self.field(field, depth)?);
            self.cx.rt.fits(out.len())?;
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }

    fn field(&mut self, field: &str, depth: u32) -> R<String> {
        let at = name_end(field);
        let (name, tail) = field.split_at_checked(at).unwrap_or((field, ""));
        let (conversion, spec) = match tail.strip_prefix('!') {
            Some(tail) => {
                let mut letters = tail.chars();
                let conversion = letters.next();
                let rest = letters.as_str();
                match (conversion, rest.strip_prefix(':')) {
                    (None, _) => return value_error("unmatched '{' in format spec"),
                    (Some(_), None) if !rest.is_empty() => {
                        return value_error("expected ':' after conversion specifier");
                    }
                    (conversion, spec) => (conversion, spec.unwrap_or_default()),
                }
            }
            None => (None, tail.strip_prefix(':').unwrap_or_default()),
        };
        let value = self.value(name)?;
        let spec = if spec.contains(['{', '}']) {
            self.replace(spec, depth - 1)?
        } else {
            spec.to_owned()
        };
        let rt = self.cx.rt;
        let value = match conversion {
            None => value,
            Some('s') => rt.text(repr::text(rt, &value)?)?,
            Some(conversion @ ('r' | 'a')) => {
                let mut text = String::new();
                repr::write_repr(rt, &value, &mut text)?;
                if conversion == 'a' {
                    text = repr::ascii(rt, &text)?;
                }
                rt.text(text)?
            }
            Some(other) => return value_error(format!("Unknown conversion specifier '{other}'")),
        };
        let text = spec::format(rt, &value, &spec)?;
        if !self.escapes || matches!(value, Value::Markup(_)) {
            return Ok(text);
        }
        let mut out = String::new();
        escape::escape(rt, &text, &mut out)?;
        Ok(out)
    }

    fn value(&mut self, name: &str) -> R<Value> {
        let end = name.find(['.', '[']).unwrap_or(name.len());
        let (first, mut rest) = name.split_at_checked(end).unwrap_or((name, ""));
        let mut value = self.first(first)?;
        let rt = self.cx.rt;
        while !rest.is_empty() {
            rt.step(1)?;
            if let Some(after) = rest.strip_prefix('[') {
                let Some((key, after)) = after.split_once(']') else {
                    return value_error("Missing ']' in format string");
                };
                value = subscript(self.cx, &value, key)?;
                rest = after;
                continue;
            }
            let after = rest.strip_prefix('.').unwrap_or(rest);
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (attribute, after) = after.split_at_checked(end).unwrap_or((after, ""));
            if attribute.is_empty() {
                return value_error("Empty attribute in format string");
            }
            value = match attr::own_attribute(rt, value.defined()?, attribute)? {
                Some(found) => found,
                None => {
                    return raise(
                        "AttributeError",
                        format!("'{}' object has no attribute '{attribute}'", value.type_name()),
                    );
                }
            };
            rest = after;
        }
        Ok(value)
    }

    fn first(&mut self, name: &str) -> R<Value> {
        let index = if name.is_empty() {
            if self.numbered {
                return value_error(
                    "cannot switch from manual field specification to automatic field numbering",
                );
            }
            let index = self.next.unwrap_or_default();
            self.next = Some(index + 1);
            index
        } else if let Ok(index) = name.parse::<usize>() {
            if self.next.is_some_and(|next| next > 0) {
                return value_error(
                    "cannot switch from automatic field numbering to manual field specification",
                );
            }
            self.numbered = true;
            index
        } else {
            self.cx.rt.product(self.args.named.len(), 1 + name.len() / 256)?;
            let found = self.args.named.iter().find(|(known, _)| **known == *name);
            return match found {
                Some((_, value)) => Ok(value.clone()),
                None => raise("KeyError", repr::quoted(name)),
            };
        };
        if self.named_only {
            return value_error("Format string contains positional fields");
        }
        match self.args.plain.get(index) {
            Some(value) => Ok(value.clone()),
            None => raise(
                "IndexError",
                format!("Replacement index {index} out of range for positional args tuple"),
            ),
        }
    }
}

fn subscript(cx: &Cx<'_>, value: &Value, key: &str) -> R<Value> {
    let key = match key.parse::<i64>() {
        Ok(index) if !key.starts_with(['-', '+']) => Value::Int(index),
        _ => Value::Str(Str::from(key)),
    };
    match value.defined()? {
        Value::Str(_) | Value::Markup(_) if key.as_str().is_some() => {
            type_error("string indices must be integers, not 'str'")
        }
        Value::List(_) | Value::Tuple(_) if key.as_str().is_some() => type_error(format!(
            "{} indices must be integers or slices, not str",
            value.type_name()
        )),
        Value::Dict(dict) => match dict.get(&cx.rt.key(&key)?) {
            Some(found) => Ok(found),
            None => {
                let mut text = String::new();
                repr::write_repr(cx.rt, &key, &mut text)?;
                raise("KeyError", text)
            }
        },
        Value::None
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Big(_)
        | Value::Float(_)
        | Value::Iter(_)
        | Value::Object(_) => type_error(format!("'{}' object is not subscriptable", value.type_name())),
        _ => {
            let found = attr::item(cx.rt, value, &key)?;
            if found.is_undefined() {
                return raise("IndexError", format!("{} index out of range", value.type_name()));
            }
            Ok(found)
        }
    }
}

/// Returns the field up to its closing brace, and the rest.
fn field_end(text: &str) -> R<(&str, &str)> {
    let mut depth = 1;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let field = text.get(..at).unwrap_or_default();
            return Ok((field, text.get(at + 1..).unwrap_or_default()));
        }
    }
    if text.is_empty() {
        return value_error("Single '{' encountered in format string");
    }
    value_error("expected '}' before end of string")
}

/// Returns the end of a field's name; brackets may contain anything.
fn name_end(field: &str) -> usize {
    let mut inside = false;
    for (at, letter) in field.char_indices() {
        match letter {
            '[' => inside = true,
            ']' => inside = false,
            '!' | ':' if !inside => return at,
            _ => {}
        }
    }
    field.len()
}
