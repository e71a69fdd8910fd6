//! The sources of an object, which `--with-source` reconciles before it.

use anyhow::{Context as _, Result, bail};
use fleet::{Kind, kind};
use objects::{ObjectRef, meta};
use yaml::Value;

use super::live::{self, Target};
use crate::commands::flux::Flux;

/// Longest chain of sources: a HelmChart and its HelmRepository.
const MAX_CHAIN: usize = 2;

/// Returns where an object of a kind names its source; `None` for kinds without one.
pub(super) fn of(kind: &Kind) -> Option<fn(&Value) -> Option<Reference>> {
    let named: fn(&Value) -> Option<Reference> = match kind {
        kind if *kind == kind::KUSTOMIZATION || *kind == kind::FLUX_KLUCTL_DEPLOYMENT => in_any_namespace,
        kind if *kind == kind::HELM_CHART => in_own_namespace,
        kind if *kind == kind::HELM_RELEASE => chart,
        _ => return None,
    };
    Some(named)
}

/// A reference to a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    kind: String,
    name: String,
    /// `None` means the namespace of the object.
    namespace: Option<String>,
}

impl Reference {
    fn read(reference: &Value) -> Option<Self> {
        let text = |name: &str| {
            let text = reference.get(name).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Some(Self {
            kind: text("kind")?,
            name: text("name")?,
            namespace: text("namespace"),
        })
    }
}

fn in_any_namespace(object: &Value) -> Option<Reference> {
    Reference::read(object.pointer(&["spec", "sourceRef"])?)
}

fn in_own_namespace(object: &Value) -> Option<Reference> {
    let reference = in_any_namespace(object)?;
    Some(Reference {
        namespace: None,
        ..reference
    })
}

/// Returns the source of a HelmRelease: the one it names, or the HelmChart that its controller makes.
fn chart(object: &Value) -> Option<Reference> {
    if let Some(reference) = object.pointer(&["spec", "chartRef"]) {
        return Reference::read(reference);
    }
    let source = Reference::read(object.pointer(&["spec", "chart", "spec", "sourceRef"])?)?;
    let namespace = meta::text(object, "namespace")?;
    let name = meta::text(object, "name")?;
    Some(Reference {
        kind: kind::HELM_CHART.kind.to_owned(),
        name: format!("{namespace}-{name}"),
        namespace: source.namespace,
    })
}

/// Reads the sources of an object, in the order in which they are reconciled.
pub(super) async fn chain(flux: &Flux, target: &Target) -> Result<Vec<Target>> {
    let mut chain: Vec<Target> = Vec::new();
    while chain.len() < MAX_CHAIN {
        let last = chain.last().unwrap_or(target);
        let Some(find) = of(last.kind) else { break };
        let named = find(&last.object)
            .with_context(|| format!("{} {} has no source", last.reference.kind, last.reference.name))?;
        let source = read(flux, &last.reference, named).await?;
        chain.push(source);
    }
    chain.reverse();
    Ok(chain)
}

async fn read(flux: &Flux, of: &ObjectRef, named: Reference) -> Result<Target> {
    let Some(kind) = Kind::named(&named.kind)
        .into_iter()
        .find(|kind| kind.is_source() && kind.features.reconciles)
    else {
        bail!("cannot reconcile source of kind {}", named.kind);
    };
    let namespace = named
        .namespace
        .as_deref()
        .or(of.namespace.as_deref())
        .unwrap_or_default();
    let found = live::read(flux, kind, namespace, &named.name).await?;
    found.with_context(|| {
        format!(
            "{} \"{}\" not found in {namespace} namespace",
            named.kind, named.name
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn source(kind: &Kind, spec: &serde_json::Value) -> Option<(String, String, Option<String>)> {
        let object = json!({"metadata": {"name": "app", "namespace": "apps"}, "spec": spec});
        let reference = of(kind)?(&Value::from_json(object))?;
        Some((reference.kind, reference.name, reference.namespace))
    }

    #[test]
    fn sources_are_named_by_the_spec() {
        let reference = json!({"kind": "Bucket", "name": "b", "namespace": "n"});
        let named = |kind: &str, name: &str, namespace: Option<&str>| {
            Some((kind.to_owned(), name.to_owned(), namespace.map(str::to_owned)))
        };
        for (kind, spec, expected) in [
            (
                &kind::KUSTOMIZATION,
                json!({"sourceRef": reference}),
                named("Bucket", "b", Some("n")),
            ),
            (
                &kind::HELM_CHART,
                json!({"sourceRef": reference}),
                named("Bucket", "b", None),
            ),
            (
                &kind::HELM_RELEASE,
                json!({"chartRef": reference}),
                named("Bucket", "b", Some("n")),
            ),
            (
                &kind::HELM_RELEASE,
                json!({"chart": {"spec": {"sourceRef": reference}}}),
                named("HelmChart", "apps-app", Some("n")),
            ),
            (&kind::HELM_RELEASE, json!({}), None),
            (&kind::RECEIVER, json!({"sourceRef": reference}), None),
        ] {
            assert_eq!(source(kind, &spec), expected, "{} {spec}", kind.kind);
        }
    }
}
