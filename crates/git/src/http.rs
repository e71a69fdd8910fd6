//! Git's smart HTTP requests over the shared client, with one deadline, our own redirects, and typed failures.
//!
//! gix writes a request and then reads headers and body; the request is sent when the headers are first read.

use std::{
    any::Any,
    io::{self, BufRead, Read, Write},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use gix::protocol::transport::client::blocking_io::http::{
    GetResponse, Http, PostBodyDataKind, PostResponse,
};
use reqwest::{
    Client, Method, Response, StatusCode,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, USER_AGENT},
};
use url::Url;

use crate::{
    Error, Remote,
    clock::Clock,
    error::innermost,
    remote::{refuse_link_local, shown},
};

/// Redirects followed in a row.
const MAX_REDIRECTS: usize = 5;

/// Bytes of a request: wants and haves of one shallow fetch are a few hundred.
const MAX_REQUEST_BYTES: usize = 4 << 20;

/// What all requests of a session share.
pub(crate) struct Wire {
    client: Client,
    remote: Remote,
    clock: Clock,
    /// Bytes that answers may still bring.
    allowance: AtomicU64,
    /// What `allowance` began with, and its name.
    limit: Mutex<(u64, &'static str)>,
    /// Where a redirect led.
    base: Mutex<Option<String>>,
    /// The first failure; gix only passes text on.
    failure: Mutex<Option<Error>>,
}

impl Wire {
    pub(crate) fn new(client: Client, remote: Remote, clock: Clock) -> Self {
        Self {
            client,
            remote,
            clock,
            allowance: AtomicU64::new(0),
            limit: Mutex::default(),
            base: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    /// Lets the next answers bring `bytes` in all.
    pub(crate) fn allow(&self, bytes: u64, what: &'static str) {
        *lock(&self.limit) = (bytes, what);
        self.allowance.store(bytes, Ordering::Relaxed);
    }

    /// The failure behind an error of gix, if it was ours.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        lock(&self.failure).take()
    }

    fn fail(&self, error: Error) -> io::Error {
        let text = error.to_string();
        lock(&self.failure).get_or_insert(error);
        io::Error::other(text)
    }

    /// Sends a request, following redirects of GET requests.
    fn send(&self, request: &Request) -> Result<Response, Error> {
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
        let mut builder = self
            .client
            .request(method, url.clone())
            .headers(request.headers.clone());
        if let Some(auth) = self.remote.auth().filter(|_| self.remote.trusts(url)) {
            builder = builder.basic_auth(&auth.username, Some(auth.password.expose()));
        }
        if request.post {
            builder = builder.body(request.body.clone());
        }
        self.clock
            .wait(builder.send())?
            .map_err(|error| self.classify(&error))
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
        refuse_link_local(&target)?;
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
                return Err(Error::AuthenticationFailed {
                    url,
                    why: self.why_unauthorized(target),
                });
            }
            StatusCode::FORBIDDEN => {
                let why = "the server forbids access (403): check the rights of the user or token".to_owned();
                return Err(Error::AuthenticationFailed { url, why });
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => return Err(Error::NotFound { url }),
            StatusCode::TOO_MANY_REQUESTS => "too many requests: raise spec.interval",
            status if status.is_server_error() => "the server has a problem; it will be asked again",
            _ => "check the URL",
        };
        Err(Error::Status {
            url,
            status: status.as_u16(),
            why: why.to_owned(),
        })
    }

    fn why_unauthorized(&self, target: &Url) -> String {
        if self.remote.auth().is_none() {
            return "the server asks for credentials: name a secret with username and password in spec.secretRef"
                .to_owned();
        }
        if !self.remote.trusts(target) {
            let to = shown(target);
            return format!("it redirects to '{to}', where credentials are not sent: use that server's URL");
        }
        "the server refused the credentials: check username and password in the secret".to_owned()
    }

    fn classify(&self, error: &reqwest::Error) -> Error {
        let url = self.remote.shown();
        match tls_cause(error) {
            Some(why) => Error::Tls { url, why },
            None if error.is_timeout() => Error::Network {
                url,
                why: "the connection timed out".to_owned(),
            },
            None => Error::Network {
                url,
                why: innermost(error),
            },
        }
    }

    /// The next piece of a body; `None` at its end.
    fn next(&self, response: &mut Response) -> Result<Option<Bytes>, Error> {
        let Some(bytes) = self
            .clock
            .wait(response.chunk())?
            .map_err(|error| self.classify(&error))?
        else {
            return Ok(None);
        };
        let len = bytes.len() as u64;
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
        Ok(Some(bytes))
    }
}

/// What TLS complained about, if it was TLS.
fn tls_cause(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(tls.to_string());
        }
        // An io::Error hides what it wraps from source().
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(cause) = wrapped.and_then(|inner| tls_cause(inner)) {
            return Some(cause);
        }
        next = error.source();
    }
    None
}

