//! Go structs in the data of templates.

use std::{any::Any, rc::Rc};

use tree::Budget;

use super::table;
use crate::{
    Dict, HelmVersion, List, Object, Value,
    chart::{Dependency, ImportValues, Maintainer, Metadata, SharedDependency},
    functions::ErrorValue,
    template::{FormatError, FunctionError, Signature, printed, truth},
};

#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) type_name: &'static str,
    pub(super) kind_name: &'static str,
    pub(super) fields: Vec<Field>,
    pub(super) text: String,
    /// The string that functions print, if it differs.
    pub(super) argument: Option<String>,
}

/// Values of charts: a map with a named type.
#[derive(Debug)]
struct Values(Dict, HelmVersion);

/// `.Values` and `.Template`
pub(super) fn values(map: Dict, helm: HelmVersion) -> Value {
    Value::Object(Rc::new(Values(map, helm)))
}

/// Returns the map of a value that is one with a named type.
fn map_of(value: &Value) -> Option<Dict> {
    match value {
        Value::Object(object) => Some(object.as_any()?.downcast_ref::<Values>()?.0.clone()),
        _ => None,
    }
}

impl Object for Values {
    fn type_name(&self) -> &str {
        self.1.pick("chartutil.Values", "common.Values")
    }

    fn kind_name(&self) -> &'static str {
        "map"
    }

    fn field(&self, _: &str) -> Option<Value> {
        None
    }

    fn signature(&self, name: &str) -> Option<Signature> {
        table::signature(name)
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, FunctionError>> {
        self.call_within(name, arguments, &Budget::default())
    }

    fn call_within(
        &self,
        name: &str,
        arguments: &[Value],
        budget: &Budget,
    ) -> Option<Result<Value, FunctionError>> {
        table::call(
            &self.0,
            name,
            arguments,
            budget,
            |map| self.with_dict(map),
            map_of,
        )
    }

    fn with_dict(&self, map: Dict) -> Value {
        values(map, self.1)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn as_dict(&self) -> Option<Dict> {
        Some(self.0.clone())
    }

    fn print(&self, budget: &Budget) -> Result<String, FormatError> {
        let map = Value::Dict(self.0.clone());
        crate::template::print(std::slice::from_ref(&map), budget)
    }

    fn truth(&self) -> bool {
        !self.0.borrow().is_empty()
    }
}

#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) json: Option<&'static str>,
    pub(super) omit_empty: bool,
    pub(super) value: Value,
}

/// Makes a field that JSON contains even if it is empty.
pub(super) fn field(name: &'static str, json: &'static str, value: Value) -> Field {
    Field {
        name,
        json: Some(json),
        omit_empty: false,
        value,
    }
}

/// Makes a field that JSON omits if it is empty.
fn optional(name: &'static str, json: &'static str, value: Value) -> Field {
    Field {
        name,
        json: Some(json),
        omit_empty: true,
        value,
    }
}

impl Record {
    fn is(&self, name: &str) -> bool {
        self.type_name.rsplit('.').next() == Some(name)
    }

    fn has_method(&self, name: &str) -> bool {
        match name {
            "Copy" => self.is("Capabilities"),
            "GitVersion" | "String" => self.is("KubeVersion"),
            "Validate" => self.is("Maintainer") || self.is("Dependency"),
            _ => false,
        }
    }
}

impl Object for Record {
    fn type_name(&self) -> &str {
        self.type_name
    }

    fn kind_name(&self) -> &'static str {
        self.kind_name
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.fields
            .iter()
            .find(|field| field.name == name)
            .map(|field| field.value.clone())
    }

    fn signature(&self, name: &str) -> Option<Signature> {
        self.has_method(name).then(|| Signature::fixed(&[]))
    }

    fn call(&self, name: &str, _: &[Value]) -> Option<Result<Value, FunctionError>> {
        if !self.has_method(name) {
            return None;
        }
        Some(match name {
            "Copy" => Ok(Value::Object(Rc::new(self.clone()))),
            // Charts are validated before.
            "Validate" => Ok(ErrorValue::of(Ok(()))),
            _ => Ok(self.field(name).unwrap_or_default()),
        })
    }

    fn members(&self) -> Option<Vec<(&'static str, Value)>> {
        let visible = self
            .fields
            .iter()
            .filter(|field| !field.omit_empty || truth(&field.value));
        let member = |field: &Field| Some((field.json?, field.value.clone()));
        Some(visible.filter_map(member).collect())
    }

    fn print(&self, budget: &Budget) -> Result<String, FormatError> {
        printed(&self.text, budget)
    }

    fn print_as_argument(&self, budget: &Budget) -> Result<String, FormatError> {
        printed(self.argument.as_ref().unwrap_or(&self.text), budget)
    }
}

/// A list or a map whose elements have a named type; it may be nil.
#[derive(Debug)]
struct Typed {
    type_name: &'static str,
    is_map: bool,
    value: Value,
}

fn typed(type_name: &'static str, value: Option<Value>) -> Value {
    Value::Object(Rc::new(Typed {
        type_name,
        is_map: type_name.starts_with("map"),
        value: value.unwrap_or_default(),
    }))
}

