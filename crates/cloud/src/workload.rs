//! Service accounts of Kubernetes as identities of clouds: the token that a cloud requires, and its exchange.

use std::collections::BTreeMap;

use api::Secret;
use url::Url;

use crate::{
    Ambient, Error, Token, TokenRequest, TrustedToken, azure, gcp,
    http::{Client, Request, address},
};

const AWS_ROLE: &str = "eks.amazonaws.com/role-arn";
const AZURE_CLIENT: &str = "azure.workload.identity/client-id";
const AZURE_TENANT: &str = "azure.workload.identity/tenant-id";
const GCP_ACCOUNT: &str = "iam.gke.io/gcp-service-account";
/// Annotation with a provider of a pool of workload identities, for clusters outside of Google Cloud.
const GCP_PROVIDER: &str = "gcp.auth.fluxcd.io/workload-identity-provider";

const GCP_STS: &str = "https://sts.googleapis.com/";
const GCP_IAM: &str = "https://iamcredentials.googleapis.com/";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cloud {
    Aws,
    Azure,
    Gcp,
}

impl Cloud {
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Aws, Self::Azure, Self::Gcp]
            .into_iter()
            .find(|cloud| cloud.name() == name)
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Azure => "azure",
            Self::Gcp => "gcp",
        }
    }
}

/// Identity in the annotations of a service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkloadIdentity {
    Aws {
        role_arn: String,
    },
    Azure {
        client_id: String,
        tenant: String,
        /// Token service; default the public cloud's.
        authority: Option<Url>,
    },
    Gcp {
        /// Audience of the token of Kubernetes.
        audience: String,
        /// Audience of the exchange: the provider of the identity.
        provider: String,
        email: Option<String>,
    },
}

impl WorkloadIdentity {
    /// Reads the annotations of a service account. For Google Cloud, the machine may be asked for its cluster.
    pub async fn read(
        cloud: Cloud,
        annotations: &BTreeMap<String, String>,
        ambient: &Ambient,
    ) -> Result<Self, Error> {
        let given = |name: &str| annotations.get(name).filter(|value| !value.is_empty()).cloned();
        let needed = |name: &'static str| {
            let missing = || Error::credentials(WHAT, format!("it has no annotation '{name}'"));
            given(name).ok_or_else(missing)
        };
        Ok(match cloud {
            Cloud::Aws => Self::Aws {
                role_arn: role(needed(AWS_ROLE)?)?,
            },
            Cloud::Azure => Self::Azure {
                client_id: needed(AZURE_CLIENT)?,
                tenant: needed(AZURE_TENANT)?,
                authority: ambient.get("AZURE_AUTHORITY_HOST").map(address).transpose()?,
            },
            Cloud::Gcp => {
                let (audience, provider) = match given(GCP_PROVIDER) {
                    Some(name) => {
                        let provider = format!("//iam.googleapis.com/{}", provider(&name)?);
                        (format!("https:{provider}"), provider)
                    }
                    None => ambient.gke_pool().await?.ok_or_else(|| {
                        let why = format!(
                            "it has no annotation '{GCP_PROVIDER}', and this is no cluster of Google Cloud"
                        );
                        Error::credentials(WHAT, why)
                    })?,
                };
                Self::Gcp {
                    audience,
                    provider,
                    email: given(GCP_ACCOUNT).map(email).transpose()?,
                }
            }
        })
    }

    #[must_use]
    pub fn audience(&self) -> &str {
        match self {
            Self::Aws { .. } => "sts.amazonaws.com",
            Self::Azure { .. } => "api://AzureADTokenExchange",
            Self::Gcp { audience, .. } => audience,
        }
    }

    #[must_use]
    pub fn with_token(self, token: Secret<String>) -> Workload {
        match self {
            Self::Aws { role_arn } => Workload::Aws(TrustedToken { role_arn, token }),
            Self::Azure {
                client_id,
                tenant,
                authority,
            } => Workload::Azure(Box::new(azure::Client {
                tenant,
                client_id,
                proof: azure::Proof::Federated(token),
                authority,
            })),
            Self::Gcp { provider, email, .. } => Workload::Gcp(GcpWorkload {
                provider,
                email,
                token,
            }),
        }
    }
}

const WHAT: &str = "service account";

fn role(arn: String) -> Result<String, Error> {
    let parts: Vec<&str> = arn.split(':').collect();
    match parts.as_slice() {
        ["arn", partition, "iam", "", _, role]
            if partition.starts_with("aws") && role.starts_with("role/") =>
        {
            Ok(arn)
        }
        _ => Err(Error::credentials(
            WHAT,
            format!("its annotation '{AWS_ROLE}' is not the ARN of a role"),
        )),
    }
}

fn provider(name: &str) -> Result<&str, Error> {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [
            "projects",
            _,
            "locations",
            _,
            "workloadIdentityPools",
            _,
            "providers",
            _,
        ] => Ok(name),
        _ => Err(Error::credentials(
            WHAT,
            format!(
                "its annotation '{GCP_PROVIDER}' is not projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER"
            ),
        )),
    }
}

fn email(address: String) -> Result<String, Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.@:".contains(c);
    match address.contains('@') && address.chars().all(plain) {
        true => Ok(address),
        false => Err(Error::credentials(
            WHAT,
            format!("its annotation '{GCP_ACCOUNT}' is not the email address of a service account"),
        )),
    }
}

#[derive(Debug, Clone)]
pub enum Workload {
    Aws(TrustedToken),
    Azure(Box<azure::Client>),
    Gcp(GcpWorkload),
}

/// Service account with its identity, and the key of its credentials in a cache.
#[derive(Debug, Clone)]
pub struct WorkloadLogin {
    key: String,
    workload: Workload,
}

