//! YAML, JSON and TOML. The parsers return error messages as data, as in Helm.

use go::bytes;

use super::{
    arguments::{any, text},
    context::Context,
    json,
    table::{Answer, Entry, fixed},
    toml,
};
use crate::template::FunctionError;
use crate::{Value, template::Type};

const ANY: &[Type] = &[Type::Any];
const TEXT: &[Type] = &[Type::String];

pub(super) const TABLE: &[Entry] = &[
    fixed("toYaml", ANY, to_yaml),
    fixed("toYamlPretty", ANY, to_yaml_pretty),
    fixed("fromYaml", TEXT, from_yaml),
    fixed("fromYamlArray", TEXT, from_yaml_array),
    fixed("toJson", ANY, |context, arguments| {
        to_json(context, arguments, yaml::print::json_html).or_else(quiet)
    }),
    fixed("mustToJson", ANY, |context, arguments| {
        to_json(context, arguments, yaml::print::json_html)
    }),
    fixed("toRawJson", ANY, |context, arguments| {
        to_json(context, arguments, yaml::print::json)
    }),
    fixed("mustToRawJson", ANY, |context, arguments| {
        to_json(context, arguments, yaml::print::json)
    }),
    fixed("toPrettyJson", ANY, |context, arguments| {
        to_json(context, arguments, json::pretty).or_else(quiet)
    }),
    fixed("mustToPrettyJson", ANY, |context, arguments| {
        to_json(context, arguments, json::pretty)
    }),
    fixed("fromJson", TEXT, from_json),
    fixed("fromJsonArray", TEXT, from_json_array),
    fixed("mustFromJson", TEXT, |context, arguments| {
        json::read(&context.meter, text(arguments, 0))
    }),
    fixed("toToml", ANY, to_toml),
    fixed("fromToml", TEXT, from_toml),
];

/// The functions that Helm 4 adds: they fail where those without `must` return something else.
pub(super) const TABLE_OF_4: &[Entry] = &[
    fixed("mustToYaml", ANY, must_to_yaml),
    fixed("mustToToml", ANY, must_to_toml),
];

/// Returns an empty string for values that JSON and YAML cannot represent; other errors are returned.
fn quiet(error: FunctionError) -> Answer {
    match error {
        FunctionError::NotJson(_) => Ok(Value::string("")),
        error => Err(error),
    }
}

/// Converts an argument to plain data; fails for floats that JSON can't represent.
fn data(context: &Context<'_>, arguments: &[Value]) -> Result<yaml::Value, FunctionError> {
    let data = any(arguments, 0).to_yaml(context.budget)?;
    match not_finite(&data) {
        Some(float) => {
            let word = if float.is_nan() {
                "NaN"
            } else if float > 0.0 {
                "+Inf"
            } else {
                "-Inf"
            };
            Err(FunctionError::NotJson(word))
        }
        None => Ok(data),
    }
}

fn not_finite(value: &yaml::Value) -> Option<f64> {
    match value {
        yaml::Value::Float(float) => Some(*float).filter(|float| !float.is_finite()),
        yaml::Value::Seq(items) => items.iter().find_map(not_finite),
        yaml::Value::Map(map) => map.iter().find_map(|(_, value)| not_finite(value)),
        _ => None,
    }
}

fn made(context: &Context<'_>, text: &str) -> Answer {
    context.text(text.len())?;
    Ok(Value::string(text))
}

fn to_json(context: &Context<'_>, arguments: &[Value], print: fn(&yaml::Value) -> String) -> Answer {
    let mut text = print(&data(context, arguments)?);
    // Invalid UTF-8.
    if !text.is_ascii() {
        text = text.replace(|c| bytes::invalid_byte(c).is_some(), "\\ufffd");
    }
    made(context, &text)
}

/// Converts through JSON: floats without a fraction become integers, invalid UTF-8 is replaced.
fn to_yaml(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let data = match data(context, arguments) {
        Ok(data) => data,
        Err(error) => return quiet(error),
    };
    if has_controls(&data) {
        return Ok(Value::string(""));
    }
    yaml_text(context, data)
}

fn must_to_yaml(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let data = data(context, arguments)?;
    if has_controls(&data) {
        return Err("yaml: control characters are not allowed".into());
    }
    yaml_text(context, data)
}

fn yaml_text(context: &Context<'_>, mut data: yaml::Value) -> Answer {
    whole_numbers(&mut data);
    let text = yaml::print::goyaml(&data);
    made(context, text.strip_suffix('\n').unwrap_or(&text))
}

