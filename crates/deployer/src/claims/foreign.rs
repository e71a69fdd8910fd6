//! Checks if objects that are about to be deleted may belong to an owner of another namespace that uses the same mark.
//!
//! Everyone can write a mark into a project. It counts for another namespace only if its owner has applied objects before, with a ServiceAccount
//! that exists and has rights to the objects in question: otherwise it could not have deployed them, and must not keep this owner from deleting
//! them. The number of questions is bounded, and shared by the namespaces of the claims: many claims of one hide none of another.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use cluster::{Cluster, Error, ResourceKind};
use futures::{FutureExt as _, StreamExt as _, stream};
use objects::ObjectRef;
use parking_lot::Mutex;

use super::{Claim, ClaimWords, ClaimedTarget};
use crate::{ClusterIdentity, Clusters};

/// Maximum number of questions about rights for one deletion.
const MAX_REVIEWS: usize = 1000;
const CONCURRENT_REVIEWS: usize = 8;
/// Timeout for all answers; servers of kubeconfigs may not answer at all.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Verbs of which one is needed to deploy an object.
const VERBS: [&str; 2] = ["create", "patch"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// They may belong to another deployment, in words.
    Shared(String),
    /// It could not be found out, with the reason.
    Unknown(String),
}

/// Asks before a deletion if the objects may belong to owners of other namespaces.
#[derive(Debug)]
pub struct ForeignOwners<'a> {
    clusters: &'a Clusters,
    /// The connection that deletes.
    cluster: &'a Cluster,
    identity: &'a ClusterIdentity,
    claims: Vec<Claim>,
    words: ClaimWords,
    refusal: Mutex<Option<Refusal>>,
}

/// The answer about the rights of one deployment.
enum Rights {
    /// It may change such an object.
    Some(String),
    None,
    /// Its cluster or its rights can't be read.
    Unknown,
}

/// A kind in a namespace, or in the whole cluster.
type ReviewedKinds = BTreeMap<(String, String, Option<String>), (ResourceKind, ObjectRef)>;

impl<'a> ForeignOwners<'a> {
    /// Prepares the check for deletions through `cluster`.
    pub fn new(
        clusters: &'a Clusters,
        cluster: &'a Cluster,
        identity: &'a ClusterIdentity,
        claims: Vec<Claim>,
        words: ClaimWords,
    ) -> Self {
        Self {
            clusters,
            cluster,
            identity,
            claims: distinct(claims),
            words,
            refusal: Mutex::default(),
        }
    }

    /// Returns true if these objects may be deleted. Otherwise [`Self::refusal`] has the reason.
    pub async fn allows(&self, objects: &[ObjectRef]) -> bool {
        let refusal = self.check(objects).await;
        let is_allowed = refusal.is_none();
        *self.refusal.lock() = refusal;
        is_allowed
    }

    /// Returns why a deletion was refused.
    #[must_use]
    pub fn refusal(self) -> Option<Refusal> {
        self.refusal.into_inner()
    }

    async fn check(&self, objects: &[ObjectRef]) -> Option<Refusal> {
        if self.claims.is_empty() {
            return None;
        }
        let kinds = match self.kinds(objects).await {
            Ok(kinds) => kinds,
            Err(error) => return Some(Refusal::Unknown(error.to_string())),
        };
        let most = MAX_REVIEWS / (kinds.len() * VERBS.len()).max(1);
        let claims = fair_choice(&self.claims, most);
        let is_complete = claims.len() == self.claims.len();
        match tokio::time::timeout(TIMEOUT, self.first_refusal(&claims, &kinds)).await {
            Ok(None) if !is_complete && self.counts_unknown() => {
                let ClaimWords { kind, mark } = self.words;
                Some(Refusal::Unknown(format!(
                    "too many {kind}s of other namespaces use the same {mark}: choose another"
                )))
            }
            Ok(refusal) => refusal,
            Err(_) if self.counts_unknown() => {
                let ClaimWords { kind, mark } = self.words;
                Some(Refusal::Unknown(format!(
                    "the rights of {kind}s of other namespaces with the same {mark} could not be read in time"
                )))
            }
            Err(_) => None,
        }
    }

    async fn first_refusal(&self, claims: &[&Claim], kinds: &ReviewedKinds) -> Option<Refusal> {
        let questions: Vec<_> = claims
            .iter()
            .map(|&claim| async move { self.refuses(claim, self.rights(claim, kinds).await) }.boxed())
            .collect();
        let mut answers = stream::iter(questions).buffer_unordered(CONCURRENT_REVIEWS);
        let mut unknown = None;
        while let Some(answer) = answers.next().await {
            match answer {
                Some(Refusal::Shared(_)) => return answer,
                Some(Refusal::Unknown(_)) => unknown = answer,
                None => {}
            }
        }
        unknown
    }

