//! Patches: the entries of `patches`, and the legacy fields `patchesStrategicMerge` and `patchesJson6902`.

mod apply;
mod config;
mod entry;
mod json6902;
mod legacy;
mod strategic;
#[cfg(test)]
mod tests;

use yaml::Value;

use crate::{
    Error, model,
    resmap::ResMap,
    transform::{PluginContext, Transformer},
};

pub(crate) enum Patches {
    Entry(entry::EntryPatches),
    Strategic(legacy::StrategicMerges),
    Json(legacy::JsonPatches),
}

impl Patches {
    /// Reads an entry of `patches`. Fails if it has no patch or two, its file can't be read, or the content is not a patch.
    pub(crate) fn from_entry(entry: &model::Patch, ctx: &PluginContext<'_>) -> Result<Self, Error> {
        entry::from_entry(entry, ctx).map(Self::Entry)
    }

    /// Reads a configuration of kind `PatchTransformer`.
    pub(crate) fn from_config(config: &Value, ctx: &PluginContext<'_>) -> Result<Self, Error> {
        entry::from_config(config, ctx).map(Self::Entry)
    }

    /// Reads `patchesStrategicMerge`. Fails if an entry is neither a patch nor the path of one, or there is none.
    pub(crate) fn from_paths(paths: &[String], ctx: &PluginContext<'_>) -> Result<Self, Error> {
        legacy::strategic_from_paths(paths, ctx).map(Self::Strategic)
    }

    /// Reads a configuration of kind `PatchStrategicMergeTransformer`.
    pub(crate) fn strategic_from_config(config: &Value, ctx: &PluginContext<'_>) -> Result<Self, Error> {
        legacy::strategic_from_config(config, ctx).map(Self::Strategic)
    }

    /// Reads an entry of `patchesJson6902`. Fails if it names no target or no patch, or two patches, or an invalid one.
    pub(crate) fn json6902_from_entry(entry: &model::Patch, ctx: &PluginContext<'_>) -> Result<Self, Error> {
        legacy::json6902_from_entry(entry, ctx).map(Self::Json)
    }

    /// Reads a configuration of kind `PatchJson6902Transformer`.
    pub(crate) fn json6902_from_config(config: &Value, ctx: &PluginContext<'_>) -> Result<Self, Error> {
        legacy::json6902_from_config(config, ctx).map(Self::Json)
    }
}

impl Transformer for Patches {
    fn transform(&self, resources: &mut ResMap, ctx: &PluginContext<'_>) -> Result<(), Error> {
        match self {
            Self::Entry(patches) => patches.transform(resources, ctx),
            Self::Strategic(patches) => patches.transform(resources, ctx),
            Self::Json(patches) => patches.transform(resources, ctx),
        }
    }
}
