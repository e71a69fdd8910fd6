//! kluctl as the owner of objects: its field manager, its label and its annotations.

use std::borrow::Cow;

use apply::{HealthRules, Labels, Membership, Owner, Proof};
use kluctl::annotations as names;
use objects::{
    Managers, Marker, Vocabulary, fixup::RepairedKinds, takeover::Takeover, vocabulary::ConflictNames,
};

use super::discriminator;

pub const MANAGER: &str = "kluctl";

pub(crate) const VOCABULARY: Vocabulary = Vocabulary {
    delete: &[Marker::Flag(names::DELETE)],
    skip_delete: &[
        Marker::Flag(names::SKIP_DELETE),
        Marker::Annotation(names::RESOURCE_POLICY, "keep"),
    ],
    force_managed: &[Marker::Flag(names::FORCE_MANAGED)],
    ignore: &[],
    create_only: &[],
    recreate: &[],
    merge: &[],
    force_apply: ConflictNames {
        all: &[Marker::Flag(names::FORCE_APPLY)],
        field: Some(names::FORCE_APPLY_FIELD),
        manager: Some(names::FORCE_APPLY_MANAGER),
    },
    ignore_conflicts: ConflictNames {
        all: &[Marker::Flag(names::IGNORE_CONFLICTS)],
        field: Some(names::IGNORE_CONFLICTS_FIELD),
        manager: Some(names::IGNORE_CONFLICTS_MANAGER),
    },
    conflict_rules: "conflictResolution",
    wait_readiness: &[Marker::Flag(names::WAIT_READINESS)],
    is_ready: Some(names::IS_READY),
    validate_ignore: &[Marker::Flag(names::VALIDATE_IGNORE)],
    validate_result_prefix: Some(names::VALIDATE_RESULT_PREFIX),
    ignore_diff: &[Marker::Flag(names::IGNORE_DIFF)],
    ignore_diff_field: Some(names::IGNORE_DIFF_FIELD),
    ignore_diff_field_regex: Some(names::IGNORE_DIFF_FIELD_REGEX),
    ignore_diff_rules: "ignoreForDiff",
    diff_name: Some(names::DIFF_NAME),
};

/// The managers whose fields a deployment takes over: kluctl's own, and the tools of people at a terminal.
const OVERRIDDEN: Managers = Managers {
    names: &["kluctl", "kubectl", "rancher", "k9s"],
    prefixes: &["kluctl-", "kubectl-"],
};

/// Returns the owner of the objects with a discriminator. Without a valid one, it finds no objects.
pub(crate) fn owner(discriminator: Option<&str>) -> Owner {
    let discriminator = discriminator.filter(|value| discriminator::check(value).is_ok());
    let membership = match discriminator {
        Some(value) => Membership::Labels {
            all: Labels::from([(names::DISCRIMINATOR.to_owned(), value.to_owned())]),
            without: None,
        },
        None => Membership::None,
    };
    Owner {
        manager: Cow::Borrowed(MANAGER),
        membership,
        proof: Proof::Applied,
        vocabulary: VOCABULARY,
        overridden: OVERRIDDEN,
        takeover: Takeover::default(),
        health: HealthRules::Readiness,
        repaired: RepairedKinds::Any,
        // Objects that must not be deleted are not replaced by deletion either.
        recreates_undeleted: false,
    }
}

/// Returns the owner of the objects with all of these labels and without a discriminator, which old releases deployed.
pub(crate) fn labelled(labels: &Labels) -> Owner {
    Owner {
        membership: Membership::Labels {
            all: labels.clone(),
            without: Some(Cow::Borrowed(names::DISCRIMINATOR)),
        },
        ..owner(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overridden_managers_are_those_of_people_and_kluctl() {
        for (manager, expected) in [
            ("kluctl", true),
            ("kluctl-controller", true),
            ("kubectl-edit", true),
            ("k9s", true),
            ("rancher", true),
            ("kubectlish", false),
            ("helm", false),
        ] {
            assert_eq!(OVERRIDDEN.contain(manager), expected, "{manager}");
        }
    }

    #[test]
    fn an_invalid_discriminator_owns_nothing() {
        for discriminator in [None, Some(""), Some("not a label")] {
            assert_eq!(owner(discriminator).membership, Membership::None);
        }
        assert!(matches!(
            owner(Some("shop")).membership,
            Membership::Labels { .. }
        ));
    }
}
