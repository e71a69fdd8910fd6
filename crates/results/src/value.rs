//! Results as data, with the names of kluctl.

use yaml::{Map, Value};

use super::{
    CommandResult, Contents, GitInfo, Origin, contents,
    entry::{entry, messages, put, reference},
};
use crate::ValidateResult;

impl GitInfo {
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut reference = Map::new();
        let short = |name: &'_ str, prefix| name.strip_prefix(prefix).unwrap_or(name).to_owned();
        put(&mut reference, "branch", &short(&self.branch, "refs/heads/"));
        put(&mut reference, "tag", &short(&self.tag, "refs/tags/"));
        // kluctl's types can't read an empty URL.
        let url = Some(self.url.as_str()).filter(|url| !url.is_empty());
        let mut info = Map::from([
            ("url", url.map_or(Value::Null, Value::from)),
            (
                "ref",
                match reference.is_empty() {
                    true => Value::Null,
                    false => Value::Map(reference),
                },
            ),
        ]);
        info.insert("subDir", self.sub_dir.as_str());
        info.insert("commit", self.commit.as_str());
        info.insert("dirty", self.dirty);
        Value::Map(info)
    }
}

impl CommandResult {
    #[must_use]
    pub fn to_value(&self, contents: Contents) -> Value {
        let objects = match contents {
            Contents::Compacted => ("compactedObjects", contents::compacted(&self.objects)),
            Contents::None => ("objects", self.objects.iter().map(entry).collect()),
        };
        Value::Map(self.frame(Some(objects)))
    }

    pub(super) fn frame(&self, objects: Option<(&str, Vec<Value>)>) -> Map {
        let mut root = self.head("command");
        if let Some(tree) = &self.origin.tree {
            root.insert("deployment", tree.clone());
        }
        if let Some((name, objects)) = objects {
            root.insert(name, objects);
        }
        root.insert("errors", messages(&self.errors));
        root.insert("warnings", messages(&self.warnings));
        if !self.origin.requested_images.is_empty() {
            root.insert("seenImages", self.origin.requested_images.clone());
        }
        root
    }

    pub(super) fn head(&self, command: &str) -> Map {
        let origin = &self.origin;
        let mut root = identity(origin, self.discriminator.as_deref());
        let mut target = Map::from([("name", origin.target_name())]);
        let is_empty =
            |value: &Value| value.as_map().is_some_and(Map::is_empty) || value.as_str() == Some("");
        for (name, value) in origin
            .target
            .iter()
            .filter(|(name, value)| *name != "name" && !is_empty(value))
        {
            target.insert(name, value.clone());
        }
        root.insert("target", target);
        root.insert(command, self.command_info());
        if let Some(git) = &origin.git {
            root.insert("gitInfo", git.to_value());
        }
        root.insert(
            "clusterInfo",
            Map::from([("clusterId", origin.cluster_id.as_str())]),
        );
        put(&mut root, "renderedObjectsHash", &origin.objects_hash);
        root
    }

    fn command_info(&self) -> Map {
        let (origin, options) = (&self.origin, &self.options);
        let mut info = Map::from([
            ("initiator", Value::from(origin.initiator.as_str())),
            ("startTime", Value::from(self.start.to_string())),
            ("endTime", Value::from(self.end.to_string())),
            ("command", Value::from(self.command.as_str())),
        ]);
        put(&mut info, "targetNameOverride", &origin.target_name_override);
        put(&mut info, "contextOverride", &origin.context_override);
        info.insert("args", origin.args.clone());
        if !origin.images.is_empty() {
            info.insert("images", origin.images.clone());
        }
        for (name, set) in [
            ("dryRun", self.dry_run),
            ("noWait", options.no_wait),
            ("forceApply", options.force_apply),
            ("replaceOnError", options.replace_on_error),
            ("forceReplaceOnError", options.force_replace_on_error),
            ("abortOnError", options.abort_on_error),
        ] {
            if set {
                info.insert(name, true);
            }
        }
        // Results of the original have no tags, either; with them, comparisons would fail.
        for (name, dirs) in [
            ("includeDeploymentDirs", &options.include_dirs),
            ("excludeDeploymentDirs", &options.exclude_dirs),
        ] {
            if !dirs.is_empty() {
                info.insert(
                    name,
                    dirs.iter()
                        .map(|dir| Value::from(dir.as_str()))
                        .collect::<Vec<_>>(),
                );
            }
        }
        info
    }
}

impl ValidateResult {
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut root = self.head();
        root.insert("ready", self.ready);
        root.insert("warnings", messages(&self.warnings));
        root.insert("errors", messages(&self.errors));
        root.insert("results", self.annotation_results(usize::MAX));
        Value::Map(root)
    }

    /// Returns the results from annotations of objects, at most `keep` of them.
    pub(super) fn annotation_results(&self, keep: usize) -> Vec<Value> {
        let found = self.results.iter().take(keep);
        found
            .map(|(of, result)| {
                Value::Map(Map::from([
                    ("ref", reference(of)),
                    ("annotation", Value::from(result.annotation.as_str())),
                    ("message", Value::from(result.message.as_str())),
                ]))
            })
            .collect()
    }

    pub(super) fn head(&self) -> Map {
        let mut root = identity(&self.origin, self.discriminator.as_deref());
        put(&mut root, "renderedObjectsHash", &self.origin.objects_hash);
        root.insert("startTime", self.start.to_string());
        root.insert("endTime", self.end.to_string());
        root
    }
}

fn identity(origin: &Origin, discriminator: Option<&str>) -> Map {
    let mut root = Map::from([("id", Value::from(origin.id.as_str()))]);
    put(&mut root, "reconcileId", &origin.reconcile_id);
    root.insert("projectKey", project_key(origin));
    root.insert("targetKey", target_key(origin, discriminator));
    if let Some(deployment) = &origin.deployment {
        let fields = [
            ("name", deployment.name.as_str()),
            ("namespace", deployment.namespace.as_str()),
            ("clusterId", deployment.cluster_id.as_str()),
        ];
        root.insert("kluctlDeployment", Map::from(fields));
    }
    if let Some(patch) = &origin.overrides_patch {
        root.insert("overridesPatch", patch.clone());
    }
    root
}

pub(super) fn project_key(origin: &Origin) -> Map {
    let mut key = Map::new();
    put(&mut key, "repoKey", &origin.project.repo_key);
    put(&mut key, "subDir", &origin.project.sub_dir);
    key
}

pub(super) fn target_key(origin: &Origin, discriminator: Option<&str>) -> Map {
    let mut key = Map::new();
    put(&mut key, "targetName", origin.target_name());
    key.insert("clusterId", origin.cluster_id.as_str());
    put(&mut key, "discriminator", discriminator.unwrap_or_default());
    key
}
