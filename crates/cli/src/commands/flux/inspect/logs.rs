//! `weir logs`.

use std::{cmp::Ordering, collections::HashSet, time::Duration};

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use cluster::{Detail, LogLine, LogOptions};
use fleet::{LogEntry, LogFilter};
use jiff::Timestamp;
use objects::{ObjectRef, meta};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, timeout_at},
};
use yaml::Value;

use super::super::{Flux, FluxFlags};
use crate::{flags::duration, output, pod_logs::PodLog, terminal::printable, usage::boolean_flag};

/// Label of the Deployments of controllers.
const CONTROLLERS: &str = "app.kubernetes.io/part-of=flux";
/// Label of the Pods of kluctl's own controller, and its namespace.
const KLUCTL: (&str, &str) = ("kluctl-system", "control-plane=kluctl-controller");
const MOST_DEPLOYMENTS: usize = 100;
const MOST_PODS: usize = 50;
/// Lines of each log that are read ahead.
const AHEAD: usize = 1000;
/// Time within which lines of several logs are put in order while they are followed.
const WINDOW: Duration = Duration::from_millis(300);

const EXAMPLES: &str = "Examples:
  # Errors of the last ten minutes, of all namespaces
  weir logs -A --level error --since 10m

  # Follow the lines about an object
  weir logs --kind Kustomization --name podinfo -f";

/// Print the logs of the controllers about objects, in the order of time
///
/// The logs of all Pods of all controllers are merged. Lines about the objects of one namespace are printed, or all lines with -A.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct LogsArgs {
    /// Print the lines about objects of all namespaces, and about none
    #[arg(short = 'A', long, help_heading = "Selection")]
    all_namespaces: bool,
    /// Print the lines about a kind, such as Kustomization
    #[arg(
        long,
        value_name = "KIND",
        help_heading = "Selection",
        default_value = "",
        hide_default_value = true
    )]
    kind: String,
    /// Print the lines about objects with this name
    #[arg(
        long,
        value_name = "NAME",
        help_heading = "Selection",
        default_value = "",
        hide_default_value = true
    )]
    name: String,
    /// Print the lines of a level
    #[arg(long, value_name = "LEVEL", help_heading = "Selection")]
    level: Option<Level>,
    /// Print lines that are at most this old, such as 5m
    #[arg(long, value_name = "DURATION", help_heading = "Selection", value_parser = duration)]
    since: Option<Duration>,
    /// Print lines since this time, such as 2026-01-01T08:00:00Z
    #[arg(
        long,
        value_name = "TIME",
        help_heading = "Selection",
        conflicts_with = "since"
    )]
    since_time: Option<Timestamp>,
    /// Print at most this many lines of each log, the last ones
    #[arg(long, value_name = "NUMBER", help_heading = "Selection")]
    tail: Option<u64>,
    /// Namespace of the controllers; defaults to $FLUX_SYSTEM_NAMESPACE, then flux-system
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    flux_namespace: Option<String>,
    /// Print lines as they are written, until Ctrl-C
    #[arg(short, long, help_heading = "Output")]
    follow: bool,
    #[command(flatten)]
    flux: FluxFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    Debug,
    Info,
    Error,
}

impl Level {
    const fn word(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Error => "error",
        }
    }
}

pub(crate) fn run(args: &LogsArgs) -> Result<()> {
    let timeout = if args.follow {
        Duration::MAX
    } else {
        args.flux.timeout
    };
    let flux = Flux::open_for(&args.flux, timeout)?;
    flux.block_on(async {
        let cancelled = flux.cluster.cancellation().cancelled();
        tokio::select! {
            printed = print(&flux, args) => printed,
            // The requested end.
            () = cancelled, if args.follow => Ok(()),
        }
    })
}

async fn print(flux: &Flux, args: &LogsArgs) -> Result<()> {
    let namespace = match &args.flux_namespace {
        Some(namespace) => namespace.clone(),
        None => super::super::controller_namespace(),
    };
    let pods = pods(flux, &namespace).await?;
    ensure!(
        !pods.is_empty(),
        "no Flux pods found in namespace \"{namespace}\""
    );
    let options = LogOptions {
        since_seconds: args.since.map_or(0, |since| since.as_secs().max(1)),
        since_time: args.since_time.map(|time| time.to_string()),
        tail: args.tail,
        follow: args.follow,
        ..LogOptions::default()
    };
    let (logs, failures) = open(flux, &pods, &options).await;
    let filter = LogFilter {
        level: args.level.map(Level::word).unwrap_or_default().to_owned(),
        kind: args.kind.clone(),
        name: args.name.clone(),
        namespace: (!args.all_namespaces).then(|| flux.namespace.clone()),
    };
    match args.follow {
        true => follow(logs, &filter).await?,
        false => merge(logs, &filter).await?,
    }
    ensure!(failures == 0, "failed to collect logs from all Flux pods");
    Ok(())
}

