//! Manifests: splits the output of templates into documents, separates hooks, sorts and prints.

#[cfg(test)]
mod tests;

use std::{fmt::Write as _, sync::LazyLock};

use go::bytes;
use memchr::memmem;
use regex::Regex;
use tree::Budget;

use crate::{
    Error, HelmVersion, TemplateOutput,
    fields::{FieldError, Fields, json_type},
    sigs_yaml,
    values::yaml_words,
};

/// The kinds that are installed first, in this order; all others follow by name. Helm 3 doesn't know the last two.
const INSTALL_ORDER: [&str; 38] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// The number of kinds in the install order of Helm 3.
const ORDERED_BY_3: usize = 36;

const EVENTS: [&str; 9] = [
    "pre-install",
    "post-install",
    "pre-delete",
    "post-delete",
    "pre-upgrade",
    "post-upgrade",
    "pre-rollback",
    "post-rollback",
    "test",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub path: String,
    /// The field `kind`; empty if it is missing.
    pub kind: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub manifest: Manifest,
    /// Events such as `pre-install` and `test`.
    pub events: Vec<String>,
    /// Position among the hooks of one event; lower weights come first.
    pub weight: i64,
}

impl Hook {
    #[must_use]
    pub fn is_test(&self) -> bool {
        self.events.iter().any(|event| event == "test")
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sorted {
    pub manifests: Vec<Manifest>,
    pub hooks: Vec<Hook>,
}

#[derive(Default)]
struct Head {
    kind: String,
    annotations: Option<Vec<(String, String)>>,
}

impl Head {
    fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations
            .iter()
            .flatten()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }
}

/// The white space around a separator, according to Helm.
const SPACES: [char; 5] = ['\t', '\n', '\x0C', '\r', ' '];

/// Splits an output into documents as Helm does: at each line that begins with `---`, regardless of YAML syntax. Separators and
/// the white space around them are removed; since Helm 4, documents keep the white space at their ends.
pub(crate) fn split(text: &str, helm: HelmVersion) -> Vec<&str> {
    match helm {
        HelmVersion::V3 => split_trimmed(text),
        HelmVersion::V4 => split_with_ends(text),
    }
}

fn split_with_ends(text: &str) -> Vec<&str> {
    let text = text.trim_start();
    let mut documents = Vec::new();
    let mut begin = 0;
    for at in memmem::find_iter(text.as_bytes(), b"---") {
        if at < begin || (at > 0 && text.as_bytes().get(at - 1) != Some(&b'\n')) {
            continue;
        }
        documents.push(text.get(begin..at).unwrap_or_default());
        begin = at + 3;
    }
    documents.push(text.get(begin..).unwrap_or_default());
    documents
        .into_iter()
        .map(str::trim_start)
        .filter(|one| !one.is_empty())
        .collect()
}

fn split_trimmed(text: &str) -> Vec<&str> {
    let text = text.trim();
    let mut documents = Vec::new();
    let (mut begin, mut from) = (0, 0);
    while let Some(found) = memmem::find(text.as_bytes().get(from..).unwrap_or_default(), b"---") {
        let at = from + found;
        let before = text.get(begin..at).unwrap_or_default();
        // A line break that was removed with the previous separator doesn't count for the next one.
        if at > 0 && !before.ends_with('\n') {
            from = at + 1;
            continue;
        }
        documents.push(before.trim_end_matches(SPACES));
        let behind = text.get(at + 3..).unwrap_or_default();
        begin = text.len() - behind.trim_start_matches(SPACES).len();
        from = begin;
    }
    documents.push(text.get(begin..).unwrap_or_default());
    documents.retain(|one| !one.is_empty());
    documents.into_iter().map(str::trim).collect()
}

/// Splits the outputs of templates, which are in the form of [`go::bytes`], into documents and sorts them by kind in the install
/// order. `files` are paths and outputs.
/// Fails when a document is invalid YAML or not an object.
pub(crate) fn sort<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
    helm: HelmVersion,
    warnings: &mut Vec<String>,
    budget: &Budget,
) -> Result<Sorted, Error> {
    let mut sorted = Sorted::default();
    for (path, whole) in files {
        if path.rsplit('/').next().is_some_and(|name| name.starts_with('_')) {
            continue;
        }
        for text in split(whole, helm) {
            budget.step(text.len() as u64)?;
            let document = sigs_yaml::utf8(text).map_err(|(reason, at)| HeadError::NotUtf8 {
                reason,
                at: at + bytes::len(before(whole, text)),
            });
            let head = document
                .and_then(|text| Ok((head(&text, helm, budget)?, text)))
                .map_err(|message| Error::NoManifest {
                    message: format!("YAML parse error on {path}: {message}"),
                    output: TemplateOutput::default(),
                });
            let (head, text) = head?;
            let manifest = Manifest {
                path: path.to_owned(),
                kind: head.kind.clone(),
                text: text.into_owned(),
            };
            match head.annotation("helm.sh/hook") {
                None => sorted.manifests.push(manifest),
                Some(types) => match events(types) {
                    Some(events) => {
                        let weight = head.annotation("helm.sh/hook-weight").unwrap_or_default();
                        let weight = weight.parse().unwrap_or(0);
                        sorted.hooks.push(Hook {
                            manifest,
                            events,
                            weight,
                        });
                    }
                    None => warnings.push(format!("info: skipping unknown hook: {types:?}")),
                },
            }
        }
    }
    let order =
        |a: &Manifest, b: &Manifest| install_position(&a.kind, helm).cmp(&install_position(&b.kind, helm));
    sorted.manifests.sort_by(order);
    sorted.hooks.sort_by(|a, b| order(&a.manifest, &b.manifest));
    Ok(sorted)
}

