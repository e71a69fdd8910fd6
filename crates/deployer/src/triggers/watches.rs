//! Watches of sources that survive the absence of their kind.

use std::time::Duration;

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use kube::{Client, runtime::watcher::Event};
use runtime::triggers::{Watched, WatchedFields, api_of, watch};

use crate::{SourceKind, sources::served};

/// Delays between two checks which version of a kind is served: the first for the main kind of a consumer, and the longest, which is
/// the only one for other kinds: clusters without them are common.
const FIRST_CHECK: Duration = Duration::from_secs(1);
const LAST_CHECK: Duration = Duration::from_secs(30);

/// Watches all sources of a kind, and changes the version when the watched one is not served (any more).
pub(super) fn sources<F: WatchedFields>(
    client: Client,
    kind: SourceKind,
    is_main: bool,
    namespace: Option<String>,
) -> BoxStream<'static, Event<Watched<F>>> {
    let asking = client.clone();
    let first_look = if is_main { FIRST_CHECK } else { LAST_CHECK };
    let begin = (kind.resource(kind.preferred_version()), Duration::ZERO);
    let versions = stream::unfold(begin, move |(last, delay)| {
        let client = asking.clone();
        async move {
            if delay.is_zero() {
                return Some((last.clone(), (last, first_look)));
            }
            tokio::time::sleep(delay).await;
            let found = served(&client, kind).await.ok().flatten();
            let next = found.unwrap_or_else(|| last.clone());
            let delay = if next.version == last.version {
                (delay * 2).min(LAST_CHECK)
            } else {
                tracing::info!(
                    kind = kind.name(),
                    version = next.version,
                    "watching sources in another version"
                );
                first_look
            };
            Some((next.clone(), (next, delay)))
        }
    });
    versions
        .flat_map(move |resource| {
            let api = api_of(&client, &resource, namespace.as_deref());
            watch(api, resource.kind)
        })
        .boxed()
}
