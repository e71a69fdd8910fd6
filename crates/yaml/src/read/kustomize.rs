//! The dialect of kustomize: go-yaml version 3, then passed through JSON. Only `true` and `false` are booleans, and times
//! are normalised.

use super::{
    dialect::{Dialect, Duplicates},
    goyaml, resolve,
    scan::Flavour,
};
use crate::{
    Problem, Value,
    node::{Scalar, Tag, Text},
    tag,
};

pub(super) const DIALECT: Dialect = Dialect {
    scalar_tag: |tag| Ok((tag != "!").then(|| tag::known(tag))),
    collection_tag: |_| Ok(()),
    flavour: Flavour::Go3,
    scalar: |scalar| goyaml::value(scalar, resolve::kustomize, Some),
    key,
    duplicates: Duplicates::Refused,
    merge_overlaps: true,
    not_finite: false,
};

/// For nodes, which become values only when they are printed.
pub(super) const PRINTED: Dialect = Dialect {
    key: string_key,
    scalar: |scalar| match is_bare(scalar) {
        true => Ok(Some(Value::from(""))),
        false => (DIALECT.scalar)(scalar),
    },
    duplicates: Duplicates::RefusedByLine,
    ..DIALECT
};

/// quirk: a null without characters can't be printed between brackets, and is quoted there.
fn is_bare(scalar: &Scalar) -> bool {
    scalar.in_flow && scalar.text.is_empty() && scalar.is_null()
}

fn key(scalar: Scalar) -> Result<Text, Problem> {
    // A time is not a string, though it becomes one as a value.
    if scalar.tag.is_none() && scalar.kind() == Tag::Timestamp {
        return Err(Problem::Key("timestamp"));
    }
    match (DIALECT.scalar)(&scalar)? {
        None => Ok(scalar.text),
        Some(Value::String(text)) => Ok(text.into()),
        Some(other) => Err(Problem::Key(other.type_name())),
    }
}

/// Checks a key by its kind alone: even a tag without meaning makes it no string.
fn string_key(scalar: Scalar) -> Result<Text, Problem> {
    let found = match scalar.kind() {
        Tag::Str => return Ok(scalar.text),
        Tag::Null => "null",
        Tag::Bool => "boolean",
        Tag::Int => "integer",
        Tag::Float => "number",
        Tag::Timestamp => "timestamp",
        Tag::Binary => "binary data",
        Tag::Other => "a scalar with a tag of its own",
    };
    Err(Problem::Key(found))
}
