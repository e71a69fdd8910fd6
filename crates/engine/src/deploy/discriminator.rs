//! The discriminator: the label value that tells the objects of one deployment from others.

use objects::meta;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiscriminatorError {
    #[error("no discriminator is configured: set `discriminator` in .kluctl.yaml or in the target")]
    Empty,
    #[error(
        "the discriminator '{0}' is not a valid label value: use at most 63 letters, digits, '-', '_' and '.', \
         beginning and ending with a letter or digit"
    )]
    Invalid(String),
    #[error(
        "the discriminator '{discriminator}' is also used by {other}: give each deployment its own, or the objects of \
         one would be removed by the other"
    )]
    Duplicate { discriminator: String, other: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The deployment in words for people, as in `KluctlDeployment flux-system/shop`.
    pub owner: String,
    /// The cluster, in any form that is equal for equal clusters.
    pub cluster: String,
    pub discriminator: String,
}

/// Checks that a discriminator can be used for deletions: it is not empty, and a valid label value.
///
/// # Errors
/// Fails when it is empty or not a valid label value.
pub fn check(discriminator: &str) -> Result<(), DiscriminatorError> {
    if discriminator.is_empty() {
        return Err(DiscriminatorError::Empty);
    }
    if meta::is_label_value(discriminator) {
        Ok(())
    } else {
        Err(DiscriminatorError::Invalid(discriminator.to_owned()))
    }
}

/// Checks that no other deployment uses the discriminator on the same cluster.
///
/// # Errors
/// Fails when another deployment does; the error names it.
pub fn check_unique(own: &Claim, others: &[Claim]) -> Result<(), DiscriminatorError> {
    let clash = others.iter().find(|other| {
        other.owner != own.owner && other.cluster == own.cluster && other.discriminator == own.discriminator
    });
    match clash {
        Some(other) => Err(DiscriminatorError::Duplicate {
            discriminator: own.discriminator.clone(),
            other: other.owner.clone(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_accepts_label_values_only() {
        for good in ["a", "A-1_x.y", &"x".repeat(63)] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        assert_eq!(check(""), Err(DiscriminatorError::Empty));
        for bad in ["-a", "{{ target.name }}", &"x".repeat(64)] {
            assert_eq!(
                check(bad),
                Err(DiscriminatorError::Invalid(bad.to_owned())),
                "{bad}"
            );
        }
    }

    #[test]
    fn check_unique_names_the_other_deployment() {
        let claim = |owner: &str, cluster: &str, discriminator: &str| Claim {
            owner: owner.to_owned(),
            cluster: cluster.to_owned(),
            discriminator: discriminator.to_owned(),
        };
        let own = claim("a/x", "local", "shop");
        let others = [
            claim("a/x", "local", "shop"),
            claim("a/y", "remote", "shop"),
            claim("a/z", "local", "other"),
        ];
        assert_eq!(check_unique(&own, &others), Ok(()));
        let error = check_unique(&own, &[claim("b/y", "local", "shop")])
            .unwrap_err()
            .to_string();
        assert!(error.contains("also used by b/y"), "{error}");
    }
}