/// Returns the install position of a kind: unlisted kinds come last, by name.
fn install_position(kind: &str, helm: HelmVersion) -> (usize, &str) {
    let known = helm.pick(ORDERED_BY_3, INSTALL_ORDER.len());
    match INSTALL_ORDER.iter().take(known).position(|known| *known == kind) {
        Some(install_position) => (install_position, ""),
        None => (INSTALL_ORDER.len(), kind),
    }
}

fn events(types: &str) -> Option<Vec<String>> {
    let event = |event: &str| {
        let event = event.trim().to_lowercase();
        let event = if event == "test-success" {
            "test".to_owned()
        } else {
            event
        };
        EVENTS.contains(&event.as_str()).then_some(event)
    };
    types.split(',').map(event).collect()
}

/// Returns the part of a string before one of its documents.
fn before<'t>(whole: &'t str, document: &str) -> &'t str {
    let at = document.as_ptr().addr().checked_sub(whole.as_ptr().addr());
    at.and_then(|at| whole.get(..at)).unwrap_or_default()
}

/// Error of a document whose head can't be decoded, as in Helm.
#[derive(Debug, thiserror::Error)]
enum HeadError {
    /// Helm's message and the offset in the output of the template.
    #[error("error converting YAML to JSON: yaml: {reason} at offset {at}")]
    NotUtf8 { reason: &'static str, at: usize },
    #[error("{}", yaml_words(.0))]
    Yaml(yaml::Error),
    #[error(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {0} into Go value of type \
         {1}.SimpleHead"
    )]
    NotAMap(&'static str, &'static str),
    #[error(transparent)]
    Field(#[from] FieldError),
}

fn head(text: &str, helm: HelmVersion, budget: &Budget) -> Result<Head, HeadError> {
    let wanted = |key: &str| {
        ["apiVersion", "kind", "metadata"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(key))
    };
    let document = yaml::read::goyaml_lenient_part(text, &wanted, budget).map_err(HeadError::Yaml)?;
    let mut head = Head::default();
    let map = match &document.value {
        yaml::Value::Null => return Ok(head),
        yaml::Value::Map(map) => map,
        other => {
            let package = helm.pick("releaseutil", "util");
            return Err(HeadError::NotAMap(json_type(other), package));
        }
    };
    let fields = Fields {
        map,
        kind: "SimpleHead",
        above: None,
    };
    fields.text("apiVersion", &mut String::new())?;
    fields.text("kind", &mut head.kind)?;
    match fields.get("metadata") {
        None => {}
        Some(yaml::Value::Map(metadata)) => {
            let fields = Fields {
                map: metadata,
                kind: "",
                above: Some("metadata"),
            };
            fields.text("name", &mut String::new())?;
            fields.text_map("annotations", &mut head.annotations)?;
        }
        Some(other) => {
            let want = "struct { Name string \"json:\\\"name\\\"\"; Annotations map[string]string \
                        \"json:\\\"annotations\\\"\" }";
            return Err(fields.wrong("metadata", other, want).into());
        }
    }
    Ok(head)
}

pub(crate) fn print(path: &str, text: &str, into: &mut String) {
    let _ = writeln!(into, "---\n# Source: {path}\n{text}");
}

static SOURCE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("# Source: [^/]+/(.+)").ok());

/// Returns the documents of an output whose templates match one of the paths or glob patterns.
/// Fails when a path matches no template.
pub(crate) fn show_only(output: &str, paths: &[String], helm: HelmVersion) -> Result<String, Error> {
    let documents = split(output, helm);
    let mut selected = String::new();
    for path in paths {
        let before = selected.len();
        let pattern = go::path::Pattern::parse(path).ok();
        for document in &documents {
            let source = SOURCE
                .as_ref()
                .and_then(|source| source.captures(document)?.get(1));
            let matches = |name: &str| pattern.as_ref().is_some_and(|pattern| pattern.is_match(name));
            if source.is_some_and(|source| matches(source.as_str())) {
                let _ = writeln!(selected, "---\n{document}");
            }
        }
        if selected.len() == before {
            return Err(Error::Option(format!("could not find template {path} in chart")));
        }
    }
    Ok(selected)
}
