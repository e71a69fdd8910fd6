//! The contents of `Chart.yaml`.

use std::{cell::RefCell, rc::Rc};

use go::strconv::is_print;
use tree::Budget;
use yaml::{Map, Value};

use crate::{
    Error, HelmVersion,
    fields::{FieldError, Fields, json_type},
    version,
};

/// A dependency, shared by the aliased copies of its chart: a change is visible to all.
pub type SharedDependency = Rc<RefCell<Dependency>>;

/// A dependency of a chart: an entry of `dependencies`.
#[derive(Debug, Clone, Default)]
pub struct Dependency {
    /// The name of the chart, replaced by its alias once dependencies are processed.
    pub name: String,
    pub version: String,
    pub repository: String,
    /// Comma-separated paths of values that enable the chart; the first existing one decides.
    pub condition: String,
    pub tags: Option<Vec<String>>,
    /// Result of conditions and tags.
    pub enabled: bool,
    pub import_values: ImportValues,
    pub alias: String,
}

#[derive(Debug, Clone)]
pub enum ImportValues {
    Asked(Vec<Value>),
    /// Source and target paths of completed imports, which are not repeated for another copy of the chart.
    Done(Vec<(String, String)>),
}

impl Default for ImportValues {
    fn default() -> Self {
        Self::Asked(Vec::new())
    }
}

#[derive(Debug, Clone, Default)]
pub struct Maintainer {
    pub name: String,
    pub email: String,
    pub url: String,
}

/// The contents of `Chart.yaml`, and of `requirements.yaml` for charts of API version v1.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "the fields are those of Chart.yaml")]
pub struct Metadata {
    pub name: String,
    pub home: String,
    pub sources: Option<Vec<String>>,
    pub version: String,
    pub description: String,
    pub keywords: Option<Vec<String>>,
    pub maintainers: Option<Vec<Maintainer>>,
    pub icon: String,
    pub api_version: String,
    pub condition: String,
    pub tags: String,
    pub app_version: String,
    pub deprecated: bool,
    pub annotations: Option<Vec<(String, String)>>,
    pub kube_version: String,
    /// `None` without a field `dependencies`.
    pub dependencies: Option<Vec<SharedDependency>>,
    pub kind: String,
}

/// Parses a file as a map; an empty file is an empty map.
pub(super) fn read_map(data: &[u8], file: &str, kind: &str, budget: &Budget) -> Result<Map, Error> {
    let failed = |message: String| Error::Chart(format!("cannot load {file}: {message}"));
    let document = yaml::read::goyaml_lenient(data, budget)
        .map_err(|error| failed(crate::values::yaml_words(&error)))?;
    match document.value {
        Value::Null => Ok(Map::new()),
        Value::Map(map) => Ok(map),
        other => Err(failed(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type {kind}",
            json_type(&other)
        ))),
    }
}

pub fn identity(data: &[u8], budget: &Budget) -> Result<(String, String), Error> {
    let mut metadata = Metadata::default();
    metadata.read(data, "Chart.yaml", budget)?;
    if metadata.api_version.is_empty() {
        metadata.api_version = "v1".to_owned();
    }
    metadata.validate(HelmVersion::default())?;
    Ok((metadata.name, metadata.version))
}

pub(super) fn check(data: &[u8], file: &str, budget: &Budget) -> Result<(), Error> {
    read_map(data, file, "chart.Lock", budget).map(|_| ())
}

impl Metadata {
    /// Stops sharing the dependencies with other copies of the chart.
    pub(crate) fn own_dependencies(&mut self) {
        for one in self.dependencies.iter_mut().flatten() {
            let copy = one.borrow().clone();
            *one = Rc::new(RefCell::new(copy));
        }
    }

    /// Reads a file; its fields replace earlier ones.
    pub(super) fn read(&mut self, data: &[u8], file: &str, budget: &Budget) -> Result<(), Error> {
        let map = read_map(data, file, "chart.Metadata", budget)?;
        let fields = Fields {
            map: &map,
            kind: "Metadata",
            above: None,
        };
        self.take(&fields).map_err(|error| {
            Error::Chart(match error {
                FieldError::NullItem(_) => error.to_string(),
                FieldError::Type { .. } => format!("cannot load {file}: {error}"),
            })
        })
    }

