//! Trust policies: trusted signers of repositories, and the strictness of verification.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{
    name::{InvalidName, Name},
    rejected::bounded,
};

const MAX_BYTES: usize = 1 << 20;
/// Maximum number of statements, and of scopes, stores and identities of a statement.
const MAX_ITEMS: usize = 100;

#[derive(Debug, Clone)]
pub struct TrustPolicy {
    statements: Vec<Statement>,
}

#[derive(Debug, Clone)]
pub(super) struct Statement {
    pub(super) name: String,
    scopes: Vec<String>,
    /// `None` for the level `skip`.
    pub(super) rules: Option<Rules>,
}

#[derive(Debug, Clone)]
pub(super) struct Rules {
    actions: BTreeMap<Check, Action>,
    pub(super) stores: BTreeSet<StoreType>,
    /// `None` if all signers are trusted.
    pub(super) identities: Option<Vec<Name>>,
    /// True if timestamps are needed only after a certificate has expired.
    pub(super) timestamp_after_expiry: bool,
}

impl Rules {
    pub(super) fn action(&self, check: Check) -> Action {
        let found = self.actions.get(&check).copied();
        found.unwrap_or(Action::Enforce)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Check {
    Authenticity,
    /// The certificates were valid at the time of signing.
    AuthenticTimestamp,
    Expiry,
    Revocation,
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Authenticity => "authenticity",
            Self::AuthenticTimestamp => "authenticTimestamp",
            Self::Expiry => "expiry",
            Self::Revocation => "revocation",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Action {
    Enforce,
    Log,
    Skip,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StoreType {
    Authorities,
    SigningAuthorities,
    TimestampAuthorities,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTrustPolicy {
    #[error("it has more than 1 MiB, or more than {MAX_ITEMS} statements")]
    TooLarge,
    /// Not JSON, or an unknown field.
    #[error("{0}")]
    Malformed(String),
    #[error("trust policy document uses unsupported version {0:?}: use \"1.0\"")]
    Version(String),
    #[error("trust policy document can not have zero trust policy statements")]
    Empty,
    #[error("multiple trust policy statements use the same name {0:?}, statement names must be unique")]
    NameTwice(String),
    #[error("registry scope {0:?} is present in multiple trust policy statements")]
    ScopeTwice(String),
    #[error("trust policy statement {name:?}: {why}")]
    Statement { name: String, why: InvalidStatement },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidStatement {
    #[error("it is missing a name")]
    NoName,
    #[error("it has more than {MAX_ITEMS} scopes, trust stores or trusted identities")]
    TooLarge,
    #[error("invalid signature verification level {0:?}: use strict, permissive, audit or skip")]
    Level(String),
    #[error("signatureVerification.override: {0}")]
    Override(&'static str),
    #[error("verifyTimestamp must be \"always\" or \"afterCertExpiry\", but got {0:?}")]
    VerifyTimestamp(String),
    #[error("it is either missing trust stores or trusted identities, both must be specified")]
    Incomplete,
    #[error("trust store {0:?} must be written as TYPE:NAME, the type is ca, signingAuthority or tsa")]
    Store(String),
    /// `*` must be the only scope.
    #[error("a wildcard '*' cannot be used in conjunction with other values")]
    Wildcard,
    #[error("trusted identity {0:?} is not supported: use '*' or 'x509.subject: ...'")]
    Identity(String),
    #[error("trusted identity {identity:?}: {why}")]
    IdentityName { identity: String, why: InvalidName },
    #[error("it has overlapping x509 trustedIdentities, {0:?} overlaps with {1:?}")]
    Overlap(String, String),
    #[error("it has zero registry scopes, it must specify registry scopes with at least one value")]
    NoScope,
    /// Neither `*` nor a repository.
    #[error(
        "registry scope {0:?} is not valid, make sure it is a fully qualified repository without the scheme, protocol or tag"
    )]
    Scope(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Document {
    version: String,
    #[serde(default)]
    trust_policies: Vec<StatementDocument>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct StatementDocument {
    #[serde(default)]
    name: String,
    #[serde(default)]
    registry_scopes: Vec<String>,
    signature_verification: VerificationDocument,
    trust_stores: Option<Vec<String>>,
    trusted_identities: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct VerificationDocument {
    #[serde(default)]
    level: String,
    #[serde(rename = "override")]
    overrides: Option<BTreeMap<String, Action>>,
    #[serde(default)]
    verify_timestamp: String,
}

impl TrustPolicy {
    /// Parses a policy.
    pub fn parse(text: &[u8]) -> Result<Self, InvalidTrustPolicy> {
        if text.len() > MAX_BYTES {
            return Err(InvalidTrustPolicy::TooLarge);
        }
        let document: Document = serde_json::from_slice(text)
            .map_err(|error| InvalidTrustPolicy::Malformed(bounded(&error.to_string())))?;
        if document.version != "1.0" {
            return Err(InvalidTrustPolicy::Version(bounded(&document.version)));
        }
        match document.trust_policies.len() {
            0 => return Err(InvalidTrustPolicy::Empty),
            1..=MAX_ITEMS => {}
            _ => return Err(InvalidTrustPolicy::TooLarge),
        }
        let (mut names, mut scopes) = (BTreeSet::new(), BTreeSet::new());
        let mut statements = Vec::new();
        for document in document.trust_policies {
            let name = bounded(&document.name);
            let statement = document.read();
            let statement = statement.map_err(|why| InvalidTrustPolicy::Statement {
                name: name.clone(),
                why,
            })?;
            if !names.insert(statement.name.clone()) {
                return Err(InvalidTrustPolicy::NameTwice(name));
            }
            for scope in &statement.scopes {
                if !scopes.insert(scope.clone()) {
                    return Err(InvalidTrustPolicy::ScopeTwice(bounded(scope)));
                }
            }
            statements.push(statement);
        }
        Ok(Self { statements })
    }

    /// Returns the statement that names a repository, otherwise the one for all.
    pub(super) fn statement(&self, repository: &str) -> Option<&Statement> {
        let with = |scope: &str| {
            let mut all = self.statements.iter();
            all.find(|statement| statement.scopes.iter().any(|found| found == scope))
        };
        with(repository).or_else(|| with("*"))
    }
}

impl StatementDocument {
    fn read(self) -> Result<Statement, InvalidStatement> {
        if self.name.is_empty() {
            return Err(InvalidStatement::NoName);
        }
        let verification = self.signature_verification;
        let actions = actions(&verification.level, verification.overrides.unwrap_or_default())?;
        let timestamp_after_expiry = match verification.verify_timestamp.as_str() {
            "" | "always" => false,
            "afterCertExpiry" => true,
            other => return Err(InvalidStatement::VerifyTimestamp(bounded(other))),
        };
        let stores = self.trust_stores.unwrap_or_default();
        let identities = self.trusted_identities.unwrap_or_default();
        if [stores.len(), identities.len(), self.registry_scopes.len()]
            .iter()
            .any(|length| *length > MAX_ITEMS)
        {
            return Err(InvalidStatement::TooLarge);
        }
        // As in the original, stores and identities have no effect beside the level `skip`.
        let rules = match actions {
            None => None,
            Some(_) if stores.is_empty() || identities.is_empty() => {
                return Err(InvalidStatement::Incomplete);
            }
            Some(actions) => Some(Rules {
                actions,
                stores: stores
                    .iter()
                    .map(|store| store_type(store))
                    .collect::<Result<_, _>>()?,
                identities: trusted_names(&identities)?,
                timestamp_after_expiry,
            }),
        };
        Ok(Statement {
            name: self.name,
            scopes: checked_scopes(self.registry_scopes)?,
            rules,
        })
    }
}

/// Returns the actions of a level with its overrides; `None` for `skip`.
fn actions(
    level: &str,
    overrides: BTreeMap<String, Action>,
) -> Result<Option<BTreeMap<Check, Action>>, InvalidStatement> {
    use Action::{Enforce, Log, Skip};
    let (authenticity, others) = match level {
        "strict" => (Enforce, Enforce),
        "permissive" => (Enforce, Log),
        "audit" => (Log, Log),
        "skip" if overrides.is_empty() => return Ok(None),
        "skip" => return Err(InvalidStatement::Override("the level skip can't be customized")),
        other => return Err(InvalidStatement::Level(bounded(other))),
    };
    let mut actions = BTreeMap::from([
        (Check::Authenticity, authenticity),
        (Check::AuthenticTimestamp, others),
        (Check::Expiry, others),
        (Check::Revocation, others),
    ]);
    for (name, action) in overrides {
        let check = match name.as_str() {
            "authenticity" => Check::Authenticity,
            "authenticTimestamp" => Check::AuthenticTimestamp,
            "expiry" => Check::Expiry,
            "revocation" => Check::Revocation,
            "integrity" => return Err(InvalidStatement::Override("integrity can not be overridden")),
            _ => {
                return Err(InvalidStatement::Override(
                    "the types are authenticity, authenticTimestamp, expiry and revocation",
                ));
            }
        };
        if action == Skip && check != Check::Revocation {
            return Err(InvalidStatement::Override("only revocation can be skipped"));
        }
        actions.insert(check, action);
    }
    Ok(Some(actions))
}

fn store_type(store: &str) -> Result<StoreType, InvalidStatement> {
    let invalid = || InvalidStatement::Store(bounded(store));
    let (kind, name) = store.split_once(':').ok_or_else(invalid)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(invalid());
    }
    match kind {
        "ca" => Ok(StoreType::Authorities),
        "signingAuthority" => Ok(StoreType::SigningAuthorities),
        "tsa" => Ok(StoreType::TimestampAuthorities),
        _ => Err(invalid()),
    }
}

/// Returns the names of trusted signers; `None` if all are trusted.
fn trusted_names(identities: &[String]) -> Result<Option<Vec<Name>>, InvalidStatement> {
    if identities.iter().any(|identity| identity == "*") {
        return match identities.len() {
            1 => Ok(None),
            _ => Err(InvalidStatement::Wildcard),
        };
    }
    let mut names: Vec<Name> = Vec::new();
    for identity in identities {
        let subject = identity.strip_prefix("x509.subject:");
        let subject = subject.ok_or_else(|| InvalidStatement::Identity(bounded(identity)))?;
        let name = Name::parse(subject).map_err(|why| InvalidStatement::IdentityName {
            identity: bounded(identity),
            why,
        })?;
        let overlaps = |other: &Name| other.is_part_of(&name) || name.is_part_of(other);
        if let Some(at) = names.iter().position(overlaps) {
            let other = identities.get(at).map_or("", String::as_str);
            let (one, other) = (bounded(identity), bounded(other));
            return Err(InvalidStatement::Overlap(one, other));
        }
        names.push(name);
    }
    Ok(Some(names))
}

fn checked_scopes(scopes: Vec<String>) -> Result<Vec<String>, InvalidStatement> {
    if scopes.is_empty() {
        return Err(InvalidStatement::NoScope);
    }
    if scopes.len() > 1 && scopes.iter().any(|scope| scope == "*") {
        return Err(InvalidStatement::Wildcard);
    }
    match scopes.iter().find(|scope| *scope != "*" && !is_repository(scope)) {
        Some(scope) => Err(InvalidStatement::Scope(bounded(scope))),
        None => Ok(scopes),
    }
}

fn is_repository(scope: &str) -> bool {
    let Some((host, path)) = scope.split_once('/') else {
        return false;
    };
    let (name, port) = host.split_once(':').unwrap_or((host, "0"));
    let is_label = |label: &str| {
        let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
        is_end(label.bytes().next())
            && is_end(label.bytes().next_back())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    name.split('.').all(is_label)
        && !port.is_empty()
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && path.split('/').all(crate::reference::is_component)
}
