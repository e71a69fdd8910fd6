//! The configurations of the patch transformers, as messages print them: without the content of patches, which may be
//! secret.

use yaml::{Map, Value};

use crate::{
    model::{Patch, Selector},
    read::is_path,
};

/// The placeholder in messages for an inline patch.
pub(super) const INLINE: &str = "(inline)";

/// Returns the start of an error of a transformer's configuration.
pub(super) fn trouble(transformer: &str, config: &str) -> String {
    format!("trouble configuring builtin {transformer} with config: `\n{config}`")
}

pub(super) fn of_patch(entry: &Patch) -> String {
    let mut options = Map::new();
    for (name, value) in entry.options.iter().filter(|(_, value)| **value) {
        options.insert(name, Value::Bool(*value));
    }
    let mut config = Map::new();
    if !entry.options.is_empty() {
        config.insert("options", Value::Map(options));
    }
    set_inline(&mut config, "patch", &entry.patch);
    set(&mut config, "path", &entry.path);
    set_target(&mut config, entry.target.as_ref());
    print(config)
}

pub(super) fn of_json6902(entry: &Patch) -> String {
    let mut config = Map::new();
    set_inline(&mut config, "jsonOp", &entry.patch);
    set(&mut config, "path", &entry.path);
    set_target(&mut config, entry.target.as_ref());
    print(config)
}

pub(super) fn of_paths(paths: &[String]) -> String {
    let mut config = Map::new();
    let paths = paths
        .iter()
        .map(|path| Value::from(path_or_inline(path)))
        .collect();
    config.insert("paths", Value::Seq(paths));
    print(config)
}

fn print(config: Map) -> String {
    yaml::print::goyaml(&Value::Map(config))
}

fn set(config: &mut Map, key: &str, text: &str) {
    if !text.is_empty() {
        config.insert(key, Value::String(text.to_owned()));
    }
}

fn set_inline(config: &mut Map, key: &str, patch: &str) {
    set(config, key, if patch.is_empty() { patch } else { INLINE });
}

/// Returns the path of a patch, or the placeholder of an inline patch.
pub(super) fn path_or_inline(entry: &str) -> &str {
    if is_path(entry) { entry } else { INLINE }
}

fn set_target(config: &mut Map, target: Option<&Selector>) {
    let Some(target) = target else { return };
    let mut printed = Map::new();
    for (key, text) in [
        ("annotationSelector", &target.annotation_selector),
        ("group", &target.group),
        ("kind", &target.kind),
        ("labelSelector", &target.label_selector),
        ("name", &target.name),
        ("namespace", &target.namespace),
        ("version", &target.version),
    ] {
        set(&mut printed, key, text);
    }
    config.insert("target", Value::Map(printed));
}