impl Object for Typed {
    fn type_name(&self) -> &str {
        self.type_name
    }

    fn kind_name(&self) -> &'static str {
        if self.is_map { "map" } else { "slice" }
    }

    /// Returns an entry of a map of strings; a missing entry is an empty string.
    fn field(&self, name: &str) -> Option<Value> {
        let found = self.as_dict()?.borrow().get(name).cloned();
        Some(found.unwrap_or_else(|| text("")))
    }

    fn call(&self, _: &str, _: &[Value]) -> Option<Result<Value, FunctionError>> {
        None
    }

    fn as_dict(&self) -> Option<Dict> {
        self.is_map.then(|| self.value.as_dict().unwrap_or_default())
    }

    fn has_any_values(&self) -> bool {
        false
    }

    fn as_list(&self) -> Option<List> {
        (!self.is_map).then(|| self.value.as_list().unwrap_or_default())
    }

    fn data(&self) -> Option<Value> {
        Some(self.value.clone())
    }

    fn print(&self, budget: &Budget) -> Result<String, FormatError> {
        let plain = match (self.as_dict(), self.as_list()) {
            (Some(map), _) => Value::Dict(map),
            (None, items) => Value::List(items.unwrap_or_default()),
        };
        crate::template::print(&[plain], budget)
    }

    fn truth(&self) -> bool {
        truth(&self.value)
    }
}

fn text(text: &str) -> Value {
    Value::utf8(text)
}

fn strings(items: Option<&Vec<String>>) -> Value {
    match items {
        Some(items) => Value::Strings(Rc::new(items.iter().map(|item| text(item)).collect())),
        None => Value::nil_strings(),
    }
}

/// `.Chart`: a struct in Helm 3, a map since Helm 4.
pub(super) fn chart(metadata: &Metadata, is_root: bool, helm: HelmVersion) -> Value {
    match helm {
        HelmVersion::V3 => chart_struct(metadata, is_root),
        HelmVersion::V4 => chart_map(metadata, is_root),
    }
}

fn chart_struct(metadata: &Metadata, is_root: bool) -> Value {
    let inner = fields(metadata);
    let printed = print(metadata);
    let mut fields = fields(metadata);
    let embedded = Record {
        type_name: "chart.Metadata",
        kind_name: "struct",
        fields: inner,
        text: printed.clone(),
        argument: None,
    };
    let embedded = Value::Object(Rc::new(embedded));
    fields.push(Field {
        name: "Metadata",
        json: None,
        omit_empty: true,
        value: embedded,
    });
    fields.push(field("IsRoot", "IsRoot", Value::Bool(is_root)));
    Value::Object(Rc::new(Record {
        type_name: "struct { chart.Metadata; IsRoot bool }",
        kind_name: "struct",
        fields,
        text: format!("{{{printed} {is_root}}}"),
        argument: None,
    }))
}

fn fields(metadata: &Metadata) -> Vec<Field> {
    let annotations = |entries: &Vec<(String, String)>| {
        Value::dict(entries.iter().map(|(key, value)| (key.as_str(), text(value))))
    };
    let maintainers = |all: &Vec<Maintainer>| Value::list(all.iter().map(maintainer).collect());
    let dependencies =
        |all: &Vec<SharedDependency>| Value::list(all.iter().map(|one| dependency(&one.borrow())).collect());
    vec![
        optional("Name", "name", text(&metadata.name)),
        optional("Home", "home", text(&metadata.home)),
        optional("Sources", "sources", strings(metadata.sources.as_ref())),
        optional("Version", "version", text(&metadata.version)),
        optional("Description", "description", text(&metadata.description)),
        optional("Keywords", "keywords", strings(metadata.keywords.as_ref())),
        optional(
            "Maintainers",
            "maintainers",
            typed(
                "[]*chart.Maintainer",
                metadata.maintainers.as_ref().map(maintainers),
            ),
        ),
        optional("Icon", "icon", text(&metadata.icon)),
        optional("APIVersion", "apiVersion", text(&metadata.api_version)),
        optional("Condition", "condition", text(&metadata.condition)),
        optional("Tags", "tags", text(&metadata.tags)),
        optional("AppVersion", "appVersion", text(&metadata.app_version)),
        optional("Deprecated", "deprecated", Value::Bool(metadata.deprecated)),
        optional(
            "Annotations",
            "annotations",
            typed(
                "map[string]string",
                metadata.annotations.as_ref().map(annotations),
            ),
        ),
        optional("KubeVersion", "kubeVersion", text(&metadata.kube_version)),
        optional(
            "Dependencies",
            "dependencies",
            typed(
                "[]*chart.Dependency",
                metadata.dependencies.as_ref().map(dependencies),
            ),
        ),
        optional("Type", "type", text(&metadata.kind)),
    ]
}