impl WorkloadLogin {
    /// Returns the login of the service account `name` (namespace and name), with its token.
    #[must_use]
    pub fn new(name: &str, identity: WorkloadIdentity, token: Secret<String>) -> Self {
        Self {
            key: format!("{:?}", (name, &identity)),
            workload: identity.with_token(token),
        }
    }

    /// Returns namespace, name and identity: the key of its credentials in a cache.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    #[must_use]
    pub fn workload(&self) -> &Workload {
        &self.workload
    }
}

#[derive(Debug, Clone)]
pub struct GcpWorkload {
    provider: String,
    email: Option<String>,
    token: Secret<String>,
}

impl GcpWorkload {
    /// Exchanges the token for a token of Google Cloud, at the endpoints of the environment or the defaults.
    pub async fn token(&self, client: &Client, ambient: &Ambient, scope: &str) -> Result<Token, Error> {
        let at = |variable: &str, usual: &str, path: &str| {
            let base = address(ambient.get(variable).unwrap_or(usual))?;
            base.join(path).map_err(|_| Error::Endpoint {
                url: api::redact(base.as_str()),
                why: "it can have no path",
            })
        };
        // Acting as an account requires the scope for everything, as only IAM accepts the token.
        let first = if self.email.is_some() { gcp::SCOPE } else { scope };
        let url = at("CLOUDSDK_API_ENDPOINT_OVERRIDES_STS", GCP_STS, "v1/token")?;
        let token = client.token(gcp::SERVICE, &self.exchange(url, first)).await?;
        let Some(email) = &self.email else {
            return Ok(token);
        };
        let path = format!("v1/projects/-/serviceAccounts/{email}:generateAccessToken");
        let url = at("CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS", GCP_IAM, &path)?;
        act_as(client, &url, &token, scope).await
    }

    fn exchange(&self, url: Url, scope: &str) -> TokenRequest {
        const TYPE: &str = "urn:ietf:params:oauth:token-type:";
        TokenRequest::new(
            url,
            &[
                ("audience", &self.provider),
                ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
                ("requested_token_type", &format!("{TYPE}access_token")),
                ("scope", scope),
                ("subject_token", self.token.expose()),
                ("subject_token_type", &format!("{TYPE}jwt")),
            ],
        )
    }
}

async fn act_as(client: &Client, url: &Url, token: &Token, scope: &str) -> Result<Token, Error> {
    const SERVICE: &str = "Google's IAM";
    let bearer = Secret::new(format!("Bearer {}", token.access.expose()));
    let body = serde_json::json!({ "scope": [scope] }).to_string();
    let request = Request {
        method: "POST",
        url,
        headers: &[
            ("authorization", bearer.expose()),
            ("content-type", "application/json"),
        ],
        body: body.as_bytes(),
    };
    let answer = client.send(request).await?;
    let found: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let text = |path: &str| found.pointer(path).and_then(serde_json::Value::as_str);
    match text("/accessToken").filter(|token| !token.is_empty()) {
        Some(access) => Ok(Token {
            access: Secret::new(access.to_owned()),
            // The answer has the time of expiry; the default is an hour.
            expires_in: 3600,
        }),
        None => Err(Error::Refused {
            service: SERVICE,
            why: crate::token::shortened(text("/error/message").unwrap_or("it gives no token")),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(cloud: Cloud, annotations: &[(&str, &str)]) -> Result<WorkloadIdentity, Error> {
        let annotations = annotations.iter();
        let annotations = annotations.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        WorkloadIdentity::read(cloud, &annotations.collect(), &Ambient::default()).await
    }

    #[tokio::test]
    async fn annotations_name_an_identity_of_each_cloud() {
        let role = read(Cloud::Aws, &[(AWS_ROLE, "arn:aws:iam::1:role/r")])
            .await
            .unwrap();
        assert_eq!(role.audience(), "sts.amazonaws.com");
        let application = read(Cloud::Azure, &[(AZURE_CLIENT, "c"), (AZURE_TENANT, "t")])
            .await
            .unwrap();
        assert_eq!(application.audience(), "api://AzureADTokenExchange");
        let pool = "projects/1/locations/global/workloadIdentityPools/p/providers/k";
        let annotations = [(GCP_PROVIDER, pool), (GCP_ACCOUNT, "a@p.iam.gserviceaccount.com")];
        let principal = read(Cloud::Gcp, &annotations).await.unwrap();
        assert_eq!(principal.audience(), format!("https://iam.googleapis.com/{pool}"));
        assert!(matches!(
            principal.with_token(Secret::new("t".to_owned())),
            Workload::Gcp(GcpWorkload { email: Some(_), .. })
        ));
    }

    #[tokio::test]
    async fn annotations_that_are_missing_or_lead_elsewhere_are_named() {
        for (cloud, annotations, expected) in [
            (Cloud::Aws, vec![], AWS_ROLE),
            (Cloud::Aws, vec![(AWS_ROLE, "role")], "not the ARN of a role"),
            (Cloud::Azure, vec![(AZURE_CLIENT, "c")], AZURE_TENANT),
            (Cloud::Gcp, vec![], GCP_PROVIDER),
            (Cloud::Gcp, vec![(GCP_PROVIDER, "../x")], "is not projects/"),
            (
                Cloud::Gcp,
                vec![
                    (
                        GCP_PROVIDER,
                        "projects/1/locations/global/workloadIdentityPools/p/providers/k",
                    ),
                    (GCP_ACCOUNT, "a@p/../x"),
                ],
                "not the email address",
            ),
        ] {
            let error = read(cloud, &annotations).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
