//! Variables and their sources.

mod cluster;
mod environment;
mod external;
mod git_files;
mod read;
mod source;

use std::sync::Arc;

use jinja::{Environment, Renderer, Vars};
use objects::jsonpath::JsonPath;
use tree::{Budget, Exceeded, TreePath};
use yaml::{Map, Value};

pub use external::{
    HttpAnswer, HttpRequest, ObjectQuery, ObjectSelection, SecretQuery, VarsError, VarsSources,
};
use source::VarsSource;

use crate::{
    Decrypt, Error, Sources,
    error::{self, MAX_ERRORS},
    fields::Fields,
    merge,
};

/// Overhead of a value in memory, in bytes.
const VALUE_BYTES: u64 = 64;
/// Maximum size of the variables of all items and their reports.
pub(crate) const MOST_BYTES: u64 = 128 << 20;
/// Bytes of variables that are copied in a step.
const COPIED_BYTES: u64 = 64;

/// The variables of templates. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    map: Arc<Map>,
    converted: Vars,
    environment: Environment,
}

impl Context {
    pub(crate) fn new(map: Map, environment: Environment) -> Self {
        Self {
            converted: Vars::sorted(&map),
            map: Arc::new(map),
            environment,
        }
    }

    /// Returns other variables in the same environment.
    pub(crate) fn with(&self, map: Map) -> Self {
        Self::new(map, self.environment.clone())
    }

    /// Returns the same variables for files of another repository, whose history isn't known.
    pub(crate) fn without_history(&self) -> Self {
        let mut other = self.clone();
        other.environment.history = None;
        other
    }

    pub(crate) fn map(&self) -> &Map {
        &self.map
    }

    pub(crate) fn renderer(&self, tree: &Arc<dyn tree::Tree>, search: &[TreePath]) -> Renderer {
        Renderer::new(tree.clone(), search, &self.converted).with_environment(self.environment.clone())
    }
}

#[derive(Clone, Copy)]
pub(crate) struct RenderInputs<'a> {
    pub(crate) budget: &'a Budget,
    pub(crate) decrypt: Option<&'a dyn Decrypt>,
    pub(crate) sources: Option<&'a dyn Sources>,
    pub(crate) vars: Option<&'a dyn VarsSources>,
    pub(crate) aws: &'a Map,
}

pub(crate) struct Loader<'a> {
    pub(crate) inputs: RenderInputs<'a>,
    pub(crate) tree: &'a Arc<dyn tree::Tree>,
    /// Directories that are searched for `file` sources.
    pub(crate) search: &'a [TreePath],
    /// Messages that templates printed.
    pub(crate) messages: &'a mut Vec<String>,
    /// Size of the variables of all items and results so far.
    pub(crate) bytes: &'a mut u64,
}

struct Loaded {
    /// `None` if it is missing and that is allowed.
    value: Option<Value>,
    sensitive: bool,
}

/// Refuses unsupported sources, before any of them is loaded.
pub(crate) fn check(fields: &Fields<'_>) -> Result<(), Error> {
    for (index, source) in fields.seq("vars")?.iter().enumerate() {
        let path = fields.path_of(&format!("vars[{index}]"));
        let raw = Fields::new(fields.file, source, &path, fields.line_of("vars"))?;
        VarsSource::decode(&raw, &path)?;
    }
    Ok(())
}

