//! Validation of an OCIRepository, and the choice of a tag. Pure.

use std::sync::atomic::{AtomicU64, Ordering};

use api::{Fault, Reason, source::OCIRepositorySpec};
use cloud::Cloud;
use go::regexp::{Pattern, PatternQuota};
use oci::{CHART_LAYER, Digest, Reference, cosign::Signer};
use versions::{Constraint, Version};

use crate::fields::{check_interval, given};

const IDENTITIES: usize = 100;
/// Maximum steps of the searches by the filter in all tags, and by the identities in all certificates of an artifact: some seconds at most.
const MAX_SEARCHES: u64 = 64 << 20;
const PREFIX: &str = "oci://";

#[derive(Debug, Clone)]
pub enum Selector {
    Digest(Digest),
    /// The newest tag in a range.
    Semver(TagRange),
    Tag(String),
}

/// A range of versions, and a filter that the tags have to match.
#[derive(Debug, Clone)]
pub struct TagRange {
    range: String,
    constraint: Constraint,
    filter: Option<Pattern>,
    /// True for Helm charts, in whose tags `_` stands for `+`.
    of_charts: bool,
}

/// Checks all but the expressions of [`identities`]: compiling a hundred of them takes too long for a thread that others wait for.
pub fn validate(spec: &OCIRepositorySpec) -> Result<(), Fault> {
    if let Some(fault) = unsupported(spec) {
        return Err(fault);
    }
    let verify = spec.verify.as_ref();
    if verify.is_some_and(|verify| verify.provider == "notation" && verify.secret_ref.is_none()) {
        return Err(without_policy());
    }
    check_interval(spec.interval.as_duration())?;
    repository(spec)?;
    selector(spec).map(drop)
}

pub fn without_policy() -> Fault {
    let message = "spec.verify.secretRef: the provider 'notation' needs a secret with trustpolicy.json and certificates";
    Fault::stall(Reason::InvalidSpec, message)
}

fn unsupported(spec: &OCIRepositorySpec) -> Option<Fault> {
    let provider = given(&spec.provider).filter(|name| *name != "generic" && Cloud::parse(name).is_none());
    let verify = spec.verify.as_ref();
    let other = verify.filter(|verify| !matches!(verify.provider.as_str(), "cosign" | "notation"));
    let keyed = verify.filter(|verify| verify.secret_ref.is_some());
    let root = keyed.and_then(|verify| verify.trusted_root_secret_ref.as_ref());
    let identities = keyed.map_or(0, |verify| verify.match_oidc_identity.len());
    let operation = spec
        .layer_selector
        .as_ref()
        .and_then(|selector| selector.operation.as_deref())
        .filter(|operation| !matches!(*operation, "" | "extract" | "copy"));
    let fields = [
        ("spec.provider", provider.map(|provider| format!("'{provider}'"))),
        (
            "spec.verify.provider",
            other.map(|verify| format!("'{}'", verify.provider)),
        ),
        (
            "spec.verify.trustedRootSecretRef",
            root.map(|reference| format!("'{}' with spec.verify.secretRef", reference.name)),
        ),
        (
            "spec.verify.matchOIDCIdentity",
            (identities > 0).then(|| format!("a list of {identities} with spec.verify.secretRef")),
        ),
        (
            "spec.layerSelector.operation",
            operation.map(|operation| format!("'{operation}'")),
        ),
    ];
    let first = fields.into_iter().find_map(|(path, value)| Some((path, value?)));
    first.map(|(path, value)| Fault::unsupported(path, &value))
}

/// The identities that signatures without keys may have; none if all are trusted.
#[derive(Debug)]
pub struct TrustedIdentities(Vec<IdentityPattern>);

#[derive(Debug)]
struct IdentityPattern {
    issuer: Pattern,
    subject: Pattern,
}

impl TrustedIdentities {
    /// Begins the searches in the certificates of an artifact.
    #[must_use]
    pub fn search(&self) -> IdentitySearch<'_> {
        IdentitySearch {
            patterns: &self.0,
            left: AtomicU64::new(MAX_SEARCHES),
        }
    }
}

/// The searches by identities in the certificates of an artifact, whose steps are bounded.
#[derive(Debug)]
pub struct IdentitySearch<'a> {
    patterns: &'a [IdentityPattern],
    left: AtomicU64,
}

impl IdentitySearch<'_> {
    /// Returns true if a signer is trusted, and false if the steps are used up.
    pub fn matches(&self, signer: &Signer) -> bool {
        let (issuer, subject) = (signer.issuer.as_str(), signer.subject.as_str());
        let steps = self.patterns.iter().map(|pattern| {
            let (issuer, subject) = (
                pattern.issuer.steps(issuer.len()),
                pattern.subject.steps(subject.len()),
            );
            issuer.saturating_add(subject)
        });
        let steps = steps.fold(0, u64::saturating_add);
        let charged = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(steps)
            });
        if charged.is_err() {
            self.left.store(0, Ordering::Relaxed);
            return false;
        }
        let mut patterns = self.patterns.iter();
        self.patterns.is_empty()
            || patterns.any(|pattern| pattern.issuer.is_match(issuer) && pattern.subject.is_match(subject))
    }

    /// Returns the error of searches whose steps are used up.
    #[must_use]
    pub fn problem(&self) -> Option<&'static str> {
        let is_used_up = !self.patterns.is_empty() && self.left.load(Ordering::Relaxed) == 0;
        is_used_up.then_some(
            "the expressions of spec.verify.matchOIDCIdentity take too long in the certificates: use fewer or simpler ones",
        )
    }
}

