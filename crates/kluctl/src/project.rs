//! `.kluctl.yaml`.

use tree::{Budget, Tree, TreePath};
use yaml::{Map, Value};

use crate::{Error, fields::Fields, files, merge};

/// What is obeyed of a project file.
#[derive(Debug, Default)]
pub(crate) struct Project {
    /// Whether the file names any target, usable or not.
    pub(crate) has_targets: bool,
    pub(crate) targets: Vec<TargetConfig>,
    pub(crate) args: Vec<Argument>,
    pub(crate) warnings: Vec<String>,
}

/// The declaration of an argument.
#[derive(Debug)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) default: Option<Value>,
}

/// A target as it is written, or as far as it is rendered.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TargetConfig {
    pub(crate) name: String,
    pub(crate) context: Option<String>,
    pub(crate) discriminator: Option<String>,
    pub(crate) args: Map,
}

const ROOT_FIELDS: &[&str] = &["targets", "args", "discriminator"];
const ROOT_NOT_OBEYED: &[&str] = &["aws"];
const TARGET_FIELDS: &[&str] = &["name", "context", "args", "discriminator"];
const TARGET_NOT_OBEYED: &[&str] = &["aws", "images"];

impl Project {
    /// Loads the project file; without one the project is empty.
    pub(crate) fn load(tree: &dyn Tree, dir: &TreePath, budget: &Budget) -> Result<Self, Error> {
        let Some(file) = files::find(tree, dir, ".kluctl") else {
            return Ok(Self {
                targets: vec![TargetConfig::default()],
                ..Self::default()
            });
        };
        let value = files::parse(&file, &tree.read(&file)?, budget)?;
        let value = if value.is_null() {
            Value::Map(Map::new())
        } else {
            value
        };
        Self::decode(&file, &value)
    }

    fn decode(file: &TreePath, value: &Value) -> Result<Self, Error> {
        let fields = Fields::new(file, value, "", 1)?;
        fields.check(ROOT_FIELDS, ROOT_NOT_OBEYED)?;
        let discriminator = fields.filled_string("discriminator")?;
        let mut project = Self {
            args: arguments(&fields)?,
            ..Self::default()
        };
        for (index, target) in fields.seq("targets")?.iter().enumerate() {
            project.has_targets = true;
            let path = format!("targets[{index}]");
            let mut target = decode_target(&Fields::new(file, target, &path, fields.line_of("targets"))?)?;
            target.discriminator = target.discriminator.or_else(|| discriminator.clone());
            if target.name.is_empty() {
                project
                    .warnings
                    .push(format!("{file}: Target at index {index} has no name"));
            } else if project.targets.iter().any(|other| other.name == target.name) {
                project
                    .warnings
                    .push(format!("{file}: Duplicate target {}", target.name));
            } else {
                project.targets.push(target);
            }
        }
        if !project.has_targets {
            project.targets.push(TargetConfig {
                discriminator,
                ..TargetConfig::default()
            });
        }
        Ok(project)
    }
}

fn decode_target(fields: &Fields<'_>) -> Result<TargetConfig, Error> {
    fields.check(TARGET_FIELDS, TARGET_NOT_OBEYED)?;
    Ok(TargetConfig {
        name: fields.string("name")?.unwrap_or_default(),
        context: fields.string("context")?,
        discriminator: fields.filled_string("discriminator")?,
        args: fields
            .map("args")?
            .map(merge::map_through_json)
            .unwrap_or_default(),
    })
}

fn arguments(fields: &Fields<'_>) -> Result<Vec<Argument>, Error> {
    let mut arguments = Vec::new();
    for (index, value) in fields.seq("args")?.iter().enumerate() {
        let path = format!("args[{index}]");
        let argument = Fields::new(fields.file, value, &path, fields.line_of("args"))?;
        argument.check(&["name", "default"], &[])?;
        let name = argument.filled_string("name")?;
        let name = name.ok_or_else(|| argument.invalid("name", format!("{path}.name is required")))?;
        let default = argument.map.get("default").filter(|default| !default.is_null());
        arguments.push(Argument {
            name,
            default: default.map(merge::through_json),
        });
    }
    Ok(arguments)
}
