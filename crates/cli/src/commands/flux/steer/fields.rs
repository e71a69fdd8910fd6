//! Builds objects field by field.

use api::GoDuration;
use fleet::Kind;
use yaml::{Map, Value};

/// Fields of an object. Empty strings, lists and false flags are left out, as in objects of the originals.
#[derive(Debug, Default)]
pub(super) struct Fields(Map);

impl Fields {
    /// Sets a field, whatever its value is.
    pub(super) fn set(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name, value);
        self
    }

    pub(super) fn text(self, name: &str, text: &str) -> Self {
        match text {
            "" => self,
            text => self.set(name, text),
        }
    }

    pub(super) fn optional(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.set(name, value),
            None => self,
        }
    }

    pub(super) fn flag(self, name: &str, flag: bool) -> Self {
        if flag { self.set(name, true) } else { self }
    }

    pub(super) fn list(self, name: &str, items: Vec<Value>) -> Self {
        if items.is_empty() {
            self
        } else {
            self.set(name, items)
        }
    }

    pub(super) fn map(self, name: &str, fields: Self) -> Self {
        if fields.0.is_empty() {
            self
        } else {
            self.set(name, fields)
        }
    }

    /// Sets a reference to an object of the namespace.
    pub(super) fn reference(self, name: &str, to: Option<&str>) -> Self {
        match to.unwrap_or_default() {
            "" => self,
            to => self.set(name, Map::from([("name", to)])),
        }
    }

    pub(super) fn duration(self, name: &str, duration: GoDuration) -> Self {
        self.set(name, duration.to_string())
    }
}

impl From<Fields> for Value {
    fn from(fields: Fields) -> Self {
        Self::Map(fields.0)
    }
}

/// Name, namespace and labels of an object.
pub(super) struct Identity<'a> {
    pub(super) name: &'a str,
    /// Empty for objects of the cluster.
    pub(super) namespace: &'a str,
    pub(super) labels: &'a Map,
}

impl Identity<'_> {
    pub(super) fn metadata(&self) -> Fields {
        let labels = Some(self.labels).filter(|labels| !labels.is_empty());
        Fields::default()
            .set("name", self.name)
            .text("namespace", self.namespace)
            .optional("labels", labels.cloned())
    }

    /// Returns an object of a kind with its preferred version.
    pub(super) fn object(&self, kind: &Kind, spec: Fields) -> Value {
        let version = kind.versions.first().copied().unwrap_or_default();
        let object = Fields::default()
            .set("apiVersion", format!("{}/{version}", kind.group))
            .set("kind", kind.kind)
            .set("metadata", self.metadata())
            .set("spec", spec);
        object.into()
    }

    /// Returns a Secret of a type; without one, the API server makes it `Opaque`.
    pub(super) fn secret(&self, kind: &str, data: impl Into<Value>) -> Value {
        let object = Fields::default()
            .set("apiVersion", "v1")
            .set("kind", "Secret")
            .set("metadata", self.metadata())
            .text("type", kind);
        match data.into() {
            Value::Map(data) if data.is_empty() => object,
            data => object.set("stringData", data),
        }
        .into()
    }
}
