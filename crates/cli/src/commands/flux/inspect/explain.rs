//! `weir explain`: why an object is not ready.

use anyhow::{Context as _, Result, bail};
use clap::Args;
use cluster::{Detail, Selection};
use fleet::{
    Event, Kind, Reference, Suspension, age,
    cause::{Entry, Group, Index, Name, NamedObject, Root, named_objects},
};
use jiff::Timestamp;
use yaml::Value;

use super::{
    super::{Flux, FluxFlags},
    read, status,
};
use crate::{output, terminal::printable, usage::boolean_flag};

/// Warnings of an object that are printed, the newest ones.
const WARNINGS: usize = 3;
/// Failing objects that are looked at.
const FAILING: usize = 3;
/// Pods of a failing object that are looked at.
const PODS: usize = 500;
/// Maximum number of events of a namespace that are looked at.
const EVENTS: usize = 50_000;

const EXAMPLES: &str = "Examples:
  # Why a Kustomization is not ready
  weir explain ks/podinfo -n apps

  # Of kinds that share a name, by the group
  weir explain KluctlDeployment.gitops.kluctl.io/shop -n apps";

/// Explain why an object is not ready
///
/// Follows its sources, dependencies and the objects that its messages name to the cause, and prints the evidence: conditions, the newest
/// warnings, and containers that wait or crash.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// The object, such as Kustomization/apps or ks/apps
    #[arg(value_name = "KIND/NAME")]
    object: String,
    #[command(flatten)]
    flux: FluxFlags,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<()> {
    let flux = Flux::open(&args.flux)?;
    let text = flux.block_on(explain(&flux, &args.object))?;
    output::print(&printable(&text))
}

async fn explain(flux: &Flux, object: &str) -> Result<String> {
    let (word, name) = object
        .split_once('/')
        .with_context(|| format!("{object:?} is not KIND/NAME, such as Kustomization/apps"))?;
    let kinds = kinds(word);
    if kinds.is_empty() {
        bail!("{}", super::unknown_kind(word));
    }
    // References may lead to any namespace.
    let (index, _) = status::read(flux, None).await?;
    let names: Vec<Name> = kinds
        .iter()
        .map(|kind| own_name(kind, &flux.namespace, name))
        .collect();
    let found = names.iter().find_map(|name| Some((name, index.get(name)?)));
    let Some((name, entry)) = found else {
        bail!("{word} \"{name}\" not found in namespace \"{}\"", flux.namespace);
    };
    let mut text = head(&index, name, entry);
    let roots = index.roots(name);
    if roots.is_empty() && !index.is_problem(entry) {
        text.push_str(&match Suspension::of(&entry.object) {
            Some(note) => suspended(index.now(), name, entry.kind, &note),
            None => "\nNothing is wrong with it.\n".to_owned(),
        });
    }
    for root in &roots {
        let group = Group {
            root: root.clone(),
            alike: Vec::new(),
            held_up: Vec::new(),
        };
        text.push_str(&format!("\n{}", group.explanation(index.now())));
        text.push_str(&evidence(flux, &index, root).await?);
    }
    let dependants = dependants(&index, name);
    if !dependants.is_empty() && index.is_problem(entry) {
        text.push_str(&format!(
            "\nIt holds up {}: {}\n",
            dependants.len(),
            dependants.join(", ")
        ));
    }
    Ok(text)
}

/// Returns the kinds that a word means: a name or word, or a name with its group, such as `KluctlDeployment.gitops.kluctl.io`.
fn kinds(word: &str) -> Vec<&'static Kind> {
    let Some((name, group)) = word.split_once('.') else {
        return Kind::by_word(word);
    };
    let mut kinds = Kind::by_word(name);
    kinds.retain(|kind| kind.group.eq_ignore_ascii_case(group));
    kinds
}

