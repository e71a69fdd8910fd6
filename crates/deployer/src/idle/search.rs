//! Decides which kinds are searched for objects that are no longer rendered. Pure.
//!
//! A list of every kind is most of the work of a small deployment. Two things save it:
//!
//! - The index of labelled objects ([`crate::LabelIndex`]) names the kinds with objects of the discriminator. It may lag behind by
//!   moments, so the objects that the last deployment applied count, too.
//! - Without an index, the last deployment tells: it ended with a complete search and a prune, so a new revision can leave only
//!   objects that it applied, and without one there are no orphans. Every kind is listed for a new or changed spec, after a restart, and
//!   once a day.
//!
//! Every kind is listed on a request to deploy, and after a deployment or prune that had errors or broke off. Found objects are always
//! listed live, under the identity that deletes it.

use std::collections::HashSet;

use crate::LabelledObject;
use apply::SearchedKinds;
use objects::{ObjectId, ObjectRef};

use super::LastDeployment;

/// The occasion of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// Somebody asked for a deployment: every kind is searched.
    Request,
    /// At most the rendered objects changed since the last deployment, and not the spec.
    Revision,
    /// Anything else, such as a first deployment, or a changed spec.
    Other,
}

/// The facts that the search depends on.
#[derive(Debug, Clone, Copy)]
pub struct SearchFacts<'a> {
    pub occasion: Occasion,
    /// True if orphans of all items are pruned, and the last prune had no errors: then the last deployment left none.
    pub pruned: bool,
    pub last: &'a LastDeployment,
    /// The objects with the discriminator that the index knows; `None` without an index of the target cluster.
    pub indexed: Option<&'a [LabelledObject]>,
    /// The objects of the last result in the status, as far as they are known.
    pub previous: Option<&'a [ObjectRef]>,
    pub rendered: &'a [ObjectRef],
}

/// Returns the kinds that may have orphans; `None` if every kind may.
pub fn kinds(facts: &SearchFacts<'_>) -> Option<SearchedKinds> {
    if facts.occasion == Occasion::Request || *facts.last == LastDeployment::BrokeOff {
        return None;
    }
    let (known, previous) = (facts.last.known(), facts.previous?);
    let is_revision = facts.occasion == Occasion::Revision && facts.pruned && known.is_some();
    if facts.indexed.is_none() && !is_revision {
        return None;
    }
    let rendered: HashSet<ObjectId> = facts.rendered.iter().map(ObjectRef::id).collect();
    let previous = previous.iter().map(ObjectRef::id);
    let known = known.into_iter().flat_map(|known| known.objects.ids().cloned());
    let indexed = facts.indexed.unwrap_or_default().iter().map(id);
    // An object without a name stands for all of its kind.
    let is_left = |id: &ObjectId| id.name.is_empty() || !rendered.contains(id);
    let kind = |id: ObjectId| (id.group, id.kind);
    Some(SearchedKinds {
        applied: previous.chain(known).filter(is_left).map(kind).collect(),
        hinted: indexed.filter(is_left).map(kind).collect(),
    })
}

