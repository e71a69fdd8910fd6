//! Renders charts: from files, values and options to manifests.

mod capabilities;
mod engine;
mod records;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt};

use tree::{Budget, Tree, TreePath, on_deep_stack};

use crate::{
    Chart, Dict, Error, Texts, Value,
    functions::{Environment, WARNING_END, WARNING_START},
    manifest::{self, Sorted},
    values::{self, ReadFile, Sources},
    version,
};

pub use capabilities::{KubeVersion, KubeVersionError};

/// The warning for a chart that is deprecated.
pub const DEPRECATED: &str = "WARNING: This chart is deprecated";

/// How a chart is rendered; the names are those of the options of `helm template`.
#[derive(Clone)]
pub struct Options<'a> {
    /// The name of the release.
    pub release_name: String,
    /// A template of the name of the release, in place of a name.
    pub name_template: Option<String>,
    /// The namespace of the release.
    pub namespace: String,
    /// What is put over the chart's own values.
    pub values: Sources,
    /// Whether templates see an upgrade instead of an installation.
    pub is_upgrade: bool,
    /// Whether the files in `crds` are printed too.
    pub include_crds: bool,
    /// Whether hooks are left out.
    pub no_hooks: bool,
    /// Whether hooks that test the release are left out.
    pub skip_tests: bool,
    /// Whether `values.schema.json` is not looked at.
    pub skip_schema_validation: bool,
    /// Only what comes from templates of these paths is printed, when there are some.
    pub show_only: Vec<String>,
    /// The version of Kubernetes that templates see.
    pub kube_version: Option<String>,
    /// What the API server serves besides what Helm knows itself.
    pub api_versions: Vec<String>,
    /// Whether `api_versions` are all that is served, and Helm's own don't count.
    pub only_api_versions: bool,
    /// The time, randomness and the cluster.
    pub environment: &'a (dyn Environment + Sync),
    /// Reads the files that `--set-file` names.
    pub read_file: Option<ReadFile<'a>>,
}

