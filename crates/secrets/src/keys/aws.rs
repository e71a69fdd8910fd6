//! AWS KMS.

use api::Secret;
use base64::{Engine, prelude::BASE64_STANDARD};
use cloud::{
    Ambient,
    aws::{Assume, Credentials, endpoint, region_of_arn},
    http::{Client, Request},
};
use serde_json::json;
use url::Url;
use zeroize::Zeroizing;

use super::{
    AwsRole, OpenError,
    service::{failed, text},
};
use crate::{Error, metadata::MasterKind};

const JSON: &str = "application/x-amz-json-1.1";
/// Session name of assumed roles, as in the logs of AWS.
const SESSION: &str = "sops@weir";

/// Credentials, and addresses that replace the services' usual ones.
#[derive(Debug, Clone)]
pub(super) struct Aws {
    pub(super) credentials: Credentials,
    pub(super) endpoint: Option<Url>,
    pub(super) sts: Option<Url>,
}

pub(super) fn parse(entry: &str) -> Result<Credentials, Error> {
    const WHAT: &str = "sops.aws-kms";
    let budget = tree::Budget::default();
    // The parser's message can repeat a part of the credentials.
    let document = yaml::read::goyaml(entry, &budget).map_err(|_| Error::key(WHAT, "it is no YAML"))?;
    let field = |name: &str| {
        let text = document.value.get(name).and_then(yaml::Value::as_str)?;
        Some(text.to_owned()).filter(|text| !text.is_empty())
    };
    match (field("aws_access_key_id"), field("aws_secret_access_key")) {
        (Some(access_key_id), Some(secret)) => Ok(Credentials {
            access_key_id,
            secret_access_key: Secret::new(secret),
            session_token: field("aws_session_token").map(Secret::new),
        }),
        _ => Err(Error::key(
            WHAT,
            "it needs aws_access_key_id and aws_secret_access_key",
        )),
    }
}

impl Aws {
    /// Finds credentials and addresses of the services in the environment: of `profile`, or of the environment's default if it
    /// is empty.
    pub(super) async fn find(ambient: &Ambient, http: &Client, profile: &str) -> Result<Self, OpenError> {
        let found = if profile.is_empty() {
            ambient.aws(http, None, None).await
        } else {
            ambient.aws_profile(http, profile).await
        };
        Ok(Self {
            endpoint: ambient.aws_kms().map_err(OpenError::Endpoint)?,
            sts: ambient.aws_sts().map_err(OpenError::Endpoint)?,
            credentials: found.map_err(failed)?,
        })
    }

    /// Exchanges the token of a role for its credentials, at the token service in the region of a key; `None` without a role.
    pub(super) async fn of_role(
        role: &dyn AwsRole,
        ambient: Option<&Ambient>,
        http: &Client,
        arn: &str,
    ) -> Result<Option<Self>, OpenError> {
        let Some(token) = role.find().await.map_err(OpenError::Role)? else {
            return Ok(None);
        };
        let region =
            region_of_arn(arn, "kms").ok_or(OpenError::InvalidMaster("its ARN is none of a KMS key"))?;
        let nobody = Ambient::default();
        let ambient = ambient.unwrap_or(&nobody);
        let credentials = ambient.aws_role(http, &token, region).await;
        Ok(Some(Self {
            credentials: credentials.map_err(failed)?,
            endpoint: ambient.aws_kms().map_err(OpenError::Endpoint)?,
            sts: ambient.aws_sts().map_err(OpenError::Endpoint)?,
        }))
    }

    pub(super) async fn open(
        &self,
        http: &Client,
        kind: &MasterKind,
        enc: &str,
    ) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let MasterKind::Aws {
            arn, role, context, ..
        } = kind
        else {
            return Err(OpenError::InvalidMaster("it is no key of AWS"));
        };
        let region =
            region_of_arn(arn, "kms").ok_or(OpenError::InvalidMaster("its ARN is none of a KMS key"))?;
        BASE64_STANDARD
            .decode(enc)
            .map_err(|_| OpenError::InvalidCiphertext("its encrypted key is no base64"))?;
        let assumed;
        let credentials = if role.is_empty() {
            &self.credentials
        } else {
            assumed = self.assume(http, role, region).await?;
            &assumed
        };
        let mut body = json!({"KeyId": arn, "CiphertextBlob": enc});
        if !context.is_empty()
            && let Some(body) = body.as_object_mut()
        {
            body.insert("EncryptionContext".to_owned(), json!(context));
        }
        let url = match &self.endpoint {
            Some(url) => url.clone(),
            None => endpoint("kms", region).map_err(OpenError::Endpoint)?,
        };
        let body = Zeroizing::new(body.to_string());
        let request = Request {
            method: "POST",
            url: &url,
            headers: &[("content-type", JSON), ("x-amz-target", "TrentService.Decrypt")],
            body: body.as_bytes(),
        };
        let sent = http.send_signed(request, credentials, region, "kms").await;
        let key = text(&sent.map_err(failed)?, "/Plaintext")?;
        let key = BASE64_STANDARD.decode(&*key);
        key.map(Zeroizing::new)
            .map_err(|_| OpenError::InvalidAnswer("the service's key is not base64"))
    }

    async fn assume(&self, http: &Client, role: &str, region: &str) -> Result<Credentials, OpenError> {
        let assume = Assume {
            role_arn: role.to_owned(),
            session: SESSION.to_owned(),
            external_id: None,
        };
        let sent = assume.send(http, &self.credentials, region, self.sts.clone());
        sent.await.map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_yaml() {
        let text = "aws_access_key_id: a\naws_secret_access_key: s\naws_session_token: t\n";
        let found = parse(text).unwrap();
        assert_eq!(found.access_key_id, "a");
        assert_eq!(found.session_token, Some(Secret::new("t".to_owned())));
        for text in ["aws_access_key_id: a", "hunter2: [", "hunter2"] {
            let message = parse(text).unwrap_err().to_string();
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}
