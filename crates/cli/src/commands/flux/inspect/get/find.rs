//! Reading the objects of a list.

use anyhow::{Context as _, Result};
use fleet::{Kind, Object, Row};
use jiff::Timestamp;

use super::GetArgs;
use crate::commands::flux::Flux;

/// An object that the flags select.
pub(super) struct SelectedObject {
    pub(super) row: Row,
    /// The whole object, if it is printed.
    pub(super) json: Option<String>,
}

#[derive(Default)]
pub(super) struct Search {
    pub(super) found: Vec<SelectedObject>,
    /// Number of objects that the API server listed.
    pub(super) listed: usize,
}

/// Reads the selected objects of a kind. Two pages of the list are in memory at most, and only the fields of rows are decoded.
pub(super) async fn find(
    flux: &Flux,
    kind: &'static Kind,
    args: &GetArgs,
    keeps_json: bool,
) -> Result<Search> {
    let resource = flux.served(kind).await?;
    let now = Timestamp::now();
    let mut search = Search::default();
    let add = |json: &str| -> Result<(), anyhow::Error> {
        let object = decode(json)?;
        search.listed += 1;
        if args.accepts(kind, &object) {
            search.found.push(SelectedObject {
                row: row(kind, object, now),
                json: keeps_json.then(|| json.to_owned()),
            });
        }
        Ok(())
    };
    let selection = args.selection(flux);
    let listed = flux.cluster.each_object(&resource, &selection, add).await;
    listed.map_err(|error| explained(error, args))?;
    Ok(search)
}

/// Says that the label selector was refused.
fn explained(error: anyhow::Error, args: &GetArgs) -> anyhow::Error {
    let code = error
        .downcast_ref::<cluster::Error>()
        .and_then(cluster::Error::code);
    match &args.label_selector {
        Some(_) if code == Some(400) => error.context("unable to parse label selector"),
        _ => error,
    }
}

/// Decodes the fields that people look at.
pub(in super::super) fn decode(json: &str) -> Result<Object> {
    serde_json::from_str(json).context("an object of the list can't be read")
}

/// Makes the row of an object.
pub(super) fn row(kind: &'static Kind, object: Object, now: Timestamp) -> Row {
    let created = object.metadata.creation_timestamp.parse::<Timestamp>();
    let age = created.map(|created| fleet::age(now.as_second().saturating_sub(created.as_second())));
    Row::new(kind, object, age.unwrap_or_default())
}
