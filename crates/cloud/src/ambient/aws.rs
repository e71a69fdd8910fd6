//! Credentials for AWS from the environment, profiles, the container and the machine.

use std::path::PathBuf;

use api::Secret;
use jiff::Timestamp;

use super::{Ambient, read, read_bytes};
use crate::{
    Error,
    aws::{Assume, Base, Chain, Credentials, Profiles, Sso, WebIdentity},
    http::{Client, Request, address},
};

const REGION: &str = "us-east-1";
const SESSION: &str = "weir";

/// A role, and a web identity token that it trusts.
#[derive(Debug, Clone)]
pub struct TrustedToken {
    pub role_arn: String,
    pub token: Secret<String>,
}

impl Ambient {
    /// Returns credentials for AWS from the first of: keys in the environment, a role for a web identity, `AWS_PROFILE`,
    /// `profile` if it exists, the role of `token`, the profile `default`, the container, the machine.
    pub async fn aws(
        &self,
        client: &Client,
        profile: Option<&str>,
        token: Option<&TrustedToken>,
    ) -> Result<Credentials, Error> {
        if let Some(keys) = self.aws_keys() {
            return Ok(keys);
        }
        let role = (self.get("AWS_ROLE_ARN"), self.get("AWS_WEB_IDENTITY_TOKEN_FILE"));
        if let (Some(role), Some(file)) = role {
            let session = self.get("AWS_ROLE_SESSION_NAME").unwrap_or(SESSION);
            return self.web_identity(client, role, session, file, None).await;
        }
        let profiles = self.profiles()?;
        if let Some(named) = self.get("AWS_PROFILE") {
            return self.chain(client, &profiles.chain(named)?).await;
        }
        if let Some(wanted) = profile.filter(|profile| profiles.has(profile)) {
            return self.chain(client, &profiles.chain(wanted)?).await;
        }
        if let Some(token) = token {
            return self.aws_role(client, token, REGION).await;
        }
        if let Some(chain) = profiles.chain("default").ok().filter(|_| profiles.has("default")) {
            return self.chain(client, &chain).await;
        }
        if let Some(found) = self.aws_container().await? {
            return Ok(found);
        }
        self.aws_instance().await?.ok_or(Error::NoCredentials {
            service: "AWS",
            hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile of ~/.aws/config",
        })
    }

    /// Returns the credentials of a profile: keys, roles or a single sign-on.
    pub async fn aws_profile(&self, client: &Client, profile: &str) -> Result<Credentials, Error> {
        self.chain(client, &self.profiles()?.chain(profile)?).await
    }

    /// Exchanges a token for its role. `region` is the region of the token service, unless the environment names one.
    pub async fn aws_role(
        &self,
        client: &Client,
        token: &TrustedToken,
        region: &str,
    ) -> Result<Credentials, Error> {
        let identity = WebIdentity {
            role_arn: token.role_arn.clone(),
            session: SESSION.to_owned(),
            token: token.token.clone(),
        };
        self.exchange(client, &identity, Some(region)).await
    }

    #[must_use]
    pub fn aws_region(&self) -> Option<&str> {
        self.get("AWS_REGION").or_else(|| self.get("AWS_DEFAULT_REGION"))
    }

    /// Returns the endpoint for the Secrets Manager that replaces the usual one: `AWS_ENDPOINT_URL_SECRETS_MANAGER`, or
    /// `AWS_ENDPOINT_URL`, which is for all services.
    pub fn aws_secrets(&self) -> Result<Option<url::Url>, Error> {
        self.endpoint("AWS_ENDPOINT_URL_SECRETS_MANAGER")
    }

    /// Returns the endpoint for KMS that replaces the usual one: `AWS_ENDPOINT_URL_KMS`, or `AWS_ENDPOINT_URL`.
    pub fn aws_kms(&self) -> Result<Option<url::Url>, Error> {
        self.endpoint("AWS_ENDPOINT_URL_KMS")
    }

    /// Returns the endpoint for ECR that replaces the usual one: `AWS_ENDPOINT_URL_ECR`, or `AWS_ENDPOINT_URL`.
    pub fn aws_ecr(&self) -> Result<Option<url::Url>, Error> {
        self.endpoint("AWS_ENDPOINT_URL_ECR")
    }

    /// Returns the endpoint for EKS that replaces the usual one: `AWS_ENDPOINT_URL_EKS`, or `AWS_ENDPOINT_URL`.
    pub fn aws_eks(&self) -> Result<Option<url::Url>, Error> {
        self.endpoint("AWS_ENDPOINT_URL_EKS")
    }

