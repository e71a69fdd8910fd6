//! Decides which kinds a deployment searches for objects that are no longer rendered. Pure.
//!
//! A list of every kind is most of the work of a small deployment, and finds nothing that the last deployment did not leave: that one
//! ended with a complete search and a prune. So a new revision lists only the kinds of what it leaves behind. Every kind is
//! listed for a new or changed spec, on request, after errors and interruptions, after a restart, and once a day.

use std::collections::HashSet;

use engine::SearchedKinds;
use objects::{ObjectId, ObjectRef};

use super::{memory::KnownDeployment, plan::ApplyReason};

/// The facts that the search depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchFacts<'a> {
    /// The reason of the deployment.
    pub(super) why: ApplyReason,
    /// True if orphans are pruned, and the last prune had no errors: then the last deployment left none.
    pub(super) pruned: bool,
    /// The last deployment of this process.
    pub(super) known: Option<&'a KnownDeployment>,
    /// The objects of the last result in the status, as far as they are known.
    pub(super) previous: Option<&'a [ObjectRef]>,
    /// The rendered objects.
    pub(super) rendered: &'a [ObjectRef],
}

/// Returns the kinds that may have orphans; `None` if every kind may.
pub(super) fn kinds(facts: &SearchFacts<'_>) -> Option<SearchedKinds> {
    let (known, previous) = (facts.known?, facts.previous?);
    if facts.why != ApplyReason::ObjectsChanged || !facts.pruned {
        return None;
    }
    let rendered: HashSet<ObjectId> = facts.rendered.iter().map(ObjectRef::id).collect();
    let previous = previous.iter().map(ObjectRef::id);
    let left = previous
        .chain(known.objects.iter().cloned())
        // A reference without a name stands for all objects of its kind.
        .filter(|id| id.name.is_empty() || !rendered.contains(id));
    Some(SearchedKinds {
        applied: left.map(|id| (id.group, id.kind)).collect(),
        hinted: HashSet::new(),
    })
}

#[cfg(test)]
mod tests {
    use engine::AppliedVersions;
    use runtime::ObjectKey;
    use serde_json::json;
    use yaml::Value;

    use super::{super::memory::Memory, *};

    fn object(kind: &str, name: &str) -> ObjectRef {
        ObjectRef {
            group: String::new(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: Some("apps".to_owned()),
            name: name.to_owned(),
        }
    }

    fn known(objects: &[ObjectRef]) -> KnownDeployment {
        let (memory, key) = (Memory::default(), ObjectKey::new("apps", "shop"));
        let live = Value::from_json(json!({"metadata": {"resourceVersion": "1"}}));
        let mut versions = AppliedVersions::default();
        for object in objects {
            versions.remember(object.id(), &live, &live);
        }
        memory.compared(&key, versions);
        memory.end_deployment(&key, None);
        memory.begin_deployment(&key).expect("it is known")
    }

    fn searched(change: impl for<'a> FnOnce(&mut SearchFacts<'a>)) -> Option<Vec<String>> {
        let kept = object("ConfigMap", "kept");
        let previous = [kept, object("Secret", "gone")];
        searched_after(&previous, change)
    }

    fn searched_after(
        previous: &[ObjectRef],
        change: impl for<'a> FnOnce(&mut SearchFacts<'a>),
    ) -> Option<Vec<String>> {
        let kept = object("ConfigMap", "kept");
        let known = known(&[kept.clone(), object("Service", "renamed")]);
        let rendered = [kept];
        let mut facts = SearchFacts {
            why: ApplyReason::ObjectsChanged,
            pruned: true,
            known: Some(&known),
            previous: Some(previous),
            rendered: &rendered,
        };
        change(&mut facts);
        let mut kinds: Vec<String> = kinds(&facts)?.applied.into_iter().map(|(_, kind)| kind).collect();
        kinds.sort();
        Some(kinds)
    }

    #[test]
    fn new_revision_searches_the_kinds_of_what_it_leaves_behind() {
        assert_eq!(
            searched(|_| {}),
            Some(vec!["Secret".to_owned(), "Service".to_owned()])
        );
        let cut = [object("ConfigMap", "")];
        let all = Some(vec!["ConfigMap".to_owned(), "Service".to_owned()]);
        assert_eq!(searched_after(&cut, |_| {}), all);
    }

    #[test]
    fn every_kind_is_searched_if_what_was_deployed_is_not_known_for_sure() {
        for why in [
            ApplyReason::NeverDeployed,
            ApplyReason::Requested,
            ApplyReason::SpecChanged,
            ApplyReason::LastFailed,
        ] {
            assert_eq!(searched(|facts| facts.why = why), None, "{why:?}");
        }
        assert_eq!(searched(|facts| facts.pruned = false), None);
        assert_eq!(searched(|facts| facts.known = None), None);
        assert_eq!(searched(|facts| facts.previous = None), None);
    }
}
