//! `weir gitops logs`, and the logs of the controller while it works on a request.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use cluster::{Cluster, Detail, LogLine, LogOptions};
use objects::ObjectRef;
use serde_json::Value as Json;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::{
    GitOps,
    flags::{LogFlags, SelectFlags, UnusedPortFlag, UnusedResultFlag},
    select::Unnamed,
};
use crate::{flags::ClusterFlags, output, pod_logs::PodLog, terminal::printable, usage::boolean_flag};

/// Label of the Pods of the controller.
pub(super) const SELECTOR: &str = "control-plane=kluctl-controller";
/// Namespaces in which the controller is looked for: kluctl's and Weir's.
const NAMESPACES: [&str; 2] = ["kluctl-system", "flux-system"];
/// Maximum number of Pods whose logs are read.
pub(super) const PODS: usize = 50;
/// Maximum number of lines that are read ahead.
const AHEAD: usize = 1000;

const EXAMPLES: &str = "Examples:
  # Follow the logs about a KluctlDeployment
  weir gitops logs --name shop -n apps -f

  # The last hour of all
  weir gitops logs --all --log-since 1h";

/// Print the logs of the controller about KluctlDeployments
///
/// Lines are grouped by reconciliation. Without --name, --label-selector and --all, the KluctlDeployments with the Git repository and
/// directory of the local project are selected.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct LogsArgs {
    #[command(flatten)]
    select: SelectFlags,
    /// Print all lines of the controller
    #[arg(long, help_heading = "Selection", conflicts_with_all = ["name", "label_selector"])]
    all: bool,
    /// Print the lines of one reconciliation only
    #[arg(long, value_name = "ID", help_heading = "Selection")]
    reconcile_id: Option<String>,
    /// Print lines as they are written, until Ctrl-C
    #[arg(short, long, help_heading = "Logs")]
    follow: bool,
    #[command(flatten)]
    logs: LogFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    _port: UnusedPortFlag,
    #[command(flatten)]
    _result: UnusedResultFlag,
}

pub(crate) fn run(args: &LogsArgs) -> Result<()> {
    let ops = GitOps::open(&args.cluster, Duration::MAX)?;
    let objects = match args.all {
        true => Vec::new(),
        false => ops.select(&args.select, Unnamed::Take, "show the logs of", true)?,
    };
    let wanted = Wanted {
        objects: &objects,
        reconcile_id: args.reconcile_id.as_deref(),
    };
    ops.block_on(async {
        let tail = LogTail::open(&ops.cluster, &args.logs, args.follow).await?;
        let namespaces = named(&args.logs);
        ensure!(
            tail.is_some(),
            "there are no Pods with the label {SELECTOR} in {namespaces}: use --controller-namespace"
        );
        let printing = print(tail, &wanted, &args.logs);
        let cancelled = ops.cluster.cancellation().cancelled();
        tokio::select! {
            printed = printing => printed,
            // The requested end.
            () = cancelled => Ok(()),
        }
    })
}

/// Opens the logs for a request; `None` if they can't be read.
pub(super) async fn tail(ops: &GitOps, flags: &LogFlags) -> Option<LogTail> {
    // Progress is in the status, too. Rights to logs are administrators' rights.
    LogTail::open(&ops.cluster, flags, true).await.ok().flatten()
}

/// Prints lines in groups.
async fn print(tail: Option<LogTail>, wanted: &Wanted<'_>, flags: &LogFlags) -> Result<()> {
    let Some(mut tail) = tail else { return Ok(()) };
    let mut last = None;
    while let Some(first) = tail.next().await {
        let end = Instant::now() + flags.log_grouping_time;
        let mut lines = vec![first];
        while let Ok(Some(line)) = timeout_at(end, tail.next()).await {
            lines.push(line);
            if lines.len() >= AHEAD {
                break;
            }
        }
        lines.retain(|line| wanted.accepts(line));
        output::print(&grouped(lines, &mut last, flags.log_time))?;
    }
    Ok(())
}

/// Groups lines by reconciliation, in the order of their first lines. `last` is the group that was printed last.
fn grouped(lines: Vec<Line>, last: &mut Option<Group>, with_time: bool) -> String {
    let mut groups: Vec<(Group, Vec<Line>)> = Vec::new();
    for line in lines {
        let group = line.group();
        match groups.iter_mut().find(|(other, _)| *other == group) {
            Some((_, lines)) => lines.push(line),
            None => groups.push((group, vec![line])),
        }
    }
    let mut text = String::new();
    for (group, lines) in groups {
        if last.as_ref() != Some(&group) {
            text.push_str(&group.title());
        }
        for line in lines {
            text.push_str(&line.printed(with_time));
            text.push('\n');
        }
        *last = Some(group);
    }
    text
}

pub(super) struct Wanted<'a> {
    /// The objects that they are about; empty means any.
    pub(super) objects: &'a [ObjectRef],
    /// The reconciliation that they belong to.
    pub(super) reconcile_id: Option<&'a str>,
}

impl Wanted<'_> {
    pub(super) fn accepts(&self, line: &Line) -> bool {
        let is_about =
            |of: &ObjectRef| of.name == line.name && of.namespace.as_deref() == Some(&*line.namespace);
        (self.objects.is_empty() || self.objects.iter().any(is_about))
            && self.reconcile_id.is_none_or(|id| id == line.reconcile_id)
    }
}

