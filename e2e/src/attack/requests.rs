//! Requests about the victim's namespace in the audit log.

use std::collections::BTreeSet;

use testkit::audit::Entry;

use super::tenants::VICTIM;

/// User, verb, group, resource and subresource of a request.
pub type Shape = (String, String, String, String, String);

/// Returns the requests of controllers about the victim's namespace.
#[must_use]
pub fn shapes(entries: &[Entry]) -> BTreeSet<Shape> {
    entries
        .iter()
        .filter(|entry| is_about_victim(entry))
        .map(shape)
        .collect()
}

/// Returns the requests about the victim's namespace that it does not need itself. Requests that the API server denied to a user
/// of another namespace had no effect, and its controllers send them for what that user wrote.
#[must_use]
pub fn foreign<'a>(normal: &BTreeSet<Shape>, entries: &'a [Entry]) -> Vec<&'a Entry> {
    let about = entries.iter().filter(|entry| is_about_victim(entry));
    about
        .filter(|entry| !normal.contains(&shape(entry)))
        // An event is created or counted up, as it happens.
        .filter(|entry| entry.resource != "events")
        .filter(|entry| {
            !(entry.is_denied()
                && entry
                    .impersonated
                    .as_ref()
                    .is_some_and(|user| !user.contains(VICTIM)))
        })
        .collect()
}

fn is_about_victim(entry: &Entry) -> bool {
    entry.namespace == VICTIM && entry.user.starts_with("system:serviceaccount:flux-system:")
}

fn shape(entry: &Entry) -> Shape {
    let user = entry.impersonated.as_ref().unwrap_or(&entry.user);
    (
        user.clone(),
        entry.verb.clone(),
        entry.group.clone(),
        entry.resource.clone(),
        entry.subresource.clone(),
    )
}
