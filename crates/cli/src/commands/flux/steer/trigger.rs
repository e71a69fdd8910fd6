//! `weir trigger receiver`: sends a webhook to a Receiver, as its sender would.

mod actions_token;

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Subcommand};
use net::{AddressPolicy, Client, ClientOptions, Timeouts};
use reqwest::{
    Method, Request, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderValue},
};
use ring::{digest, hmac};
use tokio::runtime::Runtime;

use crate::{
    commands::flux::FluxFlags, deferred::Deferred, flags::duration, terminal::Terminal, usage::boolean_flag,
};
use actions_token::ActionsToken;

const GENERIC: &str = "generic";
const HMAC: &str = "generic-hmac";
const OIDC: &str = "generic-oidc";
const AUTHORIZATION: &str = "authorization";
const SIGNATURE: &str = "x-signature";
/// The variable with the token of an OpenID Connect provider.
const OIDC_TOKEN: &str = "FLUX_TRIGGER_RECEIVER_OIDC_TOKEN";
const AUDIENCE: &str = "notification-controller";
/// Timeout of a request: the controller does the work while it is open.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of a body that the controller accepts, in bytes.
const PAYLOAD: usize = 3 << 20;

const EXAMPLES: &str = "Examples:
  # A Receiver of the type generic
  weir trigger receiver my-receiver --token=my-token --url=https://flux-webhook.example.com

  # With a signature
  weir trigger receiver my-receiver \\
    --type=generic-hmac \\
    --token=my-token \\
    --url=https://flux-webhook.example.com

  # With the OpenID Connect token of a job on GitHub, which needs the permission id-token: write
  weir trigger receiver my-receiver \\
    --type=generic-oidc \\
    --oidc-provider=github \\
    --url=https://flux-webhook.example.com

  # With the token of a job on GitLab, in $FLUX_TRIGGER_RECEIVER_OIDC_TOKEN
  weir trigger receiver my-receiver \\
    --type=generic-oidc \\
    --url=https://flux-webhook.example.com";

/// Subcommands of `weir trigger`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Send a webhook to a Receiver
    Receiver(Deferred<ReceiverArgs>),
}

/// Send a webhook to a Receiver
///
/// No access to the cluster is needed: the path is computed of the token, name and namespace of the Receiver. Requests are repeated if the
/// server can't be reached, does not know the Receiver yet, or is overloaded.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct ReceiverArgs {
    /// Name of the Receiver
    #[arg(value_name = "NAME")]
    name: String,
    /// Token of the Receiver
    #[arg(long, value_name = "TOKEN", default_value = "", hide_default_value = true)]
    token: String,
    /// Address of the webhook server; may have a path, below which the path of the webhook is
    #[arg(long, value_name = "URL")]
    url: Url,
    /// Type of the Receiver
    #[arg(long = "type", value_name = "NAME", default_value = GENERIC, value_parser = [GENERIC, HMAC, OIDC])]
    type_: String,
    /// Service that makes the token of the job, for the type generic-oidc
    #[arg(long, value_name = "NAME", value_parser = ["github", "forgejo"], conflicts_with = "oidc_token")]
    oidc_provider: Option<String>,
    /// Token for the type generic-oidc; $FLUX_TRIGGER_RECEIVER_OIDC_TOKEN by default
    #[arg(long, value_name = "TOKEN")]
    oidc_token: Option<String>,
    /// Audience of the token of --oidc-provider
    #[arg(long, value_name = "AUDIENCE", default_value = AUDIENCE)]
    oidc_audience: String,
    /// Body of the webhook
    #[arg(long, value_name = "JSON", default_value = "{}")]
    payload: String,
    /// Number of further attempts
    #[arg(long, value_name = "COUNT", default_value = "10")]
    retries: u32,
    /// Pause between two attempts
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    retry_delay: Duration,
    #[command(flatten)]
    flux: FluxFlags,
}

pub(crate) fn run(command: &Command) -> Result<()> {
    let Command::Receiver(args) = command;
    let namespace = args.flux.namespace()?;
    let name = format!("{namespace}/{}", args.name);
    let url = args.webhook(&namespace)?;
    let terminal = Terminal::new(false, false);
    let runtime = Runtime::new().context("start the async runtime")?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = ClientOptions {
        timeouts: Timeouts {
            connect: TIMEOUT,
            read: Some(TIMEOUT),
            total: Some(TIMEOUT),
        },
        ..ClientOptions::new(AddressPolicy::command_line())
    };
    let client = options.build()?;
    let work = async {
        let header = args.header(&client).await?;
        let webhook = Webhook { client, url, header };
        terminal.plain(&format!("► triggering Receiver {name}"));
        webhook.deliver(args, &terminal).await
    };
    let delivered = runtime.block_on(async { tokio::time::timeout(args.flux.timeout, work).await });
    delivered.context("context deadline exceeded")??;
    terminal.plain(&format!("✔ Receiver {name} triggered"));
    Ok(())
}

