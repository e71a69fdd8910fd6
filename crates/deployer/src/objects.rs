//! Live reads of untyped objects. One object that cannot be decoded never hides the others.

use api::{Fault, Reason};
use cluster::ResourceKind;
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{ListParams, PartialObjectMeta},
    core::{ApiResource, DynamicObject, NamespaceResourceScope},
};
use runtime::{client::describe, triggers::api_of};

/// Objects in a page of a list.
const PAGE: u32 = 250;

#[must_use]
pub fn api(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
    api_of(client, resource, namespace)
}

/// Returns the API of the metadata of all objects of a kind.
pub(crate) fn metadata_of(client: &Client, kind: &ResourceKind) -> Api<PartialObjectMeta<DynamicObject>> {
    let resource = ApiResource {
        group: kind.group.clone(),
        version: kind.version.clone(),
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
    };
    Api::all_with(client.clone(), &resource)
}

/// Lists all objects live, page by page, and returns the result of `keep` for each.
///
/// # Errors
/// If a page cannot be read. A kind that is not served is such an error, too: see [`found`].
pub async fn list<T>(
    api: &Api<DynamicObject>,
    keep: impl Fn(&DynamicObject) -> Option<T>,
) -> Result<Vec<T>, kube::Error> {
    pages(api, ListParams::default(), keep).await
}

/// Lists the objects whose field, such as `status.discriminator`, has a value, and returns the result of `keep` for each. If the definition
/// of the kind doesn't let this field be selected, all objects are listed: `keep` checks it in any case.
///
/// # Errors
/// As [`list`].
pub async fn list_with<T>(
    api: &Api<DynamicObject>,
    (field, value): (&str, &str),
    keep: impl Fn(&DynamicObject) -> Option<T>,
) -> Result<Vec<T>, kube::Error> {
    // Others have a meaning in selectors.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if value.is_empty() || !value.chars().all(is_plain) {
        return list(api, keep).await;
    }
    let selected = ListParams::default().fields(&format!("{field}={value}"));
    match pages(api, selected, &keep).await {
        Err(kube::Error::Api(status)) if status.code == 400 => list(api, keep).await,
        listed => listed,
    }
}

async fn pages<T>(
    api: &Api<DynamicObject>,
    params: ListParams,
    keep: impl Fn(&DynamicObject) -> Option<T>,
) -> Result<Vec<T>, kube::Error> {
    let mut found = Vec::new();
    let mut params = params.limit(PAGE);
    loop {
        let page = api.list(&params).await?;
        found.extend(page.items.iter().filter_map(&keep));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(found),
        }
    }
}

/// Returns `None` if the answer is that there is no such object, or no such kind.
///
/// # Errors
/// Any other error.
pub fn found<T>(answer: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match answer {
        Ok(object) => Ok(Some(object)),
        // An unknown group is answered with a 404 whose body is not a Status.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns true if the object is still the one that was read: neither its spec nor its removal is new.
///
/// # Errors
/// If the object cannot be read again.
pub async fn is_unchanged<K>(client: &Client, object: &K) -> Result<bool, Fault>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let resource = ApiResource::erase::<K>(&());
    let api = api(client, &resource, object.namespace().as_deref());
    let read = found(api.get_metadata(&object.name_any()).await).map_err(|error| {
        let message = format!("cannot read the object again: {}", describe(&error));
        Fault::retry(Reason::Failed, message)
    })?;
    let then = object.meta();
    Ok(read.is_some_and(|read| {
        let now = read.metadata;
        now.uid == then.uid
            && now.generation == then.generation
            && now.deletion_timestamp.is_some() == then.deletion_timestamp.is_some()
    }))
}
