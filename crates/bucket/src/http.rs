//! Requests to storage services, with bounded responses.

use api::Secret;
use net::read_body;
use reqwest::{
    Body, Method, Response,
    header::{HeaderName, HeaderValue},
};
use url::Url;

use crate::Error;

/// Maximum size of a page and of other documents, in bytes: 1000 names of 1024 bytes, each encoded, with their properties.
const DOCUMENT_BYTES: u64 = 8 << 20;
const ERROR_BYTES: u64 = 64 << 10;
const MESSAGE_CHARS: usize = 300;

pub(crate) type Headers = Vec<(&'static str, Secret<String>)>;

pub(crate) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

pub(crate) fn not_understood(base: &Url, why: &'static str) -> Error {
    Error::Response {
        host: host(base),
        why,
    }
}

pub(crate) async fn send(
    client: &net::Client,
    method: Method,
    url: Url,
    headers: &Headers,
) -> Result<Response, Error> {
    send_body(client, method, url, headers, None).await
}

/// Sends a request and returns the response, whatever its status.
pub(crate) async fn send_body(
    client: &net::Client,
    method: Method,
    url: Url,
    headers: &Headers,
    body: Option<Body>,
) -> Result<Response, Error> {
    let host = host(&url);
    let invalid = || Error::Response {
        host: host.clone(),
        why: "a header of the request would be invalid",
    };
    let mut request = reqwest::Request::new(method, url);
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| invalid())?;
        value.set_sensitive(true);
        request.headers_mut().insert(name, value);
    }
    *request.body_mut() = body;
    let sent = client.send(request).await;
    sent.map_err(|source| Error::Request { host, source })
}

pub(crate) async fn document(
    mut response: Response,
    refused: impl AsyncFnOnce(Response) -> Error,
) -> Result<Vec<u8>, Error> {
    if !response.status().is_success() {
        return Err(refused(response).await);
    }
    let host = host(response.url());
    let read = read_body(&mut response, DOCUMENT_BYTES).await;
    read.map_err(|source| Error::Request { host, source })
}

pub(crate) async fn refused(mut response: Response, words: impl FnOnce(&[u8]) -> (String, String)) -> Error {
    let status = response.status().as_u16();
    // A description that is too long is ignored.
    let body = read_body(&mut response, ERROR_BYTES).await.unwrap_or_default();
    let (code, message) = words(&body);
    Error::Refused {
        status,
        code: shortened(&code),
        message: shortened(&message),
    }
}

fn shortened(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    line.chars()
        .filter(|c| !c.is_control())
        .take(MESSAGE_CHARS)
        .collect()
}

pub(crate) fn header(response: &Response, name: &str) -> String {
    let value = response.headers().get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}
