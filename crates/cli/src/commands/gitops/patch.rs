//! The merge patch of one-time overrides. Pure, apart from files that flags name.

use anyhow::{Context as _, Result};
use kluctl::FixedImage;
use tree::Budget;
use yaml::{Map, Value};

use super::flags::{DeployOverrideFlags, OverrideFlags};
use crate::{flags, session::fixed_images};

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Overrides {
    /// Fields that replace fields of the spec.
    fields: Map,
    /// Lists whose items are appended to the spec's.
    appended: Vec<(&'static str, Vec<Value>)>,
}

impl Overrides {
    pub(super) fn read(overrides: &OverrideFlags, deploy: &DeployOverrideFlags) -> Result<Self> {
        let mut fields = Map::new();
        for (name, value) in [
            ("dryRun", overrides.dry_run),
            ("noWait", deploy.no_wait),
            ("forceApply", overrides.force_apply),
            ("replaceOnError", overrides.replace_on_error),
            ("forceReplaceOnError", overrides.force_replace_on_error),
            ("abortOnError", overrides.abort_on_error),
            ("prune", deploy.prune),
        ] {
            if let Some(value) = value {
                fields.insert(name, value);
            }
        }
        for (name, value) in [
            ("target", &overrides.target),
            ("targetNameOverride", &overrides.target_name_override),
            ("context", &overrides.target_context),
        ] {
            if let Some(value) = value {
                fields.insert(name, value.as_str());
            }
        }
        let budget = Budget::default();
        let args = flags::args::read(&overrides.arg, &overrides.args_from_file, &budget)?;
        if !args.is_empty() {
            fields.insert("args", args);
        }
        let images = fixed_images(&overrides.images, &budget).context("read the fixed images")?;
        let images = images.iter().map(FixedImage::to_map).map(Value::Map).collect();
        let strings = |list: &[String]| list.iter().map(|text| Value::from(text.as_str())).collect();
        let inclusion = &overrides.inclusion;
        let appended: Vec<(&'static str, Vec<Value>)> = vec![
            ("images", images),
            ("includeTags", strings(&inclusion.include_tag)),
            ("excludeTags", strings(&inclusion.exclude_tag)),
            (
                "includeDeploymentDirs",
                strings(&inclusion.include_deployment_dir),
            ),
            (
                "excludeDeploymentDirs",
                strings(&inclusion.exclude_deployment_dir),
            ),
        ];
        let appended = appended.into_iter().filter(|(_, items)| !items.is_empty());
        Ok(Self {
            fields,
            appended: appended.collect(),
        })
    }

    /// Adds local sources, in the form of `spec.sourceOverrides`.
    pub(super) fn with_sources(mut self, sources: Vec<Value>) -> Self {
        if !sources.is_empty() {
            self.appended.push(("sourceOverrides", sources));
        }
        self
    }

    /// Returns the merge patch for an object; `None` if nothing is overridden. A merge patch replaces lists as a whole, so the items
    /// of the spec are in it, too.
    pub(super) fn patch(&self, object: &Value) -> Option<Value> {
        let mut spec = self.fields.clone();
        for (name, items) in &self.appended {
            let existing = object.pointer(&["spec", name]).and_then(Value::as_seq);
            let mut all = existing.unwrap_or_default().to_vec();
            all.extend(items.iter().cloned());
            spec.insert(*name, all);
        }
        if spec.is_empty() {
            return None;
        }
        Some(Value::Map(Map::from([("spec", Value::Map(spec))])))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        overrides: OverrideFlags,
        #[command(flatten)]
        deploy: DeployOverrideFlags,
    }

    fn patch(line: &str, spec: &serde_json::Value) -> Result<serde_json::Value> {
        let cli = Cli::try_parse_from(std::iter::once("weir").chain(line.split_whitespace()))?;
        let object = Value::from_json(json!({ "spec": spec }));
        let patch = Overrides::read(&cli.overrides, &cli.deploy)?.patch(&object);
        Ok(patch.map_or(serde_json::Value::Null, |patch| {
            serde_json::from_str(&yaml::print::json(&patch)).unwrap()
        }))
    }

    #[test]
    fn patch_has_only_what_is_set() {
        assert_eq!(patch("", &json!({"includeTags": ["a"]})).unwrap(), json!(null));
        let line = "--dry-run=false --no-wait --prune=0 --force-apply -t t -T n --target-context c -a a.b=1 -a l=[x]";
        assert_eq!(
            patch(line, &json!({"dryRun": true})).unwrap(),
            json!({"spec": {
                "dryRun": false, "noWait": true, "prune": false, "forceApply": true, "target": "t", "targetNameOverride": "n",
                "context": "c", "args": {"a": {"b": 1}, "l": ["x"]},
            }})
        );
    }

    #[test]
    fn lists_are_appended_to_those_of_the_spec() {
        let spec = json!({"includeTags": ["a"], "images": [{"image": "i", "resultImage": "i:1"}]});
        assert_eq!(
            patch("-I b -E c --exclude-deployment-dir d -F j=j:2", &spec).unwrap(),
            json!({"spec": {
                "includeTags": ["a", "b"], "excludeTags": ["c"], "excludeDeploymentDirs": ["d"],
                "images": [{"image": "i", "resultImage": "i:1"}, {"image": "j", "resultImage": "j:2"}],
            }})
        );
    }
}