/// Returns the fields of the struct as a map. The structs in its lists are maps, too, and its lists are never nil.
fn chart_map(metadata: &Metadata, is_root: bool) -> Value {
    let lists = |items: Option<&Vec<String>>| {
        Value::list(items.into_iter().flatten().map(|item| text(item)).collect())
    };
    let maintainer = |one: &Maintainer| {
        Value::dict([
            ("Name", text(&one.name)),
            ("Email", text(&one.email)),
            ("URL", text(&one.url)),
        ])
    };
    let dependency = |one: &SharedDependency| {
        let one = one.borrow();
        Value::dict([
            ("Name", text(&one.name)),
            ("Version", text(&one.version)),
            ("Repository", text(&one.repository)),
            ("Condition", text(&one.condition)),
            ("Tags", lists(one.tags.as_ref())),
            ("Enabled", Value::Bool(one.enabled)),
            (
                "ImportValues",
                // Made anew, since the list without imports is nil.
                Value::list(
                    imports(&one.import_values)
                        .0
                        .as_list()
                        .unwrap_or_default()
                        .to_vec(),
                ),
            ),
            ("Alias", text(&one.alias)),
        ])
    };
    let (maintainers, dependencies) = (metadata.maintainers.iter(), metadata.dependencies.iter());
    let map = fields(metadata).into_iter().map(|field| {
        let value = match field.name {
            "Sources" => lists(metadata.sources.as_ref()),
            "Keywords" => lists(metadata.keywords.as_ref()),
            "Maintainers" => Value::list(maintainers.clone().flatten().map(maintainer).collect()),
            "Dependencies" => Value::list(dependencies.clone().flatten().map(dependency).collect()),
            _ => field.value,
        };
        (field.name, value)
    });
    Value::dict(map.chain([("IsRoot", Value::Bool(is_root))]))
}

fn print(metadata: &Metadata) -> String {
    let m = metadata;
    let list =
        |items: Option<&Vec<String>>| format!("[{}]", items.map_or(String::new(), |items| items.join(" ")));
    let annotations: Vec<String> = m
        .annotations
        .iter()
        .flatten()
        .map(|(key, value)| format!("{key}:{value}"))
        .collect();
    let pointers = |count: usize| format!("[{}]", vec!["0xc000000000"; count].join(" "));
    format!(
        "{{{} {} {} {} {} {} {} {} {} {} {} {} {} map[{}] {} {} {}}}",
        m.name,
        m.home,
        list(m.sources.as_ref()),
        m.version,
        m.description,
        list(m.keywords.as_ref()),
        pointers(m.maintainers.as_ref().map_or(0, Vec::len)),
        m.icon,
        m.api_version,
        m.condition,
        m.tags,
        m.app_version,
        m.deprecated,
        annotations.join(" "),
        m.kube_version,
        pointers(m.dependencies.as_ref().map_or(0, Vec::len)),
        m.kind
    )
}

fn maintainer(one: &Maintainer) -> Value {
    Value::Object(Rc::new(Record {
        type_name: "*chart.Maintainer",
        kind_name: "ptr",
        fields: vec![
            optional("Name", "name", text(&one.name)),
            optional("Email", "email", text(&one.email)),
            optional("URL", "url", text(&one.url)),
        ],
        argument: Some(format!("&{{{} {} {}}}", one.name, one.email, one.url)),
        text: format!("{{{} {} {}}}", one.name, one.email, one.url),
    }))
}

fn dependency(one: &Dependency) -> Value {
    let tags = one.tags.as_ref().map_or(String::new(), |tags| tags.join(" "));
    let (imports, printed) = imports(&one.import_values);
    let printed = format!(
        "{{{} {} {} {} [{tags}] {} [{printed}] {}}}",
        one.name, one.version, one.repository, one.condition, one.enabled, one.alias
    );
    Value::Object(Rc::new(Record {
        type_name: "*chart.Dependency",
        kind_name: "ptr",
        fields: vec![
            field("Name", "name", text(&one.name)),
            optional("Version", "version", text(&one.version)),
            field("Repository", "repository", text(&one.repository)),
            optional("Condition", "condition", text(&one.condition)),
            optional("Tags", "tags", strings(one.tags.as_ref())),
            optional("Enabled", "enabled", Value::Bool(one.enabled)),
            optional("ImportValues", "import-values", imports),
            optional("Alias", "alias", text(&one.alias)),
        ],
        argument: Some(format!("&{printed}")),
        text: printed,
    }))
}

/// Returns the processed `import-values` of a dependency, as a value and as Helm prints it.
fn imports(imports: &ImportValues) -> (Value, String) {
    let ImportValues::Done(paths) = imports else {
        return (Value::nil_list(), String::new());
    };
    if paths.is_empty() {
        return (Value::nil_list(), String::new());
    }
    let entry = |(child, parent): &(String, String)| {
        let map = Value::dict([("child", text(child)), ("parent", text(parent))]);
        typed("map[string]string", Some(map))
    };
    let printed: Vec<String> = paths
        .iter()
        .map(|(child, parent)| format!("map[child:{child} parent:{parent}]"))
        .collect();
    (Value::list(paths.iter().map(entry).collect()), printed.join(" "))
}
