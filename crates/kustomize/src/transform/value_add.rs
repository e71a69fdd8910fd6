//! Sets a value in fields, or inserts it into the paths that they hold.

use serde::Deserialize;
use yaml::{
    Node,
    node::{Content, Mapping},
};

use super::{decode, namespace::Namespace, set};
use crate::{
    Error,
    error::Step,
    lookup::split_escaped,
    lookup::{Leads, child_mut, condition, is_condition, raw_text, step},
    model::{Selector, configs},
    resmap::ResMap,
    resource::{self, Written},
    selector::select,
    transform::{PluginContext, Transformer},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueAdd {
    value: String,
    targets: Vec<Target>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Target {
    selector: Option<Selector>,
    field_path: String,
    /// Index of the replaced component of a path, counted from 1; 0 for the whole field.
    file_path_position: i64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Settings {
    value: String,
    targets: Vec<Target>,
    target_file_path: String,
}

impl ValueAdd {
    /// Reads a `ValueAddTransformer`. The value defaults to the name of the kustomization's directory.
    pub(crate) fn from_config(config: &yaml::Value, ctx: &PluginContext<'_>) -> Result<Self, Error> {
        let mut settings: Settings = decode::config(config, &configs::VALUE_ADD)?;
        if !settings.target_file_path.is_empty() {
            let (text, file) = ctx.loader.load(&settings.target_file_path)?;
            let document =
                yaml::read::goyaml(&text, ctx.run.budget).map_err(|source| Error::Yaml { file, source })?;
            let more: Settings = decode::config(&document.value, &configs::VALUE_ADD)?;
            settings.targets.extend(more.targets);
        }
        if settings.targets.is_empty() {
            return Err(Error::new(Step::Plugin, "must specify at least one target"));
        }
        settings.targets.iter().try_for_each(check)?;
        let value = match settings.value.trim() {
            "" => ctx.loader.root().name(),
            value => value,
        };
        Ok(Self {
            value: value.to_owned(),
            targets: settings.targets,
        })
    }

    fn apply(&self, object: &mut Node, target: &Target) -> Result<(), Error> {
        let path = split_escaped(&target.field_path, '/');
        let parts = path.iter().map(|part| part.trim());
        let path: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let Some(field) = find_or_create(object, &path)? else {
            return Ok(());
        };
        if field.as_scalar().is_none() {
            return Err(set::wrong_kind("ScalarNode", field));
        }
        let value = match usize::try_from(target.file_path_position - 1) {
            Ok(position) => inserted(raw_text(field), position, &self.value),
            Err(_) => self.value.clone(),
        };
        let mut written = Written::default();
        written.write(field, |field| set::scalar(field, &value, None))?;
        written.spread(object);
        Ok(())
    }
}

fn check(target: &Target) -> Result<(), Error> {
    let problem = if target.field_path.is_empty() {
        "fieldPath cannot be empty".to_owned()
    } else if target.file_path_position < 0 {
        let position = target.file_path_position;
        format!("value of FilePathPosition ({position}) cannot be negative")
    } else {
        return Ok(());
    };
    Err(Error::new(Step::Plugin, problem))
}

/// Follows a path of keys, indexes and conditions (`[name=a]`), and creates missing nodes, except for elements of lists
/// that are named by their index.
fn find_or_create<'a>(node: &'a mut Node, path: &[&str]) -> Result<Option<&'a mut Node>, Error> {
    let Some((part, rest)) = path.split_first() else {
        return Ok(Some(node));
    };
    let next = match step(node, part)? {
        Leads::Stay => Some(node),
        Leads::Down(place) => child_mut(node, place),
        Leads::Nowhere => create(node, part, rest.first().copied())?,
    };
    match next {
        Some(next) => find_or_create(next, rest),
        None => Ok(None),
    }
}

/// Nothing is made in null.
fn create<'a>(node: &'a mut Node, part: &str, next: Option<&str>) -> Result<Option<&'a mut Node>, Error> {
    match &mut node.content {
        Content::Seq(items) if is_condition(part) => {
            items.push(match condition(part)? {
                ("", value) => Node::plain(value),
                (key, value) => with(key, Node::plain(value)).into(),
            });
            Ok(items.last_mut())
        }
        Content::Map(map) => {
            let is_item = |part: &str| is_condition(part) || part.parse::<u64>().is_ok();
            let made = match next {
                None => Node::plain(""),
                Some(next) if is_item(next) => Node::seq(Vec::new()),
                Some(_) => Node::map(),
            };
            resource::put(map, part, made);
            Ok(map.get_mut(part))
        }
        _ => Ok(None),
    }
}

fn with(key: &str, value: Node) -> Mapping {
    let mut map = Mapping::new();
    resource::put(&mut map, key, value);
    map
}

/// A path with a part inserted; behind its end is at its end.
fn inserted(path: &str, position: usize, part: &str) -> String {
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for old in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match old {
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if absolute => {}
            old => parts.push(old),
        }
    }
    parts.insert(position.min(parts.len()), part);
    let joined = parts.join("/");
    if absolute { format!("/{joined}") } else { joined }
}