impl Loader<'_> {
    /// Loads sources one after the other; each sees the variables of those before it. Returns the variables, and the sources
    /// for results.
    pub(crate) fn load(
        mut self,
        context: &Context,
        fields: &Fields<'_>,
    ) -> Result<(Context, Vec<Value>), Error> {
        let sources = fields.seq("vars")?;
        let mut context = context.clone();
        let mut reports = Vec::with_capacity(sources.len());
        for (index, source) in sources.iter().enumerate() {
            let path = fields.path_of(&format!("vars[{index}]"));
            let line = fields.line_of("vars");
            let raw = Fields::new(fields.file, source, &path, line)?;
            let mut tell = raw.map.clone();
            if let Some((loaded, sensitive)) = self.load_source(&context, &raw, &path)? {
                tell.insert("renderedVars", loaded.clone().unwrap_or_default());
                if sensitive {
                    tell.insert("renderedSensitive", true);
                }
                self.count(fields, loaded.as_ref())?;
                if let Some(loaded) = loaded {
                    self.charge_merge(fields, &context, &loaded)?;
                    context = context.with(merged(&context.map, loaded, raw.boolean("noOverride")?));
                }
            }
            *self.bytes += weight_of_map(raw.map);
            reports.push(Value::Map(tell));
        }
        *self.bytes += weight_of_map(context.map());
        self.count(fields, None)?;
        Ok((context, reports))
    }

    /// Counts variables that a report keeps, before the next source is loaded.
    fn count(&mut self, fields: &Fields<'_>, loaded: Option<&Map>) -> Result<(), Error> {
        *self.bytes += loaded.map_or(0, weight_of_map);
        if *self.bytes > MOST_BYTES {
            let source = Exceeded::Limit {
                what: "bytes of the variables of all items together",
                limit: MOST_BYTES,
            };
            let operation = format!("{}: vars", fields.file);
            return Err(Error::Budget { operation, source });
        }
        Ok(())
    }

    /// Charges the copies of all variables that each source makes.
    fn charge_merge(&self, fields: &Fields<'_>, context: &Context, loaded: &Map) -> Result<(), Error> {
        let copied = weight_of_map(context.map()) + weight_of_map(loaded);
        let charged = self.inputs.budget.step(copied / COPIED_BYTES);
        charged.map_err(|source| Error::Budget {
            operation: format!("{}: vars", fields.file),
            source,
        })
    }

    /// Loads the variables of one source, with true if they are secret; `None` if its condition is false.
    fn load_source(
        &mut self,
        context: &Context,
        raw: &Fields<'_>,
        path: &str,
    ) -> Result<Option<(Option<Map>, bool)>, Error> {
        let mut renderer = context.renderer(self.tree, self.search);
        let template = |source| Error::Template {
            what: format!("{}: {path}", raw.file),
            source,
        };
        let budget = self.inputs.budget;
        let rendered = renderer.render_value(&Value::Map(raw.map.clone()), budget);
        let rendered = match rendered {
            Ok(rendered) => rendered,
            Err(errors) => {
                let errors = errors.into_iter().take(MAX_ERRORS).map(template);
                return error::many(errors.collect()).map(|()| None);
            }
        };
        let fields = Fields::new(raw.file, &rendered, path, raw.line())?;
        let when = fields.string("when")?.unwrap_or_default();
        let wanted = renderer
            .condition(&when, budget)
            .map_err(|source| Error::Template {
                what: format!("{}: {path}: {}", raw.file, conditional(&when)),
                source,
            })?;
        self.messages.extend(renderer.take_messages());
        if !wanted {
            return Ok(None);
        }
        let target_path = fields.filled_string("targetPath")?;
        if fields.boolean("multidoc")? && target_path.is_none() {
            let problem = "multidoc vars sources can only be used when targetPath is also specified";
            return Err(fields.invalid("multidoc", format!("{path}: {problem}")));
        }
        let source = VarsSource::decode(&fields, path)?;
        let said = fields.map.get("sensitive").and_then(Value::as_bool);
        let mut reader = read::Reader {
            inputs: self.inputs,
            context,
            fields: &fields,
            path,
            ignore_missing: fields.boolean("ignoreMissing")?,
            multidoc: fields.boolean("multidoc")?,
            secret: said.unwrap_or_else(|| source.is_sensitive()),
            renderer,
            tree: self.tree.clone(),
            messages: &mut *self.messages,
            bytes: 0,
        };
        let loaded = reader.read(&source)?;
        let sensitive = said.unwrap_or(loaded.sensitive);
        let Some(value) = loaded.value else {
            return Ok(Some((None, sensitive)));
        };
        let value = merge::through_json(&value);
        let map = match (target_path, value) {
            (Some(target), value) => wrap(&fields, path, &target, value)?,
            (None, Value::Map(map)) => map,
            (None, _) => {
                let problem = format!("{path}: 'targetPath' is required for this variable source");
                return Err(fields.invalid("file", problem));
            }
        };
        Ok(Some((Some(map), sensitive)))
    }
}

/// Makes a map with a value at a path.
fn wrap(fields: &Fields<'_>, path: &str, target: &str, value: Value) -> Result<Map, Error> {
    let invalid = |problem: String| fields.invalid("targetPath", format!("{path}: {problem}"));
    let parsed = JsonPath::parse(target)
        .map_err(|error| invalid(format!("failed to parse targetPath {target:?}: {error}")))?;
    parsed
        .wrap(value)
        .map_err(|error| invalid(format!("failed to set value to targetPath {target:?}: {error}")))
}

/// Estimates the size of a value in bytes.
pub(crate) fn weight(value: &Value) -> u64 {
    match value {
        Value::String(text) => VALUE_BYTES + text.len() as u64,
        Value::Seq(items) => VALUE_BYTES + items.iter().map(weight).sum::<u64>(),
        Value::Map(map) => weight_of_map(map),
        _ => VALUE_BYTES,
    }
}

/// Estimates the size of a map in bytes.
pub(crate) fn weight_of_map(map: &Map) -> u64 {
    let entries = map.iter().map(|(key, value)| key.len() as u64 + weight(value));
    VALUE_BYTES + entries.sum::<u64>()
}

/// Merges variables; the new ones win unless `noOverride` is set.
fn merged(map: &Map, loaded: Map, no_override: bool) -> Map {
    let (mut base, over) = if no_override {
        (loaded, map.clone())
    } else {
        (map.clone(), loaded)
    };
    merge::deep(&mut base, &over);
    base
}

/// Describes the failure of a `when` expression in the words of kluctl, with at most 200 characters of the expression.
pub(crate) fn conditional(expression: &str) -> String {
    const MAX_CHARS: usize = 200;
    let prefix: String = expression.chars().take(MAX_CHARS).collect();
    let more = if prefix.len() < expression.len() {
        "..."
    } else {
        ""
    };
    format!("unable to render conditional '{prefix}{more}'")
}
