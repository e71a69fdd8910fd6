//! The AWS role of a ServiceAccount, and its logins to Vault.

mod vault;

use std::{pin::Pin, time::Duration};

use cluster::Cluster;
use objects::ObjectRef;
use secrets::{AwsRole, RoleError, TrustedToken};
use yaml::Value;

pub use vault::ServiceAccountVault;

/// Annotation of a ServiceAccount with the ARN of its AWS role.
const ROLE: &str = "eks.amazonaws.com/role-arn";
/// The error of an account without a role.
pub const MISSING_ROLE: &str = "its AWS role is missing: set the annotation eks.amazonaws.com/role-arn";
/// Audience of tokens for AWS.
const AUDIENCE: &str = "sts.amazonaws.com";
/// Lifetime of such a token: the minimum that the API server accepts.
const TOKEN_AGE: Duration = Duration::from_secs(600);

/// A ServiceAccount whose AWS role, if it has one, may use KMS keys of SOPS. It is read, and its token is requested, when a file
/// needs such a key.
#[derive(Debug, Clone)]
pub struct ServiceAccountRole {
    /// The cluster of the ServiceAccount, with the identity that requests the token.
    pub cluster: Cluster,
    pub namespace: String,
    pub name: String,
}

impl AwsRole for ServiceAccountRole {
    fn find(&self) -> Pin<Box<dyn Future<Output = Result<Option<TrustedToken>, RoleError>> + Send + '_>> {
        Box::pin(trusted_token(&self.cluster, &self.namespace, &self.name))
    }
}

/// Returns the AWS role of a ServiceAccount and a token to assume it with; `None` without a role.
///
/// # Errors
/// If the account is missing, or a token is refused.
pub async fn trusted_token(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Option<TrustedToken>, RoleError> {
    let about = |words: &str| RoleError(format!("service account {namespace}/{name}: {words}"));
    let reference = ObjectRef::core("ServiceAccount", namespace, name);
    let found = cluster.get(&reference).await;
    let found = found.map_err(|error| about(&error.to_string()))?;
    let account = found.ok_or_else(|| about("not found"))?;
    let role = account
        .pointer(&["metadata", "annotations", ROLE])
        .and_then(Value::as_str);
    let Some(role) = role.filter(|role| !role.is_empty()) else {
        return Ok(None);
    };
    let token = cluster
        .service_account_token(&reference, AUDIENCE, TOKEN_AGE)
        .await
        .map_err(|error| about(&error.to_string()))?;
    Ok(Some(TrustedToken {
        role_arn: role.to_owned(),
        token,
    }))
}
