//! The verification of signatures that a GitRepository asks for.

use api::{Fault, LocalObjectReference, Reason, source::GitRepositorySpec};
use git::Reference;

/// The objects whose signatures are verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    pub commit: bool,
    pub tag: bool,
}

impl Mode {
    #[must_use]
    pub fn parse(mode: &str) -> Option<Self> {
        let (commit, tag) = match mode {
            "HEAD" | "head" => (true, false),
            "Tag" => (false, true),
            "TagAndHEAD" => (true, true),
            _ => return None,
        };
        Some(Self { commit, tag })
    }

    /// Returns true if this mode verifies everything that `wanted` does.
    #[must_use]
    pub const fn covers(self, wanted: Self) -> bool {
        (self.commit || !wanted.commit) && (self.tag || !wanted.tag)
    }
}

pub fn mode(spec: &GitRepositorySpec) -> Option<&str> {
    let verify = spec.verify.as_ref()?;
    Some(verify.mode.as_deref().unwrap_or("HEAD")).filter(|mode| !mode.is_empty())
}

pub fn secret(spec: &GitRepositorySpec) -> Option<&LocalObjectReference> {
    mode(spec)?;
    spec.verify.as_ref()?.secret_ref.as_ref()
}

pub fn validate(given: &GitRepositorySpec, followed: &Reference) -> Result<(), Fault> {
    let Some(text) = mode(given) else {
        return Ok(());
    };
    let Some(mode) = Mode::parse(text) else {
        let message = format!("spec.verify.mode: '{text}' is none of HEAD, Tag and TagAndHEAD");
        return Err(Fault::stall(Reason::InvalidSpec, message));
    };
    if secret(given).is_none_or(|secret| secret.name.is_empty()) {
        let message = "spec.verify.secretRef: name the secret with the public keys";
        return Err(Fault::stall(Reason::InvalidSpec, message));
    }
    if mode.tag && !is_tag(followed) {
        let message = "cannot verify tag object's signature if a tag reference is not specified";
        return Err(Fault::stall(Reason::InvalidVerificationMode, message));
    }
    Ok(())
}

fn is_tag(reference: &Reference) -> bool {
    match reference {
        Reference::Tag(_) | Reference::Semver(_) => true,
        Reference::Name(name) => name.starts_with("refs/tags/"),
        Reference::Branch(_) | Reference::Commit { .. } => false,
    }
}
