//! Logins to clouds, for key services without given credentials.

use std::{fmt, pin::Pin, sync::Arc};

use api::Secret;
use cloud::{Ambient, Cloud, Identity, Token, Workload, aws::region_of_arn, http::Client};
use tokio::sync::OnceCell;

use super::{OpenError, aws::Aws, role::RoleError, service::failed};

/// Finds the identity of an account at a cloud.
pub trait CloudAccount: fmt::Debug + Send + Sync {
    /// Returns the identity with a token of the account that the cloud trusts.
    fn login(&self, cloud: Cloud) -> Pin<Box<dyn Future<Output = Result<Workload, RoleError>> + Send + '_>>;
}

/// The identity of an account, or of an environment. It is looked up when the first file needs it.
#[derive(Debug)]
pub(super) struct CloudLogin {
    account: Option<Arc<dyn CloudAccount>>,
    /// Environment with the endpoints of token services, and with the identity if there is no account.
    environment: Arc<Ambient>,
    aws: OnceCell<Aws>,
    gcp: OnceCell<Secret<String>>,
}

impl CloudLogin {
    pub(super) fn new(account: Option<Arc<dyn CloudAccount>>, environment: Arc<Ambient>) -> Self {
        Self {
            account,
            environment,
            aws: OnceCell::new(),
            gcp: OnceCell::new(),
        }
    }

    async fn workload(&self, cloud: Cloud) -> Result<Option<Workload>, OpenError> {
        match &self.account {
            Some(account) => account.login(cloud).await.map(Some).map_err(OpenError::Role),
            None => Ok(None),
        }
    }

    fn identity<'a>(&'a self, workload: Option<&'a Workload>) -> Identity<'a> {
        Identity {
            ambient: &self.environment,
            workload,
        }
    }

    /// Returns the credentials for AWS. The token service is the one in the region of the first key.
    pub(super) async fn aws(&self, http: &Client, arn: &str) -> Result<Aws, OpenError> {
        let find = async || {
            let region =
                region_of_arn(arn, "kms").ok_or(OpenError::InvalidMaster("its ARN is none of a KMS key"))?;
            let workload = self.workload(Cloud::Aws).await?;
            let credentials = self.identity(workload.as_ref()).aws(http, region).await;
            Ok(Aws {
                credentials: credentials.map_err(failed)?,
                endpoint: self.environment.aws_kms().map_err(OpenError::Endpoint)?,
                sts: self.environment.aws_sts().map_err(OpenError::Endpoint)?,
            })
        };
        self.aws.get_or_try_init(find).await.cloned()
    }

    pub(super) async fn gcp(&self, http: &Client) -> Result<Secret<String>, OpenError> {
        let find = async || {
            let workload = self.workload(Cloud::Gcp).await?;
            let token = self.identity(workload.as_ref()).gcp(http).await;
            Ok(token.map_err(failed)?.access)
        };
        self.gcp.get_or_try_init(find).await.cloned()
    }

    pub(super) async fn azure(&self, http: &Client, scope: &str) -> Result<Token, OpenError> {
        let workload = self.workload(Cloud::Azure).await?;
        let token = self.identity(workload.as_ref()).azure(http, scope).await;
        token.map_err(failed)
    }
}
