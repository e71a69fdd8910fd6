//! The transformer of an entry of `patches`.

use yaml::Value;

use super::{
    apply::{Allowed, apply_json, detached, inline_objects, merge_detached, merge_into, target_of, text},
    config,
    json6902::{JsonPatch, ParseError},
};
use crate::{
    Error,
    error::{Context as _, Step},
    id::{Gvk, Id},
    model::{self, Selector, shapes},
    resmap::ResMap,
    resource::Resource,
    selector,
    transform::{PluginContext, Transformer, decode},
};

const NAME: &str = "PatchTransformer";

/// Fails if the entry has no patch or two, its file can't be read, or the content is not a patch.
pub(super) fn from_entry(entry: &model::Patch, ctx: &PluginContext<'_>) -> Result<EntryPatches, Error> {
    let text = config::of_patch(entry);
    made(entry, &text, ctx).context(|| config::trouble(NAME, &text))
}

/// Reads a configuration of kind `PatchTransformer`.
pub(super) fn from_config(settings: &Value, ctx: &PluginContext<'_>) -> Result<EntryPatches, Error> {
    let entry: model::Patch = decode::config(settings, &shapes::PATCH)?;
    made(&entry, &config::of_patch(&entry), ctx)
}

fn made(entry: &model::Patch, config: &str, ctx: &PluginContext<'_>) -> Result<EntryPatches, Error> {
    let fail = |problem: &str| Err(Error::new(Step::Patch, format!("{problem}\n{config}")));
    let inline = entry.patch.trim();
    let (text, source) = match (inline.is_empty(), entry.path.is_empty()) {
        (true, true) => return fail("must specify one of patch and path in"),
        (false, false) => return fail("patch and path can't be set at the same time"),
        (false, true) => (inline.to_owned(), format!("[patch: {}]", config::INLINE)),
        (true, false) => {
            let path = &entry.path;
            let loaded = ctx.loader.load(path);
            let (bytes, _) = loaded.context(|| format!("failed to get the patch file from path({path})"))?;
            (text(&bytes), format!("[path: {path:?}]"))
        }
    };
    let option = |name: &str| entry.options.get(name).copied().unwrap_or_default();
    Ok(EntryPatches {
        patch: Patch::read(&text, &source, ctx)?,
        source,
        target: entry.target.clone(),
        allowed: Allowed {
            name_change: option("allowNameChange"),
            kind_change: option("allowKindChange"),
        },
    })
}

pub(super) enum Patch {
    /// A patch without documents.
    Nothing,
    Strategic(Vec<Resource>),
    Json(JsonPatch),
}

impl Patch {
    fn read(text: &str, source: &str, ctx: &PluginContext<'_>) -> Result<Self, Error> {
        let strategic = inline_objects(text, ctx);
        let json = JsonPatch::parse(text, ctx.run.budget);
        match (strategic, json) {
            (Err(error), _) if error.exceeded().is_some() => Err(error),
            (_, Err(ParseError::Yaml(error))) if error.exceeded().is_some() => {
                let file = ctx.loader.root().clone();
                Err(Error::Yaml { file, source: error })
            }
            (Ok(objects), Ok(json)) if !objects.is_empty() && !json.is_empty() => {
                let problem = format!("illegally qualifies as both an SM and JSON patch: {source}");
                Err(Error::new(Step::Patch, problem))
            }
            (Err(_), Err(_)) => {
                let problem = format!("unable to parse SM or JSON patch from {source}");
                Err(Error::new(Step::Patch, problem))
            }
            (Ok(objects), _) if objects.is_empty() => Ok(Self::Nothing),
            (Ok(objects), _) => Ok(Self::Strategic(objects)),
            (Err(_), Ok(json)) if json.is_missing() => Ok(Self::Nothing),
            (Err(_), Ok(json)) => Ok(Self::Json(json)),
        }
    }
}

pub(crate) struct EntryPatches {
    patch: Patch,
    /// Describes the patch in messages.
    source: String,
    target: Option<Selector>,
    allowed: Allowed,
}

impl Transformer for EntryPatches {
    fn transform(&self, resources: &mut ResMap, ctx: &PluginContext<'_>) -> Result<(), Error> {
        match (&self.patch, &self.target) {
            (Patch::Nothing, _) => Ok(()),
            (Patch::Strategic(patches), None) => patches.iter().try_for_each(|patch| {
                let index = target_of(patch, resources).context(|| {
                    format!(
                        "no resource matches strategic merge patch {:?}",
                        patch.id().to_string()
                    )
                })?;
                if !self.allowed.any() {
                    return merge_into(resources, index, patch.node(), self.allowed, ctx.run);
                }
                // quirk: annotations of a patch with options become strings, null too.
                let mut patch = patch.clone();
                let annotations = patch.metadata_map("annotations");
                patch.set_metadata_map("annotations", &annotations);
                merge_into(resources, index, patch.node(), self.allowed, ctx.run)
            }),
            (Patch::Strategic(patches), Some(target)) => match patches.as_slice() {
                [patch] => self.merge_into_all(patch, target, resources, ctx),
                _ => {
                    let problem = "Multiple Strategic-Merge Patches in one `patches` entry is not allowed to set \
                                   `patches.target` field";
                    Err(Error::new(Step::Patch, format!("{problem}: {}", self.source)))
                }
            },
            (Patch::Json(_), None) => {
                let problem = format!("must specify a target for JSON patch {}", self.source);
                Err(Error::new(Step::Patch, problem))
            }
            (Patch::Json(patch), Some(target)) => apply_json(patch, target, resources, true, ctx),
        }
    }
}

impl EntryPatches {
    fn merge_into_all(
        &self,
        patch: &Resource,
        target: &Selector,
        resources: &mut ResMap,
        ctx: &PluginContext<'_>,
    ) -> Result<(), Error> {
        let selected = selector::select(resources, target, ctx.run, ctx.loader.root()).context(|| {
            format!(
                "unable to find patch target {:?} in `resources`",
                described(target)
            )
        })?;
        let mut patch = detached(patch);
        for index in selected {
            merge_detached(resources, index, &mut patch, self.allowed, ctx.run)?;
        }
        resources.refuse_equal()
    }
}

/// Formats a selector for messages.
fn described(selector: &Selector) -> String {
    let gvk = Gvk {
        group: selector.group.clone().into(),
        version: selector.version.clone().into(),
        kind: selector.kind.clone().into(),
    };
    let id = Id::new(gvk, selector.name.as_str(), selector.namespace.as_str());
    let (annotations, labels) = (&selector.annotation_selector, &selector.label_selector);
    format!("{id}:a={annotations}:l={labels}")
}