/// Returns who suspended an object that is ready, and how it goes on.
fn suspended(now: Timestamp, name: &Name, kind: &Kind, note: &Suspension) -> String {
    let since = match note.since(now) {
        since if since.is_empty() => since,
        since => format!(" {since}"),
    };
    format!(
        "\nIt was suspended{since}\n    to do: weir resume {} {} -n {}\n",
        kind.command(),
        name.name,
        name.namespace
    )
}

fn own_name(kind: &Kind, namespace: &str, name: &str) -> Name {
    Name {
        group: kind.group.to_owned(),
        kind: kind.kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// Returns the state of the object with its conditions.
fn head(index: &Index, name: &Name, entry: &Entry) -> String {
    let mut text = format!("{name} is {}\n", entry.health);
    for condition in &entry.object.status.conditions {
        let since = condition.last_transition_time.parse::<Timestamp>();
        let since = since.map(|since| age(index.now().as_second().saturating_sub(since.as_second())));
        text.push_str(&format!(
            "    {}={} for {}: {}: {}\n",
            condition.type_,
            condition.status,
            since.unwrap_or_else(|_| "<unknown>".to_owned()),
            condition.reason,
            condition.message.replace('\n', " ")
        ));
    }
    text
}

/// Returns the objects whose problem begins at this one.
fn dependants(index: &Index, of: &Name) -> Vec<String> {
    let held_up = index.iter().filter(|(name, entry)| {
        *name != of && index.is_problem(entry) && index.roots(name).iter().any(|root| root.name == *of)
    });
    held_up.map(|(name, _)| name.to_string()).collect()
}

/// Returns the newest warnings of a cause and of the failing objects that it names, and the state of their containers.
async fn evidence(flux: &Flux, index: &Index, root: &Root) -> Result<String> {
    let own = NamedObject {
        kind: root.name.kind.clone(),
        namespace: root.name.namespace.clone(),
        name: root.name.name.clone(),
    };
    let mut text = warnings(flux, index, &own, &[]).await?;
    let failing = named_objects(&root.message);
    for object in failing.iter().filter(|object| **object != own).take(FAILING) {
        let pods = pods(flux, object).await?;
        let mut found = warnings(flux, index, object, &pods).await?;
        pods.iter().for_each(|pod| found.push_str(&containers(pod)));
        if !found.is_empty() {
            let NamedObject {
                kind,
                namespace,
                name,
            } = object;
            text.push_str(&format!("    {kind}/{namespace}/{name}:\n{found}"));
        }
    }
    Ok(text)
}

/// Returns the newest warnings about an object and its Pods.
async fn warnings(flux: &Flux, index: &Index, of: &NamedObject, pods: &[Value]) -> Result<String> {
    let kind = flux.cluster.kind("", "v1", "Event").await?;
    let own = format!("involvedObject.kind={},involvedObject.name={}", of.kind, of.name);
    let selection = Selection {
        namespace: Some(of.namespace.clone()),
        labels: String::new(),
        fields: match pods {
            [] => format!("type=Warning,{own}"),
            _ => "type=Warning".to_owned(),
        },
    };
    let is_about = |object: &Reference| {
        let is_pod = |pod: &Value| read::text(pod, &["metadata", "name"]) == object.name;
        object.name == of.name && object.kind == of.kind || object.kind == "Pod" && pods.iter().any(is_pod)
    };
    let mut found: Vec<Event> = Vec::new();
    let mut count = 0;
    let add = |json: &str| -> Result<(), anyhow::Error> {
        count += 1;
        let event: Event = serde_json::from_str(json)?;
        if count <= EVENTS && is_about(&event.involved_object) {
            found.push(event);
        }
        Ok(())
    };
    flux.cluster.each_object(&kind, &selection, add).await?;
    found.sort_by_key(|event| std::cmp::Reverse(event.last_seen()));
    let lines = found.iter().take(WARNINGS).map(|event| {
        let object = &event.involved_object;
        let message = event.message.replace('\n', " ");
        let seen = event.seen(index.now());
        format!(
            "    warning {seen} ago about {}/{}: {}: {message}\n",
            object.kind, object.name, event.reason
        )
    });
    Ok(lines.collect())
}

/// Returns the Pods of an object, or the Pod itself. Rights to Pods, and namespaces with very many of them, are no reason to fail.
async fn pods(flux: &Flux, of: &NamedObject) -> Result<Vec<Value>> {
    let kind = flux.cluster.kind("", "v1", "Pod").await?;
    let listed = flux
        .cluster
        .list_selected(&kind, Some(&of.namespace), "", Detail::Full, PODS)
        .await;
    let mut pods = listed.unwrap_or_default();
    pods.retain(|pod| is_pod_of(pod, of));
    Ok(pods)
}

/// Returns true if the object is the Pod, its owner, or the Deployment of its ReplicaSet, whose name ends with a hash.
fn is_pod_of(pod: &Value, of: &NamedObject) -> bool {
    if of.kind == "Pod" {
        return read::text(pod, &["metadata", "name"]) == of.name;
    }
    let owner = |field| read::text(pod, &["metadata", "ownerReferences", "0", field]);
    let (kind, name) = (owner("kind"), owner("name"));
    let is_set_of = |set: &str| {
        let hash = set.strip_prefix(&of.name).and_then(|rest| rest.strip_prefix('-'));
        hash.is_some_and(|hash| !hash.is_empty() && !hash.contains('-'))
    };
    kind == of.kind && name == of.name || of.kind == "Deployment" && kind == "ReplicaSet" && is_set_of(name)
}

/// Returns the containers of a Pod that wait or ended with an error.
fn containers(pod: &Value) -> String {
    let mut text = String::new();
    let statuses = pod
        .pointer(&["status", "containerStatuses"])
        .and_then(Value::as_seq);
    for status in statuses.unwrap_or_default() {
        for (state, verb) in [("waiting", "waits"), ("terminated", "ended")] {
            let reason = read::text(status, &["state", state, "reason"]);
            if !reason.is_empty() && reason != "Completed" {
                let container = read::text(status, &["name"]);
                let message = read::text(status, &["state", state, "message"]).replace('\n', " ");
                let pod = read::text(pod, &["metadata", "name"]);
                text.push_str(&format!(
                    "    container {container} of Pod/{pod} {verb}: {reason} {message}\n"
                ));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn group_selects_one_of_kinds_with_one_name() {
        let groups = |word: &str| kinds(word).iter().map(|kind| kind.group).collect::<Vec<_>>();
        assert_eq!(groups("kd"), ["gitops.kluctl.io", "flux.kluctl.io"]);
        assert_eq!(groups("KluctlDeployment.flux.kluctl.io"), ["flux.kluctl.io"]);
        assert!(groups("ks.kluctl.io").is_empty());
    }

    #[test]
    fn pods_belong_to_their_owner_and_its_deployment() {
        let pod = |kind: &str, name: &str| {
            let owners = json!([{"kind": kind, "name": name}]);
            Value::from_json(json!({"metadata": {"name": "web-1", "ownerReferences": owners}}))
        };
        for (kind, name, of_kind, of_name, expected) in [
            ("ReplicaSet", "web-5d4f", "Deployment", "web", true),
            ("ReplicaSet", "web-admin-5d4f", "Deployment", "web", false),
            ("StatefulSet", "web", "StatefulSet", "web", true),
            ("StatefulSet", "web-admin", "StatefulSet", "web", false),
            ("Job", "x", "Pod", "web-1", true),
        ] {
            let of = NamedObject {
                kind: of_kind.to_owned(),
                namespace: "n".to_owned(),
                name: of_name.to_owned(),
            };
            assert_eq!(is_pod_of(&pod(kind, name), &of), expected, "{kind} {name}");
        }
    }
}
