//! Methods of bytes. The methods of strings work on a string with a character for each byte: bytes that are not ASCII are
//! characters of private use, which have no case and are neither letters nor blanks, as in Python.

use super::text::{self, decode_message};
use crate::{
    eval::context::Cx,
    exc::{R, raise, type_error},
    rt::Rt,
    value::{Value, args::Args},
};

pub(super) fn call(cx: &Cx<'_>, bytes: &[u8], name: &str, args: Args) -> R<Value> {
    cx.rt.read(bytes.len())?;
    match name {
        "hex" => {
            args.none("hex")?;
            cx.rt.text(hex::encode(bytes))
        }
        "decode" => {
            args.bind("decode", ["encoding", "errors"], 0)?;
            match std::str::from_utf8(bytes) {
                Ok(text) => cx.rt.text(text.to_owned()),
                Err(error) => raise("UnicodeDecodeError", decode_message(bytes, error)),
            }
        }
        _ => {
            let own = as_text(cx.rt, bytes)?;
            let seeks = matches!(name, "find" | "rfind" | "index" | "rindex" | "count");
            let args = arguments(cx.rt, args, seeks)?;
            let made = text::call(cx, &own, own.as_str().map_or("", |text| &**text), name, args)?;
            as_bytes(cx.rt, made)
        }
    }
}

/// The character of the byte 0.
const FIRST: u32 = 0xe000;

fn as_text(rt: &Rt, bytes: &[u8]) -> R<Value> {
    rt.fits(bytes.len().saturating_mul(3))?;
    let letter = |byte: &u8| match byte {
        0..=0x7f => char::from(*byte),
        _ => char::from_u32(FIRST + u32::from(*byte)).unwrap_or_default(),
    };
    rt.text(bytes.iter().map(letter).collect())
}

/// Converts the bytes of arguments; strings are refused. A number stands for a byte if the method seeks one.
fn arguments(rt: &Rt, mut args: Args, seeks: bool) -> R<Args> {
    for (index, value) in args.plain.iter_mut().enumerate() {
        *value = match &*value {
            Value::Int(byte) if seeks && index == 0 => match u8::try_from(*byte) {
                Ok(byte) => as_text(rt, &[byte])?,
                Err(_) => return raise("ValueError", "byte must be in range(0, 256)"),
            },
            value => argument(rt, value)?,
        };
    }
    for (_, value) in &mut args.named {
        *value = argument(rt, value)?;
    }
    Ok(args)
}

fn argument(rt: &Rt, value: &Value) -> R<Value> {
    let items = |items: &[Value]| -> R<Vec<Value>> {
        rt.step(items.len() as u64)?;
        items.iter().map(|item| argument(rt, item)).collect()
    };
    match value {
        Value::Bytes(bytes) => as_text(rt, bytes),
        Value::Str(_) | Value::Markup(_) => type_error("a bytes-like object is required, not 'str'"),
        Value::Tuple(tuple) => Ok(Value::tuple(items(&tuple.items)?)),
        Value::List(list) => rt.list(items(&list.to_vec())?),
        other => Ok(other.clone()),
    }
}

fn as_bytes(rt: &Rt, value: Value) -> R<Value> {
    let items =
        |items: &[Value]| -> R<Vec<Value>> { items.iter().map(|item| as_bytes(rt, item.clone())).collect() };
    match &value {
        Value::Str(text) => {
            rt.alloc(text.len())?;
            let byte = |letter: char| match u32::from(letter) {
                code @ FIRST.. => u8::try_from(code - FIRST).unwrap_or_default(),
                code => u8::try_from(code).unwrap_or_default(),
            };
            Ok(Value::Bytes(text.chars().map(byte).collect()))
        }
        Value::Tuple(tuple) => Ok(Value::tuple(items(&tuple.items)?)),
        Value::List(list) => rt.list(items(&list.to_vec())?),
        _ => Ok(value),
    }
}
