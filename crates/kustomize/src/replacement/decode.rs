//! Reading replacements from files and configurations.

use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use tree::TreePath;
use yaml::Value;

use crate::{
    Error,
    error::Step,
    model::{Replacement, ReplacementEntry},
    options::Run,
};

/// The replacements of a file: one, or a list of them.
pub(super) fn file(text: &[u8], file: &TreePath, run: &Run<'_>) -> Result<Vec<Replacement>, Error> {
    let document = yaml::read::goyaml(text, run.budget).map_err(|source| Error::Yaml {
        file: file.clone(),
        source,
    })?;
    match document.value {
        Value::Seq(_) => decode(&document.value),
        Value::Map(_) => decode(&document.value).map(|replacement| vec![replacement]),
        other => {
            let kind = match other.type_name() {
                "null" => "invalid",
                kind => kind,
            };
            let problem = format!("unsupported replacement type encountered within replacement path: {kind}");
            Err(Error::new(Step::Replacement, problem))
        }
    }
}

/// The entries of a ReplacementTransformer.
pub(super) fn config(config: &Value) -> Result<Vec<ReplacementEntry>, Error> {
    match config.get("replacements") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(entries) => decode(entries),
    }
}

fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, Error> {
    serde_json::from_value(without_nulls(value.to_json()))
        .map_err(|error| Error::new(Step::Replacement, error))
}

/// A field that is null isn't set.
fn without_nulls(json: Json) -> Json {
    match json {
        Json::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect(),
        Json::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}