struct Request {
    post: bool,
    url: String,
    base_len: usize,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Request {
    /// What follows the repository's own URL.
    fn tail(&self) -> &str {
        self.url.get(self.base_len..).unwrap_or_default()
    }
}

enum State {
    Written(Request),
    Answered(Response),
    Over,
}

/// One request and its answer, shared by the writer and the two readers that gix wants.
struct Exchange {
    wire: Arc<Wire>,
    state: State,
}

impl Exchange {
    /// Sends the request unless that is done, and returns the answer's content type.
    fn answer(&mut self) -> io::Result<String> {
        self.state = match std::mem::replace(&mut self.state, State::Over) {
            State::Written(request) => {
                State::Answered(self.wire.send(&request).map_err(|error| self.wire.fail(error))?)
            }
            sent => sent,
        };
        let State::Answered(response) = &self.state else {
            return Ok(String::new());
        };
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        Ok(kind.unwrap_or_default().to_owned())
    }

    fn next(&mut self) -> io::Result<Bytes> {
        self.answer()?;
        let State::Answered(response) = &mut self.state else {
            return Ok(Bytes::new());
        };
        match self.wire.next(response) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => {
                self.state = State::Over;
                Ok(Bytes::new())
            }
            Err(error) => {
                self.state = State::Over;
                Err(self.wire.fail(error))
            }
        }
    }
}

/// The request's body.
pub(crate) struct Sink(Arc<Mutex<Exchange>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut exchange = lock(&self.0);
        let State::Written(request) = &mut exchange.state else {
            return Err(io::Error::other("the request was sent already"));
        };
        if request.body.len() + bytes.len() > MAX_REQUEST_BYTES {
            return Err(io::Error::other("the request is too long"));
        }
        request.body.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The answer's headers (the one that gix looks at) or its body.
pub(crate) struct Source {
    exchange: Arc<Mutex<Exchange>>,
    part: Part,
    buffered: Bytes,
}

#[derive(PartialEq, Eq)]
enum Part {
    Headers,
    Body,
    Over,
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let n = available.len().min(out.len());
        if let (Some(to), Some(from)) = (out.get_mut(..n), available.get(..n)) {
            to.copy_from_slice(from);
        }
        self.consume(n);
        Ok(n)
    }
}

impl BufRead for Source {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.buffered.is_empty() && self.part != Part::Over {
            let mut exchange = lock(&self.exchange);
            if self.part == Part::Headers {
                self.buffered = format!("content-type: {}\n", exchange.answer()?).into();
                self.part = Part::Over;
            } else {
                self.buffered = exchange.next()?;
                if self.buffered.is_empty() {
                    self.part = Part::Over;
                }
            }
        }
        Ok(&self.buffered)
    }

    fn consume(&mut self, n: usize) {
        let n = n.min(self.buffered.len());
        let _ = self.buffered.split_to(n);
    }
}

/// The transport as gix wants it.
pub(crate) struct Smart(pub(crate) Arc<Wire>);

impl Smart {
    fn exchange(
        &self,
        post: bool,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> (Sink, Source, Source) {
        let request = Request {
            post,
            url: url.to_owned(),
            base_len: base_url.len(),
            headers: headers
                .into_iter()
                .filter_map(|line| header(line.as_ref()))
                .collect(),
            body: Vec::new(),
        };
        let exchange = Exchange {
            wire: Arc::clone(&self.0),
            state: State::Written(request),
        };
        let exchange = Arc::new(Mutex::new(exchange));
        let source = |part| Source {
            exchange: Arc::clone(&exchange),
            part,
            buffered: Bytes::new(),
        };
        (
            Sink(Arc::clone(&exchange)),
            source(Part::Headers),
            source(Part::Body),
        )
    }
}

fn header(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim().parse().ok()?;
    // The client names itself.
    if name == USER_AGENT {
        return None;
    }
    Some((name, value.trim().parse().ok()?))
}

impl Http for Smart {
    type Headers = Source;
    type ResponseBody = Source;
    type PostBody = Sink;

    fn get(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> gix::Result<GetResponse<Source, Source>> {
        let (_, headers, body) = self.exchange(false, url, base_url, headers);
        Ok(GetResponse { headers, body })
    }

    fn post(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
        _: PostBodyDataKind,
    ) -> gix::Result<PostResponse<Source, Source, Sink>> {
        let (post_body, headers, body) = self.exchange(true, url, base_url, headers);
        Ok(PostResponse {
            post_body,
            headers,
            body,
        })
    }

    fn configure(&mut self, _: &dyn Any) -> gix::Result {
        Ok(())
    }

    fn redirected_base_url(&self) -> Option<String> {
        lock(&self.0.base).clone()
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
