//! The filters of kluctl, and those of Jinja2 where the engine's own differ from the original.

use base64::{Engine as _, alphabet, engine};
use minijinja::{
    Environment, Error, ErrorKind, State, Value as Dynamic,
    value::{Kwargs, ValueKind},
};
use tree::Budget;

use crate::{
    convert,
    functions::{fail, no_attribute, sha256 as digest},
    python::{self, JsonStyle},
    slug, text,
};

pub(crate) fn register(env: &mut Environment<'_>) {
    env.add_filter("b64encode", b64encode);
    env.add_filter("b64decode", b64decode);
    env.add_filter("to_yaml", to_yaml);
    env.add_filter("to_json", to_json);
    env.add_filter("from_yaml", from_yaml);
    env.add_filter("sha256", sha256);
    env.add_filter("slugify", slug::slugify);
    env.add_filter("tojson", tojson);
    env.add_filter("default", default);
    env.add_filter("d", default);
    env.add_filter("string", |value: &Dynamic| python::text(value));
    env.add_filter("join", join);
    env.add_filter("random", |_: &Dynamic| unsupported("random"));
    env.add_filter("urlize", |_: &Dynamic| unsupported("urlize"));
    text::register(env);
    // Names that only the engine has.
    for name in ["bool", "split", "lines", "chain", "zip"] {
        env.remove_filter(name);
    }
}

fn unsupported(name: &str) -> Result<Dynamic, Error> {
    Err(fail(format!("NotImplementedError: the filter {name} is not supported yet")))
}

/// The text of a filter's input, which Python would not convert implicitly.
fn required_text<'a>(value: &'a Dynamic) -> Result<&'a str, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    value.as_str().ok_or_else(|| no_attribute(value, "encode"))
}

fn b64encode(value: &Dynamic) -> Result<String, Error> {
    Ok(engine::general_purpose::STANDARD.encode(required_text(value)?))
}

/// Characters outside of the alphabet are discarded, as Python does.
fn b64decode(value: &Dynamic) -> Result<String, Error> {
    let known = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let text = required_text(value)?;
    let letters: Vec<u8> = text.bytes().filter(known).collect();
    let padding = text.bytes().filter(|byte| *byte == b'=').count();
    if letters.len() % 4 != 0 && (letters.len() + padding) % 4 != 0 {
        return Err(fail("binascii.Error: Incorrect padding"));
    }
    let lenient = engine::GeneralPurposeConfig::new()
        .with_decode_padding_mode(engine::DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let decoded = engine::GeneralPurpose::new(&alphabet::STANDARD, lenient).decode(letters);
    let bytes = decoded.map_err(|error| fail(format!("binascii.Error: {error}")))?;
    String::from_utf8(bytes).map_err(|_| fail("UnicodeDecodeError: 'utf-8' codec can't decode the decoded bytes"))
}

fn to_yaml(value: &Dynamic) -> Result<String, Error> {
    Ok(yaml::print::pyyaml(&convert::from_dynamic(value)?))
}

fn to_json(value: &Dynamic) -> Result<String, Error> {
    python::json(value, JsonStyle { sorted: false, html_safe: false, indent: None })
}

fn tojson(value: &Dynamic, indent: Option<usize>) -> Result<String, Error> {
    python::json(value, JsonStyle { sorted: true, html_safe: true, indent })
}

fn from_yaml(value: &Dynamic) -> Result<Dynamic, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let text = value.as_str().ok_or_else(|| no_attribute(value, "read"))?;
    let parsed = yaml::read::pyyaml(text, &Budget::default());
    let parsed = parsed.map_err(|error| fail(format!("ScannerError: {error}")))?;
    Ok(convert::to_dynamic(&parsed.value, false))
}

fn sha256(value: &Dynamic, len: Option<usize>) -> Result<String, Error> {
    Ok(digest(required_text(value)?.as_bytes(), len))
}

fn default(
    _state: &State<'_, '_>,
    value: &Dynamic,
    other: Option<Dynamic>,
    boolean: Option<Dynamic>,
    kwargs: Kwargs,
) -> Result<Dynamic, Error> {
    let other = other.or(kwargs.get::<Option<Dynamic>>("default_value")?);
    let boolean = boolean.or(kwargs.get::<Option<Dynamic>>("boolean")?);
    kwargs.assert_all_used()?;
    let missing = value.is_undefined() || boolean.is_some_and(|flag| flag.is_true()) && !value.is_true();
    Ok(if missing { other.unwrap_or_else(|| Dynamic::from("")) } else { value.clone() })
}

fn join(
    value: &Dynamic,
    separator: Option<Dynamic>,
    attribute: Option<Dynamic>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let separator = separator.or(kwargs.get::<Option<Dynamic>>("d")?);
    let attribute = attribute.or(kwargs.get::<Option<Dynamic>>("attribute")?);
    kwargs.assert_all_used()?;
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let separator = separator.as_ref().map(python::text).transpose()?.unwrap_or_default();
    let mut out = String::new();
    for (index, item) in items(value)?.into_iter().enumerate() {
        if index > 0 {
            out.push_str(&separator);
        }
        let item = match &attribute {
            Some(path) => attribute_of(&item, path)?,
            None => item,
        };
        if item.is_undefined() {
            return Err(Error::from(ErrorKind::UndefinedError));
        }
        python::write_text(&item, &mut out)?;
    }
    Ok(out)
}

/// The items of anything that can be iterated; text gives its characters.
pub(crate) fn items(value: &Dynamic) -> Result<Vec<Dynamic>, Error> {
    match value.kind() {
        ValueKind::String => {
            let letters = value.as_str().unwrap_or_default().chars();
            Ok(letters.map(|letter| Dynamic::from(letter.to_string())).collect())
        }
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => value.try_iter()?.checked().collect(),
        _ => {
            let name = crate::functions::type_name(value);
            Err(fail(format!("TypeError: '{name}' object is not iterable")))
        }
    }
}

/// Follows a dotted path of names and indexes, as `attribute=` does.
fn attribute_of(value: &Dynamic, path: &Dynamic) -> Result<Dynamic, Error> {
    let Some(path) = path.as_str() else {
        return value.get_item(path);
    };
    let mut found = value.clone();
    for part in path.split('.') {
        found = match part.parse::<usize>() {
            Ok(index) => found.get_item(&Dynamic::from(index))?,
            Err(_) => found.get_attr(part)?,
        };
    }
    Ok(found)
}
