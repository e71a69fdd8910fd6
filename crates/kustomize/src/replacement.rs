//! Replacements: values of one object, or of the kustomization, copied into fields of others.

mod live;
mod meter;
mod path;
mod structured;
mod target;
#[cfg(test)]
mod tests;
mod value;

use std::sync::Arc;

use serde::Deserialize;
use tree::TreePath;
use yaml::Node;

use crate::{
    Error,
    error::{Context as _, Step},
    id::{DEFAULT_NAMESPACE, Gvk, Id},
    lookup,
    measure::{NODE_SIZE, measure},
    model::{
        FieldOptions, Replacement, ReplacementEntry, ReplacementSource, ReplacementTarget, Selector, configs,
        decode,
    },
    resmap::ResMap,
    resource::{Resource, Written, is_empty},
    run::Run,
    selector::{MetadataSelector, Patterns, SelectorRegex},
    transform::{self, PluginContext, Transformer},
};
use live::Live;
use meter::Meter;
use path::{DEFAULT_PATH, Path, or_default};
use target::{ContentKind, Walk};
use value::SourceValue;

pub(crate) struct Replacements {
    replacements: Vec<Replacement>,
}

impl Replacements {
    /// Reads the replacements of a kustomization and of the files that it names.
    pub(crate) fn new(entries: &[ReplacementEntry], ctx: &PluginContext<'_>) -> Result<Self, Error> {
        let mut replacements = Vec::new();
        for entry in entries {
            let inline = &entry.replacement;
            if entry.path.is_empty() {
                replacements.push(inline.clone());
            } else if inline.source.is_some() || !inline.targets.is_empty() {
                let problem = "cannot specify both path and inline replacement";
                return Err(Error::new(Step::Replacement, problem));
            } else {
                let (text, file) = ctx.loader.load(&entry.path)?;
                let profile = ctx.run.options.profile;
                replacements.extend(decode::replacements(&text, &file, ctx.run.budget, profile)?);
            }
        }
        Ok(Self { replacements })
    }

    /// Reads a ReplacementTransformer.
    pub(crate) fn from_config(config: &yaml::Value, ctx: &PluginContext<'_>) -> Result<Self, Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Settings {
            replacements: Vec<ReplacementEntry>,
        }
        let settings: Settings = transform::decode::config(config, &configs::REPLACEMENTS)?;
        Self::new(&settings.replacements, ctx)
    }
}

impl Transformer for Replacements {
    fn transform(&self, resources: &mut ResMap, ctx: &PluginContext<'_>) -> Result<(), Error> {
        replace_all(&self.replacements, resources, ctx.run, ctx.loader.root())
    }
}

fn replace_all(
    replacements: &[Replacement],
    resources: &mut ResMap,
    run: &Run<'_>,
    dir: &TreePath,
) -> Result<(), Error> {
    let mut objects = Objects {
        ids: vec![None; resources.len()],
        list: resources.list_mut(),
        meter: Meter { run, dir },
    };
    replacements
        .iter()
        .try_for_each(|replacement| objects.replace(replacement))?;
    resources.drop_empties();
    Ok(())
}

/// The objects of a build, with their present and past identities.
struct Objects<'a> {
    list: &'a mut Vec<Resource>,
    /// Made on demand; a replacement may change them.
    ids: Vec<Option<Vec<Arc<Id>>>>,
    meter: Meter<'a>,
}

