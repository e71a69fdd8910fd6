//! Filters that encode: base64, checksums, JSON.

use base64::{Engine as _, alphabet, engine};

use crate::{
    digest::digest,
    eval::context::Cx,
    exc::{R, raise},
    format::json::{self, Style},
    methods,
    value::{Str, Value, args::Args},
};

/// Returns a string; Python would not convert other types.
fn required_text(value: &Value) -> R<Str> {
    match value.defined()?.as_str() {
        Some(text) => Ok(text.clone()),
        None => raise(
            "AttributeError",
            format!("'{}' object has no attribute 'encode'", value.type_name()),
        ),
    }
}

pub(super) fn b64encode(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("b64encode")?;
    let text = required_text(&value)?;
    cx.rt.fits(text.len().saturating_mul(2))?;
    cx.rt
        .text(engine::general_purpose::STANDARD.encode(text.as_bytes()))
}

/// Characters outside of the alphabet and after the padding are discarded.
pub(super) fn b64decode(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("b64decode")?;
    let text = match &value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned().into(),
        _ => required_text(&value)?,
    };
    let mut letters: Vec<u8> = Vec::with_capacity(text.len());
    let mut pads = 0;
    for byte in text.bytes() {
        match byte {
            b'=' => {
                pads += 1;
                let over = letters.len() % 4;
                if over >= 2 && over + pads >= 4 {
                    break;
                }
            }
            byte if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/') => {
                letters.push(byte);
                pads = 0;
            }
            _ => {}
        }
    }
    let over = letters.len() % 4;
    if over == 1 {
        let count = letters.len();
        return raise(
            "Error",
            format!(
                "Invalid base64-encoded string: number of data characters ({count}) cannot be 1 more than a multiple of 4"
            ),
        );
    }
    if over > 0 && over + pads < 4 {
        return raise("Error", "Incorrect padding");
    }
    let lenient = engine::GeneralPurposeConfig::new()
        .with_decode_padding_mode(engine::DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let decoded = engine::GeneralPurpose::new(&alphabet::STANDARD, lenient).decode(letters);
    let Ok(bytes) = decoded else {
        return raise("Error", "Incorrect padding");
    };
    match std::str::from_utf8(&bytes) {
        Ok(text) => cx.rt.text(text.to_owned()),
        Err(error) => raise("UnicodeDecodeError", methods::decode_message(&bytes, error)),
    }
}

pub(super) fn sha256(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let len = args.bind("sha256", ["digest_len"], 0)?.optional_int(0)?;
    let text = required_text(&value)?;
    cx.rt.step(text.len() as u64 / 16)?;
    Ok(Value::str(digest(text.as_bytes(), len)))
}

pub(super) fn to_json(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("to_json")?;
    cx.rt.text(json::dumps(cx.rt, &value, &Style::default())?)
}

/// JSON that is safe in HTML, with sorted keys.
pub(super) fn tojson(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let args = args.bind("do_tojson", ["indent"], 0)?;
    let indent: Option<Str> = match args.get(0) {
        None | Some(Value::None) => None,
        Some(Value::Str(text) | Value::Markup(text)) => Some(text.clone()),
        Some(_) => {
            let width = usize::try_from(args.int(0, 0)?).unwrap_or(0);
            crate::format::spec::check_width(cx.rt, width.saturating_mul(64))?;
            Some(" ".repeat(width).into())
        }
    };
    let text = json::dumps(cx.rt, &value, &Style { sorted: true, indent })?;
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\'' => out.push_str("\\u0027"),
            other => out.push(other),
        }
    }
    cx.rt.made(out).map(Value::Markup)
}