impl Transformer for ValueAdd {
    fn transform(&self, resources: &mut ResMap, ctx: &PluginContext<'_>) -> Result<(), Error> {
        for target in &self.targets {
            let selected = match &target.selector {
                Some(selector) => select(resources, selector, ctx.run, ctx.loader.root())?,
                None => (0..resources.len()).collect(),
            };
            let namespace = Namespace::new(&self.value, &[]);
            let list = resources.list_mut();
            for index in selected {
                ctx.step(0)?;
                ctx.grow(&self.value)?;
                let Some(resource) = list.get_mut(index) else {
                    continue;
                };
                if target.field_path == "metadata/namespace" {
                    namespace.apply(resource)?;
                } else {
                    self.apply(resource.node_mut(), target)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        options::Profile,
        transform::testing::{self, transformed},
    };

    fn configured(config: &str) -> Result<ValueAdd, String> {
        testing::ctx(&[], Profile::default(), |ctx| {
            ValueAdd::from_config(&testing::config(config), ctx).map_err(|error| error.to_string())
        })
    }

    fn changed(config: &str, spec: &str) -> String {
        let object = format!("{{apiVersion: v1, kind: A, metadata: {{name: x}}, spec: {spec}}}");
        let text = transformed(&object, &configured(config).unwrap());
        match text.split_once("spec: ").or_else(|| text.split_once("spec:\n")) {
            Some((_, spec)) => spec.to_owned(),
            None => text,
        }
    }

    #[test]
    fn value_add_inserts_path_components() {
        let cases = [
            ("", 0, "P"),
            ("/", 3, "/P"),
            ("a", 0, "P/a"),
            ("/a", 0, "/P/a"),
            ("/a", 1, "/a/P"),
            ("a/b/c", 2, "a/b/P/c"),
            ("/a/b/c", 9, "/a/b/c/P"),
            ("a//./b/../c", 1, "a/P/c"),
        ];
        for (path, position, expected) in cases {
            assert_eq!(inserted(path, position, "P"), expected, "{path} {position}");
        }
    }

    #[test]
    fn value_add_sets_the_field_of_a_path() {
        let target = |path: &str| format!("{{value: 7, targets: [{{fieldPath: '{path}'}}]}}");
        let spec = "{a: {b: old}, l: [{name: n, v: '1'}]}";
        let cases = [
            (
                "spec/a/b",
                "  a:\n    b: 7\n  l:\n  - name: \"n\"\n    v: \"1\"\n",
            ),
            (
                "spec/a/c/d",
                "  a:\n    b: old\n    c:\n      d: 7\n  l:\n  - name: \"n\"\n    v: \"1\"\n",
            ),
            (
                "spec/l/[name=n]/v",
                "  a:\n    b: old\n  l:\n  - name: \"n\"\n    v: \"7\"\n",
            ),
            (
                "spec/l/0/v",
                "  a:\n    b: old\n  l:\n  - name: \"n\"\n    v: \"7\"\n",
            ),
            (
                "spec/l/4/v",
                "  a:\n    b: old\n  l:\n  - name: \"n\"\n    v: \"1\"\n",
            ),
            (
                "spec/l/[name=o]/v",
                "  a:\n    b: old\n  l:\n  - name: \"n\"\n    v: \"1\"\n  - name: o\n    v: 7\n",
            ),
            (
                r"spec/a/x.io\/y",
                "  a:\n    b: old\n    x.io/y: 7\n  l:\n  - name: \"n\"\n    v: \"1\"\n",
            ),
        ];
        for (path, expected) in cases {
            assert_eq!(changed(&target(path), spec), expected, "{path}");
        }
        for (path, expected) in [
            (
                "spec/a",
                "wrong node kind: expected ScalarNode but got MappingNode",
            ),
            ("spec/*", "wildcard is not supported in PathGetter"),
            (
                "spec/a/0",
                "wrong node kind: expected SequenceNode but got MappingNode",
            ),
            (
                "spec/l/[n]",
                "list path element must contain fieldName=fieldValue for element to match",
            ),
        ] {
            assert_eq!(changed(&target(path), spec), expected, "{path}");
        }
    }

    #[test]
    fn value_add_defaults_to_the_directory() {
        let config =
            "{value: '  ', targets: [{fieldPath: spec/a, filePathPosition: 2, selector: {kind: A}}]}";
        assert_eq!(changed(config, "{a: x/y}"), "  a: x/dir/y\n");
        let config = config.replace("kind: A", "kind: B");
        assert_eq!(changed(&config, "{a: x/y}"), "  a: x/y\n");
    }

    #[test]
    fn value_add_sets_namespaces_like_the_transformer() {
        let config = configured("{value: team, targets: [{fieldPath: metadata/namespace}]}").unwrap();
        let object = "{apiVersion: v1, kind: A, metadata: {name: x}}";
        assert!(transformed(object, &config).ends_with("namespace: team\n"));
        let object = "{apiVersion: v1, kind: Namespace, metadata: {name: x}}";
        assert!(transformed(object, &config).ends_with("name: x\n"));
    }

    #[test]
    fn invalid_value_add_configurations_are_refused() {
        for (config, expected) in [
            ("{value: a}", "must specify at least one target"),
            ("{targets: [{}]}", "fieldPath cannot be empty"),
            (
                "{targets: [{fieldPath: a, filePathPosition: -1}]}",
                "value of FilePathPosition (-1) cannot be negative",
            ),
        ] {
            assert_eq!(configured(config).unwrap_err(), expected);
        }
    }
}
