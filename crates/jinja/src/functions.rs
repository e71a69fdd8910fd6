//! The functions that kluctl adds to Jinja2.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use minijinja::{
    Environment, Error, ErrorKind, State, Value as Dynamic,
    value::{Kwargs, Object, ObjectRepr, Rest, ValueKind},
};
use sha2::{Digest as _, Sha256};
use tree::TreePath;

use crate::{
    account, convert,
    error::STRING_NAME,
    jsonpath, python,
    renderer::{Shared, current_variables, inherited_variables, render_text},
    shape,
    signature::{Args, bind},
};

/// What a file's checksum is while that checksum is being computed.
const SELF_SHA256: &str = "__self_sha256__";

/// Registers what needs no project.
pub(crate) fn register_pure(env: &mut Environment<'_>) {
    env.add_function("range", range);
    env.add_function("cycler", |items: Rest<Dynamic>| -> Result<Dynamic, Error> {
        account::charge(items.0.len().saturating_mul(account::ITEM))?;
        Ok(Dynamic::from_object(Cycler {
            items: items.0,
            at: Mutex::new(0),
        }))
    });
    env.add_function("joiner", |separator: Option<Dynamic>| -> Result<Dynamic, Error> {
        let separator = separator.map(|separator| python::text(&separator)).transpose()?;
        Ok(minijinja_contrib::globals::joiner(separator.map(Dynamic::from)))
    });
    env.remove_global("debug");
}

/// Registers what reaches into the project; these hide variables of the same name.
pub(crate) fn register(env: &mut Environment<'_>, shared: &Arc<Shared>) {
    env.add_function("merge_dict", merge_dict);
    env.add_function("update_dict", update_dict);
    env.add_function("raise", |message: Dynamic| -> Result<Dynamic, Error> {
        Err(fail(format!("TemplateError: {}", python::text(&message)?)))
    });
    for name in ["time", "images", "version"] {
        env.add_global(name, Dynamic::from_object(Unsupported(name)));
    }
    for name in ["lipsum", "load_latest_git_commit", "load_latest_git_sha"] {
        env.add_global(name, Dynamic::from_object(Unsupported(name)));
    }
    let messages = shared.clone();
    env.add_function(
        "debug_print",
        move |message: Dynamic| -> Result<&'static str, Error> {
            messages.say(account::made(format!(
                "debug_print: {}",
                python::text(&message)?
            ))?);
            Ok("")
        },
    );
    env.add_function("get_var", |state: &State<'_, '_>, args: Args| {
        let args = bind("get_var", ["path", "default"], args)?;
        let vars = Dynamic::from_pairs(current_variables(state));
        let path = args.required("path")?;
        shape::whole(&path)?;
        jsonpath::get_var(&vars, &path, args.get("default"))
    });
    register_rendering(env, shared);
}

fn register_rendering(env: &mut Environment<'_>, shared: &Arc<Shared>) {
    let own = shared.clone();
    let render = move |state: &State<'_, '_>, template: &str| render(&own, state, template);
    env.add_filter("render", render.clone());
    env.add_function("render", render);
    let own = shared.clone();
    env.add_function(
        "load_template",
        move |state: &State<'_, '_>, name: &str, vars: Kwargs| load_template(&own, state, name, &vars),
    );
    let own = shared.clone();
    env.add_function("load_sha256", move |state: &State<'_, '_>, args: Args| {
        load_sha256(&own, state, args)
    });
    let own = shared.clone();
    env.add_function("load_base64", move |args: Args| load_base64(&own, args));
}

fn render(shared: &Shared, state: &State<'_, '_>, template: &str) -> Result<String, Error> {
    let context = Dynamic::from_pairs(inherited_variables(shared, state)?);
    // A short expression is compiled to a long one.
    account::charge(template.len().saturating_mul(account::ITEM))?;
    let text = crate::loader::unify_newlines(template);
    shared.run_nested(|| render_text(shared, state.env(), STRING_NAME, &text, context))
}

