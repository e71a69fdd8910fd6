//! The identity that asks a cloud: of a workload, or of the environment.

use jiff::Timestamp;

use crate::{Ambient, Error, Token, Workload, aws, gcp, http::Client};

/// An identity, with the environment that has the endpoints of its token services.
#[derive(Debug, Clone, Copy)]
pub struct Identity<'a> {
    pub ambient: &'a Ambient,
    /// Default: the identity of the environment.
    pub workload: Option<&'a Workload>,
}

impl Identity<'_> {
    /// Returns credentials for AWS. `region` is the region of the token service, unless the environment names one.
    pub async fn aws(&self, client: &Client, region: &str) -> Result<aws::Credentials, Error> {
        match self.workload {
            Some(Workload::Aws(token)) => self.ambient.aws_role(client, token, region).await,
            _ => self.ambient.aws(client, None, None).await,
        }
    }

    pub async fn azure(&self, client: &Client, scope: &str) -> Result<Token, Error> {
        let id = Timestamp::now().as_nanosecond().to_string();
        match self.workload {
            Some(Workload::Azure(application)) => application.token(client, scope, &id).await,
            _ => self.ambient.azure(client, scope, &id).await,
        }
    }

    /// Returns a token for everything that the identity may do in Google Cloud.
    pub async fn gcp(&self, client: &Client) -> Result<Token, Error> {
        match self.workload {
            Some(Workload::Gcp(workload)) => workload.token(client, self.ambient, gcp::SCOPE).await,
            _ => self.ambient.gcp(client).await,
        }
    }
}
