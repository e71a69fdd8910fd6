//! Python's `str` and `repr`.

use std::fmt::Write as _;

pub(crate) use crate::text::{is_printable, quoted};
use crate::{
    exc::{R, raise},
    rt::Rt,
    text::push_quoted,
    value::{Object, Range, Undef, Value},
};

const MAX_DEPTH: usize = 900;

/// Appends Python's `str(value)`.
pub(crate) fn write_str(rt: &Rt, value: &Value, out: &mut String) -> R<()> {
    match value {
        Value::Str(text) | Value::Markup(text) => {
            rt.fits(out.len().saturating_add(text.len()))?;
            rt.step(text.len() as u64 / 64)?;
            out.push_str(text);
            Ok(())
        }
        Value::Undefined(why) => match **why {
            Undef::Nothing { .. } => Ok(()),
            _ => why.fail(),
        },
        Value::Object(object) => match &**object {
            Object::Module(module) => {
                out.push_str(&module.body);
                Ok(())
            }
            Object::Time(time) => {
                out.push_str(&time.borrow().text());
                Ok(())
            }
            Object::Date(date) => {
                out.push_str(&date.text(' '));
                Ok(())
            }
            Object::Delta(delta) => {
                out.push_str(&delta.text());
                Ok(())
            }
            _ => write_repr(rt, value, out),
        },
        _ => write_repr(rt, value, out),
    }
}

pub(crate) fn text(rt: &Rt, value: &Value) -> R<String> {
    let mut out = String::new();
    write_str(rt, value, &mut out)?;
    Ok(out)
}

/// Appends Python's `repr(value)`.
pub(crate) fn write_repr(rt: &Rt, value: &Value, out: &mut String) -> R<()> {
    write(rt, value, out, &mut Vec::new())
}

fn write(rt: &Rt, value: &Value, out: &mut String, path: &mut Vec<usize>) -> R<()> {
    // Printing a part takes as long as several steps.
    rt.step(4)?;
    rt.fits(out.len())?;
    match value {
        Value::Missing => out.push_str("missing"),
        Value::Undefined(_) => out.push_str("Undefined"),
        Value::None => out.push_str("None"),
        Value::Bool(flag) => out.push_str(if *flag { "True" } else { "False" }),
        Value::Int(number) => {
            let _ = write!(out, "{number}");
        }
        Value::Big(number) => {
            let bits = number.bits();
            if bits > 14_284 {
                let message = "Exceeds the limit (4300 digits) for integer string conversion; use \
                               sys.set_int_max_str_digits() to increase the limit";
                return raise("ValueError", message);
            }
            let _ = write!(out, "{number}");
        }
        Value::Float(number) => out.push_str(&float(*number)),
        Value::Str(text) => write_quoted(rt, text, out)?,
        Value::Markup(text) => {
            out.push_str("Markup(");
            write_quoted(rt, text, out)?;
            out.push(')');
        }
        Value::Bytes(bytes) => write_bytes(rt, bytes, out)?,
        Value::Range(range) => write_range(range, out),
        Value::List(_) | Value::Tuple(_) | Value::Dict(_) => {
            let address = value.address();
            if path.contains(&address) {
                out.push_str(if matches!(value, Value::Dict(_)) {
                    "{...}"
                } else {
                    "[...]"
                });
                return Ok(());
            }
            if path.len() >= MAX_DEPTH {
                return raise(
                    "RecursionError",
                    "maximum recursion depth exceeded while getting the repr of an object",
                );
            }
            path.push(address);
            write_container(rt, value, out, path)?;
            path.pop();
        }
        Value::Iter(iter) if iter.function.is_empty() => {
            let _ = write!(out, "<{} object at {}>", iter.label, address(value));
        }
        Value::Iter(iter) => {
            let _ = write!(out, "<generator object {} at {}>", iter.function, address(value));
        }
        Value::Object(object) => write_object(rt, object, value, out, path)?,
    }
    rt.fits(out.len())
}

/// Returns the address of an object, which is constant, so that templates render reproducibly.
fn address(_: &Value) -> &'static str {
    "0x7f0000000000"
}

fn write_range(range: &Range, out: &mut String) {
    let _ = if range.step == 1 {
        write!(out, "range({}, {})", range.start, range.stop)
    } else {
        write!(out, "range({}, {}, {})", range.start, range.stop, range.step)
    };
}

fn write_container(rt: &Rt, value: &Value, out: &mut String, path: &mut Vec<usize>) -> R<()> {
    match value {
        Value::List(list) => {
            out.push('[');
            write_items(rt, &list.items(), out, path)?;
            out.push(']');
        }
        Value::Tuple(tuple) => {
            out.push('(');
            write_items(rt, &tuple.items, out, path)?;
            out.push_str(if tuple.items.len() == 1 { ",)" } else { ")" });
        }
        Value::Dict(dict) => dict.read(|map| -> R<()> {
            out.push('{');
            for (index, (key, value)) in map.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write(rt, key.value(), out, path)?;
                out.push_str(": ");
                write(rt, value, out, path)?;
            }
            out.push('}');
            Ok(())
        })?,
        _ => {}
    }
    Ok(())
}