impl Objects<'_> {
    fn replace(&mut self, replacement: &Replacement) -> Result<(), Error> {
        let fail = |problem| Err(Error::new(Step::Replacement, problem));
        if replacement.targets.is_empty() {
            return fail("replacements must specify a source and at least one target");
        }
        let (mut value, origin) = match (&replacement.source_value, &replacement.source) {
            (Some(_), Some(_)) => return fail("value and resource selectors are mutually exclusive"),
            (Some(text), None) => (SourceValue::new(Node::plain(text.as_str())), None),
            (None, Some(source)) => {
                let index = self.find(source)?;
                (self.read(index, source)?, Some((index, source)))
            }
            (None, None) => return fail("replacements must specify a source and at least one target"),
        };
        for target in &replacement.targets {
            let target = Target::new(target, &self.meter)?;
            for index in 0..self.list.len() {
                if !self.is_selected(index, &target)? {
                    continue;
                }
                let own = origin.filter(|(origin, _)| *origin == index);
                self.write(index, &mut value, own.map(|(_, source)| source), &target)?;
            }
        }
        Ok(())
    }

    fn ids(&mut self, index: usize) -> &[Arc<Id>] {
        match (self.ids.get_mut(index), self.list.get(index)) {
            (Some(ids), Some(resource)) => ids.get_or_insert_with(|| resource.all_ids()),
            _ => &[],
        }
    }

    /// Finds the one object that a source selects.
    fn find(&mut self, source: &ReplacementSource) -> Result<usize, Error> {
        self.meter.work(self.list.len())?;
        let gvk = selected_gvk(&source.selector);
        let mut found = None;
        for index in 0..self.list.len() {
            let is_selected = |id: &Arc<Id>| is_selected_by(id, &gvk, &source.selector);
            if !self.ids(index).iter().any(is_selected) {
                continue;
            }
            if found.is_some() {
                let problem = format!("multiple matches for selector {}", describe(source));
                return Err(Error::new(Step::Replacement, problem));
            }
            found = Some(index);
        }
        found.ok_or_else(|| {
            let problem = format!("nothing selected by {}", describe(source));
            Error::new(Step::Replacement, problem)
        })
    }

    /// Reads the value of a source in its object.
    fn read(&self, index: usize, source: &ReplacementSource) -> Result<SourceValue, Error> {
        let path = or_default(&source.field_path);
        let resource = self.list.get(index);
        let field = match resource {
            Some(resource) => lookup::follow(resource.node(), &lookup::split(path)),
            None => Ok(None),
        };
        let field = field.context(|| "error looking up replacement source")?;
        let Some(field) = field.filter(|field| !is_empty(field)) else {
            let id = selected_id(&source.selector);
            let problem = format!("fieldPath `{path}` is missing for replacement source {id}");
            return Err(Error::new(Step::Replacement, problem));
        };
        let is_secret = resource.is_some_and(|resource| resource.gvk().kind == "Secret");
        // It is read and measured even if nothing is a target.
        self.meter.work(measure(field).1 / NODE_SIZE)?;
        value::refine(field, source.options.as_ref(), is_secret).map(SourceValue::new)
    }

    fn is_selected(&mut self, index: usize, target: &Target<'_>) -> Result<bool, Error> {
        self.meter.work(1 + target.rejects.len())?;
        let Some(resource) = self.list.get(index) else {
            return Ok(false);
        };
        if !target.metadata.fits(resource)? {
            return Ok(false);
        }
        for rejected in &target.rejects {
            if let Some(metadata) = &rejected.metadata
                && metadata.fits(resource)?
            {
                return Ok(false);
            }
        }
        let patterns = Patterns::new(self.meter.run, self.meter.dir);
        let ids = self.ids(index);
        let fits_any = |selector: &SelectorRegex| -> Result<bool, Error> {
            for id in ids {
                if selector.fits_id(id, patterns)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        for reject in &target.rejects {
            if let Some(selector) = &reject.patterns
                && fits_any(selector)?
            {
                return Ok(false);
            }
        }
        fits_any(&target.patterns)
    }

    /// Writes the value into the fields of an object that a target names; `own` is the source if it is in the same object.
    fn write(
        &mut self,
        index: usize,
        value: &mut SourceValue,
        own: Option<&ReplacementSource>,
        target: &Target<'_>,
    ) -> Result<(), Error> {
        let Some(resource) = self.list.get_mut(index) else {
            return Ok(());
        };
        if let Some(ids) = self.ids.get_mut(index) {
            *ids = None;
        }
        let mut live = Live::new(own);
        for path in &target.paths {
            let object = resource.node_mut();
            write_at(path, object, value, &mut live, target, &self.meter)?;
            live.read(object, value);
        }
        Ok(())
    }
}

/// Writes the value into the fields of a path.
fn write_at(
    path: &Path<'_>,
    object: &mut Node,
    value: &mut SourceValue,
    live: &mut Live<'_>,
    target: &Target<'_>,
    meter: &Meter<'_>,
) -> Result<(), Error> {
    let create = target.creates().then(|| ContentKind::of(value.node()));
    let mut written = Written::default();
    if structured::set(object, value, path, create, meter, &mut written)? {
        written.spread(object);
        return Ok(());
    }
    let walk = Walk { create, meter };
    let line = live.line(object);
    let mut failed = false;
    let set = &mut |found: &mut target::Found<'_>| {
        let depth = found.depth;
        let put = written.write(found.node, |node| {
            value.put(&mut target::Found { node, depth }, target.options, meter)
        });
        failed = put.is_err();
        live.follow(found, &line, value);
        put
    };
    let found = walk.visit(object, &path.parts, 0, set);
    written.spread(object);
    let missing = || not_found(path.text, create.is_some());
    match found {
        Ok(0) => Err(Error::new(Step::Replacement, missing())),
        Ok(_) => Ok(()),
        // The field was found and could not be set.
        Err(error) if failed => Err(error),
        Err(error) => Err(error.context(missing())),
    }
}

