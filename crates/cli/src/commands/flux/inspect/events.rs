//! `weir events`.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use cluster::{Changes, ResourceKind, Selection};
use fleet::{Event, Kind, Object, Table, event};
use jiff::Timestamp;
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    super::{Flux, FluxFlags},
    read,
};
use crate::{output, usage::boolean_flag};

/// Changes that are read ahead.
const AHEAD: usize = 100;
/// Maximum number of events that are printed.
const MOST: usize = 100_000;

const EXAMPLES: &str = "Examples:
  # The events about an object and its source
  weir events --for Kustomization/podinfo

  # Warnings of all namespaces, as they happen
  weir events -A --types Warning -w";

/// Print Kubernetes events about objects of Flux and kluctl
///
/// The newest events are at the end.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct EventsArgs {
    /// Print the events of all namespaces
    #[arg(short = 'A', long, help_heading = "Selection")]
    all_namespaces: bool,
    /// Print the events of a kind, or of one object and of the source that it is made of
    #[arg(long = "for", value_name = "KIND[/NAME]", help_heading = "Selection")]
    of: Option<String>,
    /// Print events of these types
    #[arg(
        long,
        value_name = "TYPE",
        help_heading = "Selection",
        value_delimiter = ',',
        ignore_case = true
    )]
    types: Vec<EventType>,
    /// Print events as they happen, until Ctrl-C
    #[arg(short, long, help_heading = "Output")]
    watch: bool,
    #[command(flatten)]
    flux: FluxFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum EventType {
    Normal,
    Warning,
}

pub(crate) fn run(args: &EventsArgs) -> Result<()> {
    let timeout = if args.watch {
        Duration::MAX
    } else {
        args.flux.timeout
    };
    let flux = Flux::open_for(&args.flux, timeout)?;
    flux.block_on(print(&flux, args))
}

async fn print(flux: &Flux, args: &EventsArgs) -> Result<()> {
    let resource = events_api(flux, args).await?;
    let selections = selections(flux, args, &resource).await?;
    let with_namespace = selections
        .iter()
        .any(|selection| selection.namespace.as_ref() != Some(&flux.namespace));
    let mut printer = Printer::new(args, with_namespace);
    let mut events = Vec::new();
    let mut watches = Vec::new();
    for selection in selections {
        let add = |json: &str| -> Result<(), anyhow::Error> {
            ensure!(
                events.len() < MOST,
                "there are more than {MOST} events: use --for or --namespace"
            );
            events.extend(printer.accepted(json));
            Ok(())
        };
        let version = flux.cluster.each_object(&resource, &selection, add).await?;
        watches.push(flux.cluster.changes(&resource, &selection, version));
    }
    events.sort_by_key(Event::last_seen);
    if events.is_empty() && !args.watch {
        flux.failure(&match args.all_namespaces {
            true => "No events found.".to_owned(),
            false => format!("No events found in {} namespace.", flux.namespace),
        });
        return Ok(());
    }
    output::print(&printer.first(&events))?;
    if args.watch {
        follow(watches, &mut printer).await?;
    }
    Ok(())
}

/// Returns the API of events: both show the same events, but the rights to them are granted apart.
async fn events_api(flux: &Flux, args: &EventsArgs) -> Result<ResourceKind> {
    let core = flux.cluster.kind("", "v1", "Event").await?;
    let namespace = (!args.all_namespaces).then_some(flux.namespace.as_str());
    if flux.cluster.may("list", &core, namespace).await.unwrap_or(true) {
        return Ok(core);
    }
    let new = flux.cluster.kind("events.k8s.io", "v1", "Event").await;
    Ok(new.unwrap_or(core))
}

