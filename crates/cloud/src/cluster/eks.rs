//! Elastic Kubernetes Service. The token of an API server is a signed request for the identity of the caller, which the server sends itself.

use api::Secret;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::Timestamp;
use url::Url;

use super::{Location, is_part, object, text};
use crate::{
    Error, Identity, Token,
    aws::{Credentials, endpoint, is_region, presign},
    http::{Client, Request},
};

const SERVICE: &str = "Amazon EKS";
pub(super) const FORM: &str = "arn:aws:eks:REGION:ACCOUNT:cluster/NAME";
const TOKEN_PREFIX: &str = "k8s-aws-v1.";
/// Header with the name of the cluster, which is signed.
const CLUSTER: &str = "x-k8s-aws-id";
/// Lifetime of a token in seconds: the one that API servers accept.
const LIFETIME: u64 = 900;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Eks {
    region: String,
    name: String,
}

impl Eks {
    pub(super) fn parse(arn: &str) -> Option<Self> {
        let parts: Vec<&str> = arn.split(':').collect();
        let ["arn", partition, "eks", region, account, resource] = parts.as_slice() else {
            return None;
        };
        let name = resource.strip_prefix("cluster/")?;
        let is_account = !account.is_empty() && account.bytes().all(|byte| byte.is_ascii_digit());
        let is_valid = partition.starts_with("aws") && is_region(region) && is_account && is_part(name, "-_");
        is_valid.then(|| Self {
            region: (*region).to_owned(),
            name: name.to_owned(),
        })
    }

    pub(super) async fn token(&self, client: &Client, identity: Identity<'_>) -> Result<Token, Error> {
        let credentials = identity.aws(client, &self.region).await?;
        let at = identity.ambient.aws_sts()?;
        let access = self.signed(&credentials, at, Timestamp::now())?;
        Ok(Token {
            access,
            expires_in: LIFETIME,
        })
    }

    fn signed(
        &self,
        credentials: &Credentials,
        at: Option<Url>,
        now: Timestamp,
    ) -> Result<Secret<String>, Error> {
        let mut url = at.map_or_else(|| endpoint("sts", &self.region), Ok)?;
        url.query_pairs_mut()
            .append_pair("Action", "GetCallerIdentity")
            .append_pair("Version", "2011-06-15");
        let headers = [(CLUSTER, self.name.as_str())];
        let request = Request {
            method: "GET",
            url: &url,
            headers: &headers,
            body: b"",
        };
        let signed = presign(request, credentials, (&self.region, "sts"), now, LIFETIME)?;
        let encoded = BASE64_URL_SAFE_NO_PAD.encode(signed.expose());
        Ok(Secret::new(format!("{TOKEN_PREFIX}{encoded}")))
    }

    pub(super) async fn locate(&self, client: &Client, identity: Identity<'_>) -> Result<Location, Error> {
        let credentials = identity.aws(client, &self.region).await?;
        let at = identity.ambient.aws_eks()?;
        let url = at.map_or_else(|| endpoint("eks", &self.region), Ok)?;
        let url = url
            .join(&format!("clusters/{}", self.name))
            .map_err(|_| Error::Endpoint {
                url: api::redact(url.as_str()),
                why: "it can have no path",
            })?;
        let request = Request {
            method: "GET",
            url: &url,
            headers: &[],
            body: b"",
        };
        let answer = client.send_signed(request, &credentials, &self.region, "eks");
        let answer = answer.await?;
        let found = object(SERVICE, answer.status, &answer.body)?;
        Ok(Location::Endpoint {
            address: text(SERVICE, &found, "/cluster/endpoint")?.to_owned(),
            authority: text(SERVICE, &found, "/cluster/certificateAuthority/data")?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use testkit::{Page, WebServer};

    use super::*;
    use crate::{Ambient, http::Settings};

    fn cluster() -> Eks {
        Eks::parse("arn:aws:eks:eu-west-1:1:cluster/shop").unwrap()
    }

    #[test]
    fn tokens_are_signed_requests_for_the_identity() {
        let credentials = Credentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned()),
            session_token: Some(Secret::new("a+b/c=".to_owned())),
        };
        let now = "2015-08-30T12:36:00Z".parse().unwrap();
        let token = cluster().signed(&credentials, None, now).unwrap();
        let encoded = token.expose().strip_prefix(TOKEN_PREFIX).unwrap();
        let url = BASE64_URL_SAFE_NO_PAD.decode(encoded).unwrap();
        assert_eq!(
            String::from_utf8(url).unwrap(),
            include_str!("../../fixtures/eks.url").trim()
        );
    }

    #[tokio::test]
    async fn the_service_names_the_address_and_the_certificates() {
        let server = WebServer::start().unwrap();
        let answer =
            r#"{"cluster":{"endpoint":"https://A.eks.test","certificateAuthority":{"data":"cGVt"}}}"#;
        server.page("/clusters/shop", Page::Content(answer.into()));
        let variables = [
            ("AWS_ACCESS_KEY_ID", "AKID".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "s3cret".to_owned()),
            ("AWS_ENDPOINT_URL_EKS", server.url("/")),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value));
        let ambient = Ambient::new(variables);
        let identity = Identity {
            ambient: &ambient,
            workload: None,
        };
        let client = Client::new(Settings::default()).unwrap();
        let found = cluster().locate(&client, identity).await.unwrap();
        let expected = Location::Endpoint {
            address: "https://A.eks.test".to_owned(),
            authority: "cGVt".to_owned(),
        };
        assert_eq!(found, expected);
        let signed = server.asked()[0].authorization.clone().unwrap();
        assert!(signed.contains("/eu-west-1/eks/aws4_request"), "{signed}");
    }
}
