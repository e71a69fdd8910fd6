//! Git's smart HTTP transport for gix.
//!
//! gix writes a request and then reads headers and body; the request is sent when the headers are first read.

use std::{
    any::Any,
    io::{self, BufRead, Read, Write},
    sync::Arc,
};

use bytes::Bytes;
use gix::protocol::transport::client::blocking_io::http::{
    GetResponse, Http, PostBodyDataKind, PostResponse,
};
use parking_lot::Mutex;
use reqwest::{
    Response,
    header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT},
};

use crate::{request::Request, wire::Wire};

const ANNOUNCES: &str = "/info/refs?service=git-upload-pack";
const ANNOUNCEMENT: &str = "application/x-git-upload-pack-advertisement";

/// Maximum size of a request: wants and haves of a shallow fetch are a few hundred bytes.
const MAX_REQUEST_BYTES: usize = 4 << 20;

enum State {
    Written(Request),
    Answered(Response),
    Repeated(Bytes),
    Over,
}

/// One request and its answer, shared by the writer and the two readers of gix.
struct Exchange {
    wire: Arc<Wire>,
    state: State,
    announces: bool,
}

impl Exchange {
    /// Sends the request, once, and returns the content type of the answer.
    fn answer(&mut self) -> io::Result<String> {
        self.state = match std::mem::replace(&mut self.state, State::Over) {
            State::Written(request) => {
                State::Answered(self.wire.send(&request).map_err(|error| self.wire.fail(error))?)
            }
            sent => sent,
        };
        let response = match &self.state {
            State::Answered(response) => response,
            State::Repeated(_) => return Ok(ANNOUNCEMENT.to_owned()),
            State::Written(_) | State::Over => return Ok(String::new()),
        };
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        Ok(kind.unwrap_or_default().to_owned())
    }

    fn next(&mut self) -> io::Result<Bytes> {
        self.answer()?;
        let response = match &mut self.state {
            State::Answered(response) => response,
            State::Repeated(body) => return Ok(std::mem::take(body)),
            State::Written(_) | State::Over => return Ok(Bytes::new()),
        };
        match self.wire.next(response) {
            Ok(Some(bytes)) => {
                match self.announces {
                    true => self.wire.announcement.receive(&bytes),
                    false => self.wire.recorder.receive(&bytes),
                }
                Ok(bytes)
            }
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

impl Drop for Exchange {
    fn drop(&mut self) {
        if let State::Answered(response) = std::mem::replace(&mut self.state, State::Over) {
            self.wire.finish(response);
        }
    }
}

pub(crate) struct Sink(Arc<Mutex<Exchange>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut exchange = self.0.lock();
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

pub(crate) struct ResponseReader {
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

impl Read for ResponseReader {
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

impl BufRead for ResponseReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.buffered.is_empty() && self.part != Part::Over {
            let mut exchange = self.exchange.lock();
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

pub(crate) struct Smart(pub(crate) Arc<Wire>);

impl Smart {
    fn exchange(
        &self,
        post: bool,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> (Sink, ResponseReader, ResponseReader) {
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
        let announces = !post && request.tail() == ANNOUNCES;
        let repeated = announces.then(|| self.0.announcement.repeated()).flatten();
        if announces && repeated.is_none() {
            self.0.announcement.start();
        }
        let exchange = Exchange {
            wire: Arc::clone(&self.0),
            state: repeated.map_or(State::Written(request), State::Repeated),
            announces,
        };
        let exchange = Arc::new(Mutex::new(exchange));
        let source = |part| ResponseReader {
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
    // The client sets its own.
    if name == USER_AGENT {
        return None;
    }
    Some((name, value.trim().parse().ok()?))
}

impl Http for Smart {
    type Headers = ResponseReader;
    type ResponseBody = ResponseReader;
    type PostBody = Sink;

    fn get(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> gix::Result<GetResponse<ResponseReader, ResponseReader>> {
        let (_, headers, body) = self.exchange(false, url, base_url, headers);
        Ok(GetResponse { headers, body })
    }

    fn post(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
        _: PostBodyDataKind,
    ) -> gix::Result<PostResponse<ResponseReader, ResponseReader, Sink>> {
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
        self.0.redirected()
    }
}
