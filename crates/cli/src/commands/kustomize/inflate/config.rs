//! Entries of `helmCharts`.

use yaml::{Map, Value};

use super::ChartDefaults;

/// Merge mode of `valuesInline` and the values file (`valuesMerge`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ValuesMerge {
    /// `valuesInline` takes precedence (`override`).
    #[default]
    InlineWins,
    /// The values file takes precedence (`merge`).
    FileWins,
    /// Only `valuesInline` is used (`replace`).
    InlineAlone,
}

/// Entry of `helmCharts`, merged with `helmGlobals`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct HelmChartEntry {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) repo: String,
    pub(super) release_name: String,
    pub(super) namespace: String,
    pub(super) name_template: Option<String>,
    pub(super) values_file: String,
    pub(super) additional_values_files: Vec<String>,
    pub(super) values_inline: Map,
    pub(super) values_merge: ValuesMerge,
    pub(super) include_crds: bool,
    pub(super) skip_hooks: bool,
    pub(super) skip_tests: bool,
    pub(super) api_versions: Vec<String>,
    pub(super) kube_version: Option<String>,
    pub(super) debug: bool,
    pub(super) devel: bool,
    pub(super) chart_home: String,
}

impl HelmChartEntry {
    /// Reads an entry; the command line has defaults for missing fields.
    pub(super) fn read(value: &Value, defaults: &ChartDefaults) -> Result<Self, InvalidEntry> {
        let mut config = Self {
            kube_version: defaults.kube_version.clone(),
            api_versions: defaults.api_versions.clone(),
            debug: defaults.debug,
            chart_home: "charts".to_owned(),
            ..Self::default()
        };
        let map = value.as_map().ok_or(InvalidEntry::NotAMap)?;
        for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
            config.set(key, value)?;
        }
        if config.name.is_empty() {
            return Err(InvalidEntry::NoName);
        }
        if config.name.contains("..") {
            return Err(InvalidEntry::Name(config.name));
        }
        Ok(config)
    }

    fn set(&mut self, key: &str, value: &Value) -> Result<(), InvalidEntry> {
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        match key {
            "name" => self.name = string(key, value)?,
            "version" => self.version = string(key, value)?,
            "repo" => self.repo = string(key, value)?,
            "releaseName" => self.release_name = string(key, value)?,
            "namespace" => self.namespace = string(key, value)?,
            "nameTemplate" => self.name_template = given(string(key, value)?),
            "valuesFile" => self.values_file = string(key, value)?,
            "additionalValuesFiles" => self.additional_values_files = strings(key, value)?,
            "valuesInline" => {
                let map = value.as_map().ok_or_else(|| InvalidEntry::field(key, "a map"))?;
                self.values_inline = map.clone();
            }
            "valuesMerge" => self.values_merge = merge(&string(key, value)?)?,
            "includeCRDs" => self.include_crds = boolean(key, value)?,
            "skipHooks" => self.skip_hooks = boolean(key, value)?,
            "skipTests" => self.skip_tests = boolean(key, value)?,
            "apiVersions" => self.api_versions = strings(key, value)?,
            "kubeVersion" => self.kube_version = given(string(key, value)?).or(self.kube_version.take()),
            "debug" => self.debug |= boolean(key, value)?,
            "devel" => self.devel = boolean(key, value)?,
            "chartHome" => {
                self.chart_home = given(string(key, value)?).unwrap_or_else(|| "charts".to_owned());
            }
            // Configuration directory of the helm binary, which is not used.
            "configHome" => drop(string(key, value)?),
            _ => return Err(InvalidEntry::UnknownField(key.to_owned())),
        }
        Ok(())
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidEntry {
    #[error("an entry of helmCharts must be a map")]
    NotAMap,
    #[error("chart name cannot be empty")]
    NoName,
    #[error("{0:?} is not a valid chart name")]
    Name(String),
    #[error("helmCharts: {field} must be {expected}")]
    Field { field: String, expected: &'static str },
    #[error("helmCharts: unknown field \"{0}\"")]
    UnknownField(String),
    #[error("valuesMerge must be one of [merge override replace]")]
    ValuesMerge,
}

impl InvalidEntry {
    fn field(field: &str, expected: &'static str) -> Self {
        Self::Field {
            field: field.to_owned(),
            expected,
        }
    }
}

fn string(key: &str, value: &Value) -> Result<String, InvalidEntry> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| InvalidEntry::field(key, "a string"))
}

fn boolean(key: &str, value: &Value) -> Result<bool, InvalidEntry> {
    match value {
        Value::Bool(flag) => Ok(*flag),
        _ => Err(InvalidEntry::field(key, "true or false")),
    }
}

fn strings(key: &str, value: &Value) -> Result<Vec<String>, InvalidEntry> {
    match value {
        Value::Seq(items) => items.iter().map(|item| string(key, item)).collect(),
        _ => Err(InvalidEntry::field(key, "a list of strings")),
    }
}

fn merge(text: &str) -> Result<ValuesMerge, InvalidEntry> {
    match text {
        "" | "override" => Ok(ValuesMerge::InlineWins),
        "merge" => Ok(ValuesMerge::FileWins),
        "replace" => Ok(ValuesMerge::InlineAlone),
        _ => Err(InvalidEntry::ValuesMerge),
    }
}

#[cfg(test)]
mod tests {
    use tree::Budget;

    use super::*;

    fn read(text: &str, defaults: &ChartDefaults) -> Result<HelmChartEntry, String> {
        let value = yaml::read::kustomize(text, &Budget::default()).unwrap().value;
        HelmChartEntry::read(&value, defaults).map_err(|error| error.to_string())
    }

    #[test]
    fn entry_takes_precedence_over_the_command_line() {
        let defaults = ChartDefaults {
            kube_version: Some("1.30".to_owned()),
            api_versions: vec!["a/v1".to_owned()],
            debug: true,
        };
        let config = read(
            "{name: a, debug: false, namespace: null, kubeVersion: ''}",
            &defaults,
        )
        .unwrap();
        assert_eq!(config.kube_version.as_deref(), Some("1.30"));
        assert_eq!(
            (config.api_versions, config.debug),
            (vec!["a/v1".to_owned()], true)
        );
        let config = read(
            "{name: a, kubeVersion: '1.31', apiVersions: [b/v1], chartHome: x}",
            &defaults,
        )
        .unwrap();
        assert_eq!(config.kube_version.as_deref(), Some("1.31"));
        assert_eq!(
            (config.api_versions, config.chart_home),
            (vec!["b/v1".to_owned()], "x".to_owned())
        );
    }

    #[test]
    fn invalid_entries_are_refused() {
        for (text, why) in [
            ("{}", "chart name cannot be empty"),
            ("{name: ../x}", "not a valid chart name"),
            ("{name: 1}", "name must be a string"),
            (
                "{name: a, includeCRDs: 'yes'}",
                "includeCRDs must be true or false",
            ),
            (
                "{name: a, apiVersions: x}",
                "apiVersions must be a list of strings",
            ),
            ("{name: a, valuesInline: []}", "valuesInline must be a map"),
            ("{name: a, valuesMerge: x}", "valuesMerge must be one of"),
            ("{name: a, helmBin: x}", "unknown field \"helmBin\""),
        ] {
            let error = read(text, &ChartDefaults::default()).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
