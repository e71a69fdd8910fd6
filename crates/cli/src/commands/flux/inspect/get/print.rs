//! The output formats of `weir get`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use fleet::{Kind, Row, Table, kind};
use serde_json::{Map, Value as Json};
use yaml::Value;

use super::{Format, GetArgs, find::SelectedObject};
use crate::output;

/// Prints the objects of all kinds.
pub(super) fn all(
    args: &GetArgs,
    is_all: bool,
    found: Vec<(&'static Kind, Vec<SelectedObject>)>,
) -> Result<()> {
    match args.output {
        Some(format @ (Format::Json | Format::Yaml)) => objects(args, format, found),
        Some(Format::Name) => {
            let rows = found.into_iter().flat_map(|(_, found)| found);
            output::print(
                &rows
                    .map(|found| found.row.resource_name() + "\n")
                    .collect::<String>(),
            )
        }
        Some(Format::Wide) | None => {
            let mut tables = args.tables(is_all);
            for (kind, found) in found {
                tables.add(kind, found.into_iter().map(|found| found.row));
            }
            output::print(&tables.text())
        }
    }
}

/// One table for each word of the command line.
pub(super) struct Tables<'a> {
    args: &'a GetArgs,
    is_all: bool,
    /// By the position of the first kind with the name.
    tables: BTreeMap<usize, Table>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(args: &'a GetArgs, is_all: bool) -> Self {
        Self {
            args,
            is_all,
            tables: BTreeMap::new(),
        }
    }

    /// Adds rows to the table of a kind, which kinds of the same name share.
    pub(super) fn add(&mut self, kind: &'static Kind, rows: impl Iterator<Item = Row>) {
        let columns = self.args.columns(self.is_all, kind);
        let table = self.table(kind);
        for row in rows {
            table.push(columns.cells(kind, row));
        }
    }

    pub(super) fn table(&mut self, kind: &'static Kind) -> &mut Table {
        let position = kind::ALL.iter().position(|known| known.kind == kind.kind);
        let columns = self.args.columns(self.is_all, kind);
        let has_header = !self.args.no_header;
        self.tables
            .entry(position.unwrap_or_default())
            .or_insert_with(|| match has_header {
                true => Table::new(columns.head(kind)),
                false => Table::default(),
            })
    }

    /// Returns the tables; for several kinds, only those with rows, each with an empty line after it.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for table in self.tables.values() {
            if !self.is_all {
                text.push_str(&table.text());
            } else if !table.is_empty() {
                text.push_str(&table.text());
                text.push('\n');
            }
        }
        text
    }
}

/// Prints whole objects: the named one alone, or a list.
fn objects(args: &GetArgs, format: Format, found: Vec<(&'static Kind, Vec<SelectedObject>)>) -> Result<()> {
    let mut items = Vec::new();
    for found in found.into_iter().flat_map(|(_, found)| found) {
        let json = found.json.unwrap_or_default();
        items.push(whole(&json)?);
    }
    let value = match (&args.name, items.as_mut_slice()) {
        (Some(_), [one]) => std::mem::take(one),
        _ => {
            let mut list = Map::new();
            list.insert("apiVersion".to_owned(), "v1".into());
            list.insert("kind".to_owned(), "List".into());
            list.insert("items".to_owned(), Json::Array(items));
            Json::Object(list)
        }
    };
    output::print(&text(format, value)?)
}

/// Parses an object, without the bookkeeping of field managers.
pub(super) fn whole(json: &str) -> Result<Json> {
    let mut object: Json = serde_json::from_str(json).context("an object of the list can't be read")?;
    if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) {
        metadata.shift_remove("managedFields");
    }
    Ok(object)
}

pub(super) fn text(format: Format, value: Json) -> Result<String> {
    Ok(match format {
        Format::Yaml => yaml::print::goyaml(&Value::from_json(value)),
        _ => serde_json::to_string_pretty(&value)? + "\n",
    })
}
