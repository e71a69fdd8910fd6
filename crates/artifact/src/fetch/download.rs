//! Downloads a tarball while its digest is computed.

use std::time::Duration;

use api::SafeUrl;
use reqwest::StatusCode;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{
    cache::Cache,
    client::StorageClient,
    tarball::{Tarball, Writer},
};
use crate::{Digest, Error, digest::Hasher};

const FIRST_WAIT: Duration = Duration::from_millis(250);
const LAST_WAIT: Duration = Duration::from_secs(15);

pub(super) struct Wanted<'a> {
    pub(super) url: &'a SafeUrl,
    pub(super) digest: &'a Digest,
    pub(super) limit: u64,
    /// Path in the storage.
    pub(super) path: &'a str,
}

/// Downloads, each time from the start, until it succeeds, fails for good, or the time is over. The tarball has the wanted
/// digest.
pub(super) async fn download(
    client: &StorageClient,
    cache: &Cache,
    wanted: &Wanted<'_>,
    deadline: Duration,
    cancel: &CancellationToken,
) -> Result<Tarball, Error> {
    let end = Instant::now() + deadline;
    let mut wait = FIRST_WAIT;
    let mut last = "nothing was answered".to_owned();
    loop {
        let tried = tokio::select! {
            () = cancel.cancelled() => return Err(interrupted(wanted, last)),
            tried = timeout_at(end, once(client, cache, wanted)) => tried,
        };
        match tried {
            Err(_) => return Err(interrupted(wanted, last)),
            Ok(Err(Try::Again(why))) => last = why,
            Ok(Err(Try::Never(error))) => return Err(error),
            Ok(Ok(tarball)) => return Ok(tarball),
        }
        if Instant::now() + wait >= end {
            return Err(Error::Download {
                url: wanted.url.to_string(),
                why: last,
            });
        }
        tokio::select! {
            () = cancel.cancelled() => return Err(interrupted(wanted, last)),
            () = sleep(wait) => wait = (wait * 2).min(LAST_WAIT),
        }
    }
}

fn interrupted(wanted: &Wanted<'_>, why: String) -> Error {
    Error::Interrupted {
        url: wanted.url.to_string(),
        why,
    }
}

/// Failure of one attempt: retried or final.
enum Try {
    Again(String),
    Never(Error),
}

impl From<Error> for Try {
    fn from(error: Error) -> Self {
        Self::Never(error)
    }
}

async fn once(client: &StorageClient, cache: &Cache, wanted: &Wanted<'_>) -> Result<Tarball, Try> {
    let url = wanted.url.to_string();
    let refused = |error: net::Error| match error {
        net::Error::Refused(_) => Try::Never(Error::Download {
            url: wanted.url.to_string(),
            why: error.to_string(),
        }),
        error => Try::Again(error.to_string()),
    };
    let request = client.request(wanted.url).await?;
    let mut response = client.send(request).await.map_err(refused)?;
    match response.status() {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND | StatusCode::GONE => return Err(Error::NotFound { url }.into()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let why = match client.has_token(wanted.url) {
                true => {
                    "the server refuses the token: see --artifact-token-audience and --artifact-consumers of the source-controller"
                }
                false => "the server wants a token: see --artifact-token-file and --artifact-token-hosts",
            };
            let why = why.to_owned();
            return Err(Error::Download { url, why }.into());
        }
        status if status.is_redirection() => {
            let why = "it redirects, which is not followed".to_owned();
            return Err(Error::Download { url, why }.into());
        }
        status => return Err(Try::Again(format!("the server answered {status}"))),
    }
    let too_large = || Error::TooLarge {
        what: "bytes of a download",
        limit: wanted.limit,
        at: format!(" by '{}'", wanted.url),
    };
    if response.content_length().is_some_and(|len| len > wanted.limit) {
        return Err(too_large().into());
    }
    let mut tarball = Writer::new(cache, wanted.path);
    let mut hasher = Hasher::new(wanted.digest.algorithm());
    let mut size = 0;
    while let Some(bytes) = response.chunk().await.map_err(|error| refused(error.into()))? {
        size += bytes.len() as u64;
        if size > wanted.limit {
            return Err(too_large().into());
        }
        hasher.update(&bytes);
        tarball.write(&bytes).await.map_err(|error| match error {
            // The space of unused artifacts is free at once, and other space may be soon.
            Error::NoSpace => {
                cache.evict_unused();
                Try::Again(error.to_string())
            }
            error => Try::Never(error),
        })?;
    }
    if hasher.finish() != *wanted.digest {
        let wanted = wanted.digest.to_string();
        return Err(Error::DigestMismatch { url, wanted }.into());
    }
    Ok(tarball.finish().await?)
}
