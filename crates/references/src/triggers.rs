//! Wakes objects when something that they refer to changes: a source that has a new artifact, a dependency that became
//! ready.
//!
//! Sources and consumers are watched untyped and decoded one by one, so that an object that cannot be decoded never
//! stops the watch for the others. The index holds names and revisions only; what a pass works with, it reads live.

mod index;
mod watches;

use std::future::ready;

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use kube::core::ApiResource;
use runtime::{Context, Trigger};

use crate::{Consumer, objects};
use index::{Change, Index, Observation, Offer};

/// Watches the sources and the objects of a kind, and wakes the objects whose references changed.
#[must_use]
pub fn triggers<C: Consumer>(ctx: &Context) -> BoxStream<'static, Trigger> {
    let (client, namespace) = (ctx.client(), ctx.flags().watch_namespace());
    // A source may live in a namespace that is not watched for consumers.
    let within = namespace.filter(|_| ctx.flags().no_cross_namespace_refs);
    let sources = C::SOURCE_KINDS.iter().map(|&kind| {
        let events = watches::sources(client.clone(), kind, within.map(str::to_owned));
        events
            .map(move |event| Observation::Source(kind, Change::of(event, Offer::of)))
            .boxed()
    });
    let resource = ApiResource::erase::<C::Object>(&());
    let consumers = watches::watch(objects::api(client, &resource, namespace), resource.kind)
        .map(|event| Observation::Consumer(Change::of(event, C::links)))
        .boxed();
    stream::select_all(sources.chain([consumers]))
        .scan(Index::default(), |index, observation| {
            ready(Some(index.apply(observation)))
        })
        .flat_map(stream::iter)
        .boxed()
}
