//! A deployment as results print it: its files, with the items that they became.

use objects::ObjectRef;
use yaml::{Map, Value};

use crate::{Item, fields::means_nothing};

/// The files of a deployment, and the items that they became.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outline {
    pub(crate) project: ProjectOutline,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ProjectOutline {
    pub(crate) config: Map,
    pub(crate) items: Vec<ItemOutline>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ItemOutline {
    pub(crate) config: Map,
    /// Its index among the items, if it became one.
    pub(crate) item: Option<usize>,
    pub(crate) include: Option<ProjectOutline>,
}

impl Outline {
    /// Returns the form of results.
    pub(crate) fn to_value(&self, items: &[Item]) -> Value {
        Value::Map(self.project.to_map(items))
    }
}

impl ProjectOutline {
    /// Takes the fields of a project file, with its variables as they were loaded.
    pub(crate) fn new(fields: &Map, vars: Vec<Value>) -> Self {
        let mut config = filled(fields);
        for rules in ["ignoreForDiff", "conflictResolution"] {
            let rules = config.get_mut(rules).and_then(Value::as_seq_mut);
            rules.into_iter().flatten().for_each(lists_in_rule);
        }
        for texts in ["commonLabels", "commonAnnotations"] {
            let texts = config.get_mut(texts).and_then(Value::as_map_mut);
            texts.into_iter().flat_map(Map::values_mut).for_each(as_text);
        }
        config.remove("deployments");
        set_list(&mut config, "vars", vars);
        Self {
            config,
            items: Vec::new(),
        }
    }

    fn to_map(&self, items: &[Item]) -> Map {
        let mut map = self.config.clone();
        let entries = self.items.iter().map(|item| Value::Map(item.to_map(items)));
        set_list(&mut map, "deployments", entries.collect());
        map
    }
}

impl ItemOutline {
    /// Takes the fields of an item; none of its variables were loaded yet.
    pub(crate) fn new(fields: &Map, tags: &[String]) -> Self {
        let mut config = filled(fields);
        let tags = tags.iter().map(|tag| Value::from(tag.as_str()));
        set_list(&mut config, "tags", tags.collect());
        Self {
            config,
            ..Self::default()
        }
    }

    pub(crate) fn loaded(&mut self, vars: Vec<Value>) {
        set_list(&mut self.config, "vars", vars);
    }

    fn to_map(&self, items: &[Item]) -> Map {
        let mut map = self.config.clone();
        if let Some(include) = &self.include {
            map.insert("renderedInclude", include.to_map(items));
        }
        if let Some(item) = self.item.and_then(|item| items.get(item)) {
            let references = item
                .objects
                .iter()
                .filter_map(|object| ObjectRef::of(object).ok());
            let references = references.map(|reference| Value::Map(crate::images::reference_map(&reference)));
            set_list(&mut map, "renderedObjects", references.collect());
            if let Some(chart) = &item.chart {
                map.insert("renderedHelmChartConfig", chart.clone());
            }
        }
        map
    }
}

fn set_list(map: &mut Map, field: &str, list: Vec<Value>) {
    if list.is_empty() {
        map.remove(field);
    } else {
        map.insert(field, list);
    }
}

/// Converts a single string to a list, as results have it.
fn lists_in_rule(rule: &mut Value) {
    let Some(rule) = rule.as_map_mut() else { return };
    for field in ["fieldPath", "fieldPathRegex", "manager"] {
        if let Some(one @ Value::String(_)) = rule.get(field).cloned() {
            rule.insert(field, vec![one]);
        }
    }
}

/// Converts values of labels and annotations to strings.
fn as_text(value: &mut Value) {
    let text = match &*value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::UInt(value) => value.to_string(),
        Value::Float(value) => go::strconv::format_float(*value, 'g', None),
        _ => return,
    };
    *value = Value::from(text);
}

/// Copies a map without empty fields.
fn filled(fields: &Map) -> Map {
    let mut map = fields.clone();
    map.retain(|_, value| !means_nothing(value));
    map
}
