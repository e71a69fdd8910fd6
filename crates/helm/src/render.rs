//! Renders charts to manifests.

mod capabilities;
mod engine;
mod records;
mod table;
#[cfg(test)]
mod tests;
mod trace;

use std::{collections::BTreeMap, fmt};

use go::bytes;
use tree::{Budget, Tree, TreePath, on_deep_stack};

use crate::{
    Chart, Dict, Error, HelmVersion, TemplateOutput, Value,
    functions::{Environment, WARNING_END, WARNING_START},
    manifest::{self, Sorted},
    values::{self, ReadFile, Sources},
    version,
};

pub use capabilities::{KubeVersion, KubeVersionError};

pub const DEPRECATED: &str = "WARNING: This chart is deprecated";

/// Options of a render, named as the flags of `helm template`.
#[derive(Clone)]
pub struct Options<'a> {
    pub release_name: String,
    /// A template for the name of the release; it replaces `release_name`.
    pub name_template: Option<String>,
    pub namespace: String,
    pub values: Sources,
    /// Sets `.Release.IsUpgrade` instead of `.Release.IsInstall`.
    pub is_upgrade: bool,
    pub include_crds: bool,
    pub no_hooks: bool,
    pub skip_tests: bool,
    pub skip_schema_validation: bool,
    /// Paths of templates. If there are any, the output is limited to their manifests.
    pub show_only: Vec<String>,
    pub helm_version: HelmVersion,
    /// The version of Kubernetes in `.Capabilities`; default: the one of the copied Helm release.
    pub kube_version: Option<String>,
    pub api_versions: Vec<String>,
    /// True if `api_versions` replaces the API versions that Helm knows.
    pub only_api_versions: bool,
    pub environment: &'a (dyn Environment + Sync),
    /// Reads the files of `--set-file`; without it, all files are missing.
    pub read_file: Option<ReadFile<'a>>,
}

impl<'a> Options<'a> {
    /// Returns default options for a release in the namespace `default`.
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
            helm_version: HelmVersion::default(),
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

#[derive(Debug, Clone, Default)]
pub struct Rendered {
    pub name: String,
    /// Paths and contents of the files in `crds` of the chart and its subcharts.
    pub crds: Vec<(String, String)>,
    pub sorted: Sorted,
    pub notes: String,
    pub warnings: Vec<String>,
    output: String,
}

impl Rendered {
    #[must_use]
    pub fn to_yaml(&self) -> &str {
        &self.output
    }
}

/// Renders the chart in a directory or an archive, as `helm template` does.
///
/// ```
/// use helm::{Options, functions::Moment};
/// use tree::{Budget, Mem, TreePath};
///
/// let chart = Mem::from_files([
///     ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
///     ("values.yaml", "replicas: 2\n"),
///     ("templates/config.yaml", "kind: ConfigMap\nname: {{ .Release.Name }}-{{ .Values.replicas }}\n"),
/// ])?;
/// let environment = Moment::new(1_700_000_000, 0, [7; 32]);
/// let options = Options::new("demo", &environment);
/// let rendered = helm::template(&chart, &TreePath::root(), &options, &Budget::default())?;
/// assert!(rendered.to_yaml().contains("name: demo-2"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Fails if the chart, its values or the options are invalid, a template fails, or a limit is reached.
pub fn template(
    tree: &dyn Tree,
    path: &TreePath,
    options: &Options<'_>,
    budget: &Budget,
) -> Result<Rendered, Error> {
    on_deep_stack(|| {
        let capabilities = capabilities::Capabilities::new(options)?;
        let name = engine::release_name(options, budget).map_err(without_marks)?;
        let helm = options.helm_version;
        let values = options.values.merge(options.read_file, helm, budget)?;
        let chart = Chart::load(tree, path, helm, budget)?;
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
    let helm = options.helm_version;
    chart.check_installable(helm)?;
    if chart.metadata.deprecated {
        rendered.warnings.push(DEPRECATED.to_owned());
    }
    check_name(&name).map_err(|error| step("release name check failed", error, helm))?;
    values::process_dependencies(&mut chart, values, helm, &mut rendered.warnings, budget)
        .map_err(|error| step("chart dependencies processing failed", error, helm))?;
    let values = values::coalesce_last(&chart, values, helm, &mut rendered.warnings)?;
    if !options.skip_schema_validation {
        values::schema::validate(&chart, &values, budget)?;
    }
    let wanted = &chart.metadata.kube_version;
    let version = &capabilities.kube_version.version;
    if !wanted.is_empty() && !version::is_compatible(wanted, version) {
        return Err(Error::Chart(format!(
            "chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {}",
            capabilities.full_kube_version()
        )));
    }
    let release = release(&name, options);
    rendered.name = name;
    let mut files = engine::run(
        &chart,
        &values,
        &release,
        capabilities,
        helm,
        options.environment,
        budget,
    )?;
    let notes = format!("{}/templates/NOTES.txt", chart.name());
    let notes = files.remove(&notes).unwrap_or_default();
    rendered.notes = bytes::to_valid_utf8(&notes).into_owned();
    files.retain(|path, _| !path.ends_with("NOTES.txt"));
    let texts = files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let sorted = manifest::sort(texts, helm, &mut rendered.warnings, budget);
    rendered.sorted = sorted.map_err(|error| with_texts(error, &files))?;
    let crd = |(path, file): (String, &crate::chart::File)| {
        (path, String::from_utf8_lossy(&file.data).into_owned())
    };
    rendered.crds = chart.crds().into_iter().map(crd).collect();
    rendered.output = output(&rendered, options)?;
    Ok(rendered)
}

fn with_texts(error: Error, files: &BTreeMap<String, String>) -> Error {
    let Error::NoManifest { message, .. } = error else {
        return error;
    };
    let mut all = String::new();
    for (path, text) in files.iter().filter(|(_, text)| !text.trim().is_empty()) {
        manifest::print(path, &bytes::to_valid_utf8(text), &mut all);
    }
    Error::NoManifest {
        message,
        output: TemplateOutput(all),
    }
}

/// Adds the step to an error, as Helm 4 does. Exceeded limits stay as they are.
fn step(step: &str, error: Error, helm: HelmVersion) -> Error {
    match (helm, error) {
        (HelmVersion::V4, Error::Option(message)) => Error::Option(format!("{step}: {message}")),
        (HelmVersion::V4, Error::Chart(message)) => Error::Chart(format!("{step}: {message}")),
        (HelmVersion::V4, Error::Values(message)) => Error::Values(format!("{step}: {message}")),
        (_, error) => error,
    }
}

/// Removes the marks of `fail` and `required` from errors about a release name.
fn without_marks(error: Error) -> Error {
    match error {
        Error::Option(message) => Error::Option(message.replace(WARNING_START, "").replace(WARNING_END, "")),
        error => error,
    }
}

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
        manifest::show_only(&output, &options.show_only, options.helm_version)
    }
}

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

/// The maximum length of a release name, in bytes.
const MAX_NAME: usize = 53;
/// The pattern of release names, as Helm prints it.
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
