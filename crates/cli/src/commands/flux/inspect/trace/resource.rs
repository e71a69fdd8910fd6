//! Objects as they are named on a command line: by kind, plural or short name.

use anyhow::{Context as _, Result, bail, ensure};
use cluster::{ResourceKind, Snapshot};
use fleet::Kind;
use objects::ObjectRef;

use crate::commands::flux::{Flux, served};

/// Short names of kubectl, which discovery does not tell.
const SHORT: &[(&str, &str)] = &[
    ("cj", "cronjobs"),
    ("cm", "configmaps"),
    ("crd", "customresourcedefinitions"),
    ("crds", "customresourcedefinitions"),
    ("deploy", "deployments"),
    ("ds", "daemonsets"),
    ("ep", "endpoints"),
    ("hpa", "horizontalpodautoscalers"),
    ("ing", "ingresses"),
    ("netpol", "networkpolicies"),
    ("no", "nodes"),
    ("ns", "namespaces"),
    ("pc", "priorityclasses"),
    ("pdb", "poddisruptionbudgets"),
    ("po", "pods"),
    ("pv", "persistentvolumes"),
    ("pvc", "persistentvolumeclaims"),
    ("quota", "resourcequotas"),
    ("rs", "replicasets"),
    ("sa", "serviceaccounts"),
    ("sc", "storageclasses"),
    ("sts", "statefulsets"),
    ("svc", "services"),
];

/// Returns the object of `NAME` with kind and API version.
pub(super) async fn exact(
    flux: &Flux,
    (kind, api_version): (&str, &str),
    names: &[String],
) -> Result<ObjectRef> {
    let [name] = names else {
        bail!("with --kind and --api-version, one name is to be given");
    };
    let snapshot = flux.cluster.snapshot().await?;
    let mut served = snapshot.kinds().iter();
    let found =
        served.find(|found| found.api_version() == api_version && found.kind.eq_ignore_ascii_case(kind));
    let found =
        found.with_context(|| format!("no matches for kind \"{kind}\" in version \"{api_version}\""))?;
    Ok(ObjectRef {
        group: found.group.clone(),
        version: found.version.clone(),
        kind: found.kind.clone(),
        namespace: found.namespaced.then(|| flux.namespace.clone()),
        name: name.clone(),
    })
}

/// Returns the objects of `KIND NAME...` or `KIND/NAME...`.
pub(super) async fn resolve(flux: &Flux, words: &[String]) -> Result<Vec<ObjectRef>> {
    const USAGE: &str = "either `<resource>/<name>` or `<resource> <name>` is required as an argument";
    let pairs: Vec<(&str, &str)> = if words.iter().all(|word| word.contains('/')) {
        words.iter().filter_map(|word| word.split_once('/')).collect()
    } else {
        let (kind, names) = words.split_first().context(USAGE)?;
        ensure!(
            !names.is_empty() && !words.iter().any(|word| word.contains('/')),
            USAGE
        );
        names.iter().map(|name| (kind.as_str(), name.as_str())).collect()
    };
    let snapshot = flux.cluster.snapshot().await?;
    let mut found = Vec::new();
    for (word, name) in pairs {
        let kind = find(&snapshot, word)
            .with_context(|| format!("the server doesn't have a resource type \"{word}\""))?;
        // With kinds that are not namespaced, the namespace is not used.
        let namespace = kind.namespaced.then(|| flux.namespace.clone());
        found.push(ObjectRef {
            group: kind.group,
            version: kind.version,
            kind: kind.kind,
            namespace,
            name: name.to_owned(),
        });
    }
    Ok(found)
}

/// Finds the kind that a word means: a kind, plural, short name, or any of them with its group (`deployments.apps`).
fn find(snapshot: &Snapshot, word: &str) -> Option<ResourceKind> {
    let word = word.to_ascii_lowercase();
    let (name, group) = match word.split_once('.') {
        Some((name, group)) => (name, Some(group)),
        None => (word.as_str(), None),
    };
    let long = SHORT
        .iter()
        .find(|(short, _)| *short == name)
        .map(|(_, long)| *long);
    let name = long.unwrap_or(name);
    let is_meant = |kind: &&ResourceKind| {
        (kind.plural == name || kind.kind.eq_ignore_ascii_case(name))
            && group.is_none_or(|group| kind.group == group)
    };
    let exact = snapshot.listable().find(is_meant).cloned();
    // Words of this command line, such as `ks`.
    exact.or_else(|| {
        Kind::by_word(&word)
            .into_iter()
            .find_map(|kind| served(snapshot, kind))
    })
}
