//! Renders files, strings and values.

use std::{rc::Rc, sync::Arc};

use bytes::Bytes;
use tree::{Budget, Tree, TreePath};
use yaml::{Map, Value};

use crate::{
    Vars, checks,
    environment::Environment,
    error::{Error, STRING_NAME},
    eval::{
        context::{Context, Engine, Language},
        load,
    },
    exc::{Exc, R},
    filters, functions,
    loader::{Loader, unify_newlines},
    methods,
    rt::{BuiltinLookup, Rt},
};

pub(crate) const LANGUAGE: Language = Language {
    filter: filters::find,
    test: checks::find,
    method: methods::call,
    constructor: functions::construct,
};

/// The maximum nesting of a value whose strings are rendered.
const MAX_VALUE_DEPTH: u32 = 200;

/// Renders templates with one set of variables and search directories.
///
/// ```text
/// let mut renderer = Renderer::new(tree, &[TreePath::root()], &Vars::new(&variables));
/// let rendered = renderer.render_str("replicas: {{ args.replicas }}", &Budget::default())?;
/// ```
///
/// Included and imported templates are parsed once per renderer. Later templates of the same renderer see changes that a
/// template makes in a variable; other renderers don't.
pub struct Renderer {
    rt: Rt,
    engine: Rc<Engine>,
}

impl Drop for Renderer {
    fn drop(&mut self) {
        // Modules hold contexts, which hold the engine.
        self.engine.clear();
    }
}

impl Renderer {
    #[must_use]
    pub fn new(tree: Arc<dyn Tree>, search: &[TreePath], vars: &Vars) -> Self {
        Self {
            rt: Rt::new(
                Loader::new(tree, search),
                vars.clone(),
                BuiltinLookup {
                    extension: functions::extension,
                    builtin: functions::builtin,
                },
            ),
            engine: Rc::new(Engine::new(LANGUAGE)),
        }
    }

    /// Sets the time, randomness and history that templates may use; all are unset by default.
    #[must_use]
    pub fn with_environment(mut self, environment: Environment) -> Self {
        self.rt.environment = environment;
        self
    }

    /// Renders a file. Without any `{` it is returned unchanged. Fails if it contains a `{` but is not UTF-8.
    pub fn render_file(&mut self, path: &TreePath, budget: &Budget) -> Result<Bytes, Error> {
        let bytes = self.rt.loader.tree().read(path)?;
        if !bytes.contains(&b'{') {
            return Ok(bytes);
        }
        let Ok(text) = std::str::from_utf8(&bytes) else {
            return Err(Error::NotText(path.clone()));
        };
        self.start(budget, path.as_str())?;
        let text = unify_newlines(text);
        let rendered = self.render(&format!("/{path}"), &text);
        self.finish(rendered, budget, path.as_str()).map(Bytes::from)
    }

    #[must_use]
    pub fn find(&self, name: &str) -> Option<TreePath> {
        self.rt.loader.find_relative(name)
    }

    /// Renders a string that comes from no file. Without any `{` it is returned unchanged.
    pub fn render_str(&mut self, text: &str, budget: &Budget) -> Result<String, Error> {
        if !text.contains('{') {
            return Ok(text.to_owned());
        }
        self.start(budget, STRING_NAME)?;
        let text = unify_newlines(text);
        let rendered = self.render(STRING_NAME, &text);
        self.finish(rendered, budget, STRING_NAME)
    }

    /// Renders every string of a value, including keys of maps. Returns all failures, in the order of the strings.
    pub fn render_value(&mut self, value: &Value, budget: &Budget) -> Result<Value, Vec<Error>> {
        let mut errors = Vec::new();
        let rendered = self.walk(value, budget, 0, &mut errors);
        if errors.is_empty() {
            Ok(rendered)
        } else {
            Err(errors)
        }
    }

