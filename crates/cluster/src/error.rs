//! The errors of this crate.

use std::time::Duration;

use objects::{ObjectRef, conflict::Cause, secrets};
use tree::ByteBudgetError;
use yaml::Value;

/// A limit of an answer of an API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnswerLimit {
    /// The body has too many bytes.
    #[error("it has more than {0} bytes")]
    Bytes(usize),
    /// The list has too many pages.
    #[error("the list has more than {0} pages")]
    Pages(usize),
    /// The names of its kinds have too many bytes.
    #[error("the names of its kinds have more than {0} bytes")]
    Kinds(usize),
    /// The process has no memory for it now, or ever.
    #[error(transparent)]
    Memory(#[from] ByteBudgetError),
}

impl AnswerLimit {
    /// Returns true if a part of the answer may fit.
    pub(crate) fn is_too_large(self) -> bool {
        matches!(self, Self::Bytes(_) | Self::Memory(ByteBudgetError::TooMuch { .. }))
    }
}

/// An error of an operation on a cluster or a kubeconfig.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The API server answered with an error.
    #[error(transparent)]
    Api(ApiError),
    /// The cluster serves no such kind.
    #[error("no matches for kind \"{kind}\" in version \"{api_version}\"")]
    NoMatch {
        /// The kind of the object.
        kind: String,
        /// Group and version of the kind.
        api_version: String,
    },
    /// The API server can't be reached.
    #[error("{what}: the API server can't be reached: {reason}")]
    Unreachable {
        /// Description of the operation.
        what: String,
        /// Description of the cause.
        reason: String,
    },
    /// The API server did not answer in time.
    #[error("{what}: the API server did not answer within {after:?}")]
    Timeout {
        /// Description of the operation.
        what: String,
        /// The timeout that expired.
        after: Duration,
    },
    /// The answer can't be understood.
    #[error("{what}: the API server's answer can't be understood: {reason}")]
    Malformed {
        /// Description of the operation.
        what: String,
        /// Description of the problem.
        reason: String,
    },
    /// There are more objects than the limit.
    #[error("{what}: there are more than {limit} objects: ask for one of them by its name")]
    TooMany {
        /// Description of the operation.
        what: String,
        /// Maximum number of objects.
        limit: usize,
    },
    /// An answer of the API server is too large.
    #[error("{what}: the answer of the API server {server} is too large: {why}")]
    TooLarge {
        /// Description of the operation.
        what: String,
        /// Address of the API server.
        server: String,
        /// The limit that was reached.
        why: AnswerLimit,
    },
    /// A name or namespace that can't stand in a URL.
    #[error("{object}: '{value}' can't be a name: use lower case letters, digits, '-' and '.'")]
    InvalidName {
        /// Description of the object.
        object: String,
        /// The invalid name or namespace.
        value: String,
    },
    /// An object that is no object.
    #[error(transparent)]
    Object(#[from] objects::Error),
    /// The work was cancelled (shutdown, lost lease, timeout, or a newer version to work on).
    #[error("cancelled")]
    Cancelled,
    /// A kubeconfig can't be used.
    #[error("the kubeconfig can't be used: {0}")]
    Kubeconfig(String),
    /// A kubeconfig asks for something that would reach into this process, which is refused.
    #[error("the kubeconfig can't be used: {0}")]
    KubeconfigRefused(String),
    /// A context to be renamed is missing.
    #[error("failed to rename context {old} -> {new}. Old context not found in kubeconfig")]
    ContextMissing {
        /// Current name of the context.
        old: String,
        /// New name of the context.
        new: String,
    },
    /// The name that a context should get is taken.
    #[error("failed to rename context {old} -> {new}. New context already present in kubeconfig")]
    ContextTaken {
        /// Current name of the context.
        old: String,
        /// New name of the context.
        new: String,
    },
}

impl Error {
    /// Returns the HTTP status, if the API server answered with an error.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        if let Self::Api(error) = self {
            Some(error.code)
        } else {
            None
        }
    }

    /// Returns true if the API server answered that the object, its namespace or its kind does not exist (404).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Returns true if the API server refused the credentials or the request (401 or 403).
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        matches!(self.code(), Some(401 | 403))
    }

    /// Returns true if the request was refused for lack of valid credentials or permissions.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Api(error) if error.is_denied())
    }

    /// Returns the fields that other managers own, if the error is a conflict about fields.
    #[must_use]
    pub fn field_conflicts(&self) -> Option<&[Cause]> {
        match self {
            Self::Api(error) if error.code == 409 && !error.causes.is_empty() => Some(&error.causes),
            _ => None,
        }
    }

    /// Returns true if the object was changed since it was read.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Api(error) if error.code == 409 && error.causes.is_empty())
    }
}

/// An error of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// HTTP status of the answer.
    pub code: u16,
    /// The reason in one word, as in `Forbidden`; may be empty.
    pub reason: String,
    /// Message of the API server; a general one if it sent none.
    pub message: String,
    /// Details of conflicts and of invalid fields.
    pub causes: Vec<Cause>,
}

