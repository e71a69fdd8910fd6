//! Resolution of references to commits: a pure function of the refs that a server advertises.

use gix::{ObjectId, bstr::ByteSlice, protocol::handshake::Ref};
use versions::Version;

use crate::{Error, Range};

const DEFAULT_BRANCH: &str = "master";
/// Steps between two polls while versions are compared: less than a millisecond.
const STEPS: u64 = 20_000;
/// Steps to parse the name of a ref.
const STEPS_OF_A_REF: u64 = 10;

/// A reference to a commit. Of several fields, the first of commit, name, tag, semver, branch counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// Default `master` if no other field is set.
    pub branch: Option<String>,
    pub tag: Option<String>,
    /// Range of versions; the newest tag in it counts.
    pub semver: Option<String>,
    pub name: Option<String>,
    /// Hash of a commit; with a branch, it must be on that branch.
    pub commit: Option<String>,
}

impl Selector {
    /// Returns the reference that takes precedence.
    ///
    /// # Errors
    /// Fails when it is not a valid hash, ref name or range.
    pub fn reference(&self) -> Result<Reference, Error> {
        let set = |field: &Option<String>| field.clone().filter(|value| !value.is_empty());
        let reference = if let Some(hash) = set(&self.commit) {
            Reference::Commit {
                hash,
                branch: set(&self.branch),
            }
        } else if let Some(name) = set(&self.name) {
            Reference::Name(name)
        } else if let Some(tag) = set(&self.tag) {
            Reference::Tag(tag)
        } else if let Some(range) = set(&self.semver) {
            Reference::Semver(Range::parse(&range)?)
        } else {
            Reference::Branch(set(&self.branch).unwrap_or_else(|| DEFAULT_BRANCH.to_owned()))
        };
        reference.validate()?;
        Ok(reference)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    Commit {
        hash: String,
        /// Branch that it must be on, which the revision names.
        branch: Option<String>,
    },
    /// Full ref name, possibly with `^{}`.
    Name(String),
    Tag(String),
    /// The newest tag in a range.
    Semver(Range),
    Branch(String),
}

impl Reference {
    fn validate(&self) -> Result<(), Error> {
        match self {
            Self::Commit { hash, branch } => {
                parse_hash(hash)?;
                branch
                    .as_ref()
                    .map_or(Ok(()), |branch| check_name(branch, &branch_ref(branch)))
            }
            Self::Name(name) if name.starts_with('/') || name.ends_with('/') => Err(Error::InvalidReference(
                format!("ref {name:?} is invalid; Git refs cannot begin or end with a slash '/'"),
            )),
            Self::Name(name) if name == "HEAD" => Ok(()),
            Self::Name(name) => check_name(name, peeled_name(name)),
            Self::Tag(tag) => check_name(tag, &tag_ref(tag)),
            Self::Semver(_) => Ok(()),
            Self::Branch(branch) => check_name(branch, &branch_ref(branch)),
        }
    }

    pub(crate) fn without_refs(&self) -> Result<Option<Resolved>, Error> {
        let Self::Commit { hash, branch } = self else {
            return Ok(None);
        };
        let commit = parse_hash(hash)?.to_string();
        Ok(Some(Resolved {
            name: branch.clone(),
            want: commit.clone(),
            commit,
        }))
    }

