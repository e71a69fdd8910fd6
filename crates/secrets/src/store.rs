//! The formats: parsing and printing of each.

mod dotenv;
mod flat;
mod ini;
mod json;
mod loaded;
mod yaml;

use tree::{Budget, Exceeded};

use crate::{Error, Format, document::Branch};
pub(crate) use loaded::Loaded;

/// Parses a file. `None` if it has no metadata, and so is not encrypted.
pub(crate) fn load(format: Format, bytes: &[u8], budget: &Budget) -> Result<Option<Loaded>, Error> {
    let limit = budget.limits().file_bytes;
    if bytes.len() as u64 > limit {
        return Err(Error::Exceeded(Exceeded::Limit {
            what: "bytes of one encrypted file",
            limit,
        }));
    }
    // Every encrypted file contains both words. Other files may have any content; their readers report errors.
    let has = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
    if !has(b"sops") || !has(b"lastmodified") {
        return Ok(None);
    }
    match format {
        Format::Yaml => yaml::load(bytes, budget),
        Format::Json | Format::Binary => json::load(bytes),
        Format::Dotenv => dotenv::load(bytes),
        Format::Ini => ini::load(bytes),
    }
}

pub(crate) fn print(format: Format, documents: &[Branch]) -> Result<Vec<u8>, Error> {
    let one = || match documents {
        [one] => Ok(one),
        _ => Err(Error::Print {
            format: "one document",
            why: "there are several",
        }),
    };
    match format {
        Format::Yaml => Ok(yaml::print(documents)),
        Format::Json => Ok(json::print(one()?)),
        Format::Binary => json::print_binary(one()?),
        Format::Dotenv => dotenv::print(one()?),
        Format::Ini => ini::print(one()?),
    }
}
