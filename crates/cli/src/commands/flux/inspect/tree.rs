//! `weir tree`.

mod helm;
mod kluctl;

use std::collections::HashSet;

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use fleet::{
    Kind, Tree, inventory,
    kind::{ARTIFACT_GENERATOR, EXTERNAL_ARTIFACT},
};
use objects::ObjectId;
use serde_json::{Value as Json, json};
use yaml::Value;

use super::{
    super::{ByKind, Flux, FluxFlags, KindCommand},
    read,
};
use crate::{output, usage::boolean_flag};

/// Groups of the objects that `--compact` prints have one of these words.
const COMPACT: [&str; 2] = ["toolkit.fluxcd.io", "kluctl.io"];

/// Flags of `weir tree`.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true)]
pub(crate) struct TreeArgs {
    /// Name of the object
    #[arg(value_name = "NAME")]
    name: String,
    /// Print objects of Flux and kluctl only
    #[arg(long, help_heading = "Output")]
    compact: bool,
    /// Format of the output, instead of a drawing
    #[arg(short, long, value_name = "FORMAT", help_heading = "Output")]
    output: Option<Format>,
    #[command(flatten)]
    flux: FluxFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Json,
    Yaml,
}

/// `weir tree`.
pub(crate) struct Inventories;

impl KindCommand for Inventories {
    type Args = TreeArgs;
    const LISTS: bool = false;

    fn accepts(kind: &Kind) -> bool {
        deploys(kind) || *kind == ARTIFACT_GENERATOR
    }

    fn about(kind: &Kind) -> String {
        match deploys(kind) {
            true => format!("Print the objects that a {} deployed", kind.kind),
            false => format!("Print the artifacts that an {} made", kind.kind),
        }
    }

    fn examples(words: &str) -> Option<String> {
        Some(format!(
            "Examples:
  # The objects of one
  weir tree {words} podinfo -n apps

  # Objects of Flux and kluctl only, as data
  weir tree {words} podinfo --compact -o json"
        ))
    }
}

/// Returns true for kinds whose objects are in the trees of others with their deployed objects.
fn deploys(kind: &Kind) -> bool {
    matches!(kind.kind, "Kustomization" | "HelmRelease" | "KluctlDeployment")
}

pub(crate) fn run(command: &ByKind<Inventories>) -> Result<()> {
    let args = &*command.args;
    let flux = Flux::open(&args.flux)?;
    let tree = flux.block_on(find(&flux, command))?;
    let text = match args.output {
        None => format!("{tree}\n"),
        Some(Format::Json) => serde_json::to_string_pretty(&document(&tree))? + "\n",
        Some(Format::Yaml) => yaml::print::goyaml(&Value::from_json(document(&tree))) + "\n",
    };
    output::print(&text)
}

async fn find(flux: &Flux, command: &ByKind<Inventories>) -> Result<Tree> {
    let name = &command.args.name;
    let mut failure = None;
    for kind in &command.kinds {
        let found = match read::find(flux, kind, &flux.namespace, name).await {
            Ok(found) => found,
            // Of kinds that share a word, one may not be served.
            Err(error) => {
                failure = Some(error);
                continue;
            }
        };
        if let Some(object) = found {
            let mut walk = Walk {
                flux,
                is_compact: command.args.compact,
                seen: HashSet::new(),
            };
            return walk.tree(kind, object).await;
        }
    }
    match failure {
        Some(error) => Err(error),
        None => {
            let kind = command.kinds.first().context("no kind")?;
            bail!("{}.{} \"{name}\" not found", kind.plural, kind.group)
        }
    }
}

/// A walk through inventories.
struct Walk<'a> {
    flux: &'a Flux,
    is_compact: bool,
    /// The objects whose inventories are in the tree.
    seen: HashSet<ObjectId>,
}