    pub(crate) fn prefixes(&self) -> Vec<String> {
        vec![match self {
            Self::Commit { hash, .. } => hash.clone(),
            Self::Name(name) => peeled_name(name).to_owned(),
            Self::Tag(tag) => tag_ref(tag),
            Self::Semver(_) => "refs/tags/".to_owned(),
            Self::Branch(branch) => branch_ref(branch),
        }]
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advertised {
    pub name: String,
    pub object: String,
    /// Hash of the tagged object, for an annotated tag.
    pub peeled: Option<String>,
    /// Full name of the ref it points to, as `HEAD` points to the default branch.
    pub target: Option<String>,
}

impl Advertised {
    /// Reads a ref. `None` without a commit, or if its name is not UTF-8.
    pub(crate) fn read(listed: &Ref) -> Option<Self> {
        let (name, object, peeled) = match listed {
            Ref::Peeled {
                full_ref_name,
                tag,
                object,
            } => (full_ref_name, tag, Some(object)),
            Ref::Direct {
                full_ref_name,
                object,
            } => (full_ref_name, object, None),
            Ref::Symbolic {
                full_ref_name,
                tag: Some(tag),
                object,
                ..
            } => (full_ref_name, tag, Some(object)),
            Ref::Symbolic {
                full_ref_name,
                tag: None,
                object,
                ..
            } => (full_ref_name, object, None),
            Ref::Unborn { .. } => return None,
        };
        let target = match listed {
            Ref::Symbolic { target, .. } => full_text(target),
            _ => None,
        };
        Some(Self {
            name: full_text(name)?,
            object: object.to_string(),
            peeled: peeled.map(ToString::to_string),
            target,
        })
    }

    #[must_use]
    pub fn commit(&self) -> &str {
        self.peeled.as_deref().unwrap_or(&self.object)
    }
}

fn full_text(name: &gix::bstr::BString) -> Option<String> {
    name.to_str().ok().map(str::to_owned)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub name: Option<String>,
    pub commit: String,
    /// Hash to ask the server for: the annotated tag's, if there is one.
    pub(crate) want: String,
}

impl Resolved {
    /// Returns `name@sha1:hash`, or `sha1:hash` without a name.
    #[must_use]
    pub fn revision(&self) -> String {
        match &self.name {
            Some(name) => format!("{name}@sha1:{}", self.commit),
            None => format!("sha1:{}", self.commit),
        }
    }

    /// Returns the old form `name/hash`, with `HEAD` for a bare commit.
    #[must_use]
    pub fn legacy_revision(&self) -> String {
        format!("{}/{}", self.name.as_deref().unwrap_or("HEAD"), self.commit)
    }

    pub(crate) fn want(&self) -> Result<ObjectId, Error> {
        parse_hash(&self.want)
    }
}

/// Resolves a reference, given the refs of the server.
///
/// # Errors
/// Fails if it matches none, with [`Error::RefNotFound`] or [`Error::NoMatch`].
pub fn select(reference: &Reference, refs: &[Advertised]) -> Result<Resolved, Error> {
    select_polling(reference, refs, |_| false, || Ok(()))
}

/// Does the same as [`select`]. A range passes over tags with the objects of `passes_over`. Ends with the error of `poll`, which is asked every
/// few milliseconds.
pub(crate) fn select_polling(
    reference: &Reference,
    refs: &[Advertised],
    passes_over: impl Fn(&str) -> bool,
    poll: impl FnMut() -> Result<(), Error>,
) -> Result<Resolved, Error> {
    let find = |full: &str| refs.iter().find(|listed| listed.name == full);
    let found = |listed: &Advertised, name: String| Resolved {
        name: Some(name),
        commit: listed.commit().to_owned(),
        want: listed.object.clone(),
    };
    let (listed, name, what) = match reference {
        Reference::Commit { .. } => {
            return reference
                .without_refs()?
                .ok_or_else(|| missing("commit".to_owned()));
        }
        Reference::Semver(range) => {
            let mut passed = None;
            let (tag, listed) = newest(range, refs, (&passes_over, &mut passed), poll)?.ok_or_else(|| {
                let hint = passed.map(|tag| format!(": the tag '{tag}' does not lead to a commit"));
                Error::NoMatch(format!("{range}{}", hint.unwrap_or_default()))
            })?;
            return Ok(found(listed, tag.to_owned()));
        }
        Reference::Name(name) => (find(peeled_name(name)), name, format!("ref '{name}'")),
        Reference::Tag(tag) => (find(&tag_ref(tag)), tag, format!("tag '{tag}'")),
        Reference::Branch(branch) => (find(&branch_ref(branch)), branch, format!("branch '{branch}'")),
    };
    listed
        .map(|listed| found(listed, name.clone()))
        .ok_or_else(|| missing(what))
}

fn missing(what: String) -> Error {
    Error::RefNotFound {
        what,
        url: String::new(),
        hint: String::new(),
    }
}

/// Returns the newest version in range. Among equal versions, the greater build metadata counts, then the greater name, so that
/// the result doesn't depend on the order of the refs. Only two parsed versions are held at a time.
fn newest<'a>(
    range: &Range,
    refs: &'a [Advertised],
    (passes_over, passed): (&impl Fn(&str) -> bool, &mut Option<&'a str>),
    mut poll: impl FnMut() -> Result<(), Error>,
) -> Result<Option<(&'a str, &'a Advertised)>, Error> {
    let mut steps = 0;
    let mut newest: Option<(Version, &str, &Advertised)> = None;
    for listed in refs {
        steps += STEPS_OF_A_REF + range.steps();
        if steps > STEPS {
            steps = 0;
            poll()?;
        }
        let Some(tag) = listed.name.strip_prefix("refs/tags/") else {
            continue;
        };
        let Ok(version) = Version::of_tag(tag) else {
            continue;
        };
        let is_newer = |known: &(Version, &str, &Advertised)| {
            let order = version.compare_with_metadata(&known.0);
            order.then_with(|| tag.cmp(known.1)).is_gt()
        };
        if newest.as_ref().is_none_or(is_newer) && range.matches(&version) {
            match passes_over(&listed.object) {
                true => *passed = Some(tag),
                false => newest = Some((version, tag, listed)),
            }
        }
    }
    Ok(newest.map(|(_, tag, listed)| (tag, listed)))
}

pub(crate) fn describe(reference: &Reference, refs: &[Advertised]) -> String {
    let (prefix, kind) = match reference {
        Reference::Branch(_) => ("refs/heads/", "branches"),
        Reference::Tag(_) | Reference::Semver(_) => ("refs/tags/", "tags"),
        Reference::Name(_) | Reference::Commit { .. } => ("", "refs"),
    };
    let names: Vec<&str> = refs
        .iter()
        .filter_map(|listed| listed.name.strip_prefix(prefix))
        .take(6)
        .collect();
    match names.split_at_checked(5) {
        _ if names.is_empty() => format!(": it has no {kind}"),
        Some((few, more)) if !more.is_empty() => format!(": its {kind} are {}, ...", few.join(", ")),
        _ => format!(": its {kind} are {}", names.join(", ")),
    }
}

fn branch_ref(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

fn tag_ref(tag: &str) -> String {
    format!("refs/tags/{tag}")
}

fn peeled_name(name: &str) -> &str {
    name.strip_suffix("^{}").unwrap_or(name)
}

fn check_name(given: &str, full: &str) -> Result<(), Error> {
    match gix::validate::reference::name(full.into()) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::InvalidReference(format!(
            "ref {given:?} is invalid: {error}"
        ))),
    }
}

fn parse_hash(hash: &str) -> Result<ObjectId, Error> {
    let invalid = || {
        Error::InvalidReference(format!(
            "commit {hash:?} is invalid: give all 40 hexadecimal digits"
        ))
    };
    if hash.len() != 40 {
        return Err(invalid());
    }
    ObjectId::from_hex(hash.as_bytes()).map_err(|_| invalid())
}

#[cfg(test)]
mod tests;
