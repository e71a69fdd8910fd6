//! The list of crates inside a program, in the format of cargo-auditable, which scanners of programs and images read. Pure.

use std::io::Write as _;

use anyhow::Result;
use cargo_metadata::Source;
use flate2::{Compression, write::ZlibEncoder};
use serde_json::{Map, Value, json};

use crate::{
    crates::{Part, Parts},
    elf,
};

/// Name of the section with the list.
const SECTION: &str = ".dep-v0";
/// Revision of the format in which procedural macros count as crates that only build.
const FORMAT: u32 = 1;

/// Returns the program with the list of its crates. A list that it has already, because `cargo auditable` built it, stays.
pub(crate) fn embed(program: Vec<u8>, parts: &Parts<'_>) -> Result<Vec<u8>> {
    let packages = parts.all.iter().enumerate();
    let packages: Vec<_> = packages
        .map(|(position, part)| package(part, position == parts.main))
        .collect();
    let list = json!({ "packages": packages, "format": FORMAT });
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(list.to_string().as_bytes())?;
    elf::section::add(program, SECTION, &encoder.finish()?)
}

fn package(part: &Part<'_>, is_main: bool) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    add("name", part.package.name.to_string().into());
    add("version", part.package.version.to_string().into());
    add("source", source(part.package.source.as_ref()).into());
    if part.only_builds {
        add("kind", "build".into());
    }
    if !part.uses.is_empty() {
        add("dependencies", part.uses.as_slice().into());
    }
    if is_main {
        add("root", true.into());
    }
    fields
}

fn source(source: Option<&Source>) -> &'static str {
    match source {
        None => "local",
        Some(source) if source.is_crates_io() => "crates.io",
        Some(source) if source.repr.starts_with("git+") => "git",
        Some(_) => "registry",
    }
}
