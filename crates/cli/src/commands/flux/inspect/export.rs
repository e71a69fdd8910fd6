//! `weir export`.

use anyhow::{Context as _, Result, bail, ensure};
use api::GoDuration;
use clap::Args;
use cluster::Selection;
use fleet::Kind;
use objects::ObjectRef;
use yaml::{Map, Value};

use super::{
    super::{ByKind, Flux, FluxFlags, KindCommand},
    read,
};
use crate::{output, usage::boolean_flag};

/// Fields with durations, which Go programs print in a form of their own.
const DURATIONS: [&str; 3] = ["interval", "retryInterval", "timeout"];

/// Flags of `weir export`.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true)]
pub(crate) struct ExportArgs {
    /// Name of the object
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print all objects of the kind in the namespace
    #[arg(long, help_heading = "Selection")]
    all: bool,
    /// Print the Secrets of sources, too, with their values
    #[arg(long, help_heading = "Output")]
    with_credentials: bool,
    #[command(flatten)]
    flux: FluxFlags,
}

/// `weir export`.
pub(crate) struct Export;

impl KindCommand for Export {
    type Args = ExportArgs;
    const LISTS: bool = false;

    fn accepts(_kind: &Kind) -> bool {
        true
    }

    fn about(kind: &Kind) -> String {
        format!("Print {} as YAML that can be applied", super::plural(kind.kind))
    }

    fn examples(words: &str) -> Option<String> {
        Some(format!(
            "Examples:
  # One object
  weir export {words} podinfo > podinfo.yaml

  # All of a namespace
  weir export {words} --all -n apps"
        ))
    }
}

pub(crate) fn run(command: &ByKind<Export>) -> Result<()> {
    let args = &*command.args;
    ensure!(args.all || args.name.is_some(), "name is required");
    ensure!(
        !args.all || args.name.is_none(),
        "either a name or --all is to be given, not both"
    );
    let is_source = command.kinds.iter().all(|kind| kind.is_source());
    ensure!(
        !args.with_credentials || is_source,
        "--with-credentials is for sources"
    );
    let flux = Flux::open(&args.flux)?;
    flux.block_on(print(&flux, command))
}

async fn print(flux: &Flux, command: &ByKind<Export>) -> Result<()> {
    let args = &*command.args;
    let mut text = String::new();
    for object in find(flux, command).await? {
        text.push_str(&document(&exported(&object)));
        let secret = read::text(&object, &["spec", "secretRef", "name"]);
        if args.with_credentials && !secret.is_empty() {
            text.push_str(&document(&credentials(flux, secret).await?));
        }
    }
    output::print(&text)
}

/// Returns the named object, or all.
async fn find(flux: &Flux, command: &ByKind<Export>) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    let mut unserved = None;
    for kind in &command.kinds {
        let resource = match flux.served(kind).await {
            Ok(resource) => resource,
            Err(error) => {
                unserved = Some(error);
                continue;
            }
        };
        let fields = command
            .args
            .name
            .as_ref()
            .map(|name| format!("metadata.name={name}"));
        let selection = Selection {
            namespace: Some(flux.namespace.clone()),
            fields: fields.unwrap_or_default(),
            ..Selection::default()
        };
        let add = |json: &str| -> Result<(), anyhow::Error> {
            let object = serde_json::from_str(json).context("an object of the list can't be read")?;
            found.push(Value::from_json(object));
            Ok(())
        };
        flux.cluster.each_object(&resource, &selection, add).await?;
    }
    match (&command.args.name, unserved) {
        _ if !found.is_empty() => Ok(found),
        (_, Some(error)) => Err(error),
        (None, None) => bail!("no objects found in {} namespace", flux.namespace),
        (Some(name), None) => {
            let kind = command.kinds.first().context("no kind")?;
            bail!("{}.{} \"{name}\" not found", kind.plural, kind.group)
        }
    }
}

/// Returns the fields of an object that a user wrote, in the form in which the original prints them.
fn exported(object: &Value) -> Value {
    let mut metadata = Map::new();
    for field in ["annotations", "labels", "name", "namespace"] {
        if let Some(value) = object.pointer(&["metadata", field]) {
            metadata.insert(field, value.clone());
        }
    }
    let mut spec = object.get("spec").cloned().unwrap_or_default();
    if let Some(map) = spec.as_map_mut() {
        for field in DURATIONS {
            let duration = map
                .get_str(field)
                .and_then(|text| text.parse::<GoDuration>().ok());
            if let Some(duration) = duration {
                map.insert(field, duration.to_string());
            }
        }
        // Defaults of the definition, which the original leaves out. Pruning is always stated.
        map.retain(|field, value| field == "prune" || *value != Value::Bool(false));
    }
    Value::Map(Map::from([
        (
            "apiVersion",
            object.get("apiVersion").cloned().unwrap_or_default(),
        ),
        ("kind", object.get("kind").cloned().unwrap_or_default()),
        ("metadata", Value::Map(metadata)),
        ("spec", spec),
    ]))
}

async fn credentials(flux: &Flux, name: &str) -> Result<Value> {
    let reference = ObjectRef::core("Secret", &flux.namespace, name);
    let secret = flux.cluster.get(&reference).await?;
    let secret = secret.with_context(|| format!("failed to retrieve secret {name}: it does not exist"))?;
    let metadata = Map::from([
        ("name", Value::from(name)),
        ("namespace", Value::from(flux.namespace.as_str())),
    ]);
    let mut exported = Map::from([
        ("apiVersion", Value::from("v1")),
        ("kind", Value::from("Secret")),
        ("metadata", Value::Map(metadata)),
    ]);
    for field in ["data", "type"] {
        if let Some(value) = secret.get(field) {
            exported.insert(field, value.clone());
        }
    }
    Ok(Value::Map(exported))
}

fn document(object: &Value) -> String {
    format!("---\n{}", yaml::print::goyaml(object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn exports_have_the_fields_of_users_only() {
        let object = json!({
            "apiVersion": "x.io/v1", "kind": "Thing", "status": {"a": 1},
            "metadata": {"uid": "u", "name": "a", "namespace": "apps", "labels": {"l": "1"}, "generation": 3},
            "spec": {"timeout": "90s", "interval": "1m", "url": "x", "retryInterval": 5, "prune": false, "suspend": false},
        });
        assert_eq!(
            document(&exported(&Value::from_json(object))),
            "---\napiVersion: x.io/v1\nkind: Thing\nmetadata:\n  labels:\n    l: \"1\"\n  name: a\n  namespace: apps\nspec:\n  interval: 1m0s\n  \
             prune: false\n  retryInterval: 5\n  timeout: 1m30s\n  url: x\n"
        );
    }
}
