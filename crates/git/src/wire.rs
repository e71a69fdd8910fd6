//! Requests of one session: sent with the right credentials, redirected with care, and ended by one deadline.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use net::{Client, Need};
use parking_lot::Mutex;
use reqwest::{Response, StatusCode, header::LOCATION};
use url::Url;

use crate::{
    Error, Remote, announced::Announcement, clock::Clock, intake::Intake, listing::Recorder,
    remote::safe_url, request::Request,
};

const MAX_REDIRECTS: usize = 5;
/// Timeout for the end of an answer that is not read any more.
const END: Duration = Duration::from_secs(1);

pub(crate) struct Wire {
    client: Client,
    remote: Remote,
    clock: Clock,
    intake: Arc<Intake>,
    pub(crate) announcement: Arc<Announcement>,
    pub(crate) recorder: Arc<Recorder>,
    base: Mutex<Option<String>>,
}

impl Wire {
    pub(crate) fn new(
        client: Client,
        (announcement, recorder): (Arc<Announcement>, Arc<Recorder>),
        intake: Arc<Intake>,
        remote: Remote,
        clock: Clock,
    ) -> Self {
        Self {
            client,
            remote,
            clock,
            intake,
            announcement,
            recorder,
            base: Mutex::default(),
        }
    }

    pub(crate) fn fail(&self, error: Error) -> io::Error {
        self.intake.fail(error)
    }

    pub(crate) fn redirected(&self) -> Option<String> {
        self.base.lock().clone()
    }

    pub(crate) fn send(&self, request: &Request) -> Result<Response, Error> {
        self.intake.begin()?;
        let mut url = self.parse(&request.url)?;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send_once(request, &url)?;
            let Some(target) = self.redirect(request, &url, &response)? else {
                self.check_status(&url, response.status())?;
                if url.as_str() != request.url {
                    let base = url.as_str().strip_suffix(request.tail()).unwrap_or(url.as_str());
                    *self.base.lock() = Some(base.to_owned());
                    // Later requests go there only after this answer.
                    self.announcement.discard();
                }
                return Ok(response);
            };
            url = target;
        }
        Err(self.redirect_error(&url, "it is one redirect too many"))
    }

    fn send_once(&self, request: &Request, url: &Url) -> Result<Response, Error> {
        // The target of a redirect is not used for later sessions.
        if request.post && self.base.lock().is_none() {
            self.recorder.begin(request, url);
        }
        let sent = request.to(url, &self.remote);
        self.clock
            .wait(self.client.send(sent))?
            .map_err(|error| self.classify(url, &error))
    }

    fn redirect(&self, request: &Request, from: &Url, response: &Response) -> Result<Option<Url>, Error> {
        if !response.status().is_redirection() || response.status() == StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        let location = response
            .headers()
            .get(LOCATION)
            .and_then(|value| value.to_str().ok());
        let Some(target) = location.and_then(|location| from.join(location).ok()) else {
            return Err(self.redirect_error(from, "it names no usable location"));
        };
        if request.post {
            return Err(self.redirect_error(&target, "only the first request may be redirected"));
        }
        if !matches!(target.scheme(), "http" | "https")
            || (from.scheme(), target.scheme()) == ("https", "http")
        {
            return Err(self.redirect_error(&target, "it leaves https"));
        }
        if !target.as_str().ends_with(request.tail()) {
            return Err(self.redirect_error(&target, "no Git repository is there; use its real URL"));
        }
        Ok(Some(target))
    }

    fn redirect_error(&self, to: &Url, why: &str) -> Error {
        Error::Redirect {
            url: self.remote.safe_url(),
            to: safe_url(to),
            why: why.to_owned(),
        }
    }

    fn parse(&self, url: &str) -> Result<Url, Error> {
        Url::parse(url).map_err(|error| Error::InvalidUrl {
            url: self.remote.safe_url(),
            why: error.to_string(),
        })
    }

    fn check_status(&self, target: &Url, status: StatusCode) -> Result<(), Error> {
        let url = self.remote.safe_url();
        let why = match status {
            status if status.is_success() => return Ok(()),
            StatusCode::UNAUTHORIZED => {
                let (why, need) = self.why_unauthorized(target);
                return Err(Error::AuthenticationFailed { url, why, need });
            }
            StatusCode::FORBIDDEN => {
                let why = "the server forbids access (403): check the rights of the user or token".to_owned();
                let need = None;
                return Err(Error::AuthenticationFailed { url, why, need });
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => return Err(Error::NotFound { url }),
            StatusCode::TOO_MANY_REQUESTS => "too many requests",
            status if status.is_server_error() => "the server has a problem; it will be asked again",
            _ => "check the URL",
        };
        Err(Error::Status {
            url,
            status: status.as_u16(),
            why: why.to_owned(),
        })
    }

    fn why_unauthorized(&self, target: &Url) -> (String, Option<Need>) {
        // Starts with the words of go-git, which scripts search for.
        if self.remote.auth().is_none() && self.remote.token().is_none() {
            let why = "authentication required: the server asks for credentials";
            return (why.to_owned(), Some(Need::Credentials));
        }
        if !self.remote.trusts(target) {
            let to = safe_url(target);
            let why =
                format!("it redirects to '{to}', where credentials are not sent: use that server's URL");
            return (why, None);
        }
        let why = "authentication required: the server refused the credentials";
        (why.to_owned(), Some(Need::OtherCredentials))
    }

    fn classify(&self, target: &Url, error: &net::Error) -> Error {
        if let net::Error::Refused(why) = error {
            return Error::InvalidUrl {
                url: safe_url(target),
                why: why.to_string(),
            };
        }
        let url = self.remote.safe_url();
        match error.tls_cause() {
            Some(why) => Error::Tls { url, why },
            None if error.is_timeout() => Error::Network {
                url,
                why: "the connection timed out".to_owned(),
            },
            None => Error::Network {
                url,
                why: error.to_string(),
            },
        }
    }

    pub(crate) fn next(&self, response: &mut Response) -> Result<Option<Bytes>, Error> {
        let Some(bytes) = self
            .clock
            .wait(response.chunk())?
            .map_err(|error| self.classify(self.remote.url(), &error.into()))?
        else {
            return Ok(None);
        };
        self.intake.take(bytes.len() as u64)?;
        Ok(Some(bytes))
    }

    /// Waits in the background for the end of an answer whose content was read: the connection can be reused after it. It is
    /// closed if more content follows.
    pub(crate) fn finish(&self, mut response: Response) {
        self.clock.runtime().spawn(async move {
            // Nothing depends on it.
            let _ = tokio::time::timeout(END, response.chunk()).await;
        });
    }
}