impl Walk<'_> {
    /// Returns the inventory of an object, and below it the inventories of objects that deploy others in this cluster.
    async fn tree(&mut self, kind: &Kind, object: Value) -> Result<Tree> {
        let id = ObjectId {
            group: kind.group.to_owned(),
            kind: kind.kind.to_owned(),
            namespace: Some(read::text(&object, &["metadata", "namespace"]).to_owned()),
            name: read::text(&object, &["metadata", "name"]).to_owned(),
        };
        let mut tree = Tree::new(id.clone());
        self.seen.insert(id.clone());
        let is_remote = object
            .pointer(&["spec", "kubeConfig"])
            .is_some_and(|value| *value != Value::Null);
        for child in self.children(kind, &object, is_remote).await? {
            if child == id || self.is_compact && !COMPACT.iter().any(|word| child.group.contains(word)) {
                continue;
            }
            let nested = match Kind::find(&child.group, &child.kind) {
                Some(kind) if deploys(kind) && !is_remote => self.nested(kind, &child).await?,
                _ => None,
            };
            tree.children.push(nested.unwrap_or_else(|| Tree::new(child)));
        }
        Ok(tree)
    }

    /// Returns the inventory of an object in an inventory; `None` if it is gone, or in the tree already.
    async fn nested(&mut self, kind: &Kind, id: &ObjectId) -> Result<Option<Tree>> {
        let namespace = id.namespace.as_deref().unwrap_or_default();
        if self.seen.contains(id) {
            return Ok(None);
        }
        match read::find(self.flux, kind, namespace, &id.name).await? {
            Some(object) => Box::pin(self.tree(kind, object)).await.map(Some),
            None => Ok(None),
        }
    }

    async fn children(&self, kind: &Kind, object: &Value, is_remote: bool) -> Result<Vec<ObjectId>> {
        let entries = object
            .pointer(&["status", "inventory", "entries"])
            .and_then(Value::as_seq);
        if let Some(entries) = entries {
            let ids = entries.iter().filter_map(|entry| entry.get("id")?.as_str());
            return Ok(inventory::parse(ids));
        }
        match kind.kind {
            _ if is_remote => Ok(Vec::new()),
            "ArtifactGenerator" => Ok(artifacts(object)),
            "HelmRelease" => helm::objects(self.flux, object).await,
            "KluctlDeployment" => kluctl::objects(self.flux, kind, object).await,
            _ => Ok(Vec::new()),
        }
    }
}

/// Returns the ExternalArtifacts in the inventory of an ArtifactGenerator.
fn artifacts(generator: &Value) -> Vec<ObjectId> {
    let entries = generator
        .pointer(&["status", "inventory"])
        .and_then(Value::as_seq);
    let own = read::text(generator, &["metadata", "namespace"]);
    let artifact = |entry: &Value| ObjectId {
        group: EXTERNAL_ARTIFACT.group.to_owned(),
        kind: EXTERNAL_ARTIFACT.kind.to_owned(),
        namespace: Some(match read::text(entry, &["namespace"]) {
            "" => own.to_owned(),
            namespace => namespace.to_owned(),
        }),
        name: read::text(entry, &["name"]).to_owned(),
    };
    entries.unwrap_or_default().iter().map(artifact).collect()
}

/// Returns the tree in the form of the original.
fn document(tree: &Tree) -> Json {
    let object = &tree.object;
    let resource = json!({
        "Namespace": object.namespace.as_deref().unwrap_or_default(),
        "Name": object.name,
        "GroupKind": {"Group": object.group, "Kind": object.kind},
    });
    match tree.children.is_empty() {
        true => json!({"resource": resource}),
        false => {
            json!({"resource": resource, "resources": tree.children.iter().map(document).collect::<Vec<_>>()})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_of_a_generator_are_in_its_inventory() {
        let generator = Value::from_json(json!({
            "metadata": {"name": "g", "namespace": "n"},
            "status": {"inventory": [{"name": "a", "namespace": "m", "digest": "sha256:1"}, {"name": "b"}]},
        }));
        let names: Vec<String> = artifacts(&generator).iter().map(ToString::to_string).collect();
        assert_eq!(names, ["m/ExternalArtifact/a", "n/ExternalArtifact/b"]);
    }
}
