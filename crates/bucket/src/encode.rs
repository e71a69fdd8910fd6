//! Paths and queries of URLs, encoded as in signatures.

use url::Url;

use crate::Error;

/// Encodes all bytes but the unreserved characters of RFC 3986, and `/` unless `keep_slash`.
pub(crate) fn percent(text: &str, keep_slash: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (keep_slash && byte == b'/') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            for nibble in [byte >> 4, byte & 15] {
                let digit = char::from_digit(u32::from(nibble), 16).unwrap_or('0');
                out.push(digit.to_ascii_uppercase());
            }
        }
    }
    out
}

/// Decodes `%XX` and `+`, as listings encode names; `None` if that isn't UTF-8.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                out.push(u8::try_from(high * 16 + low).ok()?);
            }
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).ok()
}

/// Returns the URL with an encoded path and a query that is encoded here.
pub(crate) fn url(base: &Url, path: &str, query: &[(&str, &str)]) -> Url {
    let mut url = base.clone();
    url.set_path(path);
    let pairs: Vec<String> = query
        .iter()
        .map(|(name, value)| format!("{}={}", percent(name, false), percent(value, false)))
        .collect();
    url.set_query((!pairs.is_empty()).then(|| pairs.join("&")).as_deref());
    url.set_fragment(None);
    url
}

/// Refuses names of objects that URLs would change: `a/../b` is another object than `b`.
pub(crate) fn check(key: &str) -> Result<(), Error> {
    let is_changed = key.split('/').any(|part| matches!(part, "." | ".."));
    if is_changed { Err(Error::Key) } else { Ok(()) }
}

pub(crate) fn etag(text: &str) -> String {
    let text = text.strip_prefix('"').unwrap_or(text);
    text.strip_suffix('"').unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_and_decoded() {
        for (name, encoded) in [
            ("a/b c.yaml", "a/b%20c.yaml"),
            ("ü+%?&=#", "%C3%BC%2B%25%3F%26%3D%23"),
            ("~-._", "~-._"),
        ] {
            assert_eq!(percent(name, true), encoded);
            assert_eq!(decoded(encoded).as_deref(), Some(name));
        }
        assert_eq!(decoded("a+b").as_deref(), Some("a b"));
        for invalid in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(decoded(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn urls_keep_what_was_encoded() {
        let base = Url::parse("https://h:9000").unwrap();
        let found = url(
            &base,
            &format!("/b/{}", percent("a//ü '%2e", true)),
            &[("prefix", "a b/+'")],
        );
        assert_eq!(
            found.as_str(),
            "https://h:9000/b/a//%C3%BC%20%27%252e?prefix=a%20b%2F%2B%27"
        );
        assert!(check("a/..b/c.").is_ok() && check("a//b").is_ok());
        assert!(check("a/../b").is_err() && check("./a").is_err());
    }

    #[test]
    fn tags_have_no_quotes() {
        for (text, expected) in [
            ("\"a\"", "a"),
            ("a", "a"),
            ("W/\"a\"", "W/\"a"),
            ("", ""),
            ("\"", ""),
        ] {
            assert_eq!(etag(text), expected);
        }
    }
}
