//! Refusals of an API server that is about to serve a kind.

const MESSAGE: &[u8] = b"storage is (re)initializing";

/// Returns true for the answer of an API server whose storage of the kind is starting: after the definition of a kind was created, or
/// the server restarted. It is ready after some milliseconds, although the answer asks for a pause of a second.
#[must_use]
pub fn is_initializing(code: u16, body: &[u8]) -> bool {
    code == 429 && body.windows(MESSAGE.len()).any(|part| part == MESSAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initializing_storage_is_told_from_other_refusals() {
        let body = br#"{"kind":"Status","reason":"TooManyRequests","message":"storage is (re)initializing"}"#;
        assert!(is_initializing(429, body));
        assert!(!is_initializing(503, body));
        assert!(!is_initializing(
            429,
            b"Too many requests, please try again later."
        ));
        assert!(!is_initializing(429, b""));
    }
}
