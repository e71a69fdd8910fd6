//! Decides about a pass: deploy, compare, prune, validate, and when the next pass is.
//!
//! Total and pure: no clock, no I/O. Each decision is one function with a table of tests.

use std::{collections::BTreeMap, time::Duration};

use deployer::schedule;
use engine::discriminator::{self, DiscriminatorError};
use objects::meta;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Period {
    Every(Duration),
    Never,
}

impl Period {
    fn due(self, since: Duration) -> bool {
        matches!(self, Self::Every(period) if since >= schedule::due_age(period))
    }

    fn left(self, since: Duration) -> Option<Duration> {
        match self {
            Self::Every(period) => Some(period.saturating_sub(since)),
            Self::Never => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastDeploy<'a> {
    pub hash: &'a str,
    pub failed: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Facts<'a> {
    pub hash: &'a str,
    pub last_deploy: Option<LastDeploy<'a>>,
    pub spec_changed: bool,
    /// True if the deploy annotation has a value that was not handled yet.
    pub deploy_requested: bool,
    /// True if the reconcile annotation has a value that was not handled yet.
    pub reconcile_requested: bool,
    /// True if the last pass ended before it could deploy.
    pub recovering: bool,
    pub dry_run: bool,
    /// True if another hash is a reason to deploy at once; otherwise it is one as soon as the period has passed.
    pub deploy_on_changes: bool,
    /// Period of deployments, and of comparisons of the cluster with the rendered objects.
    pub deploy_period: Period,
    /// True if a request to reconcile requests a comparison, too: not if there is a period for it in the spec.
    pub compare_on_request: bool,
    pub since_compared: Duration,
    pub prune: bool,
    pub last_prune_failed: bool,
    pub validate: bool,
    pub validate_period: Period,
    pub since_validated: Option<Duration>,
    pub last_validate_failed: bool,
    /// True if the last deployment of the same failed, and is not due again.
    pub is_early: bool,
}

impl Facts<'_> {
    /// Returns true if a failed deployment is left for later. A requested reconciliation repeats it.
    fn leaves_failed(&self) -> bool {
        self.is_early && !self.reconcile_requested
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyReason {
    NeverDeployed,
    /// The deploy annotation asks for it.
    Requested,
    SpecChanged,
    /// Other objects were rendered than those last deployed.
    ObjectsChanged,
    LastFailed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deploy {
    /// All of them are applied.
    Apply(ApplyReason),
    /// They are compared with the cluster; only those that differ are applied.
    Compare,
    /// They are left as they are.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prune {
    Disabled,
    /// They are pruned.
    Run,
    /// They are pruned if the comparison found any.
    IfSeen,
    /// They are left for a later pass.
    NotNow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validate {
    Disabled,
    Run,
    /// It is validated if something was deployed.
    IfDeployed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    pub deploy: Deploy,
    pub prune: Prune,
    pub validate: Validate,
    /// True if a failed deployment is left for later: hooks, deletions and waits are not repeated by any pass.
    pub is_early: bool,
}

#[must_use]
pub(crate) fn decide(facts: &Facts<'_>) -> Decision {
    let deploy = deploy(facts);
    Decision {
        deploy,
        prune: prune(facts, deploy),
        validate: validate(facts, deploy),
        is_early: facts.leaves_failed(),
    }
}

fn deploy(facts: &Facts<'_>) -> Deploy {
    if facts.leaves_failed() {
        return Deploy::Nothing;
    }
    let Some(last) = facts.last_deploy else {
        return Deploy::Apply(ApplyReason::NeverDeployed);
    };
    if facts.deploy_requested {
        return Deploy::Apply(ApplyReason::Requested);
    }
    if facts.spec_changed {
        return Deploy::Apply(ApplyReason::SpecChanged);
    }
    let is_due = facts.deploy_period.due(facts.since_compared);
    if last.hash != facts.hash && (facts.deploy_on_changes || is_due) {
        return Deploy::Apply(ApplyReason::ObjectsChanged);
    }
    if last.failed {
        return Deploy::Apply(ApplyReason::LastFailed);
    }
    // A dry run leaves nothing in the cluster, so every comparison would find everything missing.
    if facts.dry_run {
        return Deploy::Nothing;
    }
    let asked = facts.recovering || (facts.reconcile_requested && facts.compare_on_request);
    if asked || is_due {
        Deploy::Compare
    } else {
        Deploy::Nothing
    }
}

fn prune(facts: &Facts<'_>, deploy: Deploy) -> Prune {
    match deploy {
        _ if !facts.prune => Prune::Disabled,
        _ if facts.leaves_failed() => Prune::NotNow,
        Deploy::Apply(_) => Prune::Run,
        _ if facts.last_prune_failed => Prune::Run,
        // Each deployment is followed by its pruning, so there should be none: a look takes a list of every kind.
        Deploy::Compare if facts.recovering || facts.reconcile_requested => Prune::IfSeen,
        Deploy::Compare | Deploy::Nothing => Prune::NotNow,
    }
}

fn validate(facts: &Facts<'_>, deploy: Deploy) -> Validate {
    // A dry run deploys nothing that could be validated.
    if !facts.validate || facts.dry_run {
        return Validate::Disabled;
    }
    if facts.leaves_failed() {
        return Validate::IfDeployed;
    }
    let Some(since) = facts.since_validated else {
        return Validate::Run;
    };
    let run = matches!(deploy, Deploy::Apply(_))
        || facts.last_validate_failed
        || facts.recovering
        || facts.reconcile_requested
        || facts.validate_period.due(since);
    if run { Validate::Run } else { Validate::IfDeployed }
}

/// Decides if orphans may be pruned: only if the discriminator tells the objects of this owner from objects of others.
///
/// # Errors
/// If there is no discriminator, if it is not a valid label value, or if another object deploys to the same cluster
/// with it, so that the objects of that one look like orphans.
pub(crate) fn may_prune(discriminator: Option<&str>, sharers: &[String]) -> Result<(), DiscriminatorError> {
    let discriminator = discriminator.unwrap_or_default();
    discriminator::check(discriminator)?;
    match sharers.first() {
        Some(other) => Err(DiscriminatorError::Duplicate {
            discriminator: discriminator.to_owned(),
            other: other.clone(),
        }),
        None => Ok(()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selector<'a> {
    Nothing,
    Discriminator(&'a str),
    /// All of these together, on objects without a discriminator: `status.commonLabels` of releases before 0.14.
    CommonLabels(&'a BTreeMap<String, String>),
}

impl<'a> Selector<'a> {
    /// Returns the selector of an object without a discriminator: an empty map would select everything.
    pub(crate) fn without_discriminator(labels: Option<&'a BTreeMap<String, String>>) -> Self {
        labels
            .filter(|labels| !labels.is_empty())
            .map_or(Self::Nothing, Self::CommonLabels)
    }

    /// Returns the reason why it must not select objects to delete.
    fn flaw(self) -> Option<KeepReason> {
        let is_label = |(name, value): (&String, &String)| !name.is_empty() && meta::is_label_value(value);
        match self {
            Self::Nothing | Self::Discriminator("") => Some(KeepReason::NoDiscriminator),
            Self::Discriminator(value) => discriminator::check(value)
                .is_err()
                .then_some(KeepReason::InvalidDiscriminator),
            Self::CommonLabels(labels) if labels.is_empty() => Some(KeepReason::NoDiscriminator),
            Self::CommonLabels(labels) => {
                (!labels.iter().all(is_label)).then_some(KeepReason::InvalidCommonLabels)
            }
        }
    }

    /// Returns the reason to keep the objects that another one deploys with the same labels.
    pub(crate) fn shared(self, other: String) -> KeepReason {
        match self {
            Self::CommonLabels(_) => KeepReason::SharedCommonLabels(other),
            Self::Nothing | Self::Discriminator(_) => KeepReason::Shared(other),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CommonLabels(_) => "labels in status.commonLabels",
            Self::Nothing | Self::Discriminator(_) => "discriminator",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct RemovalFacts<'a> {
    pub suspended: bool,
    pub delete: Option<bool>,
    pub prune: bool,
    pub selector: Selector<'a>,
    /// True if an object of `gitops.kluctl.io` with the same name took over.
    pub handed_over: bool,
    /// Others that deploy with the same labels to the same cluster.
    pub sharers: &'a [String],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Removal {
    Delete,
    Keep(KeepReason),
}

/// The reason why deployed objects stay, as events say it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeepReason {
    #[error("what was deployed stays: neither delete nor prune is on")]
    NotAsked,
    #[error("what was deployed stays: the object is suspended")]
    Suspended,
    /// A `gitops.kluctl.io` object of the same name took over.
    #[error("what was deployed stays: gitops.kluctl.io took over")]
    HandedOver,
    #[error("nothing is deleted: there is no discriminator")]
    NoDiscriminator,
    #[error("nothing is deleted: the discriminator is not a valid label value")]
    InvalidDiscriminator,
    #[error("nothing is deleted: the discriminator is also used by {0}")]
    Shared(String),
    #[error("nothing is deleted: status.commonLabels are not valid labels")]
    InvalidCommonLabels,
    #[error("nothing is deleted: the labels of status.commonLabels are also used by {0}")]
    SharedCommonLabels(String),
}

#[must_use]
pub(crate) fn removal(facts: &RemovalFacts<'_>) -> Removal {
    if !facts.delete.unwrap_or(facts.prune) {
        Removal::Keep(KeepReason::NotAsked)
    } else if facts.suspended {
        Removal::Keep(KeepReason::Suspended)
    } else if facts.handed_over {
        Removal::Keep(KeepReason::HandedOver)
    } else if let Some(flaw) = facts.selector.flaw() {
        Removal::Keep(flaw)
    } else if let Some(other) = facts.sharers.first() {
        Removal::Keep(facts.selector.shared(other.clone()))
    } else {
        Removal::Delete
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    pub interval: Duration,
    /// Period of comparisons, and the time since the last one.
    pub deploy: (Period, Duration),
    /// Period of validations, and the time since the last one; `None` if validation is off.
    pub validate: Option<(Period, Duration)>,
    /// Time since the deployment is not ready; `None` if it is ready.
    pub not_ready_for: Option<Duration>,
}

/// Returns the time until the next pass after one that could deploy.
#[must_use]
pub(crate) fn next(schedule: &Schedule) -> Duration {
    let deploy = schedule.deploy.0.left(schedule.deploy.1);
    let validate = schedule.validate.and_then(|(period, since)| period.left(since));
    schedule::next_pass(schedule.interval, [deploy, validate], schedule.not_ready_for)
}

#[cfg(test)]
mod tests;
