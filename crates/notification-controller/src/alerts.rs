//! Matching of events with alerts. Pure, apart from [`labels`], which reads an object's labels.

pub mod expressions;
pub mod labels;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use api::{
    Event, Severity,
    notification::{Alert, AlertSpec, CrossNamespaceObjectReference},
};
use kube::ResourceExt;

pub(crate) const ALL: &str = "*";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<'a> {
    No,
    Yes,
    /// The event is for the alert if the object has all labels of one of these maps.
    IfLabels(Vec<&'a BTreeMap<String, String>>),
}

/// Decides if an event is for an alert, apart from its expressions, which [`expressions::Matcher`] matches. With
/// `own_namespace_only`, events of other namespaces never are: that is decided first, from the spec and the event alone.
#[must_use]
pub fn verdict<'a>(alert: &'a Alert, event: &Event, own_namespace_only: bool) -> Verdict<'a> {
    let spec = &alert.spec;
    let own = alert.namespace().unwrap_or_default();
    if own_namespace_only && event.involved_object.namespace.as_deref() != Some(&own) {
        return Verdict::No;
    }
    if spec.suspend || !severity(spec, &event.severity) {
        return Verdict::No;
    }
    let mut labels = Vec::new();
    for source in spec
        .event_sources
        .iter()
        .filter(|source| object(source, &own, event))
    {
        match &source.match_labels {
            None => return Verdict::Yes,
            Some(wanted) => labels.push(wanted),
        }
    }
    if labels.is_empty() {
        Verdict::No
    } else {
        Verdict::IfLabels(labels)
    }
}

/// Returns true if an alert sends events of the object, apart from their severity and the object's labels.
#[must_use]
pub fn names(alert: &Alert, event: &Event, own_namespace_only: bool) -> bool {
    let own = alert.namespace().unwrap_or_default();
    let is_own = event.involved_object.namespace.as_deref() == Some(&own);
    let mut sources = alert.spec.event_sources.iter();
    !alert.spec.suspend
        && (is_own || !own_namespace_only)
        && sources.any(|source| object(source, &own, event))
}

/// Returns kind, namespace and name of the sources of an alert. It never sends events of other objects.
pub(crate) fn subjects(alert: &Alert) -> BTreeSet<(String, String, String)> {
    let own = alert.namespace().unwrap_or_default();
    let sources = alert.spec.event_sources.iter();
    sources
        .map(|source| {
            let namespace = namespace_of(source, &own).to_owned();
            (source.kind.clone(), namespace, source.name.clone())
        })
        .collect()
}

fn namespace_of<'a>(source: &'a CrossNamespaceObjectReference, own: &'a str) -> &'a str {
    let named = source.namespace.as_deref();
    named.filter(|namespace| !namespace.is_empty()).unwrap_or(own)
}

/// An alert for `info` takes every severity, one for `error` only errors.
fn severity(spec: &AlertSpec, severity: &Severity) -> bool {
    match spec.event_severity.as_deref() {
        None | Some("" | "info") => true,
        Some(wanted) => wanted == severity.as_str(),
    }
}

fn object(source: &CrossNamespaceObjectReference, own: &str, event: &Event) -> bool {
    let object = &event.involved_object;
    object.namespace.as_deref().unwrap_or_default() == namespace_of(source, own)
        && object.kind.as_deref() == Some(&source.kind)
        && (source.name == ALL || object.name.as_deref() == Some(&source.name))
}

/// Returns the path of the first event source in another namespace than the alert's own, by the spec alone.
#[must_use]
pub fn foreign_source(spec: &AlertSpec, own: &str) -> Option<String> {
    let foreign = |source: &CrossNamespaceObjectReference| {
        let namespace = source.namespace.as_deref().unwrap_or_default();
        !namespace.is_empty() && namespace != own
    };
    let at = spec.event_sources.iter().position(foreign)?;
    Some(format!("spec.eventSources[{at}].namespace"))
}
