//! Kinds that the cluster serves, and the check of path segments of its API.

use std::collections::HashMap;

use kube::{Client, api::ApiResource, core::GroupVersionKind, discovery};
use parking_lot::Mutex;

/// Maximum number of kinds that are remembered.
const REMEMBERED: usize = 64;

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
        if kinds.len() >= REMEMBERED {
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
    is_segment(text) && runtime::secret::is_object_name(text)
}

/// Returns true if a string is one segment of a URL path and can't change the rest of the path. The author of an
/// event or a Receiver chooses these strings, and must not choose requests that have the rights of this process.
pub(crate) fn is_segment(text: &str) -> bool {
    let plain = |c: char| !c.is_control() && !c.is_whitespace() && !matches!(c, '/' | '\\' | '%' | '?' | '#');
    !matches!(text, "" | "." | "..") && text.len() <= 253 && text.chars().all(plain)
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

    #[test]
    fn segments_that_change_the_url_path_are_refused() {
        for name in ["shop", "v1", "source.toolkit.fluxcd.io", "system:node"] {
            assert!(is_segment(name), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "../secrets",
            "a?watch=1",
            "a#b",
            "a%2fb",
            "a b",
            "a\nb",
            "a\\b",
        ] {
            assert!(!is_segment(name), "{name}");
        }
    }
}
