//! `weir status`: one page about the whole cluster.

use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};
use cluster::Selection;
use fleet::{
    Kind, Object, Suspension,
    cause::{Group, Index, Name, Page},
    kind,
};
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use serde_json::{Value as Json, json};
use yaml::Value;

use super::super::{Flux, FluxFlags, served};
use crate::{output, terminal::printable, usage::boolean_flag};

/// Lists that are requested at a time.
const AT_A_TIME: usize = 6;

const EXAMPLES: &str = "Examples:
  # What is wrong in the cluster, and what to do
  weir status

  # In one namespace, as data
  weir status -n apps -o json";

/// Show the problems of the cluster, grouped by cause, with remedies
///
/// Prints the number of objects of each kind by state. For each cause of a failure, prints since when it lasts, the objects that it holds up,
/// and a remedy. All namespaces are searched unless --namespace is given.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    /// Format of the output, instead of a page for people
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

pub(crate) fn run(args: &StatusArgs) -> Result<()> {
    let flux = Flux::open(&args.flux)?;
    flux.block_on(async {
        let namespace = args.flux.given_namespace().map(str::to_owned);
        let (index, failures) = read(&flux, namespace).await?;
        let page = index.page();
        output::print(&match args.output {
            None => match args.flux.given_namespace() {
                Some(namespace) if page.counts.is_empty() => format!(
                    "There are no objects of Flux or kluctl in the namespace {namespace}; weir status, without -n, shows all namespaces.\n"
                ),
                _ => printable(&page.to_string()),
            },
            Some(Format::Json) => serde_json::to_string_pretty(&document(&page))? + "\n",
            Some(Format::Yaml) => yaml::print::goyaml(&Value::from_json(document(&page))),
        })?;
        ensure!(failures == 0, "{failures} kinds could not be listed");
        Ok(())
    })
}

/// Reads all objects of a namespace, or of the cluster, and returns the number of kinds that can't be listed.
pub(super) async fn read(flux: &Flux, namespace: Option<String>) -> Result<(Index, usize)> {
    let snapshot = flux.cluster.snapshot().await?;
    let selection = Selection {
        namespace,
        ..Selection::default()
    };
    let kinds: Vec<&'static Kind> = kind::ALL
        .into_iter()
        .filter(|kind| served(&snapshot, kind).is_some())
        .collect();
    let lists: Vec<_> = kinds.iter().map(|kind| list(flux, kind, &selection)).collect();
    let lists: Vec<Result<Vec<Object>>> = stream::iter(lists).buffered(AT_A_TIME).collect().await;
    let mut index = Index::new(Timestamp::now());
    let mut failures = 0;
    for (kind, objects) in kinds.into_iter().zip(lists) {
        match objects {
            Ok(objects) => objects.into_iter().for_each(|object| index.add(kind, object)),
            Err(error) => {
                failures += 1;
                flux.failure(&output::error_chain(&error));
            }
        }
    }
    Ok((index, failures))
}

async fn list(flux: &Flux, kind: &Kind, selection: &Selection) -> Result<Vec<Object>> {
    let resource = flux.served(kind).await?;
    let mut objects = Vec::new();
    let add = |json: &str| -> Result<(), anyhow::Error> {
        objects.push(super::get::decode(json)?);
        Ok(())
    };
    let listed = flux.cluster.each_object(&resource, selection, add).await;
    listed.with_context(|| format!("{} can't be listed", super::plural(kind.kind)))?;
    Ok(objects)
}

/// Returns the page as data.
fn document(page: &Page) -> Json {
    let counts = page.counts.iter().map(|counts| {
        let states = counts.by_health.iter();
        let states = states.map(|(health, count)| (health.word().to_owned(), json!(count)));
        json!({
            "kind": counts.kind.kind,
            "group": counts.kind.group,
            "objects": Json::Object(states.collect()),
        })
    });
    json!({
        "counts": counts.collect::<Vec<_>>(),
        "causes": page.groups.iter().map(cause).collect::<Vec<_>>(),
        "progressing": references(&page.progressing),
        "suspended": page.suspended.iter().map(suspended).collect::<Vec<_>>(),
    })
}

fn cause(group: &Group) -> Json {
    let root = &group.root;
    json!({
        "object": reference(&root.name),
        "problem": root.problem.word(),
        "since": root.since.map(|since| since.to_string()),
        "reason": root.reason,
        "message": root.message,
        "suspension": root.suspension.as_ref().map(note),
        "advice": root.advice(),
        "alike": references(&group.alike),
        "holdsUp": references(&group.held_up),
    })
}

fn suspended((name, suspension): &(Name, Suspension)) -> Json {
    let mut json = reference(name);
    if let Some(fields) = json.as_object_mut() {
        fields.insert("suspension".to_owned(), note(suspension));
    }
    json
}

/// Returns the note on a suspended object; unknown fields are null.
fn note(suspension: &Suspension) -> Json {
    let known = |text: &str| Some(text).filter(|text| !text.is_empty()).map(str::to_owned);
    json!({
        "by": known(&suspension.by),
        "at": suspension.at.map(|at| at.to_string()),
        "reason": known(&suspension.reason),
    })
}

fn references(names: &[Name]) -> Vec<Json> {
    names.iter().map(reference).collect()
}

fn reference(name: &Name) -> Json {
    json!({"group": name.group, "kind": name.kind, "namespace": name.namespace, "name": name.name})
}
