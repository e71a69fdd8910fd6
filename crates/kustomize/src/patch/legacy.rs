//! The transformers of the legacy fields `patchesStrategicMerge` and `patchesJson6902`.

use std::sync::Arc;

use serde::Deserialize;
use yaml::{Node, Value};

use super::{
    apply::{Allowed, apply_json, detached, inline_objects, merge_into, target_of, text},
    config,
};
use crate::{
    Error,
    error::{Context as _, Step},
    model::{self, Selector, configs},
    patch::json6902::{JsonPatch, ParseError},
    read::{self, is_path},
    resmap::ResMap,
    resource::Resource,
    transform::{PluginContext, Transformer, decode},
};

const STRATEGIC: &str = "PatchStrategicMergeTransformer";
const JSON: &str = "PatchJson6902Transformer";

/// Fails if an entry is neither a patch nor the path of one, or there is none.
pub(super) fn strategic_from_paths(
    paths: &[String],
    ctx: &PluginContext<'_>,
) -> Result<StrategicMerges, Error> {
    strategic(paths, "", ctx).context(|| config::trouble(STRATEGIC, &config::of_paths(paths)))
}

/// Reads a configuration of kind `PatchStrategicMergeTransformer`.
pub(super) fn strategic_from_config(
    config: &Value,
    ctx: &PluginContext<'_>,
) -> Result<StrategicMerges, Error> {
    #[derive(Deserialize)]
    struct Config {
        #[serde(default)]
        paths: Vec<String>,
        #[serde(default)]
        patches: String,
    }
    let Config { paths, patches } = decode::config(config, &configs::STRATEGIC_MERGE)?;
    strategic(&paths, &patches, ctx)
}

fn strategic(paths: &[String], patches: &str, ctx: &PluginContext<'_>) -> Result<StrategicMerges, Error> {
    if paths.is_empty() && patches.is_empty() {
        let problem = "empty file path and empty patch content";
        return Err(Error::new(Step::Patch, problem));
    }
    let mut objects = Vec::new();
    for path in paths {
        objects.extend(objects_of(path, ctx)?);
    }
    if !patches.is_empty() {
        objects.extend(inline_objects(patches, ctx)?);
    }
    if objects.is_empty() {
        let files: Vec<_> = paths.iter().map(|path| config::path_or_inline(path)).collect();
        let problem = format!("patch appears to be empty; files=[{}]", files.join(" "));
        return Err(Error::new(Step::Patch, problem));
    }
    let merges = objects
        .into_iter()
        .map(|patch| (detached(&patch), patch))
        .collect();
    Ok(StrategicMerges { merges })
}

/// Reads the patches of an entry: an inline patch, or the path of a file.
fn objects_of(entry: &str, ctx: &PluginContext<'_>) -> Result<Vec<Resource>, Error> {
    match inline_objects(entry, ctx) {
        Err(error) if error.exceeded().is_none() && is_path(entry) => {
            let (bytes, path) = ctx.loader.load(entry)?;
            read::resources(&bytes, &Arc::new(path), ctx.run)
        }
        done => done,
    }
}

pub(crate) struct StrategicMerges {
    /// The merged nodes, each with the patch that names its object.
    merges: Vec<(Node, Resource)>,
}

impl Transformer for StrategicMerges {
    fn transform(&self, resources: &mut ResMap, ctx: &PluginContext<'_>) -> Result<(), Error> {
        for (node, patch) in &self.merges {
            let index = target_of(patch, resources)?;
            // The merged node names the object, with the object's apiVersion.
            merge_into(resources, index, node, Allowed::default(), ctx.run)?;
            resources.refuse_equal()?;
        }
        Ok(())
    }
}

/// Reads an entry of `patchesJson6902`. Fails if it names no target or no patch, or two patches, or an invalid one.
pub(super) fn json6902_from_entry(
    entry: &model::Patch,
    ctx: &PluginContext<'_>,
) -> Result<JsonPatches, Error> {
    let made = json6902(entry.target.as_ref(), &entry.path, &entry.patch, ctx);
    made.context(|| config::trouble(JSON, &config::of_json6902(entry)))
}

/// Reads a configuration of kind `PatchJson6902Transformer`.
pub(super) fn json6902_from_config(config: &Value, ctx: &PluginContext<'_>) -> Result<JsonPatches, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Config {
        target: Option<Selector>,
        #[serde(default)]
        path: String,
        #[serde(default)]
        json_op: String,
    }
    let Config {
        target,
        path,
        json_op,
    } = decode::config(config, &configs::JSON6902)?;
    json6902(target.as_ref(), &path, &json_op, ctx)
}

fn json6902(
    target: Option<&Selector>,
    path: &str,
    inline: &str,
    ctx: &PluginContext<'_>,
) -> Result<JsonPatches, Error> {
    let fail = |problem: String| Err(Error::new(Step::Patch, problem));
    let Some(target) = target.filter(|target| !target.name.is_empty()) else {
        return fail("must specify the target name".to_owned());
    };
    let operations = match (path.is_empty(), inline.is_empty()) {
        (true, true) => return fail("empty file path and empty jsonOp".to_owned()),
        (false, false) => return fail("must specify a file path or jsonOp, not both".to_owned()),
        (true, false) => inline.to_owned(),
        (false, true) => text(&ctx.loader.load(path)?.0),
    };
    if operations.is_empty() {
        return fail(format!("patch file '{path}' empty seems to be empty"));
    }
    let patch = match JsonPatch::parse(&operations, ctx.run.budget) {
        Ok(patch) => patch,
        Err(ParseError::Yaml(source)) => {
            let file = ctx.loader.root().clone();
            return Err(Error::Yaml { file, source });
        }
        Err(ParseError::Json(problem)) => return fail(format!("decoding {}: {problem}", named(path))),
    };
    if patch.is_empty() {
        return fail(format!("patch appears to be empty; {}", named(path)));
    }
    let target = target.clone();
    Ok(JsonPatches { patch, target })
}

/// Names a patch in messages, without its content, which may be secret.
fn named(path: &str) -> String {
    match path {
        "" => format!("JsonOp={}", config::INLINE),
        path => format!("file={path}"),
    }
}

pub(crate) struct JsonPatches {
    patch: JsonPatch,
    target: Selector,
}

impl Transformer for JsonPatches {
    fn transform(&self, resources: &mut ResMap, ctx: &PluginContext<'_>) -> Result<(), Error> {
        apply_json(&self.patch, &self.target, resources, false, ctx)
    }
}
