//! Finds the cause of a failed request, without its address.

use std::{error::Error, io};

#[must_use]
pub fn tls(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(tls.to_string());
        }
        // An io::Error hides its inner error from source().
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(cause) = wrapped.and_then(|inner| tls(inner)) {
            return Some(cause);
        }
        next = error.source();
    }
    None
}

/// Returns the innermost cause, in one line and without URLs or secrets.
#[must_use]
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(next) = last.source() {
        last = next;
    }
    let text = last.to_string();
    api::redact(text.lines().next().unwrap_or_default().trim())
}

/// Describes a TLS failure in the words of Go programs, which scripts search for.
#[must_use]
pub fn tls_problem(why: &str) -> &'static str {
    let lower = why.to_ascii_lowercase();
    if lower.contains("certificaterequired") || lower.contains("certificate required") {
        "certificate required: the server asks for a client certificate"
    } else if lower.contains("certificate") {
        "failed to verify certificate"
    } else {
        "the TLS connection failed"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_cause_returns_the_innermost_error() {
        let inner = io::Error::other("refused\nby https://u:p@example.com");
        let error = io::Error::other(Box::<dyn Error + Send + Sync>::from(inner));
        assert_eq!(innermost(&error), "refused");
    }

    #[test]
    fn tls_is_found_below_errors_of_reading() {
        let alert = rustls::Error::General("bad hello".to_owned());
        let error = io::Error::other(io::Error::other(alert));
        assert_eq!(tls(&error).as_deref(), Some("unexpected error: bad hello"));
        assert_eq!(tls(&io::Error::other("no")), None);
    }
}
