//! Structs of Go that templates see.

use std::rc::Rc;

use crate::{
    Dict, Object, Value,
    chart::{Dependency, Maintainer, Metadata},
    template::truth,
};

/// A struct: fields in order, and how it is printed.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) type_name: &'static str,
    pub(super) kind_name: &'static str,
    pub(super) fields: Vec<Field>,
    pub(super) text: String,
}

/// Values of charts: a map whose type has a name.
#[derive(Debug)]
struct Values(Dict);

/// `.Values` and `.Template`
pub(super) fn values(map: Dict) -> Value {
    Value::Object(Rc::new(Values(map)))
}

impl Object for Values {
    fn type_name(&self) -> &str {
        "chartutil.Values"
    }

    fn kind_name(&self) -> &'static str {
        "map"
    }

    fn field(&self, _: &str) -> Option<Value> {
        None
    }

    fn call(&self, _: &str, _: &[Value]) -> Option<Result<Value, String>> {
        None
    }

    fn as_dict(&self) -> Option<Dict> {
        Some(self.0.clone())
    }

    fn print(&self) -> String {
        print_map(&self.0)
    }

    fn truth(&self) -> bool {
        !self.0.borrow().is_empty()
    }
}

fn print_map(map: &Dict) -> String {
    let map = Value::Dict(map.clone());
    crate::template::print(std::slice::from_ref(&map), &tree::Budget::default()).unwrap_or_default()
}

/// A field, its name in JSON, and whether JSON leaves it out when it is empty.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) json: Option<&'static str>,
    pub(super) omit_empty: bool,
    pub(super) value: Value,
}

/// A field that JSON has also when it is empty.
pub(super) fn field(name: &'static str, json: &'static str, value: Value) -> Field {
    Field {
        name,
        json: Some(json),
        omit_empty: false,
        value,
    }
}

/// A field that JSON leaves out when it is empty.
fn optional(name: &'static str, json: &'static str, value: Value) -> Field {
    Field {
        name,
        json: Some(json),
        omit_empty: true,
        value,
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

    fn call(&self, _: &str, _: &[Value]) -> Option<Result<Value, String>> {
        None
    }

    fn data(&self) -> Value {
        let shown = self
            .fields
            .iter()
            .filter(|field| !field.omit_empty || truth(&field.value));
        Value::dict(shown.filter_map(|field| Some((field.json?, data(&field.value)))))
    }

    fn print(&self) -> String {
        self.text.clone()
    }
}

fn data(value: &Value) -> Value {
    match value {
        Value::Object(object) => object.data(),
        Value::List(items) => Value::list(items.iter().map(data).collect()),
        other => other.clone(),
    }
}

fn text(text: &str) -> Value {
    Value::string(text)
}

fn texts(items: &[String]) -> Value {
    Value::Strings(Rc::new(items.iter().map(|item| text(item)).collect()))
}

/// `.Chart`
pub(super) fn chart(metadata: &Metadata, is_root: bool) -> Value {
    let inner = fields(metadata);
    let printed = print(metadata);
    let mut fields = fields(metadata);
    let embedded = Record {
        type_name: "chart.Metadata",
        kind_name: "struct",
        fields: inner,
        text: printed.clone(),
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
    }))
}

fn fields(metadata: &Metadata) -> Vec<Field> {
    let annotations = metadata
        .annotations
        .iter()
        .map(|(key, value)| (key.as_str(), text(value)));
    let dependencies = metadata
        .dependencies
        .iter()
        .flatten()
        .map(|one| dependency(&one.borrow()));
    vec![
        optional("Name", "name", text(&metadata.name)),
        optional("Home", "home", text(&metadata.home)),
        optional("Sources", "sources", texts(&metadata.sources)),
        optional("Version", "version", text(&metadata.version)),
        optional("Description", "description", text(&metadata.description)),
        optional("Keywords", "keywords", texts(&metadata.keywords)),
        optional(
            "Maintainers",
            "maintainers",
            Value::list(metadata.maintainers.iter().map(maintainer).collect()),
        ),
        optional("Icon", "icon", text(&metadata.icon)),
        optional("APIVersion", "apiVersion", text(&metadata.api_version)),
        optional("Condition", "condition", text(&metadata.condition)),
        optional("Tags", "tags", text(&metadata.tags)),
        optional("AppVersion", "appVersion", text(&metadata.app_version)),
        optional("Deprecated", "deprecated", Value::Bool(metadata.deprecated)),
        optional("Annotations", "annotations", Value::dict(annotations)),
        optional("KubeVersion", "kubeVersion", text(&metadata.kube_version)),
        optional(
            "Dependencies",
            "dependencies",
            Value::list(dependencies.collect()),
        ),
        optional("Type", "type", text(&metadata.kind)),
    ]
}

/// As Go prints the struct, but for the addresses of what it points to.
fn print(metadata: &Metadata) -> String {
    let m = metadata;
    let list = |items: &[String]| format!("[{}]", items.join(" "));
    let annotations: Vec<String> = m
        .annotations
        .iter()
        .map(|(key, value)| format!("{key}:{value}"))
        .collect();
    let pointers = |count: usize| format!("[{}]", vec!["0xc000000000"; count].join(" "));
    format!(
        "{{{} {} {} {} {} {} {} {} {} {} {} {} {} map[{}] {} {} {}}}",
        m.name,
        m.home,
        list(&m.sources),
        m.version,
        m.description,
        list(&m.keywords),
        pointers(m.maintainers.len()),
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
        text: format!("{{{} {} {}}}", one.name, one.email, one.url),
    }))
}

fn dependency(one: &Dependency) -> Value {
    let imports = one.import_values.iter().map(Value::from_yaml).collect();
    Value::Object(Rc::new(Record {
        type_name: "*chart.Dependency",
        kind_name: "ptr",
        fields: vec![
            field("Name", "name", text(&one.name)),
            optional("Version", "version", text(&one.version)),
            field("Repository", "repository", text(&one.repository)),
            optional("Condition", "condition", text(&one.condition)),
            optional("Tags", "tags", texts(&one.tags)),
            optional("Enabled", "enabled", Value::Bool(one.enabled)),
            optional("ImportValues", "import-values", Value::list(imports)),
            optional("Alias", "alias", text(&one.alias)),
        ],
        text: format!(
            "{{{} {} {} {} [{}] {} [] {}}}",
            one.name,
            one.version,
            one.repository,
            one.condition,
            one.tags.join(" "),
            one.enabled,
            one.alias
        ),
    }))
}
