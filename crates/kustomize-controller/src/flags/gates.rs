//! The feature gates of the original.

use std::str::FromStr;

use runtime::flags::Idle;

/// An entry of `--feature-gates` that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGate {
    #[error("'{0}' is not of the form NAME=true or NAME=false")]
    Syntax(String),
    #[error("unrecognized feature gate: {0}")]
    Unknown(String),
}

/// Gates that are accepted without effect, with the reason.
const IDLE: [(&str, &str); 6] = [
    (
        "CacheSecretsAndConfigMaps",
        "the objects that a build read are compared by their versions",
    ),
    ("DisableStatusPollerCache", "health is watched, not polled"),
    ("DirectSourceFetch", "sources are watched"),
    (
        "CancelHealthCheckOnNewRevision",
        "a wait always ends when there is something newer to apply",
    ),
    ("GroupChangeLog", "changes are logged with their events"),
    (
        "MigrateAPIVersion",
        "managed fields of other versions are left as they are",
    ),
];
/// The state of the feature gates.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub struct FeatureGates {
    /// A variable without a value and without a default is an error.
    pub strict_substitutions: bool,
    /// Sources of the kind ExternalArtifact are accepted.
    pub external_artifact: bool,
    /// Health checks end as soon as an object has failed.
    pub fail_fast: bool,
    /// A successful pass reports the state of its commit.
    pub commit_status_event: bool,
    /// ConfigMaps and Secrets with variables, keys and kubeconfigs are watched.
    pub config_watchers: bool,
    /// A dependency with a `readyExpr` has to be ready by its status, too.
    pub additive_expressions: bool,
    /// Service accounts of objects may have cloud identities. On by default, as it always is since release 1.10 of the original.
    pub object_identities: bool,
    idle: Vec<Idle>,
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self {
            strict_substitutions: true,
            external_artifact: false,
            fail_fast: true,
            commit_status_event: true,
            config_watchers: true,
            additive_expressions: false,
            object_identities: true,
            idle: Vec::new(),
        }
    }
}

impl FeatureGates {
    pub(super) fn idle(&self) -> Vec<Idle> {
        self.idle.clone()
    }

    fn set(&mut self, name: &str, on: bool) -> Result<(), InvalidGate> {
        match name {
            "StrictPostBuildSubstitutions" => self.strict_substitutions = on,
            "ExternalArtifact" => self.external_artifact = on,
            "DisableFailFastBehavior" => self.fail_fast = !on,
            "DisableCommitStatusEvent" => self.commit_status_event = !on,
            "ObjectLevelWorkloadIdentity" => self.object_identities = on,
            "AdditiveCELDependencyCheck" => self.additive_expressions = on,
            "DisableConfigWatchers" => self.config_watchers = !on,
            _ => {
                if let Some((_, why)) = IDLE.iter().find(|(idle, _)| *idle == name) {
                    self.idle.push(("--feature-gates", why));
                } else {
                    return Err(InvalidGate::Unknown(name.to_owned()));
                }
            }
        }
        Ok(())
    }
}

impl FromStr for FeatureGates {
    type Err = InvalidGate;

    fn from_str(text: &str) -> Result<Self, InvalidGate> {
        let mut gates = Self::default();
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        for entry in entries {
            let parsed = entry.split_once('=').and_then(|(name, value)| {
                let on = objects::meta::go_bool(value.trim())?;
                Some((name.trim(), on))
            });
            let (name, on) = parsed.ok_or_else(|| InvalidGate::Syntax(entry.to_owned()))?;
            gates.set(name, on)?;
        }
        Ok(gates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_by_name() {
        let gates: FeatureGates =
            "DisableFailFastBehavior=true, DisableCommitStatusEvent=1,GroupChangeLog=false"
                .parse()
                .unwrap();
        assert!(!gates.fail_fast && !gates.commit_status_event && gates.strict_substitutions);
        assert_eq!(gates.idle().len(), 1);
        for (text, error) in [
            ("A=true", "unrecognized feature gate: A"),
            (
                "GroupChangeLog",
                "'GroupChangeLog' is not of the form NAME=true or NAME=false",
            ),
        ] {
            let found = text.parse::<FeatureGates>().unwrap_err();
            assert_eq!(found.to_string(), error);
        }
        for (text, watches, additive) in [
            ("", true, false),
            (
                "AdditiveCELDependencyCheck=true,DisableConfigWatchers=true",
                false,
                true,
            ),
            (
                "AdditiveCELDependencyCheck=false,DisableConfigWatchers=false",
                true,
                false,
            ),
        ] {
            let gates: FeatureGates = text.parse().unwrap();
            assert_eq!(
                (gates.config_watchers, gates.additive_expressions),
                (watches, additive)
            );
        }
    }
}
