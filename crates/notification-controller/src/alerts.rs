//! Matching of events with alerts. Pure, apart from [`labels`], which reads an object's labels.

pub mod labels;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use api::{
    Event, Severity,
    notification::{Alert, AlertSpec, CrossNamespaceObjectReference},
};
use kube::ResourceExt;
use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

/// The memory limit of one compiled expression, in bytes: a tenant writes it.
const REGEX_BYTES: usize = 1 << 20;
/// The memory limit of all expressions of a list together, in bytes.
const LIST_BYTES: usize = 4 << 20;
/// Expressions of a list, for the time that compiling them takes.
const EXPRESSIONS: usize = 100;
const REGEX_NESTING: u32 = 50;
const ALL: &str = "*";

/// An alert whose expressions are compiled.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The alert that was compiled.
    pub alert: Alert,
    inclusion: Option<RegexSet>,
    exclusion: RegexSet,
}

/// The answer to the question if an event is for an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// The event is not for the alert.
    No,
    /// The event is for the alert.
    Yes,
    /// The event is for the alert if the object has all labels of one of these maps.
    IfLabels(Vec<&'a BTreeMap<String, String>>),
}

impl Compiled {
    /// Compiles an alert; what [`broken_expression`] names matches nothing.
    #[must_use]
    pub fn new(alert: Alert) -> Self {
        let compiled = |list: &[String]| {
            let good = list.iter().take(EXPRESSIONS).filter(|text| compile(text).is_ok());
            together(good).unwrap_or_else(|_| RegexSet::empty())
        };
        let (inclusion, exclusion) = (&alert.spec.inclusion_list, &alert.spec.exclusion_list);
        Self {
            // A list of nothing but broken expressions lets nothing pass, rather than everything.
            inclusion: (!inclusion.is_empty()).then(|| compiled(inclusion)),
            exclusion: compiled(exclusion),
            alert,
        }
    }

    /// Decides if an event is for the alert. With `own_namespace_only`, events of other namespaces never are: that is
    /// decided first, from the spec and the event alone.
    #[must_use]
    pub fn verdict(&self, event: &Event, own_namespace_only: bool) -> Verdict<'_> {
        let spec = &self.alert.spec;
        let own = self.alert.namespace().unwrap_or_default();
        if own_namespace_only && event.involved_object.namespace.as_deref() != Some(&own) {
            return Verdict::No;
        }
        if spec.suspend || !severity(spec, &event.severity) || !self.message(&event.message) {
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

    fn message(&self, message: &str) -> bool {
        let included = self.inclusion.as_ref().is_none_or(|list| list.is_match(message));
        included && !self.exclusion.is_match(message)
    }
}

/// An alert for `info` hears everything, one for `error` only that.
fn severity(spec: &AlertSpec, severity: &Severity) -> bool {
    match spec.event_severity.as_deref() {
        None | Some("" | "info") => true,
        Some(wanted) => wanted == severity.as_str(),
    }
}

fn object(source: &CrossNamespaceObjectReference, own: &str, event: &Event) -> bool {
    let object = &event.involved_object;
    let namespace = source
        .namespace
        .as_deref()
        .filter(|namespace| !namespace.is_empty())
        .unwrap_or(own);
    object.namespace.as_deref().unwrap_or_default() == namespace
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

/// Compiles an expression within bounds.
///
/// # Errors
/// Fails when the expression is invalid or too large; the error is one line.
pub fn compile(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(text)
        .size_limit(REGEX_BYTES)
        .dfa_size_limit(REGEX_BYTES)
        .nest_limit(REGEX_NESTING)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "the expression is too large".to_owned(),
            error => error
                .to_string()
                .lines()
                .last()
                .unwrap_or("it does not compile")
                .trim()
                .to_owned(),
        })
}

/// Compiles expressions that each compile into one that matches if any of them does.
fn together<'a>(texts: impl Iterator<Item = &'a String>) -> Result<RegexSet, regex::Error> {
    RegexSetBuilder::new(texts)
        .size_limit(LIST_BYTES)
        .dfa_size_limit(REGEX_BYTES)
        .nest_limit(REGEX_NESTING)
        .build()
}

/// Names the first expression that does not compile, or a list that is too large, as path and reason.
#[must_use]
pub fn broken_expression(spec: &AlertSpec) -> Option<(String, String)> {
    let lists = [
        ("inclusionList", &spec.inclusion_list),
        ("exclusionList", &spec.exclusion_list),
    ];
    lists.into_iter().find_map(|(list, texts)| {
        if texts.len() > EXPRESSIONS {
            let why = format!(
                "it has {} expressions, at most {EXPRESSIONS} are allowed",
                texts.len()
            );
            return Some((format!("spec.{list}"), why));
        }
        let mut broken = texts
            .iter()
            .enumerate()
            .filter_map(|(at, text)| Some((at, compile(text).err()?)));
        if let Some((at, why)) = broken.next() {
            return Some((format!("spec.{list}[{at}]"), why));
        }
        let why = "the expressions together are too large".to_owned();
        together(texts.iter())
            .err()
            .map(|_| (format!("spec.{list}"), why))
    })
}