    /// Decodes the fields in the order of their keys, so that the first error is the one that Go reports.
    fn take(&mut self, fields: &Fields<'_>) -> Result<(), FieldError> {
        fields.text_map("annotations", &mut self.annotations)?;
        fields.text("apiVersion", &mut self.api_version)?;
        fields.text("appVersion", &mut self.app_version)?;
        fields.text("condition", &mut self.condition)?;
        // quirk: fields that are missing in this file keep their values of an earlier file.
        let mut before = self.dependencies.clone().unwrap_or_default().into_iter();
        let merged = |fields: &Fields<'_>| dependency(fields, before.next());
        if let Some(dependencies) = fields.structs("dependencies", "chart.Dependency", merged)? {
            self.dependencies = Some(dependencies);
        }
        fields.flag("deprecated", &mut self.deprecated)?;
        fields.text("description", &mut self.description)?;
        fields.text("home", &mut self.home)?;
        fields.text("icon", &mut self.icon)?;
        fields.strings("keywords", &mut self.keywords)?;
        fields.text("kubeVersion", &mut self.kube_version)?;
        if let Some(maintainers) = fields.structs("maintainers", "chart.Maintainer", maintainer)? {
            self.maintainers = Some(maintainers);
        }
        fields.text("name", &mut self.name)?;
        fields.strings("sources", &mut self.sources)?;
        fields.text("tags", &mut self.tags)?;
        fields.text("type", &mut self.kind)?;
        fields.text("version", &mut self.version)
    }

    /// Cleans the strings and validates the metadata as Helm does.
    pub(super) fn validate(&mut self, helm: HelmVersion) -> Result<(), Error> {
        let strings = [
            &mut self.name,
            &mut self.description,
            &mut self.home,
            &mut self.icon,
            &mut self.condition,
            &mut self.tags,
            &mut self.app_version,
            &mut self.kube_version,
        ];
        strings
            .into_iter()
            .chain(self.sources.iter_mut().flatten())
            .chain(self.keywords.iter_mut().flatten())
            .for_each(clean);
        self.complaint(helm).map_or(Ok(()), |message| {
            Err(Error::Chart(format!("validation: {message}")))
        })
    }

    fn complaint(&mut self, helm: HelmVersion) -> Option<String> {
        if self.api_version.is_empty() {
            return Some("chart.metadata.apiVersion is required".to_owned());
        }
        if self.name.is_empty() {
            return Some("chart.metadata.name is required".to_owned());
        }
        if helm.is_four() && matches!(self.name.as_str(), "." | "..") {
            return Some(format!("chart.metadata.name {:?} is not allowed", self.name));
        }
        if self.name.contains('/') {
            return Some(format!("chart.metadata.name {:?} is invalid", self.name));
        }
        if self.version.is_empty() {
            return Some("chart.metadata.version is required".to_owned());
        }
        if !version::is_version(&self.version) {
            return Some(format!("chart.metadata.version {:?} is invalid", self.version));
        }
        if !matches!(self.kind.as_str(), "" | "application" | "library") {
            return Some("chart.metadata.type must be application or library".to_owned());
        }
        for one in self.maintainers.iter_mut().flatten() {
            [&mut one.name, &mut one.email, &mut one.url]
                .into_iter()
                .for_each(clean);
        }
        let mut keys = std::collections::HashSet::new();
        for one in self.dependencies.iter().flatten() {
            let mut one = one.borrow_mut();
            if let Some(message) = one.complaint() {
                return Some(message);
            }
            let key = if one.alias.is_empty() {
                one.name.clone()
            } else {
                one.alias.clone()
            };
            if keys.contains(&key) {
                return Some(format!("more than one dependency with name or alias {key:?}"));
            }
            keys.insert(key);
        }
        None
    }
}

impl Dependency {
    fn complaint(&mut self) -> Option<String> {
        let strings = [
            &mut self.name,
            &mut self.version,
            &mut self.repository,
            &mut self.condition,
        ];
        strings
            .into_iter()
            .chain(self.tags.iter_mut().flatten())
            .for_each(clean);
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        (!self.alias.chars().all(allowed)).then(|| {
            format!(
                "dependency {:?} has disallowed characters in the alias",
                self.name
            )
        })
    }
}

fn maintainer(fields: &Fields<'_>) -> Result<Maintainer, FieldError> {
    let mut one = Maintainer::default();
    fields.text("email", &mut one.email)?;
    fields.text("name", &mut one.name)?;
    fields.text("url", &mut one.url)?;
    Ok(one)
}

fn dependency(fields: &Fields<'_>, before: Option<SharedDependency>) -> Result<SharedDependency, FieldError> {
    let mut one = before.map_or_else(Dependency::default, |before| before.borrow().clone());
    fields.text("alias", &mut one.alias)?;
    fields.text("condition", &mut one.condition)?;
    fields.flag("enabled", &mut one.enabled)?;
    let imports = fields.list("import-values", "[]interface {}")?;
    if let Some(imports) = imports {
        one.import_values = ImportValues::Asked(imports.to_vec());
    }
    fields.text("name", &mut one.name)?;
    fields.text("repository", &mut one.repository)?;
    fields.strings("tags", &mut one.tags)?;
    fields.text("version", &mut one.version)?;
    Ok(Rc::new(RefCell::new(one)))
}

/// Replaces white space by spaces and removes unprintable characters.
fn clean(text: &mut String) {
    let is_fine = |c: char| is_print(c) && (!c.is_whitespace() || c == ' ');
    if !text.chars().all(is_fine) {
        let spaced = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
        *text = spaced.filter(|c| is_print(*c)).collect();
    }
}