fn load_template(shared: &Shared, state: &State<'_, '_>, name: &str, vars: &Kwargs) -> Result<String, Error> {
    let path = resolve(shared, state, name)?;
    let mut context: BTreeMap<String, Dynamic> = inherited_variables(shared, state)?.into_iter().collect();
    for key in vars.args() {
        let value: Dynamic = vars.get(key)?;
        shape::whole(&value)?;
        let merged = match context.get(key) {
            Some(old) if old.kind() == ValueKind::Map && value.kind() == ValueKind::Map => {
                convert::merge(old, &value, 0)?
            }
            _ => value,
        };
        context.insert(key.to_owned(), merged);
    }
    render_path(shared, state, &path, Dynamic::from_pairs(context))
}

fn render_path(
    shared: &Shared,
    state: &State<'_, '_>,
    path: &TreePath,
    context: Dynamic,
) -> Result<String, Error> {
    let template = state.env().get_template(&format!("/{path}"))?;
    shared.run_nested(|| shared.run(&template, context))
}

fn load_sha256(shared: &Shared, state: &State<'_, '_>, args: Args) -> Result<String, Error> {
    let args = bind("load_sha256", ["path", "digest_len"], args)?;
    let (name, len) = (args.text("path")?, args.number("digest_len")?);
    if shared.hashing.swap(true, Ordering::Relaxed) {
        return Ok(SELF_SHA256.to_owned());
    }
    let text = resolve(shared, state, &name).and_then(|path| {
        let context = Dynamic::from_pairs(inherited_variables(shared, state)?);
        render_path(shared, state, &path, context)
    });
    shared.hashing.store(false, Ordering::Relaxed);
    Ok(sha256(text?.as_bytes(), len))
}

/// The digest in hex, cut to `len` characters.
pub(crate) fn sha256(bytes: &[u8], len: Option<i64>) -> String {
    let mut digest = hex::encode(Sha256::digest(bytes));
    // A negative length counts from the end, as a slice of Python does.
    digest.truncate(match len {
        Some(len) if len < 0 => digest
            .len()
            .saturating_sub(usize::try_from(len.unsigned_abs()).unwrap_or(usize::MAX)),
        Some(len) if len > 0 => usize::try_from(len).unwrap_or(usize::MAX),
        _ => usize::MAX,
    });
    digest
}

/// Reads raw bytes; unlike the others only search directories count, as in the original.
fn load_base64(shared: &Shared, args: Args) -> Result<String, Error> {
    let args = bind("load_base64", ["path", "width"], args)?;
    let (name, width) = (args.text("path")?, args.size("width", 0)?);
    let path = shared
        .loader
        .find(name.strip_prefix("./").unwrap_or(&name))
        .ok_or_else(|| not_found(&name))?;
    let bytes = shared
        .loader
        .tree()
        .read(&path)
        .map_err(|error| fail(format!("OSError: {error}")))?;
    let encoded = STANDARD.encode(bytes);
    if width == 0 {
        return account::made(encoded);
    }
    let lines: Vec<&str> = encoded
        .as_bytes()
        .chunks(width)
        .filter_map(|line| std::str::from_utf8(line).ok())
        .collect();
    account::made(lines.join("\n"))
}

fn resolve(shared: &Shared, state: &State<'_, '_>, name: &str) -> Result<TreePath, Error> {
    shared
        .loader
        .resolve(name, state.name())
        .ok_or_else(|| not_found(name))
}

fn not_found(name: &str) -> Error {
    Error::new(
        ErrorKind::TemplateNotFound,
        format!("template {name:?} does not exist"),
    )
}

fn merge_dict(base: &Dynamic, over: &Dynamic) -> Result<Dynamic, Error> {
    if base.kind() != ValueKind::Map {
        return Err(no_attribute(base, "items"));
    }
    match over.kind() {
        ValueKind::None => Ok(base.clone()),
        ValueKind::Map => {
            let merged = convert::merge(base, over, 0)?;
            shape::remember_joined(&merged, base, over);
            Ok(merged)
        }
        _ => Err(no_attribute(over, "items")),
    }
}