/// Compiles the identities. Fails if one is invalid, or they are too many or too large, also together.
pub fn identities(spec: &OCIRepositorySpec) -> Result<TrustedIdentities, Fault> {
    let invalid =
        |why: String| Fault::stall(Reason::InvalidSpec, format!("spec.verify.matchOIDCIdentity{why}"));
    let given = spec
        .verify
        .as_ref()
        .map_or(&[][..], |verify| &verify.match_oidc_identity);
    if given.len() > IDENTITIES {
        return Err(invalid(format!(
            ": has {} entries, at most {IDENTITIES} are allowed",
            given.len()
        )));
    }
    let mut quota = PatternQuota::default();
    let mut compiled = |at: usize, field: &str, pattern: &str| {
        let compiled = quota.compile(pattern);
        compiled.map_err(|error| invalid(format!("[{at}].{field}: {error}")))
    };
    let patterns = given.iter().enumerate().map(|(at, identity)| {
        Ok(IdentityPattern {
            issuer: compiled(at, "issuer", &identity.issuer)?,
            subject: compiled(at, "subject", &identity.subject)?,
        })
    });
    patterns.collect::<Result<_, _>>().map(TrustedIdentities)
}

pub fn repository(spec: &OCIRepositorySpec) -> Result<Reference, Fault> {
    let invalid = |why: &str| {
        let message = format!("URL validation failed for '{}': {why}", spec.url);
        Fault::stall(Reason::URLInvalid, message)
    };
    let Some(rest) = spec.url.expose().strip_prefix(PREFIX) else {
        return Err(invalid("URL must be in format 'oci://<domain>/<org>/<repo>'"));
    };
    let path = rest.split_once('/').map_or("", |(_, path)| path);
    if path.contains('@') {
        return Err(invalid("URL must not contain a digest; use spec.ref.digest"));
    }
    if let Some((_, tag)) = path.split_once(':') {
        return Err(invalid(&format!("URL must not contain a tag; remove ':{tag}'")));
    }
    Reference::parse(rest).map_err(|error| match error {
        oci::Error::InvalidUrl { why, .. } => invalid(&why),
        error => invalid(&error.to_string()),
    })
}

/// Returns the artifact to follow: the first of digest, semver, tag; default `latest`.
pub fn selector(spec: &OCIRepositorySpec) -> Result<Selector, Fault> {
    let given = spec.reference.clone().unwrap_or_default();
    let set = |value: Option<String>| value.filter(|value| !value.is_empty());
    let invalid =
        |field: &str, why: &str| Fault::stall(Reason::InvalidSpec, format!("spec.ref.{field}: {why}"));
    if let Some(digest) = set(given.digest) {
        let parsed = digest.contains(':').then(|| Digest::parse(&digest)).flatten();
        let parsed = parsed.ok_or_else(|| {
            invalid(
                "digest",
                &format!("'{digest}' is not a digest: write sha256:<hex>"),
            )
        });
        return parsed.map(Selector::Digest);
    }
    if let Some(range) = set(given.semver) {
        let constraint = Constraint::parse(&range)
            .map_err(|error| invalid("semver", &format!("semver '{range}' parse error: {error}")))?;
        let filter = set(given.semver_filter).map(|filter| Pattern::compile(&filter));
        let filter = filter.transpose();
        let layer = spec.layer_selector.as_ref();
        let media_type = layer.and_then(|layer| layer.media_type.as_deref());
        return Ok(Selector::Semver(TagRange {
            range,
            constraint,
            filter: filter.map_err(|error| invalid("semverFilter", &error.to_string()))?,
            of_charts: media_type == Some(CHART_LAYER),
        }));
    }
    Ok(Selector::Tag(
        set(given.tag).unwrap_or_else(|| "latest".to_owned()),
    ))
}

impl TagRange {
    /// Chooses the newest tag in the range that matches the filter. The error is in the words of the original.
    pub fn newest(&self, tags: Vec<String>) -> Result<String, String> {
        if self.steps(&tags) > MAX_SEARCHES {
            return Err(format!(
                "the expression of semverFilter takes too long in {} tags: use a simpler one",
                tags.len()
            ));
        }
        let versions = tags
            .into_iter()
            .filter_map(|tag| Some((self.version(&tag)?, tag)));
        // Of equal versions, build metadata and name decide, so that the choice doesn't depend on the order of the registry.
        let newest = versions.max_by(|one, other| {
            let order = one.0.compare_with_metadata(&other.0);
            order.then_with(|| one.1.cmp(&other.1))
        });
        newest
            .map(|(_, tag)| tag)
            .ok_or_else(|| format!("no match found for semver: {}", self.range))
    }

    fn steps(&self, tags: &[String]) -> u64 {
        self.filter.as_ref().map_or(0, |filter| {
            let steps = tags.iter().map(|tag| filter.steps(tag.len()));
            steps.fold(0, u64::saturating_add)
        })
    }

    /// Returns the version of a tag; none if it does not match the filter, is not a version, or is not in the range.
    fn version(&self, tag: &str) -> Option<Version> {
        if self.filter.as_ref().is_some_and(|filter| !filter.is_match(tag)) {
            return None;
        }
        let version = match self.of_charts {
            true => Version::of_tag(&tag.replace('_', "+")),
            false => Version::of_tag(tag),
        };
        version.ok().filter(|version| self.constraint.matches(version))
    }
}

/// Returns the name of an artifact as registries' tools write it.
pub fn name(reference: &Reference, tag: Option<&str>, digest: &Digest) -> String {
    let (host, repository) = (reference.host(), reference.repository());
    match tag {
        Some(tag) => format!("{host}/{repository}:{tag}"),
        None => format!("{host}/{repository}@{digest}"),
    }
}
