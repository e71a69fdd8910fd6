//! Interpretation of a request: pure functions of its path and headers.

use http::{HeaderMap, header};
use jiff::Timestamp;

pub(super) fn storage_path(uri_path: &str) -> Option<String> {
    let decoded = percent_decode(uri_path.strip_prefix('/')?)?;
    let parts: Vec<&str> = decoded.split('/').collect();
    let plain = |part: &&str| !part.is_empty() && !part.starts_with('.') && !part.contains('\0');
    (parts.len() == 4 && parts.iter().all(plain)).then_some(decoded)
}

fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            // A sign would be parsed as part of the number.
            let digits = std::str::from_utf8(tail.get(..2)?)
                .ok()
                .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = tail.get(2..)?;
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// The first and the last byte, both included.
    Bytes(u64, u64),
    /// A range that the file does not have.
    Outside,
}

/// Returns the requested part of a file of `size` bytes. Several or invalid ranges mean the whole file.
pub(super) fn part(headers: &HeaderMap, etag: &str, modified: i64, size: u64) -> Part {
    let Some(range) = text(headers, header::RANGE) else {
        return Part::Whole;
    };
    if let Some(condition) = text(headers, header::IF_RANGE) {
        let same = if condition.starts_with('"') {
            condition == etag
        } else {
            date(condition) == Some(modified)
        };
        if !same {
            return Part::Whole;
        }
    }
    let Some(spec) = range
        .strip_prefix("bytes=")
        .map(str::trim)
        .filter(|spec| !spec.contains(','))
    else {
        return Part::Whole;
    };
    let number = |digits: &str| {
        digits
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| digits.parse::<u64>().ok())
            .flatten()
    };
    let Some(last) = size.checked_sub(1) else {
        return Part::Outside;
    };
    match spec.split_once('-') {
        Some(("", n)) => match number(n) {
            Some(0) => Part::Outside,
            Some(n) => Part::Bytes(size.saturating_sub(n), last),
            None => Part::Whole,
        },
        Some((from, to)) => match (number(from), number(to), to) {
            (Some(from), ..) if from > last => Part::Outside,
            (Some(from), _, "") => Part::Bytes(from, last),
            (Some(from), Some(to), _) if from <= to => Part::Bytes(from, to.min(last)),
            _ => Part::Whole,
        },
        None => Part::Whole,
    }
}

/// Returns true if the client already has this version of the file.
pub(super) fn not_modified(headers: &HeaderMap, etag: &str, modified: i64) -> bool {
    if let Some(tags) = text(headers, header::IF_NONE_MATCH) {
        return tags
            .split(',')
            .map(str::trim)
            .any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag);
    }
    text(headers, header::IF_MODIFIED_SINCE)
        .and_then(date)
        .is_some_and(|since| modified <= since)
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn date(text: &str) -> Option<i64> {
    let parsed = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(text)
        .ok()?;
    Some(parsed.as_second())
}

pub(super) fn http_date(seconds: i64) -> Option<String> {
    let time = Timestamp::from_second(seconds).ok()?;
    jiff::fmt::rfc2822::DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&time)
        .ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn only_paths_of_four_plain_parts_name_a_file() {
        for good in [
            "/a/b/c/d.tar.gz",
            "/a/b/c/sha256%3Aab.tar.gz",
            "/a/b/c/sha256:ab.tar.gz",
        ] {
            assert!(storage_path(good).is_some(), "{good}");
        }
        for bad in [
            "/",
            "/a",
            "/a/b/c/",
            "/a/b/c",
            "/a/b/c/d/e",
            "//b/c/d",
            "/a/../c/d",
            "/a/%2e%2e/c/d",
            "/a/b/c/..%2fd",
            "/a/b/c/.d.tmp",
            "/a/b/c/d%00",
            "/a/b/c/%zz",
            "/a/b/c/%+a",
            "/a/b/c/%ff",
            "a/b/c/d",
        ] {
            assert_eq!(storage_path(bad), None, "{bad}");
        }
        assert_eq!(storage_path("/a/b/c/x%3Ay").unwrap(), "a/b/c/x:y");
    }

    #[test]
    fn ranges_are_read_as_http_says() {
        let cases = [
            ("bytes=0-0", Part::Bytes(0, 0)),
            ("bytes=2-", Part::Bytes(2, 9)),
            ("bytes=-3", Part::Bytes(7, 9)),
            ("bytes=-30", Part::Bytes(0, 9)),
            ("bytes=5-99", Part::Bytes(5, 9)),
            ("bytes=10-", Part::Outside),
            ("bytes=10-12", Part::Outside),
            ("bytes=-0", Part::Outside),
            ("bytes=3-1", Part::Whole),
            ("bytes=0-1,4-5", Part::Whole),
            ("bytes=+1-2", Part::Whole),
            ("lines=0-1", Part::Whole),
            ("bytes=", Part::Whole),
        ];
        for (range, expected) in cases {
            assert_eq!(
                part(&headers(&[(header::RANGE, range)]), "\"e\"", 0, 10),
                expected,
                "{range}"
            );
        }
        assert_eq!(part(&HeaderMap::new(), "\"e\"", 0, 10), Part::Whole);
        assert_eq!(
            part(&headers(&[(header::RANGE, "bytes=0-")]), "\"e\"", 0, 0),
            Part::Outside
        );
    }

    #[test]
    fn a_range_of_another_version_means_the_whole_file() {
        let ask = |condition: &str| {
            part(
                &headers(&[(header::RANGE, "bytes=1-2"), (header::IF_RANGE, condition)]),
                "\"e\"",
                784_111_777,
                10,
            )
        };
        assert_eq!(ask("\"e\""), Part::Bytes(1, 2));
        assert_eq!(ask("\"other\""), Part::Whole);
        assert_eq!(ask("Sun, 06 Nov 1994 08:49:37 GMT"), Part::Bytes(1, 2));
        assert_eq!(ask("Sun, 06 Nov 1994 08:49:38 GMT"), Part::Whole);
    }

    #[test]
    fn conditions_compare_the_tag_before_the_time() {
        let date = http_date(784_111_777).unwrap();
        assert_eq!(date, "Sun, 06 Nov 1994 08:49:37 GMT");
        let since = |at: &str| headers(&[(header::IF_MODIFIED_SINCE, at)]);
        assert!(not_modified(&since(&date), "\"e\"", 784_111_777));
        assert!(!not_modified(&since(&date), "\"e\"", 784_111_778));
        assert!(!not_modified(&since("yesterday"), "\"e\"", 0));
        let tags = |tags: &str| headers(&[(header::IF_NONE_MATCH, tags), (header::IF_MODIFIED_SINCE, &date)]);
        assert!(not_modified(&tags("\"x\", W/\"e\""), "\"e\"", i64::MAX));
        assert!(not_modified(&tags("*"), "\"e\"", i64::MAX));
        assert!(!not_modified(&tags("\"x\""), "\"e\"", 0));
    }
}
