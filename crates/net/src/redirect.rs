//! Redirects: pure decisions.

use reqwest::{
    Method, Request, StatusCode, Url,
    header::{
        ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap,
        HeaderName, LOCATION, TRANSFER_ENCODING, USER_AGENT,
    },
};

use crate::Error;

pub(crate) const MAX_REDIRECTS: usize = 10;

/// Headers that a redirect to another origin keeps: they contain no credentials.
const HARMLESS: [HeaderName; 4] = [ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, USER_AGENT];

const OF_BODY: [HeaderName; 4] = [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING, TRANSFER_ENCODING];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// The response of the first server is returned, whatever its status.
    None,
    /// Up to ten in a row. Credentials, custom headers and bodies stay at their origin.
    Follow { to_http: bool },
}

impl Redirects {
    /// Follows up to ten redirects, none of them from https to http.
    pub const FOLLOW: Self = Self::Follow { to_http: false };
}

/// Returns the next request after the response to `request`; `None` if it is not a redirect.
pub(crate) fn next(
    mut request: Request,
    status: StatusCode,
    headers: &HeaderMap,
    followed: usize,
    to_http: bool,
) -> Result<Option<Request>, Error> {
    let location = headers.get(LOCATION).filter(|_| is_redirect(status));
    let Some(location) = location else {
        return Ok(None);
    };
    if followed >= MAX_REDIRECTS {
        return Err(Error::Redirect(format!(
            "more than {MAX_REDIRECTS} redirects in a row"
        )));
    }
    let location = String::from_utf8_lossy(location.as_bytes());
    let from = request.url().clone();
    let to = target(&from, &location).map_err(Error::Redirect)?;
    if from.scheme() == "https" && to.scheme() == "http" && !to_http {
        let why = "a redirect leads from https to http".to_owned();
        return Err(Error::Redirect(why));
    }
    let becomes_get = status == StatusCode::SEE_OTHER && request.method() != Method::HEAD
        || matches!(status.as_u16(), 301 | 302) && request.method() == Method::POST;
    if becomes_get {
        *request.method_mut() = Method::GET;
        *request.body_mut() = None;
        OF_BODY
            .iter()
            .for_each(|name| drop(request.headers_mut().remove(name)));
    }
    if from.origin() != to.origin() {
        if request.body().is_some() {
            let why = "a redirect would send the body of the request to another server".to_owned();
            return Err(Error::Redirect(why));
        }
        *request.headers_mut() = harmless(request.headers());
    }
    *request.url_mut() = to;
    Ok(Some(request))
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn target(from: &Url, location: &str) -> Result<Url, String> {
    let mut to = from
        .join(location)
        .map_err(|error| format!("a redirect has an invalid location: {error}"))?;
    let _ = to.set_username("");
    let _ = to.set_password(None);
    Ok(to)
}

fn harmless(headers: &HeaderMap) -> HeaderMap {
    let known = headers.iter().filter(|(name, _)| HARMLESS.contains(name));
    known.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use reqwest::header::{AUTHORIZATION, HeaderValue};

    use super::*;

    fn request(method: &Method, url: &str) -> Request {
        let mut request = Request::new(method.clone(), url.parse().unwrap());
        let headers = request.headers_mut();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer s3cret"));
        headers.insert("x-vault-token", HeaderValue::from_static("s3cret"));
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        if *method == Method::POST {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
            *request.body_mut() = Some("s3cret".into());
        }
        request
    }

    fn follow(
        request: Request,
        status: u16,
        location: &str,
        followed: usize,
    ) -> Result<Option<Request>, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, location.parse().unwrap());
        next(
            request,
            StatusCode::from_u16(status).unwrap(),
            &headers,
            followed,
            false,
        )
    }

    #[test]
    fn headers_stay_at_their_origin() {
        for (location, keeps) in [
            ("/b?x=1", true),
            ("https://a.test:443/b", true),
            ("https://u:p@a.test/b", true),
            ("https://a.test:444/b", false),
            ("https://b.test/b", false),
            ("//b.test/b", false),
        ] {
            let next = follow(request(&Method::GET, "https://a.test/a"), 302, location, 0);
            let next = next.unwrap().unwrap();
            assert_eq!(next.headers().contains_key(AUTHORIZATION), keeps, "{location}");
            assert_eq!(next.headers().contains_key("x-vault-token"), keeps, "{location}");
            assert!(next.headers().contains_key(ACCEPT), "{location}");
            assert_eq!(
                (next.url().username(), next.url().password()),
                ("", None),
                "{location}"
            );
        }
    }

    #[test]
    fn bodies_stay_at_their_origin() {
        let post = || request(&Method::POST, "https://a.test/a");
        let same = follow(post(), 307, "/b", 0).unwrap().unwrap();
        assert!(same.method() == Method::POST && same.body().is_some());
        let error = follow(post(), 308, "https://b.test/", 0).unwrap_err();
        assert!(error.to_string().contains("body of the request"), "{error}");
        for status in [301, 302, 303] {
            let next = follow(post(), status, "https://b.test/", 0).unwrap().unwrap();
            assert!(next.method() == Method::GET && next.body().is_none());
            assert!(!next.headers().contains_key(CONTENT_TYPE));
        }
    }

    #[test]
    fn redirects_are_bounded_and_stay_encrypted() {
        let get = || request(&Method::GET, "https://a.test/a");
        for (location, followed, why) in [
            ("/b", 10, "more than 10"),
            ("http://a.test/b", 0, "from https to http"),
            ("https://[", 0, "invalid location"),
        ] {
            let error = follow(get(), 302, location, followed).unwrap_err().to_string();
            assert!(error.contains(why), "{location}: {error}");
        }
        assert!(follow(get(), 200, "/b", 0).unwrap().is_none());
        assert!(follow(get(), 304, "/b", 0).unwrap().is_none());
        assert!(
            follow(request(&Method::GET, "http://a.test/"), 302, "http://b.test/", 9)
                .unwrap()
                .is_some()
        );
    }
}