    /// Returns the kinds and namespaces of objects.
    async fn kinds(&self, objects: &[ObjectRef]) -> Result<ReviewedKinds, Error> {
        let mut kinds = ReviewedKinds::new();
        for object in objects {
            let scope = (
                object.group.clone(),
                object.kind.clone(),
                object.namespace.clone(),
            );
            if kinds.contains_key(&scope) {
                continue;
            }
            match self
                .cluster
                .kind(&object.group, &object.version, &object.kind)
                .await
            {
                Ok(kind) => {
                    kinds.insert(scope, (kind, object.clone()));
                }
                // Without its kind, it is gone.
                Err(Error::NoMatch { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(kinds)
    }

    /// Finds out if a deployment may change one of the objects.
    async fn rights(&self, claim: &Claim, kinds: &ReviewedKinds) -> Rights {
        let kube_config = match &claim.target {
            ClaimedTarget::Unknown => return Rights::Unknown,
            ClaimedTarget::Local => None,
            ClaimedTarget::Remote(config) => Some(config),
        };
        let account = claim.service_account.as_deref();
        let Ok(target) = self.clusters.of(&claim.key.namespace, kube_config, account).await else {
            return Rights::Unknown;
        };
        if !target.identity.may_be(self.identity) {
            return Rights::None;
        }
        let is_controller = kube_config.is_none() && target.cluster.impersonated().is_none();
        if kube_config.is_none() && !self.clusters.has_account(&claim.key.namespace, account).await {
            return Rights::None;
        }
        for (kind, object) in kinds.values() {
            if is_controller {
                return Rights::Some(object.to_string());
            }
            for verb in VERBS {
                match target.cluster.may(verb, kind, object.namespace.as_deref()).await {
                    Ok(true) => return Rights::Some(object.to_string()),
                    Ok(false) => {}
                    Err(_) => return Rights::Unknown,
                }
            }
        }
        Rights::None
    }

    /// Returns true if a deployment whose rights are unknown counts as an owner: only if this one deploys with the rights of the
    /// controller. A ServiceAccount deletes only objects that it has rights to.
    fn counts_unknown(&self) -> bool {
        self.cluster.impersonated().is_none()
    }

    /// Returns the refusal for an owner, if it counts. One that acts as a ServiceAccount is not told who the other is.
    fn refuses(&self, claim: &Claim, rights: Rights) -> Option<Refusal> {
        let is_tenant = self.cluster.impersonated().is_some();
        let ClaimWords { kind, mark } = self.words;
        match rights {
            Rights::None => None,
            Rights::Unknown if !self.counts_unknown() => None,
            Rights::Some(object) if is_tenant => Some(Refusal::Shared(format!(
                "a {kind} of another namespace that may change {object}"
            ))),
            Rights::Some(_) => Some(Refusal::Shared(claim.to_string())),
            Rights::Unknown => Some(Refusal::Unknown(format!(
                "the rights of {claim}, which has the same {mark}, are unknown"
            ))),
        }
    }
}

/// Returns at most `most` claims: of each namespace in turn, so that many claims of one leave out none of another.
fn fair_choice(claims: &[Claim], most: usize) -> Vec<&Claim> {
    let mut by_namespace = BTreeMap::<&str, Vec<&Claim>>::new();
    for claim in claims {
        by_namespace.entry(&claim.key.namespace).or_default().push(claim);
    }
    let rounds = by_namespace.values().map(Vec::len).max().unwrap_or_default();
    let turns =
        (0..rounds).flat_map(|round| by_namespace.values().filter_map(move |of| of.get(round).copied()));
    turns.take(most).collect()
}

/// Returns one claim for each identity that may have applied objects: objects of one namespace that act as the same one have the same rights.
fn distinct(mut claims: Vec<Claim>) -> Vec<Claim> {
    let mut seen = BTreeSet::new();
    claims.retain(|claim| claim.has_applied);
    claims.retain(|claim| {
        let target = match &claim.target {
            ClaimedTarget::Local => None,
            ClaimedTarget::Unknown => Some(None),
            ClaimedTarget::Remote(config) => Some(Some((
                config.secret_ref.name.clone(),
                config.secret_ref.key.clone(),
            ))),
        };
        seen.insert((claim.key.namespace.clone(), claim.service_account.clone(), target))
    });
    claims
}

#[cfg(test)]
mod tests {
    use runtime::ObjectKey;

    use super::*;

    fn claim(namespace: &str, account: &str, has_applied: bool) -> Claim {
        Claim {
            name: format!("KluctlDeployment {namespace}/{account}"),
            key: ObjectKey::new(namespace, account),
            target: ClaimedTarget::Local,
            service_account: Some(account.to_owned()),
            has_applied,
        }
    }

    #[test]
    fn claims_of_one_namespace_leave_out_none_of_another() {
        let mut claims: Vec<Claim> = (0..100)
            .map(|i| claim("attacker", &format!("a{i}"), true))
            .collect();
        claims.push(claim("honest", "deployer", true));
        let chosen = fair_choice(&claims, 10);
        assert_eq!(chosen.len(), 10);
        assert!(chosen.iter().any(|claim| claim.key.namespace == "honest"));
        assert_eq!(fair_choice(&claims, 1000).len(), claims.len());
    }

    #[test]
    fn identity_that_applied_nothing_claims_nothing() {
        let claims = vec![
            claim("a", "x", false),
            claim("a", "x", true),
            claim("a", "x", true),
            claim("b", "invented", false),
        ];
        let left = distinct(claims);
        assert_eq!(left.len(), 1);
        assert_eq!(left.first().map(|claim| claim.key.namespace.as_str()), Some("a"));
    }
}
