//! `.kluctl.yaml`.

use tree::{Budget, Tree};
use yaml::{Map, Value};

use crate::{
    Error, Request,
    deployment::STEPS_OF_A_PATTERN,
    fields::Fields,
    files, images,
    legacy::{self, ProjectLocation, TargetFile},
    merge,
};

/// A decoded project file (`.kluctl.yaml`).
#[derive(Debug, Default)]
pub(crate) struct Project {
    /// True if the file has targets, usable or not.
    pub(crate) has_targets: bool,
    pub(crate) targets: Vec<TargetConfig>,
    pub(crate) args: Vec<Argument>,
    pub(crate) warnings: Vec<String>,
    /// Locations of the files that describe the clusters of targets (legacy).
    pub(crate) clusters: Vec<ProjectLocation>,
    /// Location of the deployment, if it isn't next to the file (legacy).
    pub(crate) external: Option<ProjectLocation>,
}

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
    pub(crate) aws: Map,
    pub(crate) images: Vec<Value>,
    pub(crate) cluster: Option<String>,
    /// Location of a file with more arguments and images of the target (legacy).
    pub(crate) file: Option<TargetFile>,
    /// The branch that it was made for.
    pub(crate) reference: Option<String>,
}

const ROOT_FIELDS: &[&str] = &[
    "targets",
    "args",
    "discriminator",
    "aws",
    "clusters",
    "deployment",
];
const ROOT_NOT_OBEYED: &[&str] = &["sealedSecrets", "secretsConfig"];
const TARGET_FIELDS: &[&str] = &[
    "name",
    "context",
    "args",
    "discriminator",
    "aws",
    "images",
    "cluster",
    "dynamicArgs",
    "targetConfig",
];
/// Cost of decoding a target, in steps of the budget.
const STEPS_OF_A_TARGET: u64 = 100;
const TARGET_NOT_OBEYED: &[&str] = &["sealingConfig"];

impl Project {
    /// Loads the project file; without one the project is empty.
    pub(crate) fn load(tree: &dyn Tree, request: &Request, budget: &Budget) -> Result<Self, Error> {
        let file = match &request.project_file {
            Some(file) => Some(files::either_extension(tree, file.clone())),
            None => files::find(tree, &request.project_dir, ".kluctl"),
        };
        let Some(file) = file else {
            return Ok(Self {
                targets: vec![TargetConfig::default()],
                ..Self::default()
            });
        };
        let value = files::parse_map(&file, &tree.read(&file)?, budget)?;
        Self::decode(&Fields::new(&file, &value, "", 1)?, budget)
    }

    fn decode(fields: &Fields<'_>, budget: &Budget) -> Result<Self, Error> {
        fields.check(ROOT_FIELDS, ROOT_NOT_OBEYED)?;
        let discriminator = fields.filled_string("discriminator")?;
        let aws = aws(fields)?;
        let mut project = Self {
            args: arguments(fields)?,
            clusters: legacy::clusters(fields)?,
            external: legacy::external_deployment(fields)?,
            ..Self::default()
        };
        let file = fields.file;
        for (index, target) in fields.seq("targets")?.iter().enumerate() {
            project.has_targets = true;
            let len = |field: &str| {
                target
                    .get(field)
                    .and_then(Value::as_seq)
                    .map_or(0, <[Value]>::len)
            };
            let patterns = len("images") + len("dynamicArgs");
            let steps = STEPS_OF_A_TARGET + patterns as u64 * STEPS_OF_A_PATTERN;
            budget
                .step(steps)
                .map_err(|source| fields.exceeded("targets", source))?;
            let path = format!("targets[{index}]");
            let mut target = decode_target(&Fields::new(file, target, &path, fields.line_of("targets"))?)?;
            target.discriminator = target.discriminator.or_else(|| discriminator.clone());
            fill(&mut target.aws, &aws);
            if target.name.is_empty() {
                project
                    .warnings
                    .push(format!("{file}: Target at index {index} has no name"));
            } else {
                project.targets.push(target);
            }
        }
        if !project.has_targets {
            project.targets.push(TargetConfig {
                discriminator,
                aws,
                ..TargetConfig::default()
            });
        }
        Ok(project)
    }
}

fn decode_target(fields: &Fields<'_>) -> Result<TargetConfig, Error> {
    fields.check(TARGET_FIELDS, TARGET_NOT_OBEYED)?;
    // They may hold templates, so they are only checked here.
    images::fixed_images(fields, "images")?;
    Ok(TargetConfig {
        name: fields.string("name")?.unwrap_or_default(),
        context: fields.string("context")?,
        discriminator: fields.filled_string("discriminator")?,
        args: fields
            .map("args")?
            .map(merge::map_through_json)
            .unwrap_or_default(),
        aws: aws(fields)?,
        images: fields.seq("images")?.to_vec(),
        cluster: fields.filled_string("cluster")?,
        file: legacy::target_file(fields)?,
        reference: None,
    })
}

/// Decodes `aws` without empty fields.
fn aws(fields: &Fields<'_>) -> Result<Map, Error> {
    let mut known = Map::new();
    let Some(value) = fields.map.get("aws").filter(|aws| !aws.is_null()) else {
        return Ok(known);
    };
    let path = fields.path_of("aws");
    let aws = Fields::new(fields.file, value, &path, fields.line_of("aws"))?;
    aws.check(&["profile", "serviceAccount"], &[])?;
    if let Some(profile) = aws.filled_string("profile")? {
        known.insert("profile", profile);
    }
    if let Some(value) = aws.map.get("serviceAccount").filter(|account| !account.is_null()) {
        let path = aws.path_of("serviceAccount");
        let account = Fields::new(fields.file, value, &path, aws.line_of("serviceAccount"))?;
        account.check(&["name", "namespace"], &[])?;
        let mut map = Map::new();
        map.insert("name", account.required("name")?);
        map.insert("namespace", account.required("namespace")?);
        known.insert("serviceAccount", map);
    }
    Ok(known)
}

/// Fills missing fields of a target from the project.
fn fill(aws: &mut Map, of_project: &Map) {
    for (key, value) in of_project {
        if !aws.contains_key(key) {
            aws.insert(key, value.clone());
        }
    }
}

/// Decodes the declared arguments of a project or a library.
pub(crate) fn arguments(fields: &Fields<'_>) -> Result<Vec<Argument>, Error> {
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