    /// Renders all strings of a value. Strings that fail are unchanged, and their errors are returned.
    pub fn render_partly(&mut self, value: &Value, budget: &Budget) -> (Value, Vec<Error>) {
        let mut errors = Vec::new();
        let rendered = self.walk(value, budget, 0, &mut errors);
        (rendered, errors)
    }

    /// Evaluates an expression as kluctl's `when` does; an empty one is true. Fails if the result is neither true nor false.
    pub fn condition(&mut self, expression: &str, budget: &Budget) -> Result<bool, Error> {
        if expression.is_empty() {
            return Ok(true);
        }
        let template = format!("{{% if {expression} %}} True {{% else %}} False {{% endif %}}");
        let text = self.render_str(&template, budget)?;
        match text.trim() {
            "" | "True" => Ok(true),
            "False" => Ok(false),
            text => Err(Error::Condition {
                expression: expression.to_owned(),
                text: text.to_owned(),
            }),
        }
    }

    #[must_use]
    pub fn take_messages(&mut self) -> Vec<String> {
        self.rt.take_messages()
    }

    /// Returns the steps of the last template.
    #[cfg(test)]
    pub(crate) fn steps(&self) -> u64 {
        self.rt.meter.steps()
    }

    /// Returns the bytes that outlive the last template.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.rt.meter.bytes()
    }

    fn walk(&mut self, value: &Value, budget: &Budget, depth: u32, errors: &mut Vec<Error>) -> Value {
        if depth > MAX_VALUE_DEPTH {
            errors.push(Error::Depth(MAX_VALUE_DEPTH));
            return Value::Null;
        }
        match value {
            Value::String(text) => Value::String(self.text_or_error(text, budget, errors)),
            Value::Seq(items) => Value::Seq(
                items
                    .iter()
                    .map(|item| self.walk(item, budget, depth + 1, errors))
                    .collect(),
            ),
            Value::Map(map) => {
                let mut rendered = Map::new();
                for (key, item) in map {
                    let new_key = self.text_or_error(key, budget, errors);
                    let item = self.walk(item, budget, depth + 1, errors);
                    match map.position(key) {
                        Some(position) => rendered.insert_at(new_key, item, position),
                        None => rendered.insert(new_key, item),
                    };
                }
                Value::Map(rendered)
            }
            other => other.clone(),
        }
    }

    fn text_or_error(&mut self, text: &str, budget: &Budget, errors: &mut Vec<Error>) -> String {
        self.render_str(text, budget).unwrap_or_else(|error| {
            errors.push(error);
            text.to_owned()
        })
    }

    fn start(&mut self, budget: &Budget, template: &str) -> Result<(), Error> {
        self.rt.start(budget).map_err(|source| Error::Budget {
            template: template.to_owned(),
            source,
        })
    }

    fn render(&self, name: &str, text: &str) -> R<String> {
        let unit = load::parse(&self.rt, &self.engine, name, text)?;
        let ctx = Context::root(&self.rt, &self.engine, &unit)?;
        let mut out = String::new();
        load::render(&self.rt, &unit, &ctx, &mut out)?;
        Ok(out)
    }

    fn finish(&self, rendered: R<String>, budget: &Budget, template: &str) -> Result<String, Error> {
        self.rt.end();
        let text = rendered.map_err(|error| self.error(*error, template))?;
        budget
            .step(self.rt.meter.steps())
            .and_then(|()| budget.output(text.len() as u64))
            .map_err(|source| Error::Budget {
                template: template.to_owned(),
                source,
            })?;
        Ok(text)
    }

    fn error(&self, error: Exc, template: &str) -> Error {
        match error {
            Exc::Limit(source) => Error::Budget {
                template: template.to_owned(),
                source,
            },
            Exc::NotFound(name) => Error::NotFound(name),
            Exc::Syntax(failure) => Error::Template(failure),
            Exc::Raised { class, message } => Error::Template(Box::new(self.rt.failure(class, &message))),
        }
    }
}
