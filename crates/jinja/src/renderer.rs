//! Renders files, strings and values.

use std::sync::Arc;

use bytes::Bytes;
use tree::{Budget, Tree, TreePath};
use yaml::{Map, Value};

use crate::{
    Vars,
    error::{Error, STRING_NAME},
    eval::{
        context::Context,
        load::{self, Unit},
    },
    exc::{Exc, R},
    loader::{Loader, unify_newlines},
    rt::Rt,
};

/// How deep a value may nest whose strings are rendered.
const MAX_VALUE_DEPTH: u32 = 200;

/// What templates may know of the world, as far as they are told.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// What `time.now()` gives; without it that is an error.
    pub now: Option<jiff::Timestamp>,
    /// Where random choices begin; without it they are errors.
    pub seed: Option<u64>,
    /// Who knows the commits of the files; without it `load_latest_git_commit` is an error.
    pub history: Option<Arc<dyn History>>,
}

/// Knows the commits of the files that templates see.
pub trait History: Send + Sync + std::fmt::Debug {
    /// The last commit that changed a file, in hex; none when no commit has it.
    ///
    /// # Errors
    /// When the history can't be read, in words for people.
    fn latest_commit(&self, path: &TreePath) -> Result<Option<String>, String>;
}

/// Renders templates with one set of variables and search directories.
///
/// Templates that others include or import are parsed once per renderer. What a template changes in a variable is seen by
/// the later templates of the same renderer, and by nobody else.
pub struct Renderer {
    rt: Rt,
}

impl Renderer {
    /// Makes a renderer. `search` are the directories where templates are found, the nearest first.
    #[must_use]
    pub fn new(tree: Arc<dyn Tree>, search: &[TreePath], vars: &Vars) -> Self {
        Self {
            rt: Rt::new(Loader::new(tree, search), vars.clone()),
        }
    }

    /// Tells templates what they may know of the world.
    #[must_use]
    pub fn with_surroundings(mut self, surroundings: Surroundings) -> Self {
        self.rt.surroundings = surroundings;
        self
    }

    /// Renders a file. Without any `{` it is returned as it is.
    ///
    /// # Errors
    /// When it can't be read, is no text, or its template fails.
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

    /// Finds a file by its path relative to one of the search directories, the nearest first.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<TreePath> {
        self.rt.loader.find_relative(name)
    }

    /// Renders text that comes from no file. Without any `{` it is returned as it is.
    ///
    /// # Errors
    /// When its template fails.
    pub fn render_str(&mut self, text: &str, budget: &Budget) -> Result<String, Error> {
        if !text.contains('{') {
            return Ok(text.to_owned());
        }
        self.start(budget, STRING_NAME)?;
        let text = unify_newlines(text);
        let rendered = self.render(STRING_NAME, &text);
        self.finish(rendered, budget, STRING_NAME)
    }

    /// Renders every string of a value, keys of maps too; everything else stays as it is.
    ///
    /// # Errors
    /// All failures, in the order of the strings; `Ok` only when there was none.
    pub fn render_value(&mut self, value: &Value, budget: &Budget) -> Result<Value, Vec<Error>> {
        let mut errors = Vec::new();
        let rendered = self.walk(value, budget, 0, &mut errors);
        if errors.is_empty() {
            Ok(rendered)
        } else {
            Err(errors)
        }
    }

    /// Renders what of a value can be rendered, and tells what could not.
    pub fn render_partly(&mut self, value: &Value, budget: &Budget) -> (Value, Vec<Error>) {
        let mut errors = Vec::new();
        let rendered = self.walk(value, budget, 0, &mut errors);
        (rendered, errors)
    }

    /// Evaluates an expression as `when` does; the empty one is true.
    ///
    /// # Errors
    /// When it fails or gives neither true nor false.
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

    /// What templates said by `debug_print` since the last call.
    #[must_use]
    pub fn take_messages(&mut self) -> Vec<String> {
        self.rt.messages.take()
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

    fn start(&mut self, budget: &Budget, place: &str) -> Result<(), Error> {
        budget.check().map_err(|source| Error::Budget {
            place: place.to_owned(),
            source,
        })?;
        self.rt.start(budget);
        Ok(())
    }

    fn render(&self, name: &str, text: &str) -> R<String> {
        let unit = Unit::parse(&self.rt, name, text)?;
        let ctx = Context::new(&unit, None, Vec::new());
        let mut out = String::new();
        load::render(&self.rt, &unit, &ctx, &mut out)?;
        Ok(out)
    }

    fn finish(&self, rendered: R<String>, budget: &Budget, place: &str) -> Result<String, Error> {
        let text = rendered.map_err(|error| self.error(*error, place))?;
        budget
            .step(self.rt.steps())
            .and_then(|()| budget.output(text.len() as u64))
            .map_err(|source| Error::Budget {
                place: place.to_owned(),
                source,
            })?;
        Ok(text)
    }

    fn error(&self, error: Exc, place: &str) -> Error {
        match error {
            Exc::Limit(source) => Error::Budget {
                place: place.to_owned(),
                source,
            },
            Exc::NotFound(name) => Error::NotFound(name),
            Exc::Syntax(failure) => Error::Template(failure),
            Exc::Raised { class, message } => Error::Template(Box::new(self.rt.failure(class, &message))),
        }
    }
}
