//! The tags of scalars.

use std::borrow::Cow;

use crate::Problem;

const STANDARD: &str = "tag:yaml.org,2002:";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tag {
    Null,
    Bool,
    Int,
    Float,
    Str,
    Timestamp,
    /// Base64, decoded only when it becomes a value.
    Binary,
    /// A tag without a meaning here; the scalar becomes a string.
    Other,
}

/// Writes a standard tag as `!!name`; others stay unchanged.
pub(crate) fn short(tag: &str) -> Cow<'_, str> {
    tag.strip_prefix(STANDARD)
        .map_or(tag.into(), |name| format!("!!{name}").into())
}

/// Parses a tag in its short form.
pub(crate) fn known(short: &str) -> Tag {
    match short {
        "!!null" => Tag::Null,
        "!!bool" => Tag::Bool,
        "!!int" => Tag::Int,
        "!!float" => Tag::Float,
        "!!str" => Tag::Str,
        "!!timestamp" => Tag::Timestamp,
        "!!binary" => Tag::Binary,
        _ => Tag::Other,
    }
}

/// The error of a scalar that doesn't match its tag.
pub(crate) fn mismatch(text: &str, tag: Tag) -> Problem {
    let tag = match tag {
        Tag::Null => "!!null",
        Tag::Bool => "!!bool",
        Tag::Int => "!!int",
        Tag::Float => "!!float",
        Tag::Str => "!!str",
        Tag::Timestamp => "!!timestamp",
        Tag::Binary => "!!binary",
        Tag::Other => "its tag",
    };
    Problem::Tag {
        text: text.to_owned(),
        tag: tag.to_owned(),
    }
}

/// Decodes a `!!binary` scalar; invalid UTF-8 is replaced.
pub(crate) fn binary(text: &str) -> Result<String, Problem> {
    use base64::Engine as _;
    let compact: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(compact)
        .map_err(|_| mismatch(text, Tag::Binary))?;
    Ok(go::bytes::to_valid_utf8(&go::bytes::to_string(&bytes)).into_owned())
}
