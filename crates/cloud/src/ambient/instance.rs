//! Credentials from the metadata service of the machine or the container.
//!
//! These services have link-local addresses, which projects must not use. Only this file sends requests to them, without
//! proxies and redirects, to the constant addresses below or to addresses from the program's own environment.

use std::time::Duration;

use net::{AddressPolicy, ClientOptions, Proxies, Timeouts, read_body};
use reqwest::{
    Method, Request,
    header::{HeaderName, HeaderValue},
};
use url::{Host, Url};

use super::{Ambient, read};
use crate::{Error, Token, aws, azure, gcp, http::address};

const CONNECT: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_ANSWER_BYTES: u64 = 64 << 10;
const MACHINE: &str = "http://169.254.169.254";
const CONTAINER: &str = "http://169.254.170.2";

/// Sends a request. `None` without an answer, or if its status is not a success.
async fn ask(method: Method, url: Url, headers: &[(&str, &str)]) -> Option<Vec<u8>> {
    let options = ClientOptions {
        timeouts: Timeouts {
            connect: CONNECT,
            read: None,
            total: Some(TIMEOUT),
        },
        proxies: Proxies::Direct,
        ..ClientOptions::new(AddressPolicy::unrestricted())
    };
    let mut request = Request::new(method, url);
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        request
            .headers_mut()
            .insert(name, HeaderValue::from_str(value).ok()?);
    }
    let mut response = options.build().ok()?.send(request).await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    read_body(&mut response, MAX_ANSWER_BYTES).await.ok()
}

