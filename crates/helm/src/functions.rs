//! The functions that sprig and Helm add to templates.
//!
//! Each group of functions is a table of names, parameters and plain functions in its own module. Nothing here reads a
//! clock, a network or the environment: [`Environment`] provides time and randomness. `env` and `expandenv` don't exist, and
//! `getHostByName` returns an empty string.

mod arguments;
mod cast;
mod certificates;
mod codecs;
mod context;
mod crypto;
mod decimal;
mod dicts;
mod durations;
mod encoding;
mod equal;
mod error_value;
mod flow;
mod json;
mod keys;
mod lists;
mod merge;
mod moment;
mod named;
mod numbers;
mod paths;
mod random;
mod regexes;
mod semver;
mod standard;
mod strings;
mod subject;
mod table;
#[cfg(test)]
mod tests;
mod time;
mod toml;
mod types;
mod urls;
mod words;

pub use context::Environment;
pub(crate) use error_value::ErrorValue;
pub use flow::{WARNING_END, WARNING_START};
pub(crate) use json::{json_problem, read_json};
pub use moment::Moment;
pub use standard::Standard;
pub use time::Time;