/// Returns true if a string or key has a character that JSON leaves unescaped and that the YAML reader of the original rejects.
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

/// A float up to this limit has all digits of an integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

fn whole_numbers(value: &mut yaml::Value) {
    match value {
        yaml::Value::String(text)
            if !text.is_ascii() && text.contains(|c| bytes::invalid_byte(c).is_some()) =>
        {
            *text = bytes::to_valid_utf8(text);
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
        yaml::Value::Seq(items) => items.iter_mut().for_each(whole_numbers),
        yaml::Value::Map(map) => map.iter_mut().for_each(|(_, value)| whole_numbers(value)),
        _ => {}
    }
}

/// Doesn't convert through JSON: floats stay floats, and nil lists are empty. Lists are indented below their key.
fn to_yaml_pretty(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let data = any(arguments, 0).to_yaml_alone(context.budget)?;
    let text = json::indented_lists(&yaml::print::goyaml_v3(&data));
    made(context, text.strip_suffix('\n').unwrap_or(&text))
}

/// Returns an error as a value of the template. Limits stay errors and end the template.
fn error_as_value(error: FunctionError, value: fn(FunctionError) -> Value) -> Answer {
    match error {
        FunctionError::Exceeded(_) => Err(error),
        error => Ok(value(error)),
    }
}

fn error_map(error: FunctionError) -> Value {
    Value::dict([("Error", Value::string(error.into_message()))])
}

fn read_yaml(context: &Context<'_>, text: &str) -> Result<Value, FunctionError> {
    context.document(text)?;
    if let Some(wrong) = wrong_octet(&bytes::of_str(text)) {
        let message = format!("error converting YAML to JSON: yaml: {wrong}");
        return Ok(Value::Object(std::rc::Rc::new(json::Failed(message))));
    }
    match yaml::read::goyaml_lenient_as(text, context.budget) {
        Ok(value) => Ok(value.unwrap_or_default()),
        Err(error) if error.exceeded().is_some() => Err(error.to_string().into()),
        Err(error) => Ok(Value::Object(std::rc::Rc::new(json::Failed(
            crate::values::yaml_words(&error),
        )))),
    }
}

/// Returns go-yaml's reason why bytes are not valid UTF-8.
fn wrong_octet(bytes: &[u8]) -> Option<&'static str> {
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

const DECODING: &str = "error unmarshaling JSON: while decoding JSON: ";

fn from_yaml(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let found = read_yaml(context, text(arguments, 0))?;
    Ok(json::wanted(found, DECODING, true).unwrap_or_else(error_map))
}

fn from_yaml_array(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let found = read_yaml(context, text(arguments, 0))?;
    Ok(json::wanted(found, DECODING, false)
        .unwrap_or_else(|error| Value::list(vec![Value::string(error.into_message())])))
}

fn from_json(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let found = json::read(&context.meter, text(arguments, 0));
    let found = found.and_then(|found| json::wanted(found, "", true));
    found.or_else(|error| error_as_value(error, error_map))
}

fn from_json_array(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let found = json::read(&context.meter, text(arguments, 0));
    if matches!(found, Ok(Value::Nil)) {
        return Ok(Value::nil_list());
    }
    let found = found.and_then(|found| json::wanted(found, "", false));
    found.or_else(|error| {
        error_as_value(error, |error| {
            Value::list(vec![Value::string(error.into_message())])
        })
    })
}

fn to_toml(context: &Context<'_>, arguments: &[Value]) -> Answer {
    if matches!(any(arguments, 0), Value::Nil | Value::Missing) {
        return Err("reflect: call of reflect.Value.Type on zero Value".into());
    }
    must_to_toml(context, arguments)
        .or_else(|error| error_as_value(error, |error| Value::string(error.into_message())))
}

fn must_to_toml(context: &Context<'_>, arguments: &[Value]) -> Answer {
    if matches!(any(arguments, 0), Value::Nil | Value::Missing) {
        return Err("reflect: call of reflect.Value.Type on zero Value".into());
    }
    made(context, &toml::write(context, any(arguments, 0))?)
}

fn from_toml(context: &Context<'_>, arguments: &[Value]) -> Answer {
    context.text(text(arguments, 0).len())?;
    context.document(text(arguments, 0))?;
    Ok(toml::read(text(arguments, 0)).unwrap_or_else(error_map))
}
