//! Renders files, strings and values.

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use minijinja::{
    AutoEscape, Environment, ErrorKind, State, Template, UndefinedBehavior, Value as Dynamic,
    value::ValueKind,
};
use tree::{Budget, Exceeded, Tree, TreePath};
use yaml::{Map, Value};

use crate::{
    Vars, account,
    error::{Error, LimitReached, STRING_NAME},
    filters, functions, guard,
    loader::{Loader, unify_newlines},
    methods, operators, python, shape,
};

/// How many steps one template may take, with all that it includes and renders.
pub(crate) const FUEL: u64 = 2_000_000;

/// How deep `render` and `load_template` may nest.
const MAX_NESTED: u64 = 20;

/// How deep a value may nest whose strings are rendered.
const MAX_VALUE_DEPTH: u32 = 200;

/// Renders templates with one set of variables and search directories.
///
/// Templates that others include or import are parsed once per renderer.
pub struct Renderer {
    env: Environment<'static>,
    shared: Arc<Shared>,
}

/// What the functions of templates reach, beside the engine's state.
pub(crate) struct Shared {
    pub(crate) loader: Loader,
    pub(crate) vars: Vars,
    /// Set while a checksum is computed, so that a file may hold its own.
    pub(crate) hashing: AtomicBool,
    nested: AtomicU64,
    fuel: AtomicU64,
    bytes: AtomicU64,
    messages: Mutex<Vec<String>>,
}

impl Shared {
    pub(crate) fn say(&self, message: String) {
        self.messages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(message);
    }
}

impl Renderer {
    /// Makes a renderer. `search` are the directories where templates are found, the nearest first.
    #[must_use]
    pub fn new(tree: Arc<dyn Tree>, search: &[TreePath], vars: &Vars) -> Self {
        let shared = Arc::new(Shared {
            loader: Loader::new(tree, search),
            vars: vars.clone(),
            hashing: AtomicBool::new(false),
            nested: AtomicU64::new(0),
            fuel: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            messages: Mutex::default(),
        });
        Self {
            env: environment(&shared),
            shared,
        }
    }

    /// Renders a file. Without any `{` it is returned as it is.
    ///
    /// # Errors
    /// When it can't be read, is no text, or its template fails.
    pub fn render_file(&mut self, path: &TreePath, budget: &Budget) -> Result<Bytes, Error> {
        let bytes = self.shared.loader.tree().read(path)?;
        if !bytes.contains(&b'{') {
            return Ok(bytes);
        }
        let Ok(text) = std::str::from_utf8(&bytes) else {
            return Err(Error::NotText(path.clone()));
        };
        self.start(budget, path.as_str())?;
        let text = unify_newlines(text);
        let rendered = render_text(
            &self.shared,
            &self.env,
            &format!("/{path}"),
            &text,
            Dynamic::default(),
        );
        self.finish(rendered, budget, path.as_str()).map(Bytes::from)
    }

    /// Finds a file by its path relative to one of the search directories, the nearest first.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<TreePath> {
        self.shared.loader.find_relative(name)
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
        let rendered = render_text(&self.shared, &self.env, STRING_NAME, &text, Dynamic::default());
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
        std::mem::take(
            &mut *self
                .shared
                .messages
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
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
        account::start(budget);
        shape::forget();
        self.shared.fuel.store(0, Ordering::Relaxed);
        self.shared.nested.store(0, Ordering::Relaxed);
        self.shared.hashing.store(false, Ordering::Relaxed);
        self.shared.bytes.store(budget.limits().bytes, Ordering::Relaxed);
        Ok(())
    }

    fn finish(
        &self,
        rendered: Result<String, minijinja::Error>,
        budget: &Budget,
        place: &str,
    ) -> Result<String, Error> {
        shape::forget();
        let text = rendered.map_err(|error| {
            let loader = &self.shared.loader;
            Error::from_engine(&error, place, |name| loader.load(name).ok().flatten())
        })?;
        let steps = self.shared.fuel.load(Ordering::Relaxed);
        budget
            .step(steps)
            .and_then(|()| budget.output(text.len() as u64))
            .map_err(|source| Error::Budget {
                place: place.to_owned(),
                source,
            })?;
        Ok(text)
    }
}

