//! The OpenID Connect tokens of jobs on GitHub and Forgejo.

use anyhow::{Context as _, Result, bail};
use net::Client;
use reqwest::{
    Method, Request, Url,
    header::{ACCEPT, AUTHORIZATION, HeaderValue},
};
use serde_json::Value as Json;

const URL: &str = "ACTIONS_ID_TOKEN_REQUEST_URL";
const TOKEN: &str = "ACTIONS_ID_TOKEN_REQUEST_TOKEN";
/// Maximum size of an answer, in bytes.
const ANSWER: u64 = 1 << 20;

/// The endpoint that makes tokens for a job.
pub(super) struct ActionsToken {
    url: Url,
    authorization: HeaderValue,
}

impl ActionsToken {
    /// # Errors
    /// If the process does not run in a job that may have tokens.
    pub(super) fn from_environment() -> Result<Self> {
        let variable = |name: &str| {
            let value = std::env::var(name).ok().filter(|value| !value.is_empty());
            value.with_context(|| format!("${name} is not set: the job needs the permission id-token: write"))
        };
        let url = variable(URL)?.parse().with_context(|| format!("${URL}"))?;
        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", variable(TOKEN)?))
            .with_context(|| format!("${TOKEN} has characters that no header may have"))?;
        authorization.set_sensitive(true);
        Ok(Self { url, authorization })
    }

    /// Asks for a token for an audience.
    ///
    /// # Errors
    /// If the service refuses, or can't be reached.
    pub(super) async fn fetch(&self, client: &Client, audience: &str) -> Result<String> {
        let mut url = self.url.clone();
        url.query_pairs_mut().append_pair("audience", audience);
        let mut request = Request::new(Method::GET, url);
        let headers = request.headers_mut();
        headers.insert(AUTHORIZATION, self.authorization.clone());
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let failed = "the token of the job can't be fetched";
        let mut answer = client.send(request).await.context(failed)?;
        let status = answer.status();
        if !status.is_success() {
            bail!("{failed}: HTTP status {status}");
        }
        let body = net::read_body(&mut answer, ANSWER).await.context(failed)?;
        let body: Json = serde_json::from_slice(&body)
            .ok()
            .context("the answer of the token service is not JSON")?;
        let token = body.get("value").and_then(Json::as_str).unwrap_or_default();
        match token {
            "" => bail!("{failed}: the answer has no token"),
            token => Ok(token.to_owned()),
        }
    }
}
