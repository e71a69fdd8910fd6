//! Removal of artifacts without an object when the process starts: objects may have been deleted while none ran.

use std::collections::HashSet;

use artifact::{Key, Storage};
use kube::{
    Api, Client,
    api::{ListParams, PartialObjectMeta},
};
use runtime::Context;

use crate::{
    kinds::{self, Registration},
    source_kind::SourceKind,
};

const PAGE: u32 = 500;

/// Removes the artifacts of deleted objects. A process that watches only some of the objects removes nothing, nor does one that can't list
/// them.
pub(crate) async fn sweep(ctx: &Context, storage: &Storage) {
    let flags = ctx.flags();
    if flags.watch_namespace().is_some() || !flags.watch_label_selector.is_empty() {
        return;
    }
    for kind in kinds::ALL {
        sweep_kind(ctx.client(), storage, kind).await;
    }
}

async fn sweep_kind(client: &Client, storage: &Storage, kind: &Registration) {
    let directory = kind.directory;
    let keys = match (kind.keys)(client.clone()).await {
        Ok(keys) => keys,
        Err(error) => {
            let error = api::redact(&error.to_string());
            tracing::warn!(
                error,
                directory,
                "orphaned artifacts are kept: objects cannot be listed"
            );
            return;
        }
    };
    match storage.sweep(directory, &keys) {
        Ok(0) => {}
        Ok(removed) => tracing::info!(removed, directory, "removed artifacts of deleted objects"),
        Err(error) => tracing::warn!(%error, directory, "orphaned artifacts are kept"),
    }
}

pub(crate) async fn keys<K: SourceKind>(client: Client) -> Result<HashSet<Key>, kube::Error> {
    let api: Api<PartialObjectMeta<K::Object>> = Api::all(client);
    let mut params = ListParams::default().limit(PAGE);
    let mut keys = HashSet::new();
    loop {
        let page = api.list_metadata(&params).await?;
        for object in page.items {
            let meta = object.metadata;
            let key = meta
                .namespace
                .zip(meta.name)
                .map(|(namespace, name)| Key::new(K::DIRECTORY, &namespace, &name));
            keys.extend(key.and_then(Result::ok));
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(keys),
        }
    }
}