pub fn id(object: &LabelledObject) -> ObjectId {
    ObjectId {
        group: object.group.clone(),
        kind: object.kind.clone(),
        namespace: Some(object.key.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        name: object.key.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use apply::AppliedVersions;
    use runtime::ObjectKey;
    use serde_json::json;
    use yaml::Value;

    use super::{super::DeploymentStates, *};

    fn object(kind: &str, name: &str) -> ObjectRef {
        ObjectRef {
            group: String::new(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: Some("apps".to_owned()),
            name: name.to_owned(),
        }
    }

    fn known(objects: &[ObjectRef]) -> LastDeployment {
        let (memory, key) = (DeploymentStates::default(), ObjectKey::new("apps", "shop"));
        let live = Value::from_json(json!({"metadata": {"resourceVersion": "1"}}));
        let mut versions = AppliedVersions::default();
        for object in objects {
            versions.remember(object.id(), &live, &live);
        }
        assert_eq!(memory.begin_deployment(&key), LastDeployment::Unknown);
        assert_eq!(memory.begin_deployment(&key), LastDeployment::BrokeOff);
        memory.compared(&key, versions);
        memory.end_deployment(&key, None);
        memory.begin_deployment(&key)
    }

    /// The kinds of a revision that renders ConfigMap `kept`; of the kinds that are hinted at, the first letter is small.
    fn searched(change: impl for<'a> FnOnce(&mut SearchFacts<'a>)) -> Option<String> {
        let kept = object("ConfigMap", "kept");
        let previous = [kept, object("Secret", "gone")];
        searched_after(&previous, change)
    }

    fn searched_after(
        previous: &[ObjectRef],
        change: impl for<'a> FnOnce(&mut SearchFacts<'a>),
    ) -> Option<String> {
        let kept = object("ConfigMap", "kept");
        let last = known(&[kept.clone(), object("Service", "renamed")]);
        let rendered = [kept];
        let mut facts = SearchFacts {
            occasion: Occasion::Revision,
            pruned: true,
            last: &last,
            indexed: None,
            previous: Some(previous),
            rendered: &rendered,
        };
        change(&mut facts);
        let kinds = kinds(&facts)?;
        let hinted = kinds.hinted.into_iter().map(|(_, kind)| kind.to_lowercase());
        let mut names: Vec<String> = kinds.applied.into_iter().map(|(_, kind)| kind).collect();
        names.extend(hinted);
        names.sort();
        Some(names.join(" "))
    }

    fn labelled(kind: &str, name: &str) -> LabelledObject {
        LabelledObject {
            group: String::new(),
            kind: kind.to_owned(),
            key: ObjectKey::new("apps", name),
            version: "1".to_owned(),
        }
    }

    fn found(kinds: &str) -> Option<String> {
        Some(kinds.to_owned())
    }

    #[test]
    fn new_revision_searches_the_kinds_of_what_it_leaves_behind() {
        assert_eq!(searched(|_| {}), found("Secret Service"));
        let cut = [object("ConfigMap", "")];
        assert_eq!(searched_after(&cut, |_| {}), found("ConfigMap Service"));
    }

    #[test]
    fn every_kind_is_searched_if_what_was_deployed_is_not_known_for_sure() {
        for occasion in [Occasion::Request, Occasion::Other] {
            assert_eq!(searched(|facts| facts.occasion = occasion), None, "{occasion:?}");
        }
        assert_eq!(searched(|facts| facts.pruned = false), None);
        assert_eq!(searched(|facts| facts.last = &LastDeployment::Unknown), None);
        assert_eq!(searched(|facts| facts.last = &LastDeployment::BrokeOff), None);
        assert_eq!(searched(|facts| facts.previous = None), None);
    }

    #[test]
    fn index_names_the_kinds_of_objects_that_are_not_rendered() {
        let nothing: &'static [ObjectRef] = &[];
        let objects: &'static [LabelledObject] = Vec::leak(vec![
            labelled("ConfigMap", "kept"),
            labelled("Role", "by-hand"),
            labelled("Unwatchable", ""),
        ]);
        for occasion in [Occasion::Revision, Occasion::Other] {
            let first = searched_after(nothing, |facts| {
                (facts.occasion, facts.indexed, facts.pruned) = (occasion, Some(objects), false);
                facts.last = &LastDeployment::Unknown;
            });
            assert_eq!(first, found("role unwatchable"), "{occasion:?}");
        }
        let with_index = |change: fn(&mut SearchFacts<'_>)| {
            searched(|facts| {
                facts.indexed = Some(objects);
                change(facts);
            })
        };
        assert_eq!(with_index(|_| {}), found("Secret Service role unwatchable"));
        assert_eq!(with_index(|facts| facts.previous = None), None);
        assert_eq!(with_index(|facts| facts.last = &LastDeployment::BrokeOff), None);
        let request = Occasion::Request;
        assert_eq!(
            searched(|facts| (facts.occasion, facts.indexed) = (request, Some(objects))),
            None
        );
    }
}
