//! What a kustomization says of a chart.

use yaml::{Map, Value};

use super::Defaults;

/// How `valuesInline` and the file of values are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Merge {
    /// `valuesInline` wins.
    #[default]
    InlineWins,
    /// The file wins.
    FileWins,
    /// The file doesn't count.
    InlineAlone,
}

/// An entry of `helmCharts`, with the `helmGlobals`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Config {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) repo: String,
    pub(super) release_name: String,
    pub(super) namespace: String,
    pub(super) name_template: Option<String>,
    pub(super) values_file: String,
    pub(super) additional_values_files: Vec<String>,
    pub(super) values_inline: Map,
    pub(super) values_merge: Merge,
    pub(super) include_crds: bool,
    pub(super) skip_hooks: bool,
    pub(super) skip_tests: bool,
    pub(super) api_versions: Vec<String>,
    pub(super) kube_version: Option<String>,
    pub(super) debug: bool,
    pub(super) devel: bool,
    pub(super) chart_home: String,
}

impl Config {
    /// Reads an entry; what it doesn't say is what the command line says.
    pub(super) fn read(value: &Value, defaults: &Defaults) -> Result<Self, String> {
        let mut config = Self {
            kube_version: defaults.kube_version.clone(),
            api_versions: defaults.api_versions.clone(),
            debug: defaults.debug,
            chart_home: "charts".to_owned(),
            ..Self::default()
        };
        let map = value.as_map().ok_or("what is said of a chart is no map")?;
        for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
            config.set(key, value)?;
        }
        if config.name.is_empty() {
            return Err("chart name cannot be empty".to_owned());
        }
        if config.name.contains("..") {
            return Err(format!("{:?} can't be the name of a chart", config.name));
        }
        Ok(config)
    }

    fn set(&mut self, key: &str, value: &Value) -> Result<(), String> {
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        match key {
            "name" => self.name = text(key, value)?,
            "version" => self.version = text(key, value)?,
            "repo" => self.repo = text(key, value)?,
            "releaseName" => self.release_name = text(key, value)?,
            "namespace" => self.namespace = text(key, value)?,
            "nameTemplate" => self.name_template = given(text(key, value)?),
            "valuesFile" => self.values_file = text(key, value)?,
            "additionalValuesFiles" => self.additional_values_files = texts(key, value)?,
            "valuesInline" => {
                let map = value.as_map().ok_or_else(|| wrong(key, "a map"))?;
                self.values_inline = map.clone();
            }
            "valuesMerge" => self.values_merge = merge(&text(key, value)?)?,
            "includeCRDs" => self.include_crds = flag(key, value)?,
            "skipHooks" => self.skip_hooks = flag(key, value)?,
            "skipTests" => self.skip_tests = flag(key, value)?,
            "apiVersions" => self.api_versions = texts(key, value)?,
            "kubeVersion" => self.kube_version = given(text(key, value)?).or(self.kube_version.take()),
            "debug" => self.debug |= flag(key, value)?,
            "devel" => self.devel = flag(key, value)?,
            "chartHome" => self.chart_home = given(text(key, value)?).unwrap_or_else(|| "charts".to_owned()),
            // Where the program helm keeps its own files: there are none.
            "configHome" => drop(text(key, value)?),
            _ => return Err(format!("unknown field \"{key}\" of a chart")),
        }
        Ok(())
    }
}

fn wrong(key: &str, expected: &str) -> String {
    format!("{key} of a chart is {expected}")
}

fn text(key: &str, value: &Value) -> Result<String, String> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| wrong(key, "a text"))
}

fn flag(key: &str, value: &Value) -> Result<bool, String> {
    match value {
        Value::Bool(flag) => Ok(*flag),
        _ => Err(wrong(key, "true or false")),
    }
}

fn texts(key: &str, value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Seq(items) => items.iter().map(|item| text(key, item)).collect(),
        _ => Err(wrong(key, "a list of texts")),
    }
}

fn merge(text: &str) -> Result<Merge, String> {
    match text {
        "" | "override" => Ok(Merge::InlineWins),
        "merge" => Ok(Merge::FileWins),
        "replace" => Ok(Merge::InlineAlone),
        _ => Err("valuesMerge must be one of [merge override replace]".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use tree::Budget;

    use super::*;

    fn read(text: &str, defaults: &Defaults) -> Result<Config, String> {
        let value = yaml::read::kustomize(text, &Budget::default()).unwrap().value;
        Config::read(&value, defaults)
    }

    #[test]
    fn what_the_entry_says_goes_before_the_command_line() {
        let defaults = Defaults {
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
    fn what_makes_no_sense_is_told() {
        for (text, why) in [
            ("{}", "chart name cannot be empty"),
            ("{name: ../x}", "can't be the name"),
            ("{name: 1}", "name of a chart is a text"),
            (
                "{name: a, includeCRDs: 'yes'}",
                "includeCRDs of a chart is true or false",
            ),
            (
                "{name: a, apiVersions: x}",
                "apiVersions of a chart is a list of texts",
            ),
            ("{name: a, valuesInline: []}", "valuesInline of a chart is a map"),
            ("{name: a, valuesMerge: x}", "valuesMerge must be one of"),
            ("{name: a, helmBin: x}", "unknown field \"helmBin\""),
        ] {
            let error = read(text, &Defaults::default()).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
