//! Where objects come from, and what changed them: `buildMetadata`.

/// Where an object comes from, or what made or changed it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Origin {
    /// The path of the file, relative to the directory that is built or to its repository.
    pub(crate) path: String,
    pub(crate) repo: String,
    pub(crate) git_ref: String,
    /// The kustomization that has it made or changed.
    pub(crate) configured_in: String,
    /// apiVersion, kind, name and namespace of the configuration that does so.
    pub(crate) configured_by: Option<ConfiguredBy>,
}

/// The configuration of a generator or transformer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ConfiguredBy {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
}
