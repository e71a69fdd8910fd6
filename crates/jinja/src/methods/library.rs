//! Methods of `time`, `images` and `version`, and `load_latest_git_commit`.

use std::{cell::RefCell, rc::Rc};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{
    IMAGE_BEGIN, IMAGE_END,
    eval::context::Cx,
    exc::{R, raise},
    format::json::{self, Style},
    time::Time,
    value::{
        DictMap, Key, Object, Value,
        args::{Args, to_text},
    },
};

fn time(time: Time) -> Value {
    Value::object(Object::Time(RefCell::new(time)))
}

/// Calls a function of a library, or a method of a time.
pub(crate) fn call(cx: &Cx<'_>, object: &Rc<Object>, name: &str, args: Args) -> R<Value> {
    if let Object::Time(own) = &**object {
        return match name {
            "as_timezone" => {
                let zone = to_text(&args.bind("as_timezone", ["tz"], 1)?.value(0))?;
                let made = own.borrow().in_zone(&zone)?;
                Ok(time(made))
            }
            "weekday" => args.none("weekday").map(|()| Value::Int(own.borrow().weekday())),
            _ => args.none(name).map(|()| Value::Int(own.borrow().part(name))),
        };
    }
    match name {
        "now" | "utcnow" => {
            args.none(name)?;
            match cx.rt.environment.now {
                Some(now) => Ok(time(Time::at(now))),
                None => raise(
                    "NotImplementedError",
                    format!("time.{name}: no clock is given to this render"),
                ),
            }
        }
        "parse_iso" => {
            let text = args.bind("parse_iso", ["s"], 1)?.value(0);
            match text.defined()?.as_str() {
                Some(text) => Time::parse(text).map(time),
                None => raise("TypeError", "fromisoformat: argument must be str"),
            }
        }
        "get_image" => get_image(cx, args),
        _ => version(cx, name, args),
    }
}

/// Warning about an argument of old projects.
const LATEST_VERSION: &str =
    "latest_version is deprecated when using images.get_image() and is completely ignored: remove it";

/// Returns a placeholder that is replaced in the finished objects. `latest_version` is accepted for old projects, without effect.
fn get_image(cx: &Cx<'_>, args: Args) -> R<Value> {
    let args = args.bind("get_image", ["image", "latest_version"], 1)?;
    let image = args.value(0);
    if args.get(1).is_some_and(|version| !matches!(version, Value::None)) {
        cx.rt.step(cx.rt.messages.borrow().len() as u64 / 16)?;
        let known = cx
            .rt
            .messages
            .borrow()
            .iter()
            .any(|message| message == LATEST_VERSION);
        if !known {
            cx.rt.add_message(LATEST_VERSION.to_owned())?;
        }
    }
    let map: DictMap = [(Key::from("image"), image)].into_iter().collect();
    let json = json::dumps(cx.rt, &Value::dict(map), &Style::default())?;
    cx.rt
        .text(format!("{IMAGE_BEGIN}{}{IMAGE_END}", STANDARD.encode(json)))
}

/// Returns descriptions of versions, which are no longer used.
fn version(cx: &Cx<'_>, name: &str, args: Args) -> R<Value> {
    let text = match name {
        "semver" => {
            let flag = args
                .bind("semver", ["allow_no_nums"], 0)?
                .get(0)
                .cloned()
                .unwrap_or(Value::Bool(false));
            format!("semver(allow_no_nums={})", cx.text_of(&flag)?)
        }
        "prefix" => {
            let args = args.bind("prefix", ["s", "suffix"], 1)?;
            let prefix = cx.text_of(&args.value(0))?;
            match args.value(1) {
                Value::None => format!("prefix(\"{prefix}\")"),
                suffix => format!("prefix(\"{prefix}\", suffix=\"{}\")", cx.text_of(&suffix)?),
            }
        }
        "number" => {
            args.none("number")?;
            "number()".to_owned()
        }
        _ => {
            let pattern = args.bind("regex", ["r"], 1)?.value(0);
            format!("regex(\"{}\")", cx.text_of(&pattern)?)
        }
    };
    cx.rt.text(text)
}

pub(crate) fn latest_commit(cx: &Cx<'_>, args: Args) -> R<Value> {
    let args = args.bind("load_latest_git_commit", ["path", "sha_len"], 1)?;
    let name = args.text(0, "")?;
    let len = args.optional_int(1)?;
    let Some(history) = &cx.rt.environment.history else {
        return raise(
            "NotImplementedError",
            format!(
                "load_latest_git_commit({name}): the history of the repository isn't given to this render"
            ),
        );
    };
    let Some(path) = cx.rt.loader.find(name.strip_prefix("./").unwrap_or(&name)) else {
        return raise("FileNotFoundError", format!("{name} not found"));
    };
    match history.latest_commit(&path) {
        Ok(Some(id)) => {
            let len = len.and_then(|len| usize::try_from(len).ok());
            let abbreviated = len.and_then(|len| id.get(..len)).unwrap_or(&id);
            cx.rt.text(abbreviated.to_owned())
        }
        Ok(None) => raise("ValueError", format!("No commits found for path: {path}")),
        Err(error) => raise("OSError", error.to_string()),
    }
}
