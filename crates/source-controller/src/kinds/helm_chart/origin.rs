//! Reading the source of a chart.

use std::{
    collections::{HashMap, HashSet},
    fmt::Debug,
    time::Duration,
};

use api::{Artifact, Fault, Reason, source::HelmRepository};
use kube::{
    Api, Client, Resource,
    api::{ApiResource, DynamicObject, ListParams},
    core::NamespaceResourceScope,
};
use serde::de::DeserializeOwned;

const READ_TIMEOUT: Duration = Duration::from_secs(30);
const PAGE: u32 = 500;

/// Reads a source. Fails with a fault that waits, if it is missing or cannot be read.
pub(super) async fn read<K>(client: &Client, namespace: &str, name: &str, delay: Duration) -> Result<K, Fault>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let unread = |why: String| {
        let message = format!("failed to get source: {why}");
        Fault::wait(delay, Reason::SourceUnavailable, message)
    };
    if !runtime::names::is_object_name(name) {
        return Err(unread(format!("'{name}' is not a valid name")));
    }
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let read = tokio::time::timeout(READ_TIMEOUT, api.get_opt(name)).await;
    let read = read.map_err(|_| unread("the API server did not answer in time".to_owned()))?;
    let found = read.map_err(|error| unread(runtime::client::describe(&error)))?;
    found.ok_or_else(|| {
        unread(format!(
            "{}.{} \"{name}\" not found",
            K::plural(&()),
            K::group(&())
        ))
    })
}

/// HelmRepositories by their URLs, without trailing slashes.
#[derive(Debug, Default)]
pub(super) struct KnownRepositories(HashMap<String, HelmRepository>);

impl KnownRepositories {
    pub(super) fn get(&self, url: &str) -> Option<&HelmRepository> {
        self.0.get(normalized(url))
    }
}

/// Lists the HelmRepositories of the namespace once, and returns the first one with each of these URLs.
pub(super) async fn repositories_of(
    client: &Client,
    namespace: &str,
    urls: &[&str],
) -> Result<KnownRepositories, String> {
    let kind = ApiResource::erase::<HelmRepository>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let mut wanted: HashSet<&str> = urls.iter().map(|url| normalized(url)).collect();
    let mut known = KnownRepositories::default();
    let mut params = ListParams::default().limit(PAGE);
    while !wanted.is_empty() {
        let listed = tokio::time::timeout(READ_TIMEOUT, api.list(&params)).await;
        let listed = listed.map_err(|_| "the API server did not answer in time".to_owned())?;
        let listed = listed.map_err(|error| runtime::client::describe(&error))?;
        // An undecodable one does not affect others.
        let decoded = listed
            .items
            .into_iter()
            .filter_map(|object| object.try_parse().ok());
        for one in decoded {
            let one: HelmRepository = one;
            let url = normalized(one.spec.url.expose()).to_owned();
            if wanted.remove(url.as_str()) {
                known.0.insert(url, one);
            }
        }
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    Ok(known)
}

fn normalized(url: &str) -> &str {
    url.trim().trim_end_matches('/')
}

pub(super) fn without_artifact(kind: &str, name: &str, delay: Duration) -> Fault {
    let message = format!("no artifact available for {kind} source '{name}'");
    Fault::wait(delay, Reason::NoSourceArtifact, message)
}

pub(super) fn digest(artifact: &Artifact) -> Option<artifact::Digest> {
    let digest = artifact.digest.as_deref()?;
    artifact::Digest::parse(digest).ok()
}
