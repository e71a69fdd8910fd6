//! Templates of the objects of an installation. Pure.

use std::collections::BTreeMap;

use anyhow::Result;
use install::Admin;
use yaml::Value;

use super::substitute;

/// Values of `admin`, with the options that they stand for.
const ADMINS: &[(&str, Admin)] = &[
    ("namespace", Admin::Namespace),
    ("none", Admin::Nobody),
    ("cluster", Admin::Everybody),
];
const DEFINITION: &str = "CustomResourceDefinition";

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    file: String,
    kind: String,
    namespace: String,
    name: String,
}

/// The forms of an object: each with the values of `admin` that it is for.
#[derive(Debug, Default)]
struct Forms {
    conditions: Vec<String>,
    texts: Vec<(String, Vec<&'static str>)>,
}

/// Returns templates by the names of their files.
pub(super) fn all() -> Result<BTreeMap<String, String>> {
    let mut objects: BTreeMap<Identity, Forms> = BTreeMap::new();
    for (admin, option) in ADMINS {
        for mut object in install::objects(&substitute::options(*option))? {
            let forms = objects.entry(identity(&object)).or_default();
            forms.conditions = conditions(&object);
            keep(&mut object);
            forms.add(substitute::print(&object), admin);
        }
    }
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for (identity, forms) in objects {
        files
            .entry(identity.file)
            .or_default()
            .push_str(&forms.template());
    }
    Ok(files)
}

impl Forms {
    fn add(&mut self, text: String, admin: &'static str) {
        match self.texts.iter_mut().find(|(other, _)| *other == text) {
            Some((_, admins)) => admins.push(admin),
            None => self.texts.push((text, vec![admin])),
        }
    }

    fn template(&self) -> String {
        let mut template = String::new();
        for (text, admins) in &self.texts {
            let mut conditions = self.conditions.clone();
            if admins.len() < ADMINS.len() {
                conditions.push(format!("has $.Values.admin (list \"{}\")", admins.join("\" \"")));
            }
            let conditions: Vec<String> = conditions.iter().map(|one| format!("({one})")).collect();
            template.push_str(&match conditions.is_empty() {
                true => format!("---\n{text}"),
                false => format!(
                    "{{{{- if and {} }}}}\n---\n{text}{{{{- end }}}}\n",
                    conditions.join(" ")
                ),
            });
        }
        template
    }
}

fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn component(object: &Value) -> Option<&str> {
    object
        .pointer(&["metadata", "labels", install::COMPONENT])
        .and_then(Value::as_str)
}

fn identity(object: &Value) -> Identity {
    let kind = text(object, &["kind"]);
    let file = match kind {
        DEFINITION => "crds",
        _ => component(object).unwrap_or("shared"),
    };
    Identity {
        file: format!("{file}.yaml"),
        kind: kind.to_owned(),
        namespace: text(object, &["metadata", "namespace"]).to_owned(),
        name: text(object, &["metadata", "name"]).to_owned(),
    }
}

/// Lists the conditions on values under which an object is installed.
fn conditions(object: &Value) -> Vec<String> {
    let component = component(object).map(|name| format!("has \"{name}\" $.Values.components"));
    let name = text(object, &["metadata", "name"]);
    let value = match text(object, &["kind"]) {
        DEFINITION => Some("$.Values.crds"),
        "NetworkPolicy" => Some("$.Values.networkPolicy"),
        "Namespace" if substitute::is_release_namespace(name) => Some("$.Values.createNamespace"),
        _ => None,
    };
    component.into_iter().chain(value.map(str::to_owned)).collect()
}

/// Lets definitions stay when the release is uninstalled: all objects would be deleted with them.
fn keep(object: &mut Value) {
    if text(object, &["kind"]) != DEFINITION {
        return;
    }
    let metadata = object
        .as_map_mut()
        .and_then(|map| map.get_or_insert_map("metadata"));
    if let Some(annotations) = metadata.and_then(|map| map.get_or_insert_map("annotations")) {
        annotations.insert("helm.sh/resource-policy", "keep");
    }
}
