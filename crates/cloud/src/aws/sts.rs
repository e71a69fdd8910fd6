//! Credentials of a role, from the security token service.

use api::Secret;
use url::Url;

use super::{Credentials, endpoint};
use crate::{
    Error, TokenRequest,
    http::{Client, Request},
    token::shortened,
};

const SERVICE: &str = "AWS STS";
const VERSION: &str = "2011-06-15";

#[derive(Debug, Clone)]
pub struct WebIdentity {
    pub role_arn: String,
    pub session: String,
    pub token: Secret<String>,
}

/// Exchanges credentials for a role's credentials. The request is signed, with service `sts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assume {
    pub role_arn: String,
    pub session: String,
    pub external_id: Option<String>,
}

/// Exchanges an LDAP username and password for temporary credentials, as MinIO's token service does. The request is not signed.
#[derive(Debug, Clone)]
pub struct LdapIdentity {
    pub username: String,
    pub password: Secret<String>,
}

impl LdapIdentity {
    #[must_use]
    pub fn request(&self, at: Url) -> TokenRequest {
        TokenRequest::new(
            at,
            &[
                ("Action", "AssumeRoleWithLDAPIdentity"),
                ("Version", VERSION),
                ("LDAPUsername", &self.username),
                ("LDAPPassword", self.password.expose()),
            ],
        )
    }

    pub async fn send(&self, client: &Client, at: Url) -> Result<Credentials, Error> {
        let answer = client
            .form(&self.request(at), &[("accept", "application/xml")])
            .await?;
        Credentials::from_answer(&answer.body)
    }
}

impl WebIdentity {
    /// Returns the form to send, to `at` or to the region's endpoint.
    pub fn request(&self, region: &str, at: Option<Url>) -> Result<TokenRequest, Error> {
        let url = at.map_or_else(|| endpoint("sts", region), Ok)?;
        Ok(TokenRequest::new(
            url,
            &[
                ("Action", "AssumeRoleWithWebIdentity"),
                ("RoleArn", &self.role_arn),
                ("RoleSessionName", &self.session),
                ("WebIdentityToken", self.token.expose()),
                ("Version", VERSION),
            ],
        ))
    }
}

impl Assume {
    pub fn request(&self, region: &str, at: Option<Url>) -> Result<TokenRequest, Error> {
        let url = at.map_or_else(|| endpoint("sts", region), Ok)?;
        let mut fields = vec![
            ("Action", "AssumeRole"),
            ("RoleArn", self.role_arn.as_str()),
            ("RoleSessionName", self.session.as_str()),
            ("Version", VERSION),
        ];
        if let Some(id) = &self.external_id {
            fields.push(("ExternalId", id));
        }
        Ok(TokenRequest::new(url, &fields))
    }

    pub async fn send(
        &self,
        client: &Client,
        credentials: &Credentials,
        region: &str,
        at: Option<Url>,
    ) -> Result<Credentials, Error> {
        let form = self.request(region, at)?;
        let request = Request {
            method: "POST",
            url: &form.url,
            headers: &[("content-type", "application/x-www-form-urlencoded; charset=utf-8")],
            body: form.body.expose().as_bytes(),
        };
        let answer = client.send_signed(request, credentials, region, "sts").await?;
        Credentials::from_answer(&answer.body)
    }
}

impl Credentials {
    /// Reads the answer to a form of this module, whatever its status. Its values are base64 or words, which need no
    /// escapes in XML.
    pub fn from_answer(body: &[u8]) -> Result<Self, Error> {
        let text = String::from_utf8_lossy(body);
        let within = |name: &str| {
            let (_, behind) = text.split_once(&format!("<{name}>"))?;
            let (value, _) = behind.split_once(&format!("</{name}>"))?;
            Some(value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let parts = (
            within("AccessKeyId"),
            within("SecretAccessKey"),
            within("SessionToken"),
        );
        if let (Some(access_key_id), Some(secret), token) = parts {
            return Ok(Self {
                access_key_id,
                secret_access_key: Secret::new(secret),
                session_token: token.map(Secret::new),
            });
        }
        match within("Code") {
            Some(code) => Err(Error::Refused {
                service: SERVICE,
                why: shortened(&format!("{code}: {}", within("Message").unwrap_or_default())),
            }),
            None => Err(Error::Answer {
                service: SERVICE,
                why: "it holds no credentials",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_asked_for_by_forms() {
        let ask = WebIdentity {
            role_arn: "arn:aws:iam::1:role/r".to_owned(),
            session: "weir".to_owned(),
            token: Secret::new("a.b".to_owned()),
        };
        let request = ask.request("eu-central-1", None).unwrap();
        assert_eq!(request.url.as_str(), "https://sts.eu-central-1.amazonaws.com/");
        assert_eq!(
            request.body.expose(),
            "Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=weir&\
             WebIdentityToken=a.b&Version=2011-06-15"
        );
        assert!(!format!("{ask:?}").contains("a.b"));
        let china = ask.request("cn-north-1", None).unwrap();
        assert_eq!(china.url.as_str(), "https://sts.cn-north-1.amazonaws.com.cn/");
    }

    #[test]
    fn users_of_ldap_send_their_password_in_the_form() {
        let user = LdapIdentity {
            username: "me".to_owned(),
            password: Secret::new("p&w".to_owned()),
        };
        let request = user.request(Url::parse("https://minio.test/").unwrap());
        assert_eq!(
            request.body.expose(),
            "Action=AssumeRoleWithLDAPIdentity&Version=2011-06-15&LDAPUsername=me&LDAPPassword=p%26w"
        );
        assert!(!format!("{user:?}").contains("p&w"));
    }

    #[test]
    fn answers_hold_credentials_or_say_why_not() {
        let body = "<AssumeRoleResponse><Credentials><SessionToken> t== </SessionToken><SecretAccessKey>s</SecretAccessKey>\
                    <AccessKeyId>ASIA</AccessKeyId></Credentials></AssumeRoleResponse>";
        let credentials = Credentials::from_answer(body.as_bytes()).unwrap();
        assert_eq!(credentials.access_key_id, "ASIA");
        assert_eq!(credentials.secret_access_key.expose(), "s");
        assert_eq!(credentials.session_token, Some(Secret::new("t==".to_owned())));
        let refused = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not you</Message></Error></ErrorResponse>";
        assert_eq!(
            Credentials::from_answer(refused.as_bytes())
                .unwrap_err()
                .to_string(),
            "AWS STS refused the credentials: AccessDenied: Not you"
        );
        assert!(Credentials::from_answer(b"\xff").is_err());
    }
}
