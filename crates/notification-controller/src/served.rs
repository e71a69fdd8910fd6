//! Kinds that the cluster serves, and the check of names of its objects.

use std::collections::HashMap;

use kube::{Client, api::ApiResource, core::GroupVersionKind, discovery};
use parking_lot::Mutex;
use runtime::names;

/// Maximum number of cached kinds, more than clusters serve: tenants choose which of them are asked for.
const MAX_KINDS: usize = 4096;

/// The kinds of a cluster, each requested once.
pub(crate) struct ServedKinds {
    client: Client,
    kinds: Mutex<HashMap<GroupVersionKind, ApiResource>>,
}

impl ServedKinds {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            kinds: Mutex::default(),
        }
    }

    /// Returns the API resource of a kind; `None` if the cluster does not serve it, or does not answer.
    pub(crate) async fn find(&self, gvk: &GroupVersionKind) -> Option<ApiResource> {
        let known = self.kinds.lock().get(gvk).cloned();
        if known.is_some() {
            return known;
        }
        let (resource, _) = discovery::pinned_kind(&self.client, gvk).await.ok()?;
        let mut kinds = self.kinds.lock();
        if kinds.len() >= MAX_KINDS {
            kinds.clear();
        }
        kinds.insert(gvk.clone(), resource.clone());
        Some(resource)
    }
}

/// Returns the first 60 characters of a string that may have any length, for messages.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Returns true if a string can be the name of an object, which can't change a path or lead to another namespace.
pub(crate) fn is_name(text: &str) -> bool {
    names::is_path_segment(text) && names::is_object_name(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_objects() {
        assert!(is_name("shop-2.credentials") && is_name(&"a".repeat(253)));
        let long = "a".repeat(254);
        for name in [
            "",
            "..",
            "../../victim/secrets/git",
            "a/b",
            "a%2fb",
            "a?b",
            "a b",
            "-a",
            "system:node",
            &long,
        ] {
            assert!(!is_name(name), "{name}");
        }
    }
}
