//! In what the readers differ.

use crate::{
    Problem, Value,
    node::{Scalar, Tag, Text},
};

/// The differences of the readers.
pub(super) struct Dialect {
    /// The meaning of a scalar's tag, given in its short form; none when the looks decide.
    pub(super) scalar_tag: fn(&str) -> Result<Option<Tag>, Problem>,
    /// Fails if the tag of a list or a map is not allowed.
    pub(super) collection_tag: fn(&str) -> Result<(), Problem>,
    /// The highest minor version that a `%YAML` directive may ask for.
    pub(super) max_minor: i32,
    /// Resolves a scalar; `None` if its value is its own string.
    pub(super) scalar: fn(&Scalar) -> Result<Option<Value>, Problem>,
    /// The text of a map key.
    pub(super) key: fn(Scalar) -> Result<Text, Problem>,
    /// The treatment of a key that is set twice.
    pub(super) duplicates: Duplicates,
    /// True if a merge key may bring a key that the map sets itself; the map's own value then wins.
    pub(super) merge_overlaps: bool,
    /// True if infinities and NaN are values.
    pub(super) not_finite: bool,
}

pub(super) enum Duplicates {
    /// Refused.
    Refused,
    /// Refused with the message of go-yaml.
    RefusedByLine,
    /// The last one wins.
    LastWins,
    /// The last one wins, and merged entries count at the place of the merge key.
    InOrder,
}
