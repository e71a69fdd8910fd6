//! Selectors of objects: patterns of their identities, labels and annotations.

mod label;
#[cfg(test)]
mod tests;

use regex::{Regex, RegexBuilder};

pub(crate) use label::{InvalidSelector, LabelSelector};

use crate::{
    Error,
    error::Step,
    id::{Gvk, Id},
    model::Selector,
    resmap::ResMap,
    resource::Resource,
};

/// The maximum size in bytes of one compiled pattern.
const PATTERN_SIZE: usize = 1 << 20;

/// Compiles a pattern that a user wrote.
///
/// # Errors
/// Fails if it is no pattern, or would take too much memory.
pub(crate) fn regex(pattern: &str) -> Result<Regex, Error> {
    let built = RegexBuilder::new(pattern).size_limit(PATTERN_SIZE).build();
    built.map_err(|error| {
        let (reason, at) = reason(&error.to_string(), pattern);
        let problem = format!("error parsing regexp: {reason}: `{at}`");
        Error::new(Step::Transformer, problem)
    })
}

/// The steps that a pattern counts for which is kept while a transformer runs: they bound the memory of all of them.
pub(crate) fn cost(pattern: &str) -> u64 {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    if pattern.chars().all(is_plain) {
        10_000
    } else {
        250_000
    }
}

/// Returns the problem of a pattern and the part that has it, in the original's words where they are known.
fn reason<'p>(error: &str, pattern: &'p str) -> (String, &'p str) {
    let last = error.lines().next_back().unwrap_or_default();
    let last = last.strip_prefix("error: ").unwrap_or(last);
    let (reason, at) = match last {
        "unclosed character class" => {
            let at = pattern.rfind('[').and_then(|at| pattern.get(at..));
            ("missing closing ]", at)
        }
        "unclosed group" => ("missing closing )", None),
        "unopened group" => ("unexpected )", None),
        "repetition operator missing expression" => {
            ("missing argument to repetition operator", lone_operator(pattern))
        }
        other => (other, None),
    };
    (reason.to_owned(), at.unwrap_or(pattern))
}

/// The first operator of a pattern that has nothing to repeat.
fn lone_operator(pattern: &str) -> Option<&str> {
    let begins = |(at, _): &(usize, &str)| {
        let before = pattern.get(..*at).unwrap_or_default();
        before.is_empty() || before.ends_with(['(', '|', '^']) || before.ends_with("(?:")
    };
    let operators = pattern.match_indices(['*', '+', '?']).filter(begins);
    let is_group = |at: usize| pattern.get(..at).is_some_and(|before| before.ends_with('('));
    operators
        .filter(|(at, operator)| !(*operator == "?" && is_group(*at)))
        .map(|(_, operator)| operator)
        .next()
}

/// A pattern that a whole text must fit.
#[derive(Debug, Clone)]
enum Pattern {
    /// An empty pattern fits everything.
    Any,
    /// A pattern without special characters fits itself.
    Exact(String),
    Regex(Regex),
}

impl Pattern {
    fn new(pattern: &str) -> Result<Self, Error> {
        if pattern.is_empty() {
            return Ok(Self::Any);
        }
        if pattern
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '/' || c == '_')
        {
            return Ok(Self::Exact(pattern.to_owned()));
        }
        regex(&format!("^(?:{pattern})$")).map(Self::Regex)
    }

    fn fits(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(exact) => exact == text,
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

/// A selector whose group, version, kind, name and namespace are patterns, ready to be used.
#[derive(Debug, Clone)]
pub(crate) struct SelectorRegex {
    group: Pattern,
    version: Pattern,
    kind: Pattern,
    name: Pattern,
    namespace: Pattern,
}

impl SelectorRegex {
    /// Compiles the patterns of a selector.
    ///
    /// # Errors
    /// Fails if one of them is no pattern.
    pub(crate) fn new(selector: &Selector) -> Result<Self, Error> {
        Ok(Self {
            group: Pattern::new(&selector.group)?,
            version: Pattern::new(&selector.version)?,
            kind: Pattern::new(&selector.kind)?,
            name: Pattern::new(&selector.name)?,
            namespace: Pattern::new(&selector.namespace)?,
        })
    }

    pub(crate) fn fits_gvk(&self, gvk: &Gvk) -> bool {
        self.group.fits(&gvk.group) && self.version.fits(&gvk.version) && self.kind.fits(&gvk.kind)
    }

    pub(crate) fn fits_name(&self, name: &str) -> bool {
        self.name.fits(name)
    }

    pub(crate) fn fits_namespace(&self, namespace: &str) -> bool {
        self.namespace.fits(namespace)
    }

    /// Returns true if an object is selected by its identity. Name and namespace may be the current ones or those that it
    /// was read with, not those in between.
    fn fits(&self, resource: &Resource) -> bool {
        let fits_either = |fits: &dyn Fn(&Id) -> bool| {
            fits(resource.id()) || resource.previous_ids().next().is_some_and(|first| fits(&first))
        };
        self.fits_gvk(resource.gvk())
            && fits_either(&|id| self.fits_namespace(id.effective_namespace()))
            && fits_either(&|id| self.fits_name(&id.name))
    }
}

/// The places of the objects that a selector selects, in their order.
///
/// # Errors
/// Fails if a pattern is none. A label or annotation selector is only looked at for an object that the patterns select.
pub(crate) fn select(resources: &ResMap, selector: &Selector) -> Result<Vec<usize>, Error> {
    let regex = SelectorRegex::new(selector)?;
    let metadata = MetadataSelector::new(selector);
    let mut selected = Vec::new();
    for (index, resource) in resources.iter().enumerate() {
        if regex.fits(resource) && metadata.fits(resource)? {
            selected.push(index);
        }
    }
    Ok(selected)
}

/// The label and annotation selectors of a selector.
#[derive(Debug)]
pub(crate) struct MetadataSelector {
    labels: Result<LabelSelector, InvalidSelector>,
    annotations: Result<LabelSelector, InvalidSelector>,
}

impl MetadataSelector {
    /// Reads both; what is wrong with one is said when it is used.
    pub(crate) fn new(selector: &Selector) -> Self {
        Self {
            labels: LabelSelector::parse(&selector.label_selector),
            annotations: LabelSelector::parse(&selector.annotation_selector),
        }
    }

    /// Returns true if the labels and annotations of an object are selected.
    ///
    /// # Errors
    /// Fails if a selector can't be read.
    pub(crate) fn fits(&self, resource: &Resource) -> Result<bool, Error> {
        let fits = |selector: &Result<LabelSelector, InvalidSelector>, field| match selector {
            Ok(selector) => Ok(selector.is_empty() || selector.fits(&resource.metadata_map(field))),
            Err(problem) => Err(Error::new(Step::Transformer, problem)),
        };
        Ok(fits(&self.labels, "labels")? && fits(&self.annotations, "annotations")?)
    }
}
