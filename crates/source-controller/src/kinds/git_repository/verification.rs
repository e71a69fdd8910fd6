//! Verification of the signatures of commits and tags, with the messages of the original. Pure.

use api::{
    Fault, Reason, condition_type as types, conditions,
    source::{GitRepository, GitRepositorySpec, GitRepositoryStatus},
};
use git::{Reference, SignedObject, Snapshot, TrustedKeys};
use runtime::secret::SecretData;
use source_specs::git_repository::verification::{Mode, mode};

use super::failure;
use crate::source_kind::Verification;

#[derive(Debug, Clone)]
pub(crate) struct VerifyRequest {
    mode: Mode,
    keys: TrustedKeys,
    /// Name of the followed tag for messages; `None` for a version range, whose tag is known later.
    tag: Option<String>,
}

pub(super) fn request(
    object: &GitRepository,
    reference: &Reference,
    secret: Option<&SecretData>,
) -> Result<Option<VerifyRequest>, Fault> {
    let (Some(mode), Some(secret)) = (mode(&object.spec).and_then(Mode::parse), secret) else {
        return Ok(None);
    };
    let keys = TrustedKeys::parse(secret.entries()).map_err(|error| {
        let message = format!("public keys secret error: secret '{}': {error}", secret.name());
        Fault::retry(Reason::VerificationError, message)
    })?;
    let tag = match reference {
        Reference::Tag(tag) => Some(tag.clone()),
        Reference::Name(name) => {
            let name = name.strip_suffix("^{}").unwrap_or(name);
            Some(name.strip_prefix("refs/tags/").unwrap_or(name).to_owned())
        }
        _ => None,
    };
    Ok(Some(VerifyRequest { mode, keys, tag }))
}

pub(super) type VerifyKey = (Mode, String, Option<String>);

impl VerifyRequest {
    /// Returns a value that differs for verifications that may have different results.
    pub(super) fn key(&self) -> VerifyKey {
        (self.mode, self.fingerprint().to_owned(), self.tag.clone())
    }

    pub(super) fn fingerprint(&self) -> &str {
        self.keys.fingerprint()
    }

    /// Verifies a fetched revision; `name` is its tag if a version range is followed.
    pub(super) fn check(&self, snapshot: &Snapshot, name: Option<&str>) -> Result<Verification, Fault> {
        let mut lines = Vec::new();
        if self.mode.tag {
            let tag = snapshot.signed_tag().map_err(|error| failure::fault(&error))?;
            let id = tag
                .as_ref()
                .map_or_else(|| snapshot.commit(), |tag| tag.id.clone());
            let name = self.tag.as_deref().or(name).unwrap_or_default();
            let label = format!("{name}@{id}");
            let key = check_tag(tag.as_ref(), &label, &self.keys)?;
            lines.push(format!("\n\t- tag '{label}' with key '{key}'"));
        }
        if self.mode.commit {
            let commit = snapshot.signed_commit().map_err(|error| failure::fault(&error))?;
            let key = commit.verify(&self.keys).map_err(|error| {
                let message = format!(
                    "signature verification of commit '{}' failed: unable to verify Git commit: {error}",
                    commit.id
                );
                Fault::retry(Reason::InvalidCommitSignature, message)
            })?;
            lines.push(format!("\n\t- commit '{}' with key '{key}'", commit.id));
        }
        Ok(Verification {
            message: Some(format!("verified signature of{}", lines.concat())),
            fingerprint: Some(self.fingerprint().to_owned()),
        })
    }
}

fn check_tag(tag: Option<&SignedObject>, label: &str, keys: &TrustedKeys) -> Result<String, Fault> {
    let Some(tag) = tag.filter(|tag| tag.is_signed()) else {
        let message = format!("cannot verify signature of tag '{label}' since it is not signed");
        return Err(Fault::retry(Reason::InvalidGitObject, message));
    };
    tag.verify(keys).map_err(|error| {
        let message =
            format!("signature verification of tag '{label}' failed: unable to verify Git tag: {error}");
        Fault::retry(Reason::InvalidTagSignature, message)
    })
}

/// Returns true if the stored artifact was not verified as the spec asks for now.
pub(super) fn is_due(spec: &GitRepositorySpec, status: &GitRepositoryStatus) -> bool {
    let Some(wanted) = mode(spec).and_then(Mode::parse) else {
        return false;
    };
    let verified = conditions::get(&status.conditions, types::SOURCE_VERIFIED);
    let recorded = status.source_verification_mode.as_deref().and_then(Mode::parse);
    !verified.is_some_and(api::Condition::is_true)
        || !recorded.is_some_and(|recorded| recorded.covers(wanted))
}

pub(super) fn observed(
    spec: &GitRepositorySpec,
    past: Option<&GitRepositoryStatus>,
    verified: bool,
) -> Option<String> {
    let wanted = mode(spec)?;
    let recorded = past.and_then(|past| past.source_verification_mode.clone());
    match verified {
        true => Some(wanted.to_owned()),
        false => recorded.or_else(|| Some(wanted.to_owned())),
    }
}

/// Returns true if inputs of the artifact changed since it was stored, or a verification is due.
pub(super) fn is_changed(spec: &GitRepositorySpec, status: &GitRepositoryStatus) -> bool {
    status.observed_recurse_submodules.unwrap_or_default() != spec.recurse_submodules
        || status.observed_include != spec.include
        || status.observed_sparse_checkout != spec.sparse_checkout
        || is_due(spec, status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verification_is_due_unless_the_recorded_mode_covers_the_wanted_one() {
        let cases = [
            (None, None, false),
            (Some("HEAD"), None, true),
            (Some("head"), Some("HEAD"), false),
            (Some("HEAD"), Some("TagAndHEAD"), false),
            (Some("Tag"), Some("TagAndHEAD"), false),
            (Some("TagAndHEAD"), Some("HEAD"), true),
            (Some("TagAndHEAD"), Some("Tag"), true),
            (Some("HEAD"), Some("Tag"), true),
            (Some("Tag"), Some("HEAD"), true),
            (Some(""), None, false),
        ];
        for (wanted, recorded, due) in cases {
            let spec = GitRepositorySpec {
                verify: wanted.map(|mode| api::source::GitRepositoryVerification {
                    mode: Some(mode.to_owned()),
                    secret_ref: None,
                }),
                ..GitRepositorySpec::default()
            };
            let verified = |status| GitRepositoryStatus {
                source_verification_mode: recorded.map(str::to_owned),
                conditions: vec![api::Condition::new(
                    types::SOURCE_VERIFIED,
                    status,
                    Reason::Succeeded,
                    "",
                    None,
                    api::Time(Default::default()),
                )],
                ..GitRepositoryStatus::default()
            };
            assert_eq!(is_due(&spec, &verified(true)), due, "{wanted:?} {recorded:?}");
            let failed = wanted.is_some_and(|mode| !mode.is_empty());
            assert_eq!(is_due(&spec, &verified(false)), failed, "{wanted:?} {recorded:?}");
        }
    }
}