impl Shared {
    /// Renders one template, and counts what it takes.
    pub(crate) fn run(
        &self,
        template: &Template<'_, '_>,
        context: Dynamic,
    ) -> Result<String, minijinja::Error> {
        let mut out = Limited {
            text: Vec::new(),
            limit: self.bytes.load(Ordering::Relaxed),
        };
        let captured = template.render_captured_to(context, &mut out)?;
        let used = captured.state().fuel_levels().map_or(0, |(used, _)| used);
        if self.fuel.fetch_add(used, Ordering::Relaxed) + used > FUEL {
            return Err(minijinja::Error::from(ErrorKind::OutOfFuel));
        }
        String::from_utf8(out.text).map_err(|_| {
            minijinja::Error::new(ErrorKind::InvalidOperation, "UnicodeError: the output is no text")
        })
    }

    /// Renders a template from within another one.
    pub(crate) fn run_nested(
        &self,
        render: impl FnOnce() -> Result<String, minijinja::Error>,
    ) -> Result<String, minijinja::Error> {
        if self.nested.fetch_add(1, Ordering::Relaxed) >= MAX_NESTED {
            let limit = Exceeded::Limit {
                what: "nested calls of render and load_template",
                limit: MAX_NESTED,
            };
            return Err(LimitReached(limit).into_engine());
        }
        let rendered = render();
        self.nested.fetch_sub(1, Ordering::Relaxed);
        account::made(rendered?)
    }
}

/// Renders text as a template of its own.
pub(crate) fn render_text(
    shared: &Shared,
    env: &Environment<'_>,
    name: &str,
    text: &str,
    context: Dynamic,
) -> Result<String, minijinja::Error> {
    let text = guard::guarded(text, false);
    let template = env.template_from_named_str(name, &text)?;
    shared.run(&template, context)
}

/// Collects output up to a limit.
struct Limited {
    text: Vec<u8>,
    limit: u64,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.text.len() + bytes.len()) as u64 > self.limit {
            let exceeded = Exceeded::Limit {
                what: "bytes of rendered output",
                limit: self.limit,
            };
            return Err(io::Error::other(LimitReached(exceeded)));
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The engine with everything that doesn't depend on the project.
fn base_environment() -> Environment<'static> {
    static BASE: std::sync::OnceLock<Environment<'static>> = std::sync::OnceLock::new();
    let base = BASE.get_or_init(|| {
        let mut env = Environment::new();
        env.set_undefined_behavior(UndefinedBehavior::Strict);
        env.set_auto_escape_callback(|_| AutoEscape::None);
        env.set_debug(true);
        env.set_fuel(Some(FUEL));
        env.set_unknown_method_callback(methods::call);
        env.set_formatter(|out, _state, value| match value.as_str() {
            Some(text) => {
                // What is written may become a part of a value.
                account::charge(text.len())?;
                out.write_str(text).map_err(minijinja::Error::from)
            }
            None => {
                let text = python::text(value)?;
                account::charge(text.len())?;
                out.write_str(&text).map_err(minijinja::Error::from)
            }
        });
        filters::register(&mut env);
        operators::register(&mut env);
        functions::register_pure(&mut env);
        env
    });
    base.clone()
}

fn environment(shared: &Arc<Shared>) -> Environment<'static> {
    let mut env = base_environment();
    for (name, value) in shared.vars.values.iter() {
        env.add_global(name.clone(), value.clone());
    }
    let loader = shared.loader.clone();
    env.set_loader(move |name| {
        let text = loader.load(name);
        let text = text.map(|text| text.map(|text| guard::guarded(&text, true).into_owned()));
        text.map_err(|error| minijinja::Error::new(ErrorKind::InvalidOperation, format!("OSError: {error}")))
    });
    let loader = shared.loader.clone();
    env.set_path_join_callback(move |name, caller| match loader.resolve(name, caller) {
        Some(path) => format!("/{path}").into(),
        None => name.into(),
    });
    functions::register(&mut env, shared);
    env
}

/// The variables that a template sees at this point, for templates that it renders itself. Functions aren't among them.
pub(crate) fn current_variables(state: &State<'_, '_>) -> Vec<(String, Dynamic)> {
    let names = state.known_variables();
    let known = names
        .iter()
        .filter_map(|name| Some((name.to_string(), state.lookup(name)?)));
    known
        .filter(|(_, value)| !matches!(value.kind(), ValueKind::Undefined | ValueKind::Plain))
        .collect()
}

/// The variables that a template sees at this point, none of them deeper than a value may be: calls of macros within
/// templates that render each other could make them so.
pub(crate) fn inherited_variables(
    shared: &Shared,
    state: &State<'_, '_>,
) -> Result<Vec<(String, Dynamic)>, minijinja::Error> {
    let variables = current_variables(state);
    for (name, value) in &variables {
        let global = shared.vars.values.get(name);
        if !global.is_some_and(|global| minijinja::tests::is_sameas(global, value)) {
            shape::whole(value)?;
        }
    }
    Ok(variables)
}
