//! Selectors of objects: patterns of their identities, labels and annotations.

mod label;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use go::regexp::{self, Regexp};
use tree::TreePath;

pub use label::{InvalidSelector, LabelSelector};

use crate::{
    Error,
    error::Step,
    id::{Gvk, Id},
    model::Selector,
    resmap::ResMap,
    resource::Resource,
    run::Run,
};

/// The patterns of a build: their memory and their searches count against its budget, with the directory that errors name.
#[derive(Clone, Copy)]
pub(crate) struct Patterns<'a> {
    run: &'a Run<'a>,
    dir: &'a TreePath,
}

impl<'a> Patterns<'a> {
    pub(crate) fn new(run: &'a Run<'a>, dir: &'a TreePath) -> Self {
        Self { run, dir }
    }

    /// Compiles a user's pattern.
    pub(crate) fn compile(&self, pattern: &str) -> Result<Arc<Regexp>, Error> {
        self.run.step(1_000 + 64 * pattern.len() as u64, self.dir)?;
        let compiled =
            Regexp::compile(pattern).map_err(|error| Error::new(Step::Transformer, error.to_string()))?;
        self.run.step(compiled.size() as u64 / 16, self.dir)?;
        self.run.compiled(compiled.size(), self.dir)?;
        Ok(Arc::new(compiled))
    }

    pub(crate) fn is_match(&self, pattern: &Regexp, text: &str) -> Result<bool, Error> {
        let search = pattern.search(text, |visits| self.run.step(regexp::steps(visits), self.dir));
        search.is_match()
    }
}

/// A pattern that must fit a whole string.
#[derive(Debug, Clone)]
enum Pattern {
    /// An empty pattern.
    Any,
    /// A pattern without special characters.
    Exact(String),
    Regex(Arc<Regexp>),
}

impl Pattern {
    fn new(pattern: &str, patterns: Patterns<'_>) -> Result<Self, Error> {
        if pattern.is_empty() {
            return Ok(Self::Any);
        }
        if pattern
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '/' || c == '_')
        {
            return Ok(Self::Exact(pattern.to_owned()));
        }
        patterns.compile(&format!("^(?:{pattern})$")).map(Self::Regex)
    }

    fn fits(&self, text: &str, patterns: Patterns<'_>) -> Result<bool, Error> {
        match self {
            Self::Any => Ok(true),
            Self::Exact(exact) => Ok(exact == text),
            Self::Regex(regex) => patterns.is_match(regex, text),
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
    pub(crate) fn new(selector: &Selector, patterns: Patterns<'_>) -> Result<Self, Error> {
        Ok(Self {
            group: Pattern::new(&selector.group, patterns)?,
            version: Pattern::new(&selector.version, patterns)?,
            kind: Pattern::new(&selector.kind, patterns)?,
            name: Pattern::new(&selector.name, patterns)?,
            namespace: Pattern::new(&selector.namespace, patterns)?,
        })
    }

    fn fits_gvk(&self, gvk: &Gvk, patterns: Patterns<'_>) -> Result<bool, Error> {
        Ok(self.group.fits(&gvk.group, patterns)?
            && self.version.fits(&gvk.version, patterns)?
            && self.kind.fits(&gvk.kind, patterns)?)
    }

    /// Returns true if an identity is selected.
    pub(crate) fn fits_id(&self, id: &Id, patterns: Patterns<'_>) -> Result<bool, Error> {
        Ok(self.fits_gvk(&id.gvk, patterns)?
            && self.name.fits(&id.name, patterns)?
            && self.namespace.fits(&id.namespace, patterns)?)
    }

    /// Returns true if the identity of an object is selected. Name and namespace may be the current or the original ones,
    /// not those in between.
    fn fits(&self, resource: &Resource, patterns: Patterns<'_>) -> Result<bool, Error> {
        let first = resource.previous_ids().next();
        let fits_either = |fits: &dyn Fn(&Id) -> Result<bool, Error>| -> Result<bool, Error> {
            if fits(resource.id())? {
                return Ok(true);
            }
            first.as_ref().map_or(Ok(false), fits)
        };
        Ok(self.fits_gvk(resource.gvk(), patterns)?
            && fits_either(&|id| self.namespace.fits(id.effective_namespace(), patterns))?
            && fits_either(&|id| self.name.fits(&id.name, patterns))?)
    }
}

/// Returns the indices of the selected objects, in their order. Fails for an invalid pattern. A label or annotation selector
/// is only read for an object that the patterns select.
pub(crate) fn select(
    resources: &ResMap,
    selector: &Selector,
    run: &Run<'_>,
    dir: &TreePath,
) -> Result<Vec<usize>, Error> {
    let patterns = Patterns::new(run, dir);
    let regex = SelectorRegex::new(selector, patterns)?;
    let metadata = MetadataSelector::new(selector);
    let mut selected = Vec::new();
    run.step(resources.len() as u64, dir)?;
    for (index, resource) in resources.iter().enumerate() {
        if regex.fits(resource, patterns)? && metadata.fits(resource)? {
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
