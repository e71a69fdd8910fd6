//! What a pass does, decided from what it saw: deploy, compare, prune, validate, and when to look again.
//!
//! Total and pure: no clock, no I/O. Each decision is one function with a table of tests.

use std::time::Duration;

use engine::discriminator::{self, DiscriminatorError};

/// How soon the readiness of a fresh deployment is looked at again, at the least.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// How long it takes, at the most, until an object that is not ready is looked at again.
const LAST_LOOK: Duration = Duration::from_secs(60);

/// How often something is done by schedule alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Period {
    /// Each time this much time has passed.
    Every(Duration),
    /// Not by schedule.
    Never,
}

impl Period {
    /// Whether the time has come. The schedule has jitter, so the last tenth of the period counts as passed.
    fn due(self, since: Duration) -> bool {
        matches!(self, Self::Every(period) if since >= period.mul_f32(0.9))
    }

    /// How long until the time comes.
    fn left(self, since: Duration) -> Option<Duration> {
        match self {
            Self::Every(period) => Some(period.saturating_sub(since)),
            Self::Never => None,
        }
    }
}

/// What the status says of the last deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastDeploy<'a> {
    /// The hash of the objects that it deployed.
    pub hash: &'a str,
    /// Whether it had errors.
    pub failed: bool,
}

/// What is known once the project has been rendered.
#[derive(Debug, Clone)]
pub(crate) struct Facts<'a> {
    /// The hash of the rendered objects.
    pub hash: &'a str,
    /// The last deployment; `None` if there was none.
    pub last_deploy: Option<LastDeploy<'a>>,
    /// Whether the spec changed since the last pass.
    pub spec_changed: bool,
    /// Whether the deploy annotation holds a value that was not handled yet.
    pub deploy_requested: bool,
    /// Whether the reconcile annotation holds a value that was not handled yet.
    pub reconcile_requested: bool,
    /// Whether the last pass ended before it could deploy.
    pub recovering: bool,
    /// Nothing is really written.
    pub dry_run: bool,
    /// Whether another hash alone is enough to deploy.
    pub deploy_on_changes: bool,
    /// How often the cluster is compared with what was rendered.
    pub deploy_period: Period,
    /// Whether a request to reconcile asks for that comparison as well: not when it has a period of its own.
    pub compare_on_request: bool,
    /// How long ago the cluster was last deployed to, or compared.
    pub since_compared: Duration,
    /// Whether orphans are pruned.
    pub prune: bool,
    /// Whether the last pruning had errors.
    pub last_prune_failed: bool,
    /// Whether readiness is validated.
    pub validate: bool,
    /// How often it is validated.
    pub validate_period: Period,
    /// How long ago it was last validated; `None` if there is no result.
    pub since_validated: Option<Duration>,
    /// Whether the last validation found something not ready.
    pub last_validate_failed: bool,
}

/// Why everything is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// There is no deployment yet.
    NeverDeployed,
    /// The deploy annotation asks for it.
    Requested,
    /// The spec changed.
    SpecChanged,
    /// Other objects were rendered than those last deployed.
    ObjectsChanged,
    /// The last deployment had errors.
    LastFailed,
}

/// What is done about the rendered objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deploy {
    /// All of them are applied.
    Apply(Why),
    /// They are compared with the cluster, read-only; only what differs is applied.
    Compare,
    /// Nothing.
    Nothing,
}

/// What is done about orphans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prune {
    /// Pruning is off.
    Disabled,
    /// They are pruned.
    Run,
    /// They are pruned if the comparison saw any.
    IfSeen,
    /// They are left for a later pass.
    NotNow,
}

/// What is done about readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Validate {
    /// Validation is off.
    Disabled,
    /// It is validated.
    Run,
    /// It is validated if something was deployed.
    IfDeployed,
}

/// What a pass does with a rendered project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Work {
    /// What is done about the rendered objects.
    pub deploy: Deploy,
    /// What is done about orphans.
    pub prune: Prune,
    /// What is done about readiness.
    pub validate: Validate,
}

/// Decides what a pass does with a rendered project.
#[must_use]
pub(crate) fn work(facts: &Facts<'_>) -> Work {
    let deploy = deploy(facts);
    Work {
        deploy,
        prune: prune(facts, deploy),
        validate: validate(facts, deploy),
    }
}

