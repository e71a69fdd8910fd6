//! The label value that says which deployment an object belongs to.

use crate::Error;

/// Somebody who deploys with a discriminator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Who, in words for people, as in `KluctlDeployment flux-system/shop`.
    pub owner: String,
    /// On which cluster, in any form that is equal for equal clusters.
    pub cluster: String,
    /// The discriminator.
    pub discriminator: String,
}

/// Checks that a discriminator can be used for deleting: it is there, and a valid label value.
///
/// # Errors
/// When it is empty or no label value.
pub fn check(discriminator: &str) -> Result<(), Error> {
    if discriminator.is_empty() {
        return Err(Error::EmptyDiscriminator);
    }
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let valid = discriminator.len() <= 63
        && edge(discriminator.chars().next())
        && edge(discriminator.chars().next_back())
        && discriminator
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if valid {
        Ok(())
    } else {
        Err(Error::InvalidDiscriminator(discriminator.to_owned()))
    }
}

/// Checks that nobody else uses the discriminator on the same cluster.
///
/// # Errors
/// When somebody does: the error names who.
pub fn check_unique(own: &Claim, others: &[Claim]) -> Result<(), Error> {
    let clash = others.iter().find(|other| {
        other.owner != own.owner && other.cluster == own.cluster && other.discriminator == own.discriminator
    });
    match clash {
        Some(other) => Err(Error::DuplicateDiscriminator {
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
    fn label_values() {
        for good in ["a", "A-1_x.y", &"x".repeat(63)] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        assert_eq!(check(""), Err(Error::EmptyDiscriminator));
        for bad in [
            "-a",
            "a-",
            "a b",
            "ä",
            "a/b",
            "{{ target.name }}",
            &"x".repeat(64),
        ] {
            assert_eq!(
                check(bad),
                Err(Error::InvalidDiscriminator(bad.to_owned())),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_duplicate_names_the_other_owner() {
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