impl Ambient {
    /// Returns the address of the machine's service, which a variable may replace. `None` if the machine must not be asked.
    fn metadata_url(&self, variable: &str) -> Result<Option<Url>, Error> {
        match self.get(variable) {
            Some(text) if text.contains("://") => address(text).map(Some),
            Some(host) => address(&format!("http://{host}")).map(Some),
            None if self.instance => address(MACHINE).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the credentials of the container's role. `None` if no variable names their service. If that service fails, the
    /// machine is not used instead: it has another role.
    pub(super) async fn aws_container(&self) -> Result<Option<aws::Credentials>, Error> {
        let url = match (
            self.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
            self.get("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
        ) {
            (Some(path), _) if path.starts_with('/') => address(&format!("{CONTAINER}{path}"))?,
            (None, Some(text)) => address(text)?,
            _ => return Ok(None),
        };
        if !is_own(&url) {
            return Err(Error::Address {
                url: crate::http::safe_url(&url),
                why: "a container is told its role by https, or by its own machine".to_owned(),
            });
        }
        let token = match self.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            Some(file) => Some(read(file.as_ref())?),
            None => self.get("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(str::to_owned),
        };
        let headers: Vec<(&str, &str)> = token
            .iter()
            .map(|token| ("authorization", token.trim()))
            .collect();
        match ask(Method::GET, url, &headers).await {
            Some(body) => Ok(Some(aws::Credentials::from_metadata(&body)?)),
            None => Err(Error::NoCredentials {
                service: "AWS",
                hint: "the service that AWS_CONTAINER_CREDENTIALS_* names tells no role",
            }),
        }
    }

    /// Returns the credentials of the machine's role, by the second version of its service.
    pub(super) async fn aws_instance(&self) -> Result<Option<aws::Credentials>, Error> {
        let is_off = self
            .get("AWS_EC2_METADATA_DISABLED")
            .is_some_and(|off| off.eq_ignore_ascii_case("true"));
        let Some(url) = self
            .metadata_url("AWS_EC2_METADATA_SERVICE_ENDPOINT")?
            .filter(|_| !is_off)
        else {
            return Ok(None);
        };
        let at = |path: &str| url.join(path).ok();
        let text = async |method, path: &str, headers: &[(&str, &str)]| {
            let body = ask(method, at(path)?, headers).await?;
            String::from_utf8(body).ok()
        };
        let lifetime = [("x-aws-ec2-metadata-token-ttl-seconds", "300")];
        let Some(token) = text(Method::PUT, "/latest/api/token", &lifetime).await else {
            return Ok(None);
        };
        let known = [("x-aws-ec2-metadata-token", token.trim())];
        let roles = "/latest/meta-data/iam/security-credentials/";
        let Some(role) = text(Method::GET, roles, &known).await else {
            return Ok(None);
        };
        let role = role.lines().next().unwrap_or_default().trim();
        match text(Method::GET, &format!("{roles}{role}"), &known).await {
            Some(body) => Ok(Some(aws::Credentials::from_metadata(body.as_bytes())?)),
            None => Ok(None),
        }
    }

    /// Returns a token of the machine's service account, or of the workload's account in a cluster that assigns one.
    pub(super) async fn gcp_instance(&self) -> Result<Option<Token>, Error> {
        let Some(url) = self.metadata_url("GCE_METADATA_HOST")? else {
            return Ok(None);
        };
        let path = format!(
            "/computeMetadata/v1/instance/service-accounts/default/token?scopes={}",
            gcp::SCOPE
        );
        let Ok(url) = url.join(&path) else {
            return Ok(None);
        };
        match ask(Method::GET, url, &[("metadata-flavor", "Google")]).await {
            Some(body) => Ok(Some(Token::from_answer(gcp::SERVICE, &body)?)),
            None => Ok(None),
        }
    }

    /// Returns the pool of workload identities of the machine's cluster: the audience of tokens of service accounts, and the
    /// audience of their exchange. `None` outside of Google Cloud.
    pub(crate) async fn gke_pool(&self) -> Result<Option<(String, String)>, Error> {
        let Some(url) = self.metadata_url("GCE_METADATA_HOST")? else {
            return Ok(None);
        };
        let text = async |path: &str| {
            let url = url.join(&format!("/computeMetadata/v1/{path}")).ok()?;
            let body = ask(Method::GET, url, &[("metadata-flavor", "Google")]).await?;
            let text = String::from_utf8(body).ok()?.trim().to_owned();
            Some(text).filter(|text| !text.is_empty())
        };
        let Some(project) = text("project/project-id").await else {
            return Ok(None);
        };
        let (location, name) = (
            text("instance/attributes/cluster-location").await,
            text("instance/attributes/cluster-name").await,
        );
        let (Some(location), Some(name)) = (location, name) else {
            return Ok(None);
        };
        let cluster = format!(
            "https://container.googleapis.com/v1/projects/{project}/locations/{location}/clusters/{name}"
        );
        let audience = format!("{project}.svc.id.goog");
        let provider = format!("identitynamespace:{audience}:{cluster}");
        Ok(Some((audience, provider)))
    }

    /// Returns a token of the managed identity of the machine or the app.
    pub(super) async fn azure_instance(&self, scope: &str) -> Result<Option<Token>, Error> {
        let resource = scope.trim_end_matches("/.default");
        let mut query = vec![("resource", resource)];
        query.extend(self.get("AZURE_CLIENT_ID").map(|id| ("client_id", id)));
        let (mut url, version, header) = match (self.get("IDENTITY_ENDPOINT"), self.get("IDENTITY_HEADER")) {
            (Some(at), Some(secret)) => (address(at)?, "2019-08-01", ("x-identity-header", secret)),
            _ => match self.metadata_url("AZURE_POD_IDENTITY_AUTHORITY_HOST")? {
                Some(mut url) => {
                    url.set_path("/metadata/identity/oauth2/token");
                    (url, "2018-02-01", ("metadata", "true"))
                }
                None => return Ok(None),
            },
        };
        query.push(("api-version", version));
        url.query_pairs_mut().extend_pairs(query);
        match ask(Method::GET, url, &[header]).await {
            Some(body) => Ok(Some(Token::from_answer(azure::SERVICE, &body)?)),
            None => Ok(None),
        }
    }
}

/// Returns true if a container may get its role from this address: `https`, loopback, or an agent of AWS.
fn is_own(url: &Url) -> bool {
    let own_v6 = "fd00:ec2::23".parse::<std::net::Ipv6Addr>();
    url.scheme() == "https"
        || match url.host() {
            Some(Host::Ipv4(ip)) => ip.is_loopback() || matches!(ip.octets(), [169, 254, 170, 2 | 23]),
            Some(Host::Ipv6(ip)) => ip.is_loopback() || own_v6 == Ok(ip),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_roles_are_read_from_the_own_machine_only() {
        for (url, expected) in [
            ("http://169.254.170.23/v1/credentials", true),
            ("http://169.254.170.2/x", true),
            ("http://[fd00:ec2::23]/v1/credentials", true),
            ("http://127.0.0.1:1/", true),
            ("https://h/x", true),
            ("http://169.254.169.254/", false),
            ("http://h/x", false),
        ] {
            assert_eq!(is_own(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