/// Opens the logs, and returns the number of those that can't be read.
async fn open(flux: &Flux, pods: &[Value], options: &LogOptions) -> (Vec<PodLog>, usize) {
    let mut logs = Vec::new();
    let mut failures = 0;
    for pod in pods {
        match PodLog::open(&flux.cluster, pod, options.clone()).await {
            Ok(log) => logs.push(log),
            Err(error) => {
                failures += 1;
                let name = ["namespace", "name"].map(|field| meta::text(pod, field).unwrap_or_default());
                flux.failure(&format!(
                    "failed getting logs of Pod {}: {}",
                    name.join("/"),
                    output::error_chain(&error)
                ));
            }
        }
    }
    (logs, failures)
}

/// Returns the Pods of the controllers of Flux, Weir and, where it is installed, kluctl.
async fn pods(flux: &Flux, namespace: &str) -> Result<Vec<Value>> {
    let cluster = &flux.cluster;
    let deployment = cluster.kind("apps", "v1", "Deployment").await?;
    let pod = cluster.kind("", "v1", "Pod").await?;
    let deployments = cluster
        .list_selected(
            &deployment,
            Some(namespace),
            CONTROLLERS,
            Detail::Full,
            MOST_DEPLOYMENTS,
        )
        .await?;
    let mut selectors: Vec<(String, String)> = Vec::new();
    for deployment in &deployments {
        let labels = deployment
            .pointer(&["spec", "selector", "matchLabels"])
            .and_then(Value::as_map);
        let pairs = labels.into_iter().flat_map(|labels| labels.iter());
        let pairs = pairs.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
        selectors.push((namespace.to_owned(), pairs.collect::<Vec<_>>().join(",")));
    }
    selectors.push((KLUCTL.0.to_owned(), KLUCTL.1.to_owned()));
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for (namespace, selector) in selectors.iter().filter(|(_, selector)| !selector.is_empty()) {
        let listed = cluster
            .list_selected(&pod, Some(namespace), selector, Detail::Full, MOST_PODS)
            .await;
        let listed = match listed {
            // The rights to another namespace are not needed.
            Err(error) if error.is_forbidden() && namespace == KLUCTL.0 => continue,
            other => other?,
        };
        for pod in listed {
            let runs = pod.pointer(&["status", "phase"]).and_then(Value::as_str) != Some("Pending");
            if runs && seen.insert(ObjectRef::of(&pod)?.id()) {
                found.push(pod);
            }
        }
    }
    Ok(found)
}

/// Prints the lines of all logs in the order of time. Of each log, only some lines are in memory.
async fn merge(logs: Vec<PodLog>, filter: &LogFilter) -> Result<()> {
    let mut readers = JoinSet::new();
    let mut heads = Vec::new();
    for (index, log) in logs.into_iter().enumerate() {
        let (sender, mut lines) = mpsc::channel(AHEAD);
        readers.spawn(log.send(index, sender));
        let head = next(&mut lines, filter).await;
        heads.extend(head.map(|head| (head, lines)));
    }
    let mut text = String::new();
    loop {
        let first = heads
            .iter()
            .enumerate()
            .min_by(|(_, (a, _)), (_, (b, _))| order(a, b));
        let Some(index) = first.map(|(index, _)| index) else {
            break;
        };
        let (head, mut lines) = heads.swap_remove(index);
        text.push_str(&head.1);
        text.push('\n');
        if text.len() > 1 << 16 {
            output::print(&text)?;
            text.clear();
        }
        let head = next(&mut lines, filter).await;
        heads.extend(head.map(|head| (head, lines)));
    }
    output::print(&text)
}

/// Time and text of a line.
type Head = (String, String);

fn order(a: &Head, b: &Head) -> Ordering {
    let time = |head: &Head| head.0.parse::<Timestamp>().ok();
    time(a).cmp(&time(b))
}

/// Returns the next line that is printed; `None` at the end.
async fn next(lines: &mut mpsc::Receiver<(usize, LogLine)>, filter: &LogFilter) -> Option<Head> {
    loop {
        let (_, line) = lines.recv().await?;
        if let Some(head) = accepted(line, filter) {
            return Some(head);
        }
    }
}

/// Returns the line if it is an entry that the filter accepts.
fn accepted(line: LogLine, filter: &LogFilter) -> Option<Head> {
    let entry: LogEntry = serde_json::from_str(&line.text).ok()?;
    filter
        .accepts(&entry)
        .then(|| (line.time, printable(&entry.line())))
}

/// Prints lines as they arrive; lines that arrive at almost the same time are in the order of time.
async fn follow(logs: Vec<PodLog>, filter: &LogFilter) -> Result<()> {
    let (sender, mut lines) = mpsc::channel(AHEAD);
    let mut readers = JoinSet::new();
    for (index, log) in logs.into_iter().enumerate() {
        readers.spawn(log.send(index, sender.clone()));
    }
    drop(sender);
    while let Some((_, first)) = lines.recv().await {
        let end = Instant::now() + WINDOW;
        let mut group: Vec<Head> = accepted(first, filter).into_iter().collect();
        while let Ok(Some((_, line))) = timeout_at(end, lines.recv()).await {
            group.extend(accepted(line, filter));
            if group.len() >= AHEAD {
                break;
            }
        }
        group.sort_by(order);
        let text: String = group.into_iter().map(|(_, text)| text + "\n").collect();
        output::print(&text)?;
    }
    Ok(())
}
