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

/// The transformer of patches, from whichever field.
pub(crate) enum Patches {
    Entry(entry::EntryPatches),
    Strategic(legacy::StrategicMerges),
    Json(legacy::JsonPatches),
}

impl Patches {
    /// Those of an entry of `patches`.
    ///
    /// # Errors
    /// Fails if it has no patch or two, its file can't be read, or its text is no patch.
    pub(crate) fn from_entry(entry: &model::Patch, ctx: &PluginContext<'_>) -> Result<Self, Error> {
        entry::from_entry(entry, ctx).map(Self::Entry)
    }

    /// Those that a configuration of kind `PatchTransformer` describes.
    ///
    /// # Errors
    /// As [`Self::from_entry`].
    pub(crate) fn from_config(config: &Value, ctx: &PluginContext<'_>) -> Result<Self, Error> {
        entry::from_config(config, ctx).map(Self::Entry)
    }

    /// Those of `patchesStrategicMerge`.
    ///
    /// # Errors
    /// Fails if an entry is neither a patch nor the path of one, or there is none.
    pub(crate) fn from_paths(paths: &[String], ctx: &PluginContext<'_>) -> Result<Self, Error> {
        legacy::strategic_from_paths(paths, ctx).map(Self::Strategic)
    }

    /// Those that a configuration of kind `PatchStrategicMergeTransformer` describes.
    ///
    /// # Errors
    /// As [`Self::from_paths`].
    pub(crate) fn strategic_from_config(config: &Value, ctx: &PluginContext<'_>) -> Result<Self, Error> {
        legacy::strategic_from_config(config, ctx).map(Self::Strategic)
    }

    /// Those of an entry of `patchesJson6902`.
    ///
    /// # Errors
    /// Fails if it names no target or no patch, or two patches, or what it names is no JSON patch.
    pub(crate) fn json6902_from_entry(entry: &model::Patch, ctx: &PluginContext<'_>) -> Result<Self, Error> {
        legacy::json6902_from_entry(entry, ctx).map(Self::Json)
    }

    /// Those that a configuration of kind `PatchJson6902Transformer` describes.
    ///
    /// # Errors
    /// As [`Self::json6902_from_entry`].
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
