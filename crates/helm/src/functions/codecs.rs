//! YAML, JSON and TOML. The readers answer what is wrong in place of data, as Helm's do.

use super::{
    Answer, Context, Entry,
    arguments::{any, text},
    fixed, json, toml,
};
use crate::{Value, template::Type};

const ANY: &[Type] = &[Type::Any];
const TEXT: &[Type] = &[Type::String];

pub(super) const TABLE: &[Entry] = &[
    fixed("toYaml", ANY, to_yaml),
    fixed("toYamlPretty", ANY, to_yaml_pretty),
    fixed("fromYaml", TEXT, from_yaml),
    fixed("fromYamlArray", TEXT, from_yaml_array),
    fixed("toJson", ANY, |context, arguments| {
        to_json(context, arguments, yaml::print::json_sorted_html).or_else(quiet)
    }),
    fixed("mustToJson", ANY, |context, arguments| {
        to_json(context, arguments, yaml::print::json_sorted_html)
    }),
    fixed("toRawJson", ANY, |context, arguments| {
        to_json(context, arguments, yaml::print::json_sorted)
    }),
    fixed("mustToRawJson", ANY, |context, arguments| {
        to_json(context, arguments, yaml::print::json_sorted)
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
        json::read(context, text(arguments, 0))
    }),
    fixed("toToml", ANY, to_toml),
    fixed("fromToml", TEXT, from_toml),
];

/// What JSON and YAML have no number for makes an empty text; a limit that was reached stays an error.
fn quiet(error: String) -> Answer {
    if error.starts_with("json: ") {
        Ok(Value::string(""))
    } else {
        Err(error)
    }
}

/// The data of an argument, if JSON has words for all of it.
fn data(context: &Context<'_>, arguments: &[Value]) -> Result<yaml::Value, String> {
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
            Err(format!("json: unsupported value: {word}"))
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

/// Counts a text that was made, and makes it a value.
fn made(context: &Context<'_>, text: &str) -> Answer {
    context.text(text.len())?;
    Ok(Value::string(text))
}

fn to_json(context: &Context<'_>, arguments: &[Value], print: fn(&yaml::Value) -> String) -> Answer {
    made(context, &print(&data(context, arguments)?))
}

/// Through JSON, in which a float without a fraction looks like an integer.
fn to_yaml(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let mut data = match data(context, arguments) {
        Ok(data) => data,
        Err(error) => return quiet(error),
    };
    whole_numbers(&mut data);
    let text = yaml::print::goyaml(&data);
    made(context, text.strip_suffix('\n').unwrap_or(&text))
}

fn whole_numbers(value: &mut yaml::Value) {
    match value {
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

/// Not through JSON: floats stay floats. Lists stand two spaces further in than their key.
fn to_yaml_pretty(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let data = any(arguments, 0).to_yaml(context.budget)?;
    let text = json::indented_lists(&yaml::print::goyaml(&data));
    made(context, text.strip_suffix('\n').unwrap_or(&text))
}

fn error_map(message: String) -> Value {
    Value::dict([("Error", Value::string(message))])
}

fn read_yaml(context: &Context<'_>, text: &str) -> Result<Value, String> {
    context.items(text.len() / 64)?;
    match yaml::read::goyaml_lenient(text, context.budget) {
        Ok(document) => Ok(Value::from_yaml(&document.value)),
        Err(error) if error.exceeded().is_some() => Err(error.to_string()),
        Err(error) => Ok(Value::Object(std::rc::Rc::new(json::Failed(yaml_error(
            text, &error,
        ))))),
    }
}

/// Why a text is no YAML, as go-yaml says it: lines are counted from 0 where something else was expected, and the first line
/// is not named.
fn yaml_error(text: &str, error: &yaml::Error) -> String {
    let message = error.message();
    let words = message
        .split_once(" while ")
        .map_or(message.as_str(), |(words, _)| words);
    let expected = words.starts_with("did not find expected");
    // The end is on the last line, unless that one ends.
    let last = text.matches('\n').count() as u32 + 1;
    let line = |at: yaml::Position| if expected { at.line } else { at.line.min(last) };
    let places = [error.position, error.begin].into_iter().flatten().map(line);
    let place = match places.into_iter().find(|line| *line > 1) {
        Some(line) => format!("line {}: ", if expected { line - 1 } else { line }),
        None => String::new(),
    };
    format!("error converting YAML to JSON: yaml: {place}{words}")
}

const DECODING: &str = "error unmarshaling JSON: while decoding JSON: ";

fn from_yaml(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let found = read_yaml(context, text(arguments, 0))?;
    Ok(json::wanted(found, DECODING, true).unwrap_or_else(error_map))
}

fn from_yaml_array(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let found = read_yaml(context, text(arguments, 0))?;
    Ok(json::wanted(found, DECODING, false).unwrap_or_else(|error| Value::list(vec![Value::string(error)])))
}

fn from_json(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let found = json::read(context, text(arguments, 0));
    let found = found.and_then(|found| json::wanted(found, "", true));
    Ok(found.unwrap_or_else(error_map))
}

fn from_json_array(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let found = json::read(context, text(arguments, 0));
    if matches!(found, Ok(Value::Nil)) {
        return Ok(Value::nil_list());
    }
    let found = found.and_then(|found| json::wanted(found, "", false));
    Ok(found.unwrap_or_else(|error| Value::list(vec![Value::string(error)])))
}

fn to_toml(context: &Context<'_>, arguments: &[Value]) -> Answer {
    if matches!(any(arguments, 0), Value::Nil | Value::Missing) {
        return Err("reflect: call of reflect.Value.Type on zero Value".to_owned());
    }
    let text = toml::write(context, any(arguments, 0)).unwrap_or_else(|error| error);
    made(context, &text)
}

fn from_toml(context: &Context<'_>, arguments: &[Value]) -> Answer {
    context.text(text(arguments, 0).len())?;
    Ok(toml::read(text(arguments, 0)).unwrap_or_else(error_map))
}
