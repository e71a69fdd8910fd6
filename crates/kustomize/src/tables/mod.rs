//! Tables that are generated from the original's own data.

/// Whether a kind is known to live outside of namespaces, by exact apiVersion.
pub(crate) fn is_cluster_scoped(_api_version: &str, _kind: &str) -> bool {
    false
}