async fn follow(watches: Vec<Changes>, printer: &mut Printer<'_>) -> Result<()> {
    let (sender, mut receiver) = mpsc::channel(AHEAD);
    let mut readers = JoinSet::new();
    for mut changes in watches {
        let sender = sender.clone();
        readers.spawn(async move {
            loop {
                let change = changes.next().await;
                let ends = change.is_err();
                if sender.send(change).await.is_err() || ends {
                    return;
                }
            }
        });
    }
    drop(sender);
    while let Some(change) = receiver.recv().await {
        match change {
            Ok(change) if change.is_deleted => {}
            Ok(change) => {
                if let Some(event) = printer.accepted(&change.object) {
                    output::print(&printer.later(&event))?;
                }
            }
            // The requested end.
            Err(cluster::Error::Cancelled) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Returns the events to list: about the selected objects, and about the objects that a named one refers to.
async fn selections(flux: &Flux, args: &EventsArgs, api: &ResourceKind) -> Result<Vec<Selection>> {
    let namespace = (!args.all_namespaces).then(|| flux.namespace.clone());
    let Some(of) = &args.of else {
        return Ok(vec![Selection {
            namespace,
            ..Selection::default()
        }]);
    };
    let (word, name) = match of.split_once('/') {
        Some((word, name)) => (word, Some(name)),
        None => (of.as_str(), None),
    };
    ensure!(
        !word.is_empty(),
        "--for selector must be of format <kind>[/<name>]"
    );
    let kinds = Kind::by_word(word);
    let Some(kind) = kinds.first() else {
        bail!("{}", super::unknown_kind(word));
    };
    let mut all = vec![of_object(api, namespace, kind.kind, name)];
    if let Some(name) = name {
        for kind in &kinds {
            let served = flux.served(kind).await;
            if served.is_err() && kinds.len() > 1 {
                continue;
            }
            let Some(object) = read::find(flux, kind, &flux.namespace, name).await? else {
                continue;
            };
            for (kind, namespace, name) in related(kind, &read::decode(&object)?) {
                all.push(of_object(api, Some(namespace), &kind, Some(&name)));
            }
        }
    }
    Ok(all)
}

fn of_object(api: &ResourceKind, namespace: Option<String>, kind: &str, name: Option<&str>) -> Selection {
    let object = if api.group.is_empty() {
        "involvedObject"
    } else {
        "regarding"
    };
    let fields = match name {
        Some(name) => format!("{object}.kind={kind},{object}.name={name}"),
        None => format!("{object}.kind={kind}"),
    };
    Selection {
        namespace,
        labels: String::new(),
        fields,
    }
}

/// Returns kind, namespace and name of the objects whose events explain an object.
fn related(kind: &Kind, object: &Object) -> Vec<(String, String, String)> {
    let (spec, metadata) = (&object.spec, &object.metadata);
    let own = metadata.namespace.clone();
    let mut all = Vec::new();
    if let Some(source) = object.source() {
        let namespace = source.namespace.clone();
        all.push((source.kind, source.namespace, source.name));
        if kind.kind == "HelmRelease" && spec.chart_ref.is_none() {
            let chart = format!("{own}-{}", metadata.name);
            all.push(("HelmChart".to_owned(), namespace, chart));
        }
    }
    if let Some(provider) = &spec.provider_ref {
        all.push(("Provider".to_owned(), own.clone(), provider.name.clone()));
    }
    if let Some(repository) = &spec.image_repository_ref {
        let namespace = match repository.namespace.as_str() {
            "" => own,
            namespace => namespace.to_owned(),
        };
        all.push(("ImageRepository".to_owned(), namespace, repository.name.clone()));
    }
    all
}

struct Printer<'a> {
    args: &'a EventsArgs,
    with_namespace: bool,
    table: Table,
}

impl<'a> Printer<'a> {
    fn new(args: &'a EventsArgs, with_namespace: bool) -> Self {
        let namespace = with_namespace.then_some("Namespace");
        Self {
            args,
            with_namespace,
            table: Table::new(namespace.into_iter().chain(event::COLUMNS)),
        }
    }

    /// Returns the event if it is about a known kind and of a selected type.
    fn accepted(&self, json: &str) -> Option<Event> {
        let event: Event = serde_json::from_str(json).ok()?;
        let types = &self.args.types;
        let is_selected = types.is_empty()
            || types
                .iter()
                .any(|type_| format!("{type_:?}").eq_ignore_ascii_case(&event.type_));
        (is_selected && !Kind::named(&event.involved_object.kind).is_empty()).then_some(event)
    }

    fn first(&mut self, events: &[Event]) -> String {
        let now = Timestamp::now();
        for event in events {
            self.table.push(event.cells(self.with_namespace, now));
        }
        self.table.text()
    }

    fn later(&mut self, event: &Event) -> String {
        self.table
            .later(event.cells(self.with_namespace, Timestamp::now()))
    }
}

#[cfg(test)]
mod tests {
    use fleet::kind;
    use serde_json::json;

    use super::*;

    #[test]
    fn related_objects_are_sources_charts_and_providers() {
        let chart = json!({"spec": {"chart": "c", "sourceRef": {"kind": "HelmRepository", "name": "r", "namespace": "s"}}});
        for (kind, spec, expected) in [
            (
                &kind::KUSTOMIZATION,
                json!({"sourceRef": {"kind": "Bucket", "name": "b"}}),
                &["Bucket/n/b"][..],
            ),
            (
                &kind::HELM_RELEASE,
                json!({"chart": chart}),
                &["HelmRepository/s/r", "HelmChart/s/n-a"],
            ),
            (
                &kind::ALERT,
                json!({"providerRef": {"name": "p"}}),
                &["Provider/n/p"],
            ),
            (
                &kind::IMAGE_POLICY,
                json!({"imageRepositoryRef": {"name": "i"}}),
                &["ImageRepository/n/i"],
            ),
            (&kind::GIT_REPOSITORY, json!({"url": "x"}), &[]),
        ] {
            let object = json!({"metadata": {"name": "a", "namespace": "n"}, "spec": spec});
            let found = related(kind, &serde_json::from_value(object).unwrap());
            let names: Vec<String> = found
                .into_iter()
                .map(|(kind, namespace, name)| format!("{kind}/{namespace}/{name}"))
                .collect();
            assert_eq!(names, expected);
        }
    }
}
