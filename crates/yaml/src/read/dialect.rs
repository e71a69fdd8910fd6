//! In what the readers differ.

use crate::{
    Problem, Value,
    node::{Scalar, Tag, Text},
};

/// What a reader makes of the same layout.
pub(super) struct Dialect {
    /// The meaning of a scalar's tag, given in its short form; none when the looks decide.
    pub(super) scalar_tag: fn(&str) -> Result<Option<Tag>, Problem>,
    /// Whether the tag of a list or a map is allowed.
    pub(super) collection_tag: fn(&str) -> Result<(), Problem>,
    /// The highest minor version that a `%YAML` directive may ask for.
    pub(super) max_minor: i32,
    /// What a scalar means; nothing for its own text.
    pub(super) scalar: fn(&Scalar) -> Result<Option<Value>, Problem>,
    /// The text of a map key.
    pub(super) key: fn(Scalar) -> Result<Text, Problem>,
    /// What happens to a key that is set twice.
    pub(super) duplicates: Duplicates,
    /// Whether a merge key may bring a key that the map sets itself; the map's own then wins.
    pub(super) merge_overlaps: bool,
    /// Whether infinities and NaN are values.
    pub(super) not_finite: bool,
}

pub(super) enum Duplicates {
    /// Refused.
    Refused,
    /// Refused in the words of go-yaml.
    RefusedByLine,
    /// The last one wins.
    LastWins,
    /// The last one wins, and what a merge key brings counts where the merge key stands.
    InOrder,
}