fn update_dict(_base: &Dynamic, _over: &Dynamic) -> Result<Dynamic, Error> {
    Err(fail(
        "NotImplementedError: update_dict is not supported yet: assign the result of merge_dict instead",
    ))
}

fn range(first: i64, second: Option<i64>, step: Option<i64>) -> Result<Dynamic, Error> {
    let far = |number: i64| number.unsigned_abs() > u64::from(u32::MAX);
    if far(first) || second.is_some_and(far) || step.is_some_and(far) {
        return Err(fail("OverflowError: range has too many elements"));
    }
    minijinja::functions::range(
        isize::try_from(first).unwrap_or_default(),
        second.and_then(|number| isize::try_from(number).ok()),
        step.and_then(|number| isize::try_from(number).ok()),
    )
}

/// A failure whose text already names the exception.
pub(crate) fn fail(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// What Python says of a missing attribute.
pub(crate) fn no_attribute(value: &Dynamic, name: &str) -> Error {
    fail(format!(
        "AttributeError: '{}' object has no attribute '{name}'",
        type_name(value)
    ))
}

/// The name of a value's type in Python.
pub(crate) fn type_name(value: &Dynamic) -> &'static str {
    match value.kind() {
        ValueKind::None => "NoneType",
        ValueKind::Bool => "bool",
        ValueKind::Number if value.is_integer() => "int",
        ValueKind::Number => "float",
        ValueKind::String => "str",
        ValueKind::Bytes => "bytes",
        ValueKind::Map => "dict",
        ValueKind::Seq if value.is_tuple() => "tuple",
        ValueKind::Seq => "list",
        ValueKind::Undefined => "Undefined",
        _ => "object",
    }
}

/// Gives its items in turn.
pub(crate) struct Cycler {
    pub(crate) items: Vec<Dynamic>,
    at: Mutex<usize>,
}

impl fmt::Debug for Cycler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<Cycler>")
    }
}

impl Cycler {
    fn current(&self, advance: bool) -> Dynamic {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let item = self.items.get(*at).cloned().unwrap_or_default();
        if advance && !self.items.is_empty() {
            *at = (*at + 1) % self.items.len();
        }
        item
    }
}

impl Object for Cycler {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Dynamic) -> Option<Dynamic> {
        (key.as_str() == Some("current")).then(|| self.current(false))
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        _: &[Dynamic],
    ) -> Result<Dynamic, Error> {
        match method {
            "next" => Ok(self.current(true)),
            "reset" => {
                *self.at.lock().unwrap_or_else(PoisonError::into_inner) = 0;
                Ok(Dynamic::from(()))
            }
            _ => Err(fail(format!(
                "UndefinedError: 'Cycler object' has no attribute '{method}'"
            ))),
        }
    }
}

/// Stands for a part of the dialect that isn't there yet, and says so however it is used.
#[derive(Debug)]
struct Unsupported(&'static str);

impl Unsupported {
    fn error(&self, member: &str) -> Error {
        let dot = if member.is_empty() { "" } else { "." };
        fail(format!(
            "NotImplementedError: {}{dot}{member} is not supported yet",
            self.0
        ))
    }
}

/// Fails when a value stands for a part of the dialect that isn't there yet.
pub(crate) fn refuse_unsupported(value: &Dynamic) -> Result<(), Error> {
    match value.downcast_object_ref::<Unsupported>() {
        Some(unsupported) => Err(unsupported.error("")),
        None => Ok(()),
    }
}

impl Object for Unsupported {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Dynamic) -> Option<Dynamic> {
        Some(Dynamic::from(self.error(key.as_str().unwrap_or_default())))
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, _: &[Dynamic]) -> Result<Dynamic, Error> {
        Err(self.error(""))
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        _: &[Dynamic],
    ) -> Result<Dynamic, Error> {
        Err(self.error(method))
    }
}
