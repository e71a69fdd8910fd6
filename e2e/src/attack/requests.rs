//! Requests about the victim's namespace in the audit log.

use std::collections::BTreeSet;

use testkit::audit::Entry;

use super::tenants::VICTIM;

/// User, verb, group, resource and subresource of a request.
pub type Shape = (String, String, String, String, String);

#[must_use]
pub fn shapes(entries: &[Entry]) -> BTreeSet<Shape> {
    entries
        .iter()
        .filter(|entry| is_about_victim(entry))
        .map(shape)
        .collect()
}

/// Returns the requests about the victim's namespace that it does not need itself. Requests that the API server denied to a
/// user of another namespace had no effect, and its controllers send them for objects that this user wrote.
#[must_use]
pub fn foreign<'a>(normal: &BTreeSet<Shape>, entries: &'a [Entry]) -> Vec<&'a Entry> {
    let about = entries.iter().filter(|entry| is_about_victim(entry));
    about
        .filter(|entry| !normal.contains(&shape(entry)))
        // An event is created or counted up, as it happens.
        .filter(|entry| entry.resource != "events")
        .filter(|entry| !is_read_of_pass(entry))
        .filter(|entry| {
            let own = entry.impersonated.as_ref().map(|user| user.contains(VICTIM));
            match own {
                // Its objects are read before an apply unless they are as the last one left them.
                Some(true) => !is_search(entry) && entry.verb != "get",
                Some(false) => !entry.is_denied(),
                None => true,
            }
        })
        .collect()
}

/// Returns true for the read that a pass over an object of the victim begins with, unless the watch has just shown the object.
fn is_read_of_pass(entry: &Entry) -> bool {
    let is_reconciled = ["gitrepositories", "kluctldeployments"].contains(&entry.resource.as_str());
    entry.verb == "get" && entry.subresource.is_empty() && entry.impersonated.is_none() && is_reconciled
}

/// Returns true for a list of the objects with a discriminator: whoever else uses the victim's makes it list a kind once
/// more, with its own rights.
fn is_search(entry: &Entry) -> bool {
    entry.verb == "list" && entry.uri.contains("labelSelector=kluctl.io%2Fdiscriminator")
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
