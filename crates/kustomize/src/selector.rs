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

/// Maximum size in bytes of one compiled pattern.
const PATTERN_SIZE: usize = 1 << 20;

/// Compiles a user's pattern.
pub(crate) fn regex(pattern: &str) -> Result<Regex, Error> {
    let built = RegexBuilder::new(pattern).size_limit(PATTERN_SIZE).build();
    built.map_err(|error| {
        let (reason, at) = reason(&error.to_string(), pattern);
        let problem = format!("error parsing regexp: {reason}: `{at}`");
        Error::new(Step::Transformer, problem)
    })
}

/// Returns the steps for a pattern that lives as long as a transformer: they bound the memory of all of them.
pub(crate) fn cost(pattern: &str) -> u64 {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    if pattern.chars().all(is_plain) {
        10_000
    } else {
        250_000
    }
}

/// Returns the problem of a pattern and the invalid part, in the original's words if they are known.
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

/// Returns the first operator of a pattern that has nothing to repeat.
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

/// A pattern that must fit a whole string.
#[derive(Debug, Clone)]
enum Pattern {
    /// An empty pattern.
    Any,
    /// A pattern without special characters.
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

/// A selector with compiled patterns of group, version, kind, name and namespace.
#[derive(Debug, Clone)]
pub(crate) struct SelectorRegex {
    group: Pattern,
    version: Pattern,
    kind: Pattern,
    name: Pattern,
    namespace: Pattern,
}

impl SelectorRegex {
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

    /// Returns true if the identity of an object is selected. Name and namespace may be the current or the original ones,
    /// not those in between.
    fn fits(&self, resource: &Resource) -> bool {
        let fits_either = |fits: &dyn Fn(&Id) -> bool| {
            fits(resource.id()) || resource.previous_ids().next().is_some_and(|first| fits(&first))
        };
        self.fits_gvk(resource.gvk())
            && fits_either(&|id| self.fits_namespace(id.effective_namespace()))
            && fits_either(&|id| self.fits_name(&id.name))
    }
}

/// Returns the indices of the selected objects, in their order. Fails for an invalid pattern. A label or annotation selector
/// is only read for an object that the patterns select.
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
    /// Reads both; an invalid one is reported at its use.
    pub(crate) fn new(selector: &Selector) -> Self {
        Self {
            labels: LabelSelector::parse(&selector.label_selector),
            annotations: LabelSelector::parse(&selector.annotation_selector),
        }
    }

    pub(crate) fn fits(&self, resource: &Resource) -> Result<bool, Error> {
        let fits = |selector: &Result<LabelSelector, InvalidSelector>, field| match selector {
            Ok(selector) => Ok(selector.is_empty() || selector.fits(&resource.metadata_map(field))),
            Err(problem) => Err(Error::new(Step::Transformer, problem)),
        };
        Ok(fits(&self.labels, "labels")? && fits(&self.annotations, "annotations")?)
    }
}