fn write_items(rt: &Rt, items: &[Value], out: &mut String, path: &mut Vec<usize>) -> R<()> {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write(rt, item, out, path)?;
    }
    Ok(())
}

fn write_object(rt: &Rt, object: &Object, value: &Value, out: &mut String, path: &mut Vec<usize>) -> R<()> {
    if path.len() >= MAX_DEPTH {
        return raise(
            "RecursionError",
            "maximum recursion depth exceeded while getting the repr of an object",
        );
    }
    let at = address(value);
    let _ = match object {
        Object::View(_) => {
            let own = value.address();
            if path.contains(&own) {
                out.push_str("...");
                return Ok(());
            }
            path.push(own);
            let items: Vec<Value> = crate::value::iter::collect(rt, value)?;
            let _ = write!(out, "{}([", object.type_name());
            write_items(rt, &items, out, path)?;
            path.pop();
            write!(out, "])")
        }
        Object::Namespace(dict) => {
            out.push_str("<Namespace ");
            write(rt, &Value::Dict(dict.clone()), out, path)?;
            write!(out, ">")
        }
        Object::Method { on, name } => {
            write!(
                out,
                "<built-in method {name} of {} object at {at}>",
                on.type_name()
            )
        }
        Object::Module(module) => write!(out, "<TemplateModule {}>", quoted(&module.name)),
        Object::Type(name) => write!(out, "<class '{}'>", class_name(name)),
        Object::Time(time) => write!(out, "{}", time.borrow().text()),
        Object::Date(date) => write!(out, "{}", date.repr()),
        Object::Delta(delta) => write!(out, "{}", delta.repr()),
        Object::Slice(parts) => {
            out.push_str("slice(");
            write_items(rt, parts, out, path)?;
            write!(out, ")")
        }
        Object::Runtime(own) => {
            if let Some(text) = own.repr(rt, at)? {
                out.push_str(&text);
                return Ok(());
            }
            write_default(object, at, out)
        }
        _ => write_default(object, at, out),
    };
    Ok(())
}

fn write_default(object: &Object, address: &str, out: &mut String) -> std::fmt::Result {
    write!(
        out,
        "<{}{}{} object at {address}>",
        object.module().unwrap_or_default(),
        if object.module().is_some() { "." } else { "" },
        object.type_name()
    )
}

pub(crate) fn class_name(name: &str) -> String {
    match name {
        "Namespace" | "Cycler" | "Joiner" => format!("jinja2.utils.{name}"),
        "namespace" => "jinja2.utils.Namespace".to_owned(),
        "cycler" => "jinja2.utils.Cycler".to_owned(),
        "joiner" => "jinja2.utils.Joiner".to_owned(),
        "Markup" => "markupsafe.Markup".to_owned(),
        "StrictUndefined" | "Undefined" | "LoopContext" | "Macro" => format!("jinja2.runtime.{name}"),
        _ => name.to_owned(),
    }
}

/// Writes a string with the quotes that Python chooses.
fn write_quoted(rt: &Rt, text: &str, out: &mut String) -> R<()> {
    rt.step(text.len() as u64 / 16)?;
    rt.fits(out.len().saturating_add(text.len()))?;
    push_quoted(text, out);
    Ok(())
}

/// Escapes all non-ASCII characters.
pub(crate) fn ascii(rt: &Rt, text: &str) -> R<String> {
    rt.fits(text.len().saturating_mul(4))?;
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        let _ = match u32::from(letter) {
            0..=0x7f => {
                out.push(letter);
                Ok(())
            }
            code @ ..=0xff => write!(out, "\\x{code:02x}"),
            code @ ..=0xffff => write!(out, "\\u{code:04x}"),
            code => write!(out, "\\U{code:08x}"),
        };
    }
    Ok(out)
}

fn write_bytes(rt: &Rt, bytes: &[u8], out: &mut String) -> R<()> {
    rt.step(bytes.len() as u64 / 16)?;
    rt.fits(out.len().saturating_add(bytes.len()))?;
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') {
        b'"'
    } else {
        b'\''
    };
    out.push('b');
    out.push(char::from(quote));
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            byte if *byte == quote => {
                out.push('\\');
                out.push(char::from(*byte));
            }
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push(char::from(quote));
    Ok(())
}

/// Returns the shortest string that parses as the same number, in Python's notation.
pub(crate) fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return (if number > 0.0 { "inf" } else { "-inf" }).to_owned();
    }
    let shortest = format!("{number:e}");
    // Of two such strings, Python takes the closer one.
    let digits = shortest.bytes().take_while(|byte| *byte != b'e');
    let digits = digits.filter(u8::is_ascii_digit).count();
    let rounded = format!("{number:.*e}", digits.saturating_sub(1));
    let closer = rounded != shortest && rounded.parse() == Ok(number);
    let scientific = if closer { rounded } else { shortest };
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        let decimals = i32::try_from(digits).unwrap_or(17) - 1 - exponent;
        let plain = match usize::try_from(decimals) {
            Ok(decimals) if closer => format!("{number:.decimals$}"),
            _ => number.to_string(),
        };
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}