/// A line of the log of a controller.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Line {
    time: String,
    level: String,
    message: String,
    error: String,
    name: String,
    namespace: String,
    reconcile_id: String,
}

/// The reconciliation of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    name: String,
    namespace: String,
    reconcile_id: String,
}

impl Group {
    fn title(&self) -> String {
        let Self {
            name,
            namespace,
            reconcile_id,
        } = self;
        match name.is_empty() {
            true => "--- controller\n".to_owned(),
            false => printable(&format!("--- {namespace}/{name}, reconciliation {reconcile_id}")) + "\n",
        }
    }
}

impl Line {
    /// Parses a line; `None` if it isn't JSON.
    fn parse(text: &str) -> Option<Self> {
        let Json::Object(fields) = serde_json::from_str(text).ok()? else {
            return None;
        };
        let text = |name: &str| match fields.get(name) {
            None | Some(Json::Null) => String::new(),
            Some(Json::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        Some(Self {
            time: text("ts"),
            level: text("level"),
            message: text("msg"),
            error: text("error"),
            name: text("name"),
            namespace: text("namespace"),
            reconcile_id: text("reconcileID"),
        })
    }

    fn group(&self) -> Group {
        Group {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            reconcile_id: self.reconcile_id.clone(),
        }
    }

    /// Returns the line for the terminal.
    pub(super) fn printed(&self, with_time: bool) -> String {
        let mut text = String::new();
        if with_time {
            text.push_str(&self.time);
            text.push(' ');
        }
        if self.level != "info" {
            text.push_str(&self.level);
            text.push_str(": ");
        }
        text.push_str(&self.message);
        if !self.error.is_empty() {
            text.push_str(": ");
            text.push_str(&self.error);
        }
        printable(&text)
    }
}

pub(super) fn controller_namespaces(flags: &LogFlags) -> Vec<&str> {
    match &flags.controller_namespace {
        Some(namespace) => vec![namespace],
        None => NAMESPACES.to_vec(),
    }
}

/// Returns `namespace a` or `the namespaces a and b`.
pub(super) fn named(flags: &LogFlags) -> String {
    match controller_namespaces(flags).as_slice() {
        [one] => format!("namespace {one}"),
        all => format!("the namespaces {}", all.join(" and ")),
    }
}

pub(super) struct LogTail {
    lines: mpsc::Receiver<(usize, LogLine)>,
    /// Ends with the value.
    _readers: JoinSet<()>,
}

impl LogTail {
    /// Opens the logs; `None` without Pods.
    async fn open(cluster: &Cluster, flags: &LogFlags, follow: bool) -> Result<Option<Self>> {
        let kind = cluster.kind("", "v1", "Pod").await?;
        let mut pods = Vec::new();
        for namespace in controller_namespaces(flags) {
            pods = cluster
                .list_selected(&kind, Some(namespace), SELECTOR, Detail::Full, PODS)
                .await?;
            if !pods.is_empty() {
                break;
            }
        }
        let options = LogOptions {
            since_seconds: flags.log_since.as_secs().max(1),
            follow,
            ..LogOptions::default()
        };
        let (sender, lines) = mpsc::channel(AHEAD);
        let mut readers = JoinSet::new();
        for (index, pod) in pods.iter().enumerate() {
            let reader = PodLog::open(cluster, pod, options.clone()).await?;
            readers.spawn(reader.send(index, sender.clone()));
        }
        let tail = Self {
            lines,
            _readers: readers,
        };
        Ok((!pods.is_empty()).then_some(tail))
    }

    pub(super) async fn next(&mut self) -> Option<Line> {
        loop {
            let (_, line) = self.lines.recv().await?;
            if let Some(line) = Line::parse(&line.text) {
                return Some(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(name: &str, id: &str, message: &str) -> Line {
        let text = json!({
            "level": "info", "ts": "2026-01-01T00:00:00.000Z", "logger": "x", "msg": message, "name": name, "namespace": "n",
            "reconcileID": id,
        });
        Line::parse(&text.to_string()).unwrap()
    }

    #[test]
    fn lines_are_grouped_by_reconciliation() {
        let mut last = None;
        let lines = vec![line("a", "1", "x"), line("b", "2", "y"), line("a", "1", "z")];
        assert_eq!(
            grouped(lines, &mut last, false),
            "--- n/a, reconciliation 1\nx\nz\n--- n/b, reconciliation 2\ny\n"
        );
        assert_eq!(
            grouped(vec![line("b", "2", "w")], &mut last, true),
            "2026-01-01T00:00:00.000Z w\n"
        );
    }

    #[test]
    fn lines_are_filtered_and_printed_without_control_characters() {
        let of = super::super::select::reference("n", "a");
        let objects = [of];
        let wanted = |reconcile_id| Wanted {
            objects: &objects,
            reconcile_id,
        };
        let line = line("a", "1", "x\u{1b}[2J");
        assert!(wanted(None).accepts(&line) && wanted(Some("1")).accepts(&line));
        assert!(!wanted(Some("2")).accepts(&line));
        assert!(!line.printed(false).contains('\u{1b}'));
        let failed = Line::parse(r#"{"level":"error","msg":"no","error":"e","count":3}"#).unwrap();
        assert_eq!(failed.printed(false), "error: no: e");
        assert!(!wanted(None).accepts(&failed));
        assert!(Line::parse("panic: 1").is_none() && Line::parse("[1]").is_none());
    }
}
