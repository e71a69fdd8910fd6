//! At the start: artifacts of objects that went while nobody looked.

use std::collections::HashSet;

use api::source::GitRepository;
use artifact::{Key, Storage};
use kube::{
    Api,
    api::{ListParams, PartialObjectMeta},
};
use runtime::Context;

use crate::kinds::git_repository::KIND;

/// Objects asked for at a time.
const PAGE: u32 = 500;

/// Removes the artifacts of objects that are no more. A process that sees only some of the objects removes nothing, nor
/// does one that cannot list them.
pub(crate) async fn sweep(ctx: &Context, storage: &Storage) {
    let flags = ctx.flags();
    if flags.watch_namespace().is_some() || !flags.watch_label_selector.is_empty() {
        return;
    }
    let keys = match keys(ctx).await {
        Ok(keys) => keys,
        Err(error) => {
            tracing::warn!(error = %api::redact(&error.to_string()), "orphaned artifacts stay: objects cannot be listed");
            return;
        }
    };
    match storage.sweep(KIND, &keys) {
        Ok(0) => {}
        Ok(removed) => tracing::info!(removed, "removed artifacts of objects that are no more"),
        Err(error) => tracing::warn!(%error, "orphaned artifacts stay"),
    }
}

async fn keys(ctx: &Context) -> Result<HashSet<Key>, kube::Error> {
    let api: Api<PartialObjectMeta<GitRepository>> = Api::all(ctx.client().clone());
    let mut params = ListParams::default().limit(PAGE);
    let mut keys = HashSet::new();
    loop {
        let page = api.list_metadata(&params).await?;
        for object in page.items {
            let meta = object.metadata;
            let key = meta
                .namespace
                .zip(meta.name)
                .map(|(namespace, name)| Key::new(KIND, &namespace, &name));
            keys.extend(key.and_then(Result::ok));
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(keys),
        }
    }
}
