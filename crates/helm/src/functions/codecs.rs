//! YAML, JSON and TOML. The parsers return error messages as data, as in Helm.

use go::bytes;
use yaml::print::JsonWriter;

use super::{
    arguments::{any, text},
    context::Context,
    json,
    table::{Answer, Entry, fixed},
    toml,
};
use crate::{
    Value,
    convert::{ConvertError, check_finite},
    sigs_yaml,
    template::{FunctionError, Type},
};

const ANY: &[Type] = &[Type::Any];
const TEXT: &[Type] = &[Type::String];

pub(super) const TABLE: &[Entry] = &[
    fixed("toYaml", ANY, to_yaml),
    fixed("toYamlPretty", ANY, to_yaml_pretty),
    fixed("fromYaml", TEXT, from_yaml),
    fixed("fromYamlArray", TEXT, from_yaml_array),
    fixed("toJson", ANY, |context, arguments| {
        to_json(context, arguments, JsonWriter::go(true)).or_else(quiet)
    }),
    fixed("mustToJson", ANY, |context, arguments| {
        to_json(context, arguments, JsonWriter::go(true))
    }),
    fixed("toRawJson", ANY, |context, arguments| {
        to_json(context, arguments, JsonWriter::go(false))
    }),
    fixed("mustToRawJson", ANY, |context, arguments| {
        to_json(context, arguments, JsonWriter::go(false))
    }),
    fixed("toPrettyJson", ANY, |context, arguments| {
        to_pretty_json(context, arguments).or_else(quiet)
    }),
    fixed("mustToPrettyJson", ANY, to_pretty_json),
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
    check_numbers(&data)?;
    Ok(data)
}

fn check_numbers(value: &yaml::Value) -> Result<(), ConvertError> {
    match value {
        yaml::Value::Float(float) => check_finite(*float),
        yaml::Value::Seq(items) => items.iter().try_for_each(check_numbers),
        yaml::Value::Map(map) => map.iter().try_for_each(|(_, value)| check_numbers(value)),
        _ => Ok(()),
    }
}

fn made(context: &Context<'_>, text: &str) -> Answer {
    context.text(text.len())?;
    Ok(Value::utf8(text))
}

fn to_json(context: &Context<'_>, arguments: &[Value], writer: JsonWriter) -> Answer {
    let text = any(arguments, 0).to_json(writer, context.budget)?;
    made(context, &bytes::replace_invalid(&text, "\\ufffd"))
}

fn to_pretty_json(context: &Context<'_>, arguments: &[Value]) -> Answer {
    to_json(context, arguments, JsonWriter::go_indented())
}

/// Prints through JSON; a value that JSON or the YAML reader rejects is an empty string.
fn to_yaml(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let data = match data(context, arguments) {
        Ok(data) => data,
        Err(error) => return quiet(error),
    };
    let text = sigs_yaml::print(data).unwrap_or_default();
    printed(context, &text)
}

fn must_to_yaml(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let text = sigs_yaml::print(data(context, arguments)?)?;
    printed(context, &text)
}

fn printed(context: &Context<'_>, text: &str) -> Answer {
    made(context, text.strip_suffix('\n').unwrap_or(text))
}

/// Doesn't convert through JSON: floats stay floats, and nil lists are empty. Lists are indented below their key.
fn to_yaml_pretty(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let data = any(arguments, 0).to_yaml_alone(context.budget)?;
    let text = yaml::print::goyaml_v3_indented(&data);
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
    let text = bytes::of_str(text);
    if let Some(wrong) = sigs_yaml::wrong_octet(&text) {
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

const DECODING: &str = "error unmarshaling JSON: while decoding JSON: ";

fn from_yaml(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let found = read_yaml(context, text(arguments, 0))?;
    Ok(json::wanted(found, DECODING, true, context.budget).unwrap_or_else(error_map))
}

fn from_yaml_array(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let found = read_yaml(context, text(arguments, 0))?;
    Ok(json::wanted(found, DECODING, false, context.budget)
        .unwrap_or_else(|error| Value::list(vec![Value::string(error.into_message())])))
}

fn from_json(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let found = json::read(&context.meter, text(arguments, 0));
    let found = found.and_then(|found| json::wanted(found, "", true, context.budget));
    found.or_else(|error| error_as_value(error, error_map))
}

fn from_json_array(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let found = json::read(&context.meter, text(arguments, 0));
    if matches!(found, Ok(Value::Nil)) {
        return Ok(Value::nil_list());
    }
    let found = found.and_then(|found| json::wanted(found, "", false, context.budget));
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
    let text = toml::write(context, any(arguments, 0))?;
    context.text(text.len())?;
    Ok(Value::string(text))
}

fn from_toml(context: &Context<'_>, arguments: &[Value]) -> Answer {
    context.text(text(arguments, 0).len())?;
    context.document(text(arguments, 0))?;
    Ok(toml::read(text(arguments, 0), context.helm).unwrap_or_else(error_map))
}
