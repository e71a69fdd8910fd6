//! The differences of the readers.

use super::scan::Flavour;
use crate::{
    Problem, Value,
    node::{Scalar, Tag, Text},
};

pub(super) struct Dialect {
    /// Returns the tag of a scalar for its short form; `None` to resolve it from the content.
    pub(super) scalar_tag: fn(&str) -> Result<Option<Tag>, Problem>,
    /// Fails if the tag of a list or a map is not allowed.
    pub(super) collection_tag: fn(&str) -> Result<(), Problem>,
    pub(super) flavour: Flavour,
    /// Resolves a scalar; `None` if its value is its own string.
    pub(super) scalar: fn(&Scalar) -> Result<Option<Value>, Problem>,
    pub(super) key: fn(Scalar) -> Result<Text, Problem>,
    pub(super) duplicates: Duplicates,
    /// True if a merge key may bring a key that the map sets itself; the map's own value then wins.
    pub(super) merge_overlaps: bool,
    /// True if infinities and NaN are values.
    pub(super) not_finite: bool,
}

pub(super) enum Duplicates {
    Refused,
    /// Refused with the message of go-yaml.
    RefusedByLine,
    LastWins,
    /// The last one wins, and merged entries take the position of the merge key.
    InOrder,
}