/// A compiled target.
struct Target<'a> {
    patterns: SelectorRegex,
    metadata: MetadataSelector,
    rejects: Vec<Reject>,
    paths: Vec<Path<'a>>,
    options: Option<&'a FieldOptions>,
}

/// The objects that a target excludes. Its two halves reject objects independently of each other.
struct Reject {
    patterns: Option<SelectorRegex>,
    metadata: Option<MetadataSelector>,
}

impl<'a> Target<'a> {
    fn new(target: &'a ReplacementTarget, meter: &Meter<'_>) -> Result<Self, Error> {
        let Some(select) = &target.select else {
            let problem = "target must specify resources to select";
            return Err(Error::new(Step::Replacement, problem));
        };
        let build = Patterns::new(meter.run, meter.dir);
        let patterns = |selector: &Selector| {
            SelectorRegex::new(selector, build).context(|| "error creating target selector")
        };
        let reject = |selector: &Selector| {
            let has_id = [
                &selector.group,
                &selector.version,
                &selector.kind,
                &selector.name,
                &selector.namespace,
            ]
            .iter()
            .any(|part| !part.is_empty());
            let has_metadata =
                !selector.label_selector.is_empty() || !selector.annotation_selector.is_empty();
            Ok(Reject {
                patterns: Some(patterns(selector)?).filter(|_| has_id),
                metadata: has_metadata.then(|| MetadataSelector::new(selector)),
            })
        };
        let paths = match target.field_paths.as_slice() {
            [] => vec![Path::new(DEFAULT_PATH, build)?],
            paths => paths
                .iter()
                .map(|path| Path::new(path, build))
                .collect::<Result<_, Error>>()?,
        };
        Ok(Self {
            patterns: patterns(select)?,
            metadata: MetadataSelector::new(select),
            rejects: target.reject.iter().map(reject).collect::<Result<_, Error>>()?,
            paths,
            options: target.options.as_ref(),
        })
    }

    fn creates(&self) -> bool {
        self.options.is_some_and(|options| options.create)
    }
}

fn selected_gvk(selector: &Selector) -> Gvk {
    Gvk {
        group: selector.group.clone().into(),
        version: selector.version.clone().into(),
        kind: selector.kind.clone().into(),
    }
}

fn selected_id(selector: &Selector) -> Id {
    Id::new(
        selected_gvk(selector),
        selector.name.as_str(),
        selector.namespace.as_str(),
    )
}

/// Returns true if an object is or was selected by a source. The namespace counts for cluster-scoped kinds, too.
fn is_selected_by(id: &Id, gvk: &Gvk, selector: &Selector) -> bool {
    let effective = |namespace: &str| match namespace {
        "" => DEFAULT_NAMESPACE.to_owned(),
        namespace => namespace.to_owned(),
    };
    (selector.name.is_empty() || selector.name == id.name)
        && (selector.namespace.is_empty() || effective(&selector.namespace) == effective(&id.namespace))
        && id.gvk.is_selected_by(gvk)
}

/// Names a source in errors.
fn describe(source: &ReplacementSource) -> String {
    let mut text = selected_id(&source.selector).to_string();
    if !source.field_path.is_empty() {
        text = format!("{text}:{}", source.field_path);
    }
    match &source.options {
        Some(options) if !options.delimiter.is_empty() || options.create => {
            let FieldOptions {
                delimiter,
                index,
                create,
                ..
            } = options;
            format!("{text}:{delimiter}({index}), create={create}")
        }
        _ => text,
    }
}

fn not_found(path: &str, create: bool) -> String {
    let what = if create { "find or create" } else { "find" };
    format!("unable to {what} field {path:?} in replacement target")
}
