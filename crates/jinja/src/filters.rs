//! The filters of kluctl, and those of Jinja2 where the engine's own differ from the original.

use base64::{Engine as _, alphabet, engine};
use minijinja::{Environment, Error, Value as Dynamic, value::ValueKind};

use crate::{
    account::{self, ITEM},
    builtins, convert,
    functions::{fail, no_attribute, sha256 as digest},
    lists, numbers,
    python::{self, JsonStyle},
    signature::{Args, bind, defined},
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
    env.add_filter("string", |value: &Dynamic| match defined(value)?.as_str() {
        Some(_) => Ok(value.clone()),
        None => account::made(python::text(value)?).map(Dynamic::from),
    });
    env.add_filter("join", join);
    env.add_filter("random", |_: &Dynamic| unsupported("random"));
    env.add_filter("urlize", |_: &Dynamic| unsupported("urlize"));
    builtins::register(env);
    text::register(env);
    lists::register(env);
    numbers::register(env);
    // What is undefined can be called in the original, only to fail.
    env.add_test("callable", |value: &Dynamic| {
        matches!(value.kind(), ValueKind::Plain | ValueKind::Undefined)
    });
    env.add_test("sequence", |value: &Dynamic| {
        matches!(value.kind(), ValueKind::Seq | ValueKind::String | ValueKind::Map)
    });
    // Names that only the engine has.
    for name in ["bool", "split", "lines", "chain", "zip"] {
        env.remove_filter(name);
    }
}

fn unsupported(name: &str) -> Result<Dynamic, Error> {
    Err(fail(format!(
        "NotImplementedError: the filter {name} is not supported yet"
    )))
}

/// The text of a filter's input, which Python would not convert implicitly.
fn required_text(value: &Dynamic) -> Result<&str, Error> {
    defined(value)?
        .as_str()
        .ok_or_else(|| no_attribute(value, "encode"))
}

fn b64encode(value: &Dynamic) -> Result<String, Error> {
    account::made(engine::general_purpose::STANDARD.encode(required_text(value)?))
}

/// Characters outside of the alphabet are discarded, as Python does.
fn b64decode(value: &Dynamic) -> Result<String, Error> {
    let known = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let text = required_text(value)?;
    let letters: Vec<u8> = text.bytes().filter(known).collect();
    let padding = text.bytes().filter(|byte| *byte == b'=').count();
    let whole = |count: usize| count.is_multiple_of(4);
    if !whole(letters.len()) && !whole(letters.len() + padding) {
        return Err(fail("binascii.Error: Incorrect padding"));
    }
    let lenient = engine::GeneralPurposeConfig::new()
        .with_decode_padding_mode(engine::DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let decoded = engine::GeneralPurpose::new(&alphabet::STANDARD, lenient).decode(letters);
    let bytes = decoded.map_err(|error| fail(format!("binascii.Error: {error}")))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| fail("UnicodeDecodeError: 'utf-8' codec can't decode the decoded bytes"))?;
    account::made(text)
}

fn to_yaml(value: &Dynamic) -> Result<String, Error> {
    account::made(yaml::print::pyyaml(&convert::from_dynamic(value)?))
}

fn to_json(value: &Dynamic) -> Result<String, Error> {
    python::json(
        value,
        JsonStyle {
            sorted: false,
            html_safe: false,
            indent: None,
        },
    )
}

fn tojson(value: &Dynamic, args: Args) -> Result<String, Error> {
    let args = bind("tojson", ["indent"], args)?;
    let indent = args
        .number("indent")?
        .map(|_| args.size("indent", 0))
        .transpose()?;
    python::json(
        value,
        JsonStyle {
            sorted: true,
            html_safe: true,
            indent,
        },
    )
}

fn from_yaml(value: &Dynamic) -> Result<Dynamic, Error> {
    let text = defined(value)?
        .as_str()
        .ok_or_else(|| no_attribute(value, "read"))?;
    // Two bytes can be an item of a list.
    account::charge(text.len().saturating_mul(ITEM))?;
    let parsed = yaml::read::pyyaml(text, &account::budget());
    let parsed = parsed.map_err(|error| fail(format!("ScannerError: {error}")))?;
    Ok(convert::to_dynamic(&parsed.value, false))
}

fn sha256(value: &Dynamic, args: Args) -> Result<String, Error> {
    let len = bind("sha256", ["digest_len"], args)?.number("digest_len")?;
    Ok(digest(required_text(value)?.as_bytes(), len))
}

fn default(value: &Dynamic, args: Args) -> Result<Dynamic, Error> {
    let args = bind("default", ["default_value", "boolean"], args)?;
    let missing = value.is_undefined() || args.flag("boolean", false)? && !value.is_true();
    Ok(if missing {
        args.get("default_value").unwrap_or_else(|| Dynamic::from(""))
    } else {
        value.clone()
    })
}

fn join(value: &Dynamic, args: Args) -> Result<String, Error> {
    let args = bind("join", ["d", "attribute"], args)?;
    let separator = args
        .get("d")
        .as_ref()
        .map(python::text)
        .transpose()?
        .unwrap_or_default();
    let attribute = args.get("attribute").filter(|attribute| !attribute.is_none());
    let mut out = String::new();
    for (index, item) in items(defined(value)?)?.into_iter().enumerate() {
        if index > 0 {
            account::fits(out.len().saturating_add(separator.len()))?;
            out.push_str(&separator);
        }
        let item = match &attribute {
            Some(path) => attribute_of(&item, path)?,
            None => item,
        };
        python::write_text(defined(&item)?, &mut out)?;
    }
    account::made(out)
}

/// The items of anything that can be iterated; text gives its characters.
pub(crate) fn items(value: &Dynamic) -> Result<Vec<Dynamic>, Error> {
    match value.kind() {
        ValueKind::String => {
            account::charge(value.as_str().map_or(0, str::len).saturating_mul(ITEM))?;
            let letters = value.as_str().unwrap_or_default().chars();
            Ok(letters.map(|letter| Dynamic::from(letter.to_string())).collect())
        }
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => {
            let mut items = Vec::new();
            for item in value.try_iter()?.checked() {
                account::charge(ITEM)?;
                items.push(item?);
            }
            Ok(items)
        }
        _ => {
            let name = crate::functions::type_name(value);
            Err(fail(format!("TypeError: '{name}' object is not iterable")))
        }
    }
}

/// Follows a dotted path of names and indexes, as `attribute=` does.
pub(crate) fn attribute_of(value: &Dynamic, path: &Dynamic) -> Result<Dynamic, Error> {
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
