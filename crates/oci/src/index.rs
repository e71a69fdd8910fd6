//! The index of a Helm repository, read as a stream: it may be large, and one chart is needed.

mod block;
mod extract;
mod file;
mod json;
mod rewrite;
mod stream;
mod validation;

use jiff::Timestamp;
use tree::{Budget, Limits};

use crate::{Error, version};

pub use file::IndexFile;
pub(crate) use file::{Download, stored_entries};
pub(crate) use rewrite::rewrite;
pub(crate) use stream::Stream;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    pub version: String,
    /// Absolute, or relative to the repository.
    pub urls: Vec<String>,
    /// SHA-256 of the archive; empty if missing.
    pub digest: String,
    /// Time at which it was packaged, if the index has it.
    pub(crate) created: Option<Timestamp>,
}

/// Maximum number of values of a chart's entries, which take much more memory than their text. Ten thousand versions have half as many.
const MAX_VALUES: usize = 1_000_000;

/// Returns the entries of a chart, the newest first. Invalid ones are left out, as in Helm.
fn parse(text: &[u8], url: &str) -> Result<Vec<Entry>, Error> {
    let items = parse_items(text, url)?;
    let maps = items.iter().filter_map(yaml::Value::as_map);
    let entries = maps.filter(|map| validation::is_valid(map)).map(entry);
    Ok(version::sort(entries.collect(), |entry| &entry.version))
}

fn parse_items(text: &[u8], url: &str) -> Result<Vec<yaml::Value>, Error> {
    let is_separator = |byte: &&u8| matches!(byte, b'{' | b'[' | b',' | b'\n');
    if text.iter().filter(is_separator).count() > MAX_VALUES {
        return Err(Error::TooLarge {
            url: url.to_owned(),
            what: "values in the entries of one chart",
            limit: MAX_VALUES as u64,
        });
    }
    // YAML cannot contain some characters of JSON.
    let value = match serde_json::from_slice(text) {
        Ok(value) => value,
        Err(_) => parse_yaml(text).map_err(|error| {
            Error::malformed(url, format!("an entry of the index can't be read: {error}"))
        })?,
    };
    match value {
        yaml::Value::Null => Ok(Vec::new()),
        yaml::Value::Seq(items) => Ok(items),
        _ => Err(Error::malformed(
            url,
            "what the index has of the chart is no list",
        )),
    }
}

fn parse_yaml(text: &[u8]) -> Result<yaml::Value, yaml::Error> {
    let len = text.len() as u64;
    let budget = Budget::new(Limits {
        file_bytes: len,
        alias_bytes: len,
        ..Limits::default()
    });
    Ok(yaml::read::goyaml_lenient(text, &budget)?.value)
}

/// Returns a field as a string; empty if it is missing. As in Helm, numbers are accepted as strings.
fn text(map: &yaml::Map, key: &str) -> String {
    match map.get(key) {
        None | Some(yaml::Value::Null) => String::new(),
        Some(yaml::Value::String(text)) => text.clone(),
        Some(other) => yaml::print::json(other),
    }
}

fn entry(map: &yaml::Map) -> Entry {
    let urls = match map.get("urls") {
        Some(yaml::Value::Seq(urls)) => urls
            .iter()
            .filter_map(yaml::Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    };
    Entry {
        version: text(map, "version"),
        urls,
        digest: text(map, "digest"),
        created: text(map, "created").parse().ok(),
    }
}
