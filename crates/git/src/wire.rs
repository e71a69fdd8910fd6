//! Requests of one session: sent with the right credentials, redirected with care, and ended by one deadline.

use std::{
    io,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use bytes::Bytes;
use net::{Client, Need, basic_auth};
use reqwest::{
    Method, Response, StatusCode,
    header::{AUTHORIZATION, HeaderMap, LOCATION},
};
use url::Url;

use tree::{MemoryError, Share, Tenant};

use crate::{Error, Pace, Remote, clock::Clock, remote::shown};

/// Redirects followed in a row.
const MAX_REDIRECTS: usize = 5;

/// Bytes of memory that a byte of a list of refs becomes: the shortest line has 47 bytes.
const REFS_GROWTH: u64 = 8;
/// Bytes of memory that are taken for the handshake before a list of refs, which has one or two lines.
const HANDSHAKE: u64 = 1 << 20;
/// Bytes of memory that are taken for the paths of a pack together with its own: some ten thousand paths.
const PATHS: u64 = 8 << 20;

/// A request as gix writes it.
pub(crate) struct Request {
    pub(crate) post: bool,
    pub(crate) url: String,
    /// The length of the repository's own URL, with which `url` begins.
    pub(crate) base_len: usize,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Returns the part of the URL after the repository's own.
    fn tail(&self) -> &str {
        self.url.get(self.base_len..).unwrap_or_default()
    }
}

/// State that all requests of a session share.
pub(crate) struct Wire {
    client: Client,
    remote: Remote,
    clock: Clock,
    /// The slowest transfer.
    slowest: Pace,
    /// Start of the current stretch of an answer, and the bytes that came since.
    stretch: Mutex<Option<(Instant, u64)>>,
    /// Bytes that answers may still bring.
    allowance: AtomicU64,
    memory: Tenant,
    /// The memory of the lists of refs of this session, until a pack is allowed.
    refs: Mutex<Option<Share>>,
    /// Initial value of `allowance`, and its name.
    limit: Mutex<(u64, &'static str)>,
    /// Target of a redirect.
    base: Mutex<Option<String>>,
    /// The first failure; gix only passes its message on.
    failure: Mutex<Option<Error>>,
}

impl Wire {
    pub(crate) fn new(client: Client, memory: Tenant, remote: Remote, clock: Clock, slowest: Pace) -> Self {
        Self {
            slowest,
            stretch: Mutex::default(),
            memory,
            refs: Mutex::default(),
            client,
            remote,
            clock,
            allowance: AtomicU64::new(0),
            limit: Mutex::default(),
            base: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    /// Lets the next answers bring `bytes` of refs in all, which are counted in memory.
    pub(crate) fn allow_refs(&self, bytes: u64) {
        lock(&self.refs).get_or_insert_with(|| self.memory.share());
        self.set_allowance(bytes, "bytes of a list of refs");
    }

    /// Lets the next answers bring `bytes` of a pack in all, which go to the disk.
    pub(crate) fn allow_pack(&self, bytes: u64) {
        *lock(&self.refs) = None;
        self.set_allowance(bytes, "bytes of a pack");
    }

    /// Takes the memory of the longest list of refs at once. Nothing is held while it is waited for, so that sessions with lists
    /// never wait for each other.
    pub(crate) fn reserve_refs(&self, bytes: u64) -> Result<(), Error> {
        *lock(&self.refs) = None;
        let needed = bytes.saturating_mul(REFS_GROWTH).saturating_add(HANDSHAKE);
        let share = self.reserve(needed, "the list of refs")?;
        *lock(&self.refs) = Some(share);
        Ok(())
    }

    /// Takes bytes of memory for an indexed pack, and some for its paths, waiting for those that others hold.
    pub(crate) fn take_memory(&self, bytes: u64) -> Result<Share, Error> {
        let mut share = self.reserve(bytes.saturating_add(PATHS), "the pack")?;
        let grown = share.try_grow(bytes);
        grown.map_err(|why| self.no_room("the pack", why))?;
        Ok(share)
    }

    /// Returns a share without any bytes yet.
    pub(crate) fn no_memory(&self) -> Share {
        self.memory.share()
    }

    /// Reserves bytes, or the most that a tenant may have.
    fn reserve(&self, bytes: u64, what: &'static str) -> Result<Share, Error> {
        let mut share = self.memory.share();
        let reserved = share.reserve(bytes.min(self.memory.most()));
        let reserved = self.clock.wait_for_own(reserved)?;
        reserved.map_err(|why| self.no_room(what, why))?;
        Ok(share)
    }

    fn no_room(&self, what: &'static str, why: MemoryError) -> Error {
        Error::Memory {
            url: self.remote.shown(),
            what,
            why,
        }
    }

    fn set_allowance(&self, bytes: u64, what: &'static str) {
        *lock(&self.limit) = (bytes, what);
        self.allowance.store(bytes, Ordering::Relaxed);
    }

    /// The failure behind an error of gix, if it was ours.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        lock(&self.failure).take()
    }

    pub(crate) fn fail(&self, error: Error) -> io::Error {
        let text = error.to_string();
        lock(&self.failure).get_or_insert(error);
        io::Error::other(text)
    }

    /// The repository's own URL where a redirect led.
    pub(crate) fn redirected(&self) -> Option<String> {
        lock(&self.base).clone()
    }

    /// Sends a request, following redirects of GET requests.
    pub(crate) fn send(&self, request: &Request) -> Result<Response, Error> {
        *lock(&self.stretch) = None;
        let mut url = self.parse(&request.url)?;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send_once(request, &url)?;
            let Some(target) = self.redirect(request, &url, &response)? else {
                self.check_status(&url, response.status())?;
                if url.as_str() != request.url {
                    let base = url.as_str().strip_suffix(request.tail()).unwrap_or(url.as_str());
                    *lock(&self.base) = Some(base.to_owned());
                }
                return Ok(response);
            };
            url = target;
        }
        Err(self.redirect_error(&url, "it is one redirect too many"))
    }

    fn send_once(&self, request: &Request, url: &Url) -> Result<Response, Error> {
        let method = if request.post { Method::POST } else { Method::GET };
        let mut sent = reqwest::Request::new(method, url.clone());
        *sent.headers_mut() = request.headers.clone();
        if let Some(auth) = self.remote.auth().filter(|_| self.remote.trusts(url)) {
            let value = basic_auth(&auth.username, auth.password.expose());
            sent.headers_mut().insert(AUTHORIZATION, value);
        }
        if request.post {
            *sent.body_mut() = Some(request.body.clone().into());
        }
        self.clock
            .wait(self.client.send(sent))?
            .map_err(|error| self.classify(url, &error))
    }

    /// The target of a redirect that may be followed.
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
            url: self.remote.shown(),
            to: shown(to),
            why: why.to_owned(),
        }
    }

    fn parse(&self, url: &str) -> Result<Url, Error> {
        Url::parse(url).map_err(|error| Error::InvalidUrl {
            url: self.remote.shown(),
            why: error.to_string(),
        })
    }

    fn check_status(&self, target: &Url, status: StatusCode) -> Result<(), Error> {
        let url = self.remote.shown();
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
        // Begins with the words of go-git, which scripts search for.
        if self.remote.auth().is_none() {
            let why = "authentication required: the server asks for credentials";
            return (why.to_owned(), Some(Need::Credentials));
        }
        if !self.remote.trusts(target) {
            let to = shown(target);
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
                url: shown(target),
                why: why.to_string(),
            };
        }
        let url = self.remote.shown();
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

    /// Fails if an answer is so slow that it holds up others: less than the slowest pace in a stretch of that time.
    fn check_pace(&self, len: u64) -> Result<(), Error> {
        let now = Instant::now();
        let mut stretch = lock(&self.stretch);
        let (since, before) = stretch.unwrap_or((now, 0));
        let bytes = before + len;
        if now.saturating_duration_since(since) < self.slowest.time {
            *stretch = Some((since, bytes));
            return Ok(());
        }
        *stretch = Some((now, 0));
        if bytes >= self.slowest.bytes {
            return Ok(());
        }
        let time = self.slowest.time.as_secs_f32();
        Err(Error::Network {
            url: self.remote.shown(),
            why: format!("the server is too slow: it sent {bytes} bytes in {time} s"),
        })
    }

    /// The next piece of a body; `None` at its end.
    pub(crate) fn next(&self, response: &mut Response) -> Result<Option<Bytes>, Error> {
        let Some(bytes) = self
            .clock
            .wait(response.chunk())?
            .map_err(|error| self.classify(self.remote.url(), &error.into()))?
        else {
            return Ok(None);
        };
        let len = bytes.len() as u64;
        self.check_pace(len)?;
        let spent = |left: u64| left.checked_sub(len);
        if self
            .allowance
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent)
            .is_err()
        {
            let (limit, what) = *lock(&self.limit);
            return Err(Error::Limit {
                what,
                limit,
                of: format!(" by '{}'", self.remote.shown()),
            });
        }
        if let Some(share) = &mut *lock(&self.refs) {
            let grown = share.try_grow(len.saturating_mul(REFS_GROWTH));
            grown.map_err(|why| self.no_room("the list of refs", why))?;
        }
        Ok(Some(bytes))
    }
}

pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