impl ApiError {
    /// Reads the body of an answer that is no success.
    pub(crate) fn parse(code: u16, body: &[u8]) -> Self {
        let status: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let message = text(status.get("message"));
        let causes = status
            .pointer(&["details", "causes"])
            .and_then(Value::as_seq)
            .unwrap_or_default();
        Self {
            code,
            reason: text(status.get("reason")),
            message: if message.is_empty() {
                format!("the API server answered with status {code}")
            } else {
                message
            },
            causes: causes
                .iter()
                .map(|cause| Cause {
                    reason: text(cause.get("reason")),
                    message: text(cause.get("message")),
                    field: text(cause.get("field")),
                })
                .filter(|cause| code != 409 || cause.reason == "FieldManagerConflict")
                .collect(),
        }
    }

    /// Returns true if the credentials are refused or permissions are missing. Quotas, admission and terminating
    /// namespaces answer with the same status and reason; only the message of the authorizer differs.
    fn is_denied(&self) -> bool {
        self.code == 401 || self.code == 403 && self.message.contains("forbidden: User ")
    }

    /// Returns true if the URL, not the object, is unknown: the kind is not served (any more).
    pub(crate) fn is_unknown_resource(&self) -> bool {
        let unknown = "the server could not find the requested resource";
        self.code == 404 && (self.reason.is_empty() || self.message.starts_with(unknown))
    }

    /// Takes out what may hold values of a Secret: the API server quotes the values it refuses.
    pub(crate) fn without_secrets(mut self, reference: &ObjectRef) -> Self {
        if !secrets::is_secret(reference) || !matches!(self.code, 400 | 409 | 422 | 500..) {
            return self;
        }
        let fields: Vec<_> = self.causes.iter().map(|cause| cause.field.as_str()).collect();
        let fields = if fields.is_empty() {
            String::new()
        } else {
            format!(" because of {}", fields.join(", "))
        };
        let reason = if self.reason.is_empty() {
            "invalid"
        } else {
            &self.reason
        };
        self.message = format!(
            "the API server refused the Secret with status {} ({reason}){fields}; its words are left out, for they may \
             quote values: check data, stringData and type",
            self.code
        );
        if self.code != 409 {
            self.causes.clear();
        }
        self
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        match self.code {
            401 => f.write_str(": the credentials were refused, renew the token or kubeconfig"),
            403 if self.is_denied() => f.write_str(
                ": grant this to the service account, or deploy as another one (serviceAccountName)",
            ),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for ApiError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(kind: &str) -> ObjectRef {
        ObjectRef {
            group: String::new(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: Some("n".to_owned()),
            name: "s".to_owned(),
        }
    }

    const INVALID: &[u8] = br#"{"kind":"Status","code":422,"reason":"Invalid",
        "message":"Secret \"s\" is invalid: data[a]: Invalid value: \"canary\"",
        "details":{"causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"canary\"","field":"data[a]"}]}}"#;

    #[test]
    fn without_secrets_removes_values() {
        let error = ApiError::parse(422, INVALID).without_secrets(&reference("Secret"));
        assert!(!format!("{error} {error:?}").contains("canary"));
        assert!(error.to_string().contains("data[a]"), "{error}");
        let other = ApiError::parse(422, INVALID).without_secrets(&reference("ConfigMap"));
        assert!(other.to_string().contains("canary"));
    }

    #[test]
    fn conflicts_keep_their_causes() {
        let body = br#"{"code":409,"reason":"Conflict","message":"Apply failed with 1 conflict","details":{"causes":[
            {"reason":"FieldManagerConflict","message":"conflict with \"a\" using v1","field":".data.a"}]}}"#;
        let error = Error::Api(ApiError::parse(409, body).without_secrets(&reference("Secret")));
        assert_eq!(error.field_conflicts().map(<[Cause]>::len), Some(1));
        let stale = Error::Api(ApiError::parse(
            409,
            br#"{"reason":"Conflict","message":"object has been modified"}"#,
        ));
        assert!(stale.is_stale() && stale.field_conflicts().is_none());
    }

    #[test]
    fn is_denied_requires_missing_permissions() {
        for (code, message, denied) in [
            (401, "Unauthorized", true),
            (
                403,
                "configmaps \"a\" is forbidden: User \"u\" cannot patch resource",
                true,
            ),
            (
                403,
                "users \"u\" is forbidden: User \"c\" cannot impersonate resource",
                true,
            ),
            (403, "pods \"a\" is forbidden: exceeded quota: q", false),
            (403, "pods \"a\" is forbidden: violates PodSecurity", false),
            (
                403,
                "configmaps \"a\" is forbidden: unable to create new content: it is being terminated",
                false,
            ),
            (422, "a field quotes: is forbidden: User \"u\"", false),
        ] {
            let body = serde_json::json!({ "reason": "Forbidden", "message": message }).to_string();
            let error = Error::Api(ApiError::parse(code, body.as_bytes()));
            assert_eq!(error.is_denied(), denied, "{code} {message}");
            assert_eq!(
                error.to_string().contains("grant this"),
                denied && code == 403,
                "{error}"
            );
        }
    }

    #[test]
    fn parse_replaces_a_missing_message() {
        let error = ApiError::parse(502, b"<html>");
        assert_eq!(error.to_string(), "the API server answered with status 502");
        let forbidden = br#"{"reason":"Forbidden","message":"configmaps is forbidden: User \"u\" cannot patch resource"}"#;
        assert!(
            ApiError::parse(403, forbidden)
                .to_string()
                .ends_with("(serviceAccountName)")
        );
    }
}