    /// Returns the endpoint for STS that replaces the usual one: `AWS_ENDPOINT_URL_STS`, or `AWS_ENDPOINT_URL`.
    pub fn aws_sts(&self) -> Result<Option<url::Url>, Error> {
        self.endpoint("AWS_ENDPOINT_URL_STS")
    }

    fn aws_keys(&self) -> Option<Credentials> {
        Credentials::of_variables(|name| self.get(name).map(str::to_owned))
    }

    fn profiles(&self) -> Result<Profiles, Error> {
        let file = |variable: &str, usual: &str| {
            let named = self.get(variable).map(PathBuf::from);
            let file = named.or_else(|| self.home(usual)).filter(|file| file.is_file());
            file.map_or_else(|| Ok(String::new()), |file| read(&file))
        };
        let config = file("AWS_CONFIG_FILE", ".aws/config")?;
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials")?;
        Ok(Profiles::read(&config, &credentials))
    }

    async fn chain(&self, client: &Client, chain: &Chain) -> Result<Credentials, Error> {
        let missing = |hint| Error::NoCredentials { service: "AWS", hint };
        let region = chain.region.as_deref();
        let mut current = match &chain.base {
            Base::Keys(keys) => keys.clone(),
            Base::WebIdentity {
                role_arn,
                session,
                file,
            } => self.web_identity(client, role_arn, session, file, region).await?,
            Base::Sso(sso) => self.sso(client, sso).await?,
            Base::Environment => {
                let hint = "the profile takes its keys from the environment: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
                self.aws_keys().ok_or_else(|| missing(hint))?
            }
            Base::Instance => {
                let found = self.aws_instance().await?;
                found
                    .ok_or_else(|| missing("the machine that the profile relies on says nothing of a role"))?
            }
            Base::Container => {
                let found = self.aws_container().await?;
                found.ok_or_else(|| missing("the container that the profile relies on is told of no role"))?
            }
        };
        for role in &chain.roles {
            current = self.assume(client, role, &current, region).await?;
        }
        Ok(current)
    }

    async fn web_identity(
        &self,
        client: &Client,
        role: &str,
        session: &str,
        file: &str,
        region: Option<&str>,
    ) -> Result<Credentials, Error> {
        let token = read(file.as_ref())?;
        let identity = WebIdentity {
            role_arn: role.to_owned(),
            session: session.to_owned(),
            token: Secret::new(token.trim().to_owned()),
        };
        self.exchange(client, &identity, region).await
    }

    async fn exchange(
        &self,
        client: &Client,
        identity: &WebIdentity,
        region: Option<&str>,
    ) -> Result<Credentials, Error> {
        let form = identity.request(self.sts_region(region), self.aws_sts()?)?;
        let answer = client.form(&form, &[("accept", "application/xml")]).await?;
        Credentials::from_answer(&answer.body)
    }

    async fn assume(
        &self,
        client: &Client,
        role: &Assume,
        current: &Credentials,
        region: Option<&str>,
    ) -> Result<Credentials, Error> {
        let region = self.sts_region(region);
        let at = self.aws_sts()?;
        role.send(client, current, region, at).await
    }

    async fn sso(&self, client: &Client, sso: &Sso) -> Result<Credentials, Error> {
        let file = self.home(".aws/sso/cache").map(|dir| dir.join(sso.file()));
        let file = file.filter(|file| file.is_file()).ok_or(Error::NoCredentials {
            service: "AWS",
            hint: "log in with 'aws sso login'",
        })?;
        let login = Secret::new(read_bytes(&file)?);
        let asked = sso.request(
            login.expose(),
            Timestamp::now(),
            self.endpoint("AWS_ENDPOINT_URL_SSO")?,
        )?;
        let answer = client
            .send(Request {
                method: "GET",
                url: &asked.url,
                headers: &[("x-amz-sso_bearer_token", asked.token.expose())],
                body: b"",
            })
            .await?;
        Credentials::from_sso(&answer.body)
    }

    fn sts_region<'a>(&'a self, of_profile: Option<&'a str>) -> &'a str {
        self.aws_region().or(of_profile).unwrap_or(REGION)
    }

    fn endpoint(&self, variable: &str) -> Result<Option<url::Url>, Error> {
        let url = self.get(variable).or_else(|| self.get("AWS_ENDPOINT_URL"));
        url.map(address).transpose()
    }
}