impl<'a> Options<'a> {
    /// The options of a release in the namespace `default`, and nothing else.
    #[must_use]
    pub fn new(release_name: &str, environment: &'a (dyn Environment + Sync)) -> Self {
        Self {
            release_name: release_name.to_owned(),
            name_template: None,
            namespace: "default".to_owned(),
            values: Sources::default(),
            is_upgrade: false,
            include_crds: false,
            no_hooks: false,
            skip_tests: false,
            skip_schema_validation: false,
            show_only: Vec::new(),
            kube_version: None,
            api_versions: Vec::new(),
            only_api_versions: false,
            environment,
            read_file: None,
        }
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values may be secret.
        f.debug_struct("Options")
            .field("release_name", &self.release_name)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// What a chart gave.
#[derive(Debug, Clone, Default)]
pub struct Rendered {
    /// The name of the release.
    pub name: String,
    /// The files in `crds` of the chart and those it brings, by their paths.
    pub crds: Vec<(String, String)>,
    /// Manifests and hooks.
    pub sorted: Sorted,
    /// What the chart tells who installs it.
    pub notes: String,
    /// What was said that is no error.
    pub warnings: Vec<String>,
    output: String,
}

impl Rendered {
    /// What `helm template` prints.
    #[must_use]
    pub fn to_yaml(&self) -> &str {
        &self.output
    }
}

/// Renders the chart in a directory, or in an archive.
///
/// # Errors
/// When the chart, its values or the options make no sense, a template fails, or a limit is reached.
pub fn template(
    tree: &dyn Tree,
    path: &TreePath,
    options: &Options<'_>,
    budget: &Budget,
) -> Result<Rendered, Error> {
    on_deep_stack(|| {
        let capabilities = capabilities::Capabilities::new(options)?;
        let name = engine::release_name(options, budget).map_err(without_marks)?;
        let values = options.values.merge(options.read_file, budget)?;
        let chart = Chart::load(tree, path, budget)?;
        render(chart, name, &values, options, &capabilities, budget)
    })
    .map_err(|error| Error::Option(format!("no stack to render on: {error}")))?
}

fn render(
    mut chart: Chart,
    name: String,
    values: &Dict,
    options: &Options<'_>,
    capabilities: &capabilities::Capabilities,
    budget: &Budget,
) -> Result<Rendered, Error> {
    let mut rendered = Rendered {
        warnings: all_warnings(&mut chart),
        ..Rendered::default()
    };
    chart.check_installable()?;
    if chart.metadata.deprecated {
        rendered.warnings.push(DEPRECATED.to_owned());
    }
    check_name(&name)?;
    values::process_dependencies(&mut chart, values, &mut rendered.warnings)?;
    let values = values::coalesce_last(&chart, values, &mut rendered.warnings)?;
    if !options.skip_schema_validation {
        values::schema::validate(&chart, &values, budget)?;
    }
    let wanted = &chart.metadata.kube_version;
    let version = &capabilities.kube_version.version;
    if !wanted.is_empty() && !version::is_compatible(wanted, version) {
        return Err(Error::Chart(format!(
            "chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {version}"
        )));
    }
    let release = release(&name, options);
    rendered.name = name;
    let mut files = engine::run(
        &chart,
        &values,
        &release,
        capabilities,
        options.environment,
        budget,
    )?;
    let notes = format!("{}/templates/NOTES.txt", chart.name());
    rendered.notes = files.remove(&notes).unwrap_or_default();
    files.retain(|path, _| !path.ends_with("NOTES.txt"));
    let texts = files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let sorted = manifest::sort(texts, &mut rendered.warnings, budget);
    rendered.sorted = sorted.map_err(|error| with_texts(error, &files))?;
    let crd = |(path, file): (String, &crate::chart::File)| {
        (path, String::from_utf8_lossy(&file.data).into_owned())
    };
    rendered.crds = chart.crds().into_iter().map(crd).collect();
    rendered.output = output(&rendered, options)?;
    Ok(rendered)
}

/// An error with all that templates gave, for who looks for what is wrong with it.
fn with_texts(error: Error, files: &BTreeMap<String, String>) -> Error {
    let Error::NoManifest { words, .. } = error else {
        return error;
    };
    let mut all = String::new();
    for (path, text) in files.iter().filter(|(_, text)| !text.trim().is_empty()) {
        manifest::print(path, text, &mut all);
    }
    Error::NoManifest {
        words,
        texts: Texts(all),
    }
}

/// What `fail` and `required` say about the name of a release, as they are told outside of manifests.
fn without_marks(error: Error) -> Error {
    match error {
        Error::Option(words) => Error::Option(words.replace(WARNING_START, "").replace(WARNING_END, "")),
        error => error,
    }
}

/// The warnings of a chart and of those that it brings.
fn all_warnings(chart: &mut Chart) -> Vec<String> {
    let mut warnings = std::mem::take(&mut chart.warnings);
    for inner in &mut chart.dependencies {
        warnings.append(&mut all_warnings(inner));
    }
    warnings
}

fn output(rendered: &Rendered, options: &Options<'_>) -> Result<String, Error> {
    let mut manifests = String::new();
    if options.include_crds {
        for (path, text) in &rendered.crds {
            manifest::print(path, text, &mut manifests);
        }
    }
    for one in &rendered.sorted.manifests {
        manifest::print(&one.path, &one.text, &mut manifests);
    }
    let mut output = format!("{}\n", manifests.trim());
    if !options.no_hooks {
        for hook in rendered
            .sorted
            .hooks
            .iter()
            .filter(|hook| !(options.skip_tests && hook.is_test()))
        {
            manifest::print(&hook.manifest.path, &hook.manifest.text, &mut output);
        }
    }
    if options.show_only.is_empty() {
        Ok(output)
    } else {
        manifest::show_only(&output, &options.show_only)
    }
}

/// `.Release`
fn release(name: &str, options: &Options<'_>) -> Value {
    let namespace = match options.namespace.as_str() {
        "" => "default",
        given => given,
    };
    Value::dict([
        ("Name", Value::string(name)),
        ("Namespace", Value::string(namespace)),
        ("IsUpgrade", Value::Bool(options.is_upgrade)),
        ("IsInstall", Value::Bool(!options.is_upgrade)),
        ("Revision", Value::int(1)),
        ("Service", Value::string("Helm")),
    ])
}

/// How long the name of a release may be.
const MAX_NAME: usize = 53;
/// What names of releases look like, in the words of Helm.
const NAME: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() {
        return Err(Error::Option("release name \"\": no name provided".to_owned()));
    }
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_label = |label: &str| {
        label.starts_with(is_inner)
            && label.ends_with(is_inner)
            && label.chars().all(|c| is_inner(c) || c == '-')
    };
    if name.len() <= MAX_NAME && name.split('.').all(is_label) {
        return Ok(());
    }
    Err(Error::Option(format!(
        "release name {name:?}: invalid release name, must match regex {NAME} and the length must not be longer than \
         {MAX_NAME}"
    )))
}
