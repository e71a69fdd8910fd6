//! YAML as sigs.k8s.io/yaml prints it: through JSON.

use std::borrow::Cow;

use go::bytes;

/// Floats up to this limit have all digits of an integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Prints data, whose strings are in the form of [`go::bytes`]: floats without a fraction become integers, invalid UTF-8 is replaced.
/// Fails with the original's message for characters that JSON leaves unescaped, and its YAML reader rejects.
pub(crate) fn print(mut data: yaml::Value) -> Result<String, &'static str> {
    through_json(&mut data);
    if has_controls(&data) {
        return Err("yaml: control characters are not allowed");
    }
    Ok(yaml::print::goyaml(&data))
}

fn has_controls(value: &yaml::Value) -> bool {
    let refused = |c| matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}');
    // Most strings have no such byte and need no second pass.
    let has = |text: &str| text.bytes().any(|byte| byte >= 0x7f) && text.contains(refused);
    match value {
        yaml::Value::String(text) => has(text),
        yaml::Value::Seq(items) => items.iter().any(has_controls),
        yaml::Value::Map(map) => map.iter().any(|(key, value)| has(key) || has_controls(value)),
        _ => false,
    }
}

fn through_json(value: &mut yaml::Value) {
    match value {
        yaml::Value::String(text) if bytes::has_invalid(text) => {
            *text = bytes::to_valid_utf8(text).into_owned();
        }
        yaml::Value::Float(float) if float.abs() <= EXACT && float.fract() == 0.0 => {
            *value = (*float as i64).into();
        }
        // Larger numbers have the value of their shortest digits.
        yaml::Value::Float(float) if float.abs() < 1e21 => {
            let text = float.to_string();
            if let Ok(int) = text.parse::<i64>() {
                *value = int.into();
            } else if let Ok(int) = text.parse::<u64>() {
                *value = int.into();
            }
        }
        yaml::Value::Seq(items) => items.iter_mut().for_each(through_json),
        yaml::Value::Map(map) => {
            map.iter_mut().for_each(|(_, value)| through_json(value));
            if map.iter().any(|(key, _)| bytes::has_invalid(key)) {
                let entry = |(key, value): (&str, &yaml::Value)| {
                    (bytes::to_valid_utf8(key).into_owned(), value.clone())
                };
                *map = map.iter().map(entry).collect();
            }
        }
        _ => {}
    }
}

/// Returns a template's string as YAML; fails with the reason and the offset if it is not UTF-8.
pub(crate) fn utf8(text: &str) -> Result<Cow<'_, str>, (&'static str, usize)> {
    match bytes::of_str(text) {
        Cow::Borrowed(_) => Ok(text.into()),
        Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::from).map_err(|error| {
            let reason = wrong_octet(error.as_bytes()).unwrap_or_default();
            (reason, error.utf8_error().valid_up_to())
        }),
    }
}

/// Returns go-yaml's reason why bytes are not valid UTF-8.
pub(crate) fn wrong_octet(bytes: &[u8]) -> Option<&'static str> {
    let at = std::str::from_utf8(bytes).err()?.valid_up_to();
    let rest = bytes.get(at..).unwrap_or_default();
    let width = match rest.first()? {
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf8 => 4,
        _ => return Some("invalid leading UTF-8 octet"),
    };
    let trailing = rest.iter().take(width).skip(1);
    Some(if rest.len() < width {
        "incomplete UTF-8 octet sequence"
    } else if trailing.clone().all(|byte| byte & 0xc0 == 0x80) {
        "invalid length of a UTF-8 sequence"
    } else {
        "invalid trailing UTF-8 octet"
    })
}