fn deploy(facts: &Facts<'_>) -> Deploy {
    let Some(last) = facts.last_deploy else {
        return Deploy::Apply(Why::NeverDeployed);
    };
    if facts.deploy_requested {
        return Deploy::Apply(Why::Requested);
    }
    if facts.spec_changed {
        return Deploy::Apply(Why::SpecChanged);
    }
    if facts.deploy_on_changes && last.hash != facts.hash {
        return Deploy::Apply(Why::ObjectsChanged);
    }
    if last.failed {
        return Deploy::Apply(Why::LastFailed);
    }
    // A dry run leaves nothing in the cluster, so every comparison would find everything missing.
    if facts.dry_run {
        return Deploy::Nothing;
    }
    let asked = facts.recovering || (facts.reconcile_requested && facts.compare_on_request);
    if asked || facts.deploy_period.due(facts.since_compared) {
        Deploy::Compare
    } else {
        Deploy::Nothing
    }
}

fn prune(facts: &Facts<'_>, deploy: Deploy) -> Prune {
    match deploy {
        _ if !facts.prune => Prune::Disabled,
        Deploy::Apply(_) => Prune::Run,
        _ if facts.last_prune_failed => Prune::Run,
        // Each deployment is followed by its pruning, so there should be none: a look takes a list of every kind.
        Deploy::Compare if facts.recovering || facts.reconcile_requested => Prune::IfSeen,
        Deploy::Compare | Deploy::Nothing => Prune::NotNow,
    }
}

fn validate(facts: &Facts<'_>, deploy: Deploy) -> Validate {
    // What was not really deployed can't be validated.
    if !facts.validate || facts.dry_run {
        return Validate::Disabled;
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

/// Decides whether orphans may be pruned: only if the discriminator tells whose object is whose.
///
/// # Errors
/// When there is none, when it can't be the value of a label, or when another object deploys to the same cluster with
/// it, so that the objects of that one look like orphans.
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

/// What is known of an object that is being removed.
#[derive(Debug, Clone)]
pub(crate) struct Leaving<'a> {
    /// `spec.suspend`.
    pub suspended: bool,
    /// `spec.delete`.
    pub delete: Option<bool>,
    /// `spec.prune`.
    pub prune: bool,
    /// `status.discriminator`.
    pub discriminator: Option<&'a str>,
    /// Whether a `gitops.kluctl.io` object of the same name took over.
    pub handed_over: bool,
    /// Others that deploy with the same discriminator to the same cluster.
    pub sharers: &'a [String],
}

/// What becomes of the deployed objects when their KluctlDeployment is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Removal {
    /// They are deleted.
    Delete,
    /// They stay.
    Keep(Kept),
}

/// Why deployed objects stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Nobody asked for their deletion.
    NotAsked,
    /// The object is suspended.
    Suspended,
    /// A `gitops.kluctl.io` object of the same name took over.
    HandedOver,
    /// Nothing was deployed, or nothing tells which objects are its own.
    NoDiscriminator,
    /// The discriminator can't be the value of a label.
    InvalidDiscriminator,
    /// Another KluctlDeployment has the same discriminator.
    Shared(String),
}

/// Decides what becomes of the deployed objects when their KluctlDeployment is removed.
#[must_use]
pub(crate) fn removal(leaving: &Leaving<'_>) -> Removal {
    let discriminator = leaving.discriminator.unwrap_or_default();
    if !leaving.delete.unwrap_or(leaving.prune) {
        Removal::Keep(Kept::NotAsked)
    } else if leaving.suspended {
        Removal::Keep(Kept::Suspended)
    } else if leaving.handed_over {
        Removal::Keep(Kept::HandedOver)
    } else if discriminator.is_empty() {
        Removal::Keep(Kept::NoDiscriminator)
    } else if discriminator::check(discriminator).is_err() {
        Removal::Keep(Kept::InvalidDiscriminator)
    } else if let Some(other) = leaving.sharers.first() {
        Removal::Keep(Kept::Shared(other.clone()))
    } else {
        Removal::Delete
    }
}

/// What the next look depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    /// `spec.interval`.
    pub interval: Duration,
    /// When the comparison is due, and how long ago the last one was.
    pub deploy: (Period, Duration),
    /// When the validation is due, and how long ago the last one was; `None` when validation is off.
    pub validate: Option<(Period, Duration)>,
    /// For how long something has not been ready; `None` when all is.
    pub not_ready_for: Option<Duration>,
}

/// How long until the next look after a pass that could deploy.
///
/// What is not ready yet is looked at again soon, and less often the longer it takes.
#[must_use]
pub(crate) fn next(schedule: &Schedule) -> Duration {
    let deploy = schedule.deploy.0.left(schedule.deploy.1);
    let validate = schedule.validate.and_then(|(period, since)| period.left(since));
    let readiness = schedule
        .not_ready_for
        .map(|since| (since / 4).clamp(FIRST_LOOK, LAST_LOOK));
    [deploy, validate, readiness]
        .into_iter()
        .flatten()
        .fold(schedule.interval, Duration::min)
        .max(FIRST_LOOK)
}

#[cfg(test)]
mod tests;
