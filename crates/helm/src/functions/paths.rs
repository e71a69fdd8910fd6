//! Paths with slashes; those of the system are the same.

use super::{Answer, Context, Entry, arguments::text, fixed};
use crate::{Value, template::Type};

const ONE: &[Type] = &[Type::String];

pub(super) const TABLE: &[Entry] = &[
    fixed("base", ONE, base),
    fixed("dir", ONE, dir),
    fixed("clean", ONE, clean),
    fixed("ext", ONE, ext),
    fixed("isAbs", ONE, is_abs),
    fixed("osBase", ONE, base),
    fixed("osDir", ONE, dir),
    fixed("osClean", ONE, clean),
    fixed("osExt", ONE, ext),
    fixed("osIsAbs", ONE, is_abs),
];

fn base(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let path = text(arguments, 0);
    let trimmed = path.trim_end_matches('/');
    Ok(Value::string(match (path, trimmed) {
        ("", _) => ".",
        (_, "") => "/",
        (_, trimmed) => trimmed.rsplit('/').next().unwrap_or(trimmed),
    }))
}

fn dir(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let path = text(arguments, 0);
    let end = path.rfind('/').map_or(0, |slash| slash + 1);
    Ok(Value::string(cleaned(path.get(..end).unwrap_or_default())))
}

fn clean(_: &Context<'_>, arguments: &[Value]) -> Answer {
    Ok(Value::string(cleaned(text(arguments, 0))))
}

/// The shortest path that means the same.
fn cleaned(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(last) if *last != ".." => {
                    parts.pop();
                }
                _ if rooted => {}
                _ => parts.push(part),
            },
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

fn ext(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let name = text(arguments, 0).rsplit('/').next().unwrap_or_default();
    let dot = name.rfind('.').unwrap_or(name.len());
    Ok(Value::string(name.get(dot..).unwrap_or_default()))
}

fn is_abs(_: &Context<'_>, arguments: &[Value]) -> Answer {
    Ok(Value::Bool(text(arguments, 0).starts_with('/')))
}
