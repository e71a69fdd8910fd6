//! Wakes objects when something that they refer to changes: a source that has a new artifact, a dependency that became
//! ready, a ConfigMap or a Secret with settings.
//!
//! Sources and consumers are watched untyped and decoded one by one, so that an object that cannot be decoded never
//! stops the watch for the others. Only the fields that the index needs are parsed ([`Watched`]). The index holds names and
//! revisions only; a pass reads its inputs live.

mod configs;
mod consumers;
mod index;
mod watches;

use std::{future::ready, marker::PhantomData};

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use kube::{ResourceExt, core::ApiResource, runtime::watcher::Event};
use runtime::{
    Context, ObjectKey, Trigger,
    triggers::{Change, Watched, WatchedFields, api_of, watch},
};

use crate::{Consumer, SeenArtifacts, SourceId, SourceKind};
pub use configs::{ConfigId, ConfigKind};
use index::{Index, Observation, Offer};

struct SourceFields;

impl WatchedFields for SourceFields {
    const SPEC: &'static [&'static str] = &["url", "secretRef"];
    const STATUS: &'static [&'static str] = &["artifact"];
}

struct ConsumerFields<C>(PhantomData<C>);

impl<C: Consumer> WatchedFields for ConsumerFields<C> {
    const SPEC: &'static [&'static str] = C::LINK_SPEC;
    const STATUS: &'static [&'static str] = C::LINK_STATUS;
}

/// Watches the sources and the objects of a kind, and wakes the objects whose references changed. Offers of sources are noted in
/// `seen`. `configs` selects, by labels, the ConfigMaps and Secrets whose changes wake the objects that refer to them ([`crate::Links::configs`]);
/// `None` watches none.
#[must_use]
pub fn triggers<C: Consumer>(
    ctx: &Context,
    seen: &SeenArtifacts,
    configs: Option<&str>,
) -> BoxStream<'static, Trigger> {
    let (client, namespace) = (ctx.client(), ctx.flags().watch_namespace());
    // A source may live in a namespace that is not watched for consumers.
    let within = ctx.flags().watch_sources_namespace();
    let sources = C::SOURCE_KINDS.iter().enumerate().map(|(i, &kind)| {
        let (client, within) = (client.clone(), within.map(str::to_owned));
        let events = watches::sources::<SourceFields>(client, kind, i == 0, within);
        let seen = seen.clone();
        events
            .map(move |event| {
                note(&seen, kind, &event);
                Observation::Source(kind, Change::of(event, Offer::of))
            })
            .boxed()
    });
    let resource = ApiResource::erase::<C::Object>(&());
    let api = api_of::<Watched<ConsumerFields<C>>>(client, &resource, namespace);
    let consumers = watch(api, resource.kind)
        .map(|event| Observation::Consumer(Change::of(event, C::links)))
        .boxed();
    let configs = configs.map(|labels| {
        configs::changes(client, labels, namespace)
            .map(|(kind, change)| Observation::Config(kind, change))
            .boxed()
    });
    stream::select_all(sources.chain([consumers]).chain(configs))
        .scan(Index::default(), |index, observation| {
            ready(Some(index.apply(observation)))
        })
        .flat_map(stream::iter)
        .boxed()
}

fn note(seen: &SeenArtifacts, kind: SourceKind, event: &Event<Watched<SourceFields>>) {
    let source = |object: &Watched<SourceFields>| SourceId {
        kind,
        key: ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any()),
    };
    match event {
        Event::InitApply(object) | Event::Apply(object) => seen.note_watched(&source(object), &object.object),
        Event::Delete(object) => seen.forget(&source(object)),
        Event::Init | Event::InitDone => {}
    }
}
