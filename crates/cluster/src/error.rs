//! The errors of this crate.

use std::time::Duration;

use limits::ByteBudgetError;
use objects::{ObjectRef, conflict::Cause, secrets};
use yaml::Value;

const IMMUTABLE: &str = "field is immutable when `immutable` is set";

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnswerLimit {
    #[error("it has more than {0} bytes")]
    Bytes(usize),
    #[error("the list has more than {0} pages")]
    Pages(usize),
    #[error("the names of its kinds have more than {0} bytes")]
    Kinds(usize),
    /// The process has no memory for it now, or ever.
    #[error(transparent)]
    Memory(#[from] ByteBudgetError),
}

impl AnswerLimit {
    /// Returns true if a smaller part of the answer may fit.
    pub(crate) fn is_too_large(self) -> bool {
        matches!(
            self,
            Self::Bytes(_) | Self::Memory(ByteBudgetError::TooMuch { .. })
        )
    }
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Api(ApiError),
    #[error("no matches for kind \"{kind}\" in version \"{api_version}\"")]
    NoMatch { kind: String, api_version: String },
    #[error("{what}: the API server can't be reached: {reason}")]
    Unreachable { what: String, reason: String },
    #[error("{what}: the API server did not answer within {after:?}")]
    Timeout { what: String, after: Duration },
    #[error("{what}: the API server's answer can't be understood: {reason}")]
    Malformed { what: String, reason: String },
    #[error("{what}: there are more than {limit} objects: ask for one of them by its name")]
    TooMany { what: String, limit: usize },
    #[error("{what}: the answer of the API server {server} is too large: {why}")]
    TooLarge {
        what: String,
        server: String,
        why: AnswerLimit,
    },
    /// A name or namespace that can't stand in a URL.
    #[error("{object}: '{value}' can't be a name: use lower case letters, digits, '-' and '.'")]
    InvalidName { object: String, value: String },
    #[error(transparent)]
    Object(#[from] objects::Error),
    /// Cancelled by shutdown, a lost lease, a timeout, or a newer version.
    #[error("cancelled")]
    Cancelled,
    #[error("the kubeconfig can't be used: {0}")]
    Kubeconfig(String),
    /// A kubeconfig would run a program or read a file of this process.
    #[error("the kubeconfig can't be used: {0}")]
    KubeconfigRefused(String),
    #[error("failed to rename context {old} -> {new}. Old context not found in kubeconfig")]
    ContextMissing { old: String, new: String },
    #[error("failed to rename context {old} -> {new}. New context already present in kubeconfig")]
    ContextTaken { old: String, new: String },
}

impl Error {
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        if let Self::Api(error) = self {
            Some(error.code)
        } else {
            None
        }
    }

    /// Returns true if the object, its namespace or its kind does not exist (404).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Returns true if the API server refused the credentials or the request (401 or 403).
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        matches!(self.code(), Some(401 | 403))
    }

    /// Returns true if the request lacks valid credentials or permissions.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Api(error) if error.is_denied())
    }

    /// Returns the fields that other managers own, if the error is a field conflict.
    #[must_use]
    pub fn field_conflicts(&self) -> Option<&[Cause]> {
        match self {
            Self::Api(error) if error.code == 409 && !error.causes.is_empty() => Some(&error.causes),
            _ => None,
        }
    }

    /// Returns true if the object changed since it was read.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Api(error) if error.code == 409 && error.causes.is_empty())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    pub code: u16,
    pub reason: String,
    pub message: String,
    /// Details of conflicts and of invalid fields.
    pub causes: Vec<Cause>,
}

impl ApiError {
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

    /// Returns true if the credentials are refused or permissions are missing. Quotas, admission and terminating namespaces
    /// answer with the same status and reason; only the message of the authorizer differs.
    fn is_denied(&self) -> bool {
        self.code == 401 || self.code == 403 && self.message.contains("forbidden: User ")
    }

    /// Returns true if the URL, not the object, is unknown: the kind is not served (any more).
    pub(crate) fn is_unknown_resource(&self) -> bool {
        let unknown = "the server could not find the requested resource";
        self.code == 404 && (self.reason.is_empty() || self.message.starts_with(unknown))
    }

    /// Removes possible values of a Secret: the API server quotes refused values.
    pub(crate) fn without_secrets(mut self, reference: &ObjectRef) -> Self {
        if !secrets::is_secret(reference) || !matches!(self.code, 400 | 409 | 422 | 500..) {
            return self;
        }
        // Words that hold no value. An update of a Secret that is marked as immutable is refused with them.
        let is_fixed = self.causes.iter().any(|cause| cause.message.contains(IMMUTABLE));
        let fields: Vec<_> = self.causes.iter().map(|cause| cause.field.as_str()).collect();
        let fields = if fields.is_empty() {
            String::new()
        } else {
            let fixed = if is_fixed { " (field is immutable)" } else { "" };
            format!(" because of {}{fixed}", fields.join(", "))
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
        let body = br#"{"code":422,"reason":"Invalid","message":"x","details":{"causes":[{
            "reason":"FieldValueForbidden","message":"Forbidden: field is immutable when `immutable` is set","field":"data"}]}}"#;
        let error = ApiError::parse(422, body).without_secrets(&reference("Secret"));
        let text = error.to_string();
        assert!(
            text.contains("(Invalid) because of data (field is immutable)"),
            "{text}"
        );
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
