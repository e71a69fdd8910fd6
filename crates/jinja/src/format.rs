//! Python's formatting of values.

pub(crate) mod escape;
pub(crate) mod fields;
pub(crate) mod json;
pub(crate) mod pprint;
pub(crate) mod printf;
pub(crate) mod repr;
pub(crate) mod spec;