impl ReceiverArgs {
    /// Checks the flags, and returns the URL of the webhook, which is a secret.
    fn webhook(&self, namespace: &str) -> Result<Url> {
        ensure!(
            ["http", "https"].contains(&self.url.scheme()) && self.url.query().is_none(),
            "--url must be an http or https address without a query"
        );
        ensure!(
            self.payload.len() <= PAYLOAD,
            "the payload is larger than {PAYLOAD} bytes"
        );
        let (is_oidc, type_) = (self.type_ == OIDC, &self.type_);
        let has_oidc = self.oidc_provider.is_some() || self.oidc_token.is_some();
        ensure!(
            is_oidc || !self.token.is_empty(),
            "--token is required for --type={type_}"
        );
        ensure!(
            is_oidc || !has_oidc,
            "--oidc-provider and --oidc-token can only be set for --type={OIDC}"
        );
        ensure!(
            !is_oidc || self.token.is_empty(),
            "--token must not be set for --type={OIDC}, the Receiver of this type has no secret"
        );
        let base = self.url.path().trim_end_matches('/').to_owned();
        let mut url = self.url.clone();
        url.set_path(&format!("{base}{}", path(&self.token, &self.name, namespace)));
        Ok(url)
    }

    /// Returns the header that proves the sender.
    async fn header(&self, client: &Client) -> Result<Option<(&'static str, HeaderValue)>> {
        match self.type_.as_str() {
            HMAC => {
                let signature = signature(&self.token, self.payload.as_bytes());
                Ok(Some((SIGNATURE, secret(&signature)?)))
            }
            OIDC => {
                let token = self.job_token(client).await?;
                Ok(Some((AUTHORIZATION, secret(&format!("Bearer {token}"))?)))
            }
            _ => Ok(None),
        }
    }

    async fn job_token(&self, client: &Client) -> Result<String> {
        if self.oidc_provider.is_some() {
            return ActionsToken::from_environment()?
                .fetch(client, &self.oidc_audience)
                .await;
        }
        let token = match &self.oidc_token {
            Some(token) => token.clone(),
            None => std::env::var(OIDC_TOKEN).unwrap_or_default(),
        };
        ensure!(
            !token.is_empty(),
            "no OIDC token provided: set --oidc-provider, --oidc-token or ${OIDC_TOKEN}"
        );
        Ok(token)
    }
}

/// The request to a webhook server.
struct Webhook {
    client: Client,
    url: Url,
    header: Option<(&'static str, HeaderValue)>,
}

/// The outcome of a request.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Delivered,
    /// A later attempt may succeed.
    Failed(String),
    Refused(String),
}

impl Webhook {
    /// Sends the request until it is accepted.
    ///
    /// # Errors
    /// If it is refused, or all attempts failed.
    async fn deliver(&self, args: &ReceiverArgs, terminal: &Terminal) -> Result<()> {
        let (retries, delay) = (args.retries, args.retry_delay);
        for attempt in 1.. {
            match self.send(&args.payload).await {
                Outcome::Delivered => break,
                Outcome::Refused(why) => bail!("the webhook was refused: {why}"),
                Outcome::Failed(why) if attempt > retries => {
                    bail!("the webhook could not be delivered: {why}")
                }
                Outcome::Failed(why) => {
                    terminal.plain(&format!("◎ {why}; retrying in {delay:?} ({attempt}/{retries})"));
                    tokio::time::sleep(delay).await;
                }
            }
        }
        Ok(())
    }

    async fn send(&self, payload: &str) -> Outcome {
        let mut request = Request::new(Method::POST, self.url.clone());
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some((name, value)) = &self.header {
            headers.insert(*name, value.clone());
        }
        *request.body_mut() = Some(payload.to_owned().into());
        match self.client.send(request).await {
            Ok(answer) => outcome(answer.status()),
            // The path is a secret.
            Err(net::Error::Refused(why)) => Outcome::Refused(why.to_string()),
            Err(error) => Outcome::Failed(self.without_path(&error.to_string())),
        }
    }

    fn without_path(&self, message: &str) -> String {
        message.replace(self.url.path(), "/hook/***")
    }
}

/// Decides about the next step. Pure.
fn outcome(status: StatusCode) -> Outcome {
    let message = format!("HTTP status {status}");
    match status {
        status if status.is_success() => Outcome::Delivered,
        StatusCode::NOT_FOUND => Outcome::Failed(format!(
            "{message}: there is no Receiver with this token, name and namespace"
        )),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Outcome::Failed(message),
        status if status.is_server_error() => Outcome::Failed(message),
        StatusCode::BAD_REQUEST => Outcome::Refused(format!(
            "{message}: the signature, the token or the event is invalid for the type of the Receiver"
        )),
        _ => Outcome::Refused(message),
    }
}

/// Returns the path of a Receiver.
pub(super) fn path(token: &str, name: &str, namespace: &str) -> String {
    let text = format!("{token}{name}{namespace}");
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    format!("/hook/{}", hex::encode(digest.as_ref()))
}

fn signature(token: &str, payload: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes());
    format!("sha256={}", hex::encode(hmac::sign(&key, payload).as_ref()))
}

fn secret(text: &str) -> Result<HeaderValue> {
    let mut value =
        HeaderValue::from_str(text).context("the token has characters that no header may have")?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_decide_about_further_attempts() {
        let failed = |code: u16| match outcome(StatusCode::from_u16(code).unwrap()) {
            Outcome::Delivered => "delivered",
            Outcome::Failed(_) => "failed",
            Outcome::Refused(_) => "refused",
        };
        for (code, expected) in [
            (200, "delivered"),
            (204, "delivered"),
            (301, "refused"),
            (400, "refused"),
            (401, "refused"),
            (404, "failed"),
            (408, "failed"),
            (413, "refused"),
            (429, "failed"),
            (500, "failed"),
            (503, "failed"),
        ] {
            assert_eq!(failed(code), expected, "{code}");
        }
    }

    #[test]
    fn signatures_are_the_ones_of_the_receiver() {
        // RFC 4231, test case 2.
        assert_eq!(
            signature("Jefe", b"what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
