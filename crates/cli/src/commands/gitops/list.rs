//! `weir gitops list`.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use yaml::{Map, Value};

use super::{GitOps, flags::TimeoutFlag, select::names};
use crate::{commands::operation, flags::ClusterFlags, output, terminal::printable, usage::boolean_flag};

const EXAMPLES: &str = "Examples:
  # All KluctlDeployments
  weir gitops list

  # Those of a team, as data
  weir gitops list -l team=shop -o yaml";

/// List KluctlDeployments with their state
///
/// The columns are the same as of `kubectl get kluctldeployments.gitops.kluctl.io`, for all namespaces unless --namespace is given.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct ListArgs {
    /// Name of the KluctlDeployment
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    name: Option<String>,
    /// Namespace; defaults to all namespaces
    #[arg(short, long, value_name = "NAME", help_heading = "Selection")]
    namespace: Option<String>,
    /// Select KluctlDeployments by their labels, such as team=shop,stage!=test
    #[arg(
        short = 'l',
        long,
        value_name = "SELECTOR",
        help_heading = "Selection",
        conflicts_with = "name"
    )]
    label_selector: Option<String>,
    /// Print the whole objects
    #[arg(short, long, value_name = "FORMAT", help_heading = "Output")]
    output: Option<ListOutput>,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    waiting: TimeoutFlag,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ListOutput {
    Json,
    Yaml,
}

pub(crate) fn run(args: &ListArgs) -> Result<()> {
    let ops = GitOps::open(&args.cluster, args.waiting.timeout)?;
    let selector = args.label_selector.as_deref().unwrap_or_default();
    let mut found = ops.list(args.namespace.as_deref(), selector)?;
    if let Some(name) = &args.name {
        found.retain(|object| names(object).0 == name);
        if found.is_empty() {
            bail!("KluctlDeployment {name} not found");
        }
    }
    found.sort_by(|a, b| names(a).1.cmp(names(b).1).then(names(a).0.cmp(names(b).0)));
    let text = match args.output {
        None => table(&found, Timestamp::now()),
        Some(format) => {
            let list = Value::Map(Map::from([
                ("apiVersion", Value::from("v1")),
                ("kind", Value::from("List")),
                ("items", Value::Seq(found)),
            ]));
            match format {
                ListOutput::Json => operation::json(&list),
                ListOutput::Yaml => yaml::print::goyaml(&list),
            }
        }
    };
    output::print(&text)
}

/// Prints the columns of the definition.
fn table(objects: &[Value], now: Timestamp) -> String {
    if objects.is_empty() {
        return "No KluctlDeployments found\n".to_owned();
    }
    let head = [
        "NAMESPACE",
        "NAME",
        "SUSPEND",
        "DRYRUN",
        "DEPLOYED",
        "READY",
        "DRIFT",
        "STATUS",
        "AGE",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(objects.iter().map(|object| row(object, now)));
    let widths: Vec<usize> = (0..head.len())
        .map(|column| {
            rows.iter()
                .filter_map(|row| Some(row.get(column)?.chars().count()))
                .max()
                .unwrap_or_default()
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("   ").trim_end());
        text.push('\n');
    }
    text
}

fn row(object: &Value, now: Timestamp) -> [String; 9] {
    let (name, namespace) = names(object);
    let flag = |field: &str| {
        let value = object.pointer(&["spec", field]).and_then(Value::as_bool);
        value.map(|value| value.to_string()).unwrap_or_default()
    };
    let text = |path: &[&str]| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let age = |path: &[&str]| text(path).parse().map(|time| age(time, now)).unwrap_or_default();
    let ready = |field: &str| {
        let conditions = object.pointer(&["status", "conditions"]).and_then(Value::as_seq);
        let mut conditions = conditions.unwrap_or_default().iter();
        let ready =
            conditions.find(|condition| condition.get("type").and_then(Value::as_str) == Some("Ready"));
        let text = ready.and_then(|ready| ready.get(field)?.as_str());
        // A message of several lines would tear the table.
        printable(&text.unwrap_or_default().replace('\n', " "))
    };
    [
        namespace.to_owned(),
        name.to_owned(),
        flag("suspend"),
        flag("dryRun"),
        age(&["status", "lastDeployResult", "commandInfo", "endTime"]),
        ready("status"),
        printable(text(&["status", "lastDriftDetectionResultMessage"])),
        ready("message"),
        age(&["metadata", "creationTimestamp"]),
    ]
}

fn age(then: Timestamp, now: Timestamp) -> String {
    fleet::age(now.as_second().saturating_sub(then.as_second()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn table_has_the_columns_of_the_definition() {
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let object = json!({
            "metadata": {"name": "shop", "namespace": "apps", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"suspend": true},
            "status": {
                "conditions": [{"type": "Ready", "status": "False", "message": "deploy\nfailed"}],
                "lastDeployResult": {"commandInfo": {"endTime": "2026-01-01T23:55:30Z"}},
                "lastDriftDetectionResultMessage": "1 new",
            },
        });
        assert_eq!(
            table(&[Value::from_json(object)], now),
            "NAMESPACE   NAME   SUSPEND   DRYRUN   DEPLOYED   READY   DRIFT   STATUS          AGE\n\
             apps        shop   true               4m30s      False   1 new   deploy failed   24h\n"
        );
        let empty = table(&[Value::from_json(json!({"metadata": 1}))], now);
        assert_eq!(empty.lines().count(), 2);
    }

    #[test]
    fn ages_are_those_of_kubectl() {
        let now: Timestamp = "2026-01-31T00:00:00Z".parse().unwrap();
        for (seconds, expected) in [
            (-5, "0s"),
            (119, "119s"),
            (120, "2m"),
            (601, "10m"),
            (3 * 3600 + 60, "3h1m"),
            (47 * 3600, "47h"),
            (2 * 86400 + 3600, "2d1h"),
            (9 * 86400, "9d"),
        ] {
            let then = Timestamp::from_second(now.as_second() - seconds).unwrap();
            assert_eq!(age(then, now), expected);
        }
    }
}
