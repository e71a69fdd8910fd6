//! Redirects and the scope of credentials. Pure.

use reqwest::Url;

const MAX_REDIRECTS: usize = 10;

#[derive(Debug, thiserror::Error)]
pub(crate) enum RedirectError {
    #[error("more than {MAX_REDIRECTS} in a row")]
    TooMany,
    #[error(transparent)]
    Location(#[from] url::ParseError),
    #[error("it leads from https to http")]
    Insecure,
}

/// Returns the target of a redirect. The policy of addresses is applied when it is requested.
pub(crate) fn next(from: &Url, location: &str, followed: usize) -> Result<Url, RedirectError> {
    if followed >= MAX_REDIRECTS {
        return Err(RedirectError::TooMany);
    }
    let to = from.join(location)?;
    if from.scheme() == "https" && to.scheme() == "http" {
        return Err(RedirectError::Insecure);
    }
    Ok(to)
}

/// Returns true if credentials of `home` are sent to `url`: they never leave their scheme, host and port, unless `pass` is set
/// and `url` has the origin of `asked`, the first request.
pub(crate) fn is_trusted(home: &Url, asked: &Url, url: &Url, pass: bool) -> bool {
    url.origin() == home.origin() || (pass && url.origin() == asked.origin())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn redirects_are_bounded_and_stay_encrypted() {
        let from = url("https://a/b/c");
        assert_eq!(next(&from, "../d?x=1", 0).unwrap().as_str(), "https://a/d?x=1");
        assert_eq!(next(&from, "//e/f", 9).unwrap().as_str(), "https://e/f");
        for (location, followed, why) in [
            ("/d", 10, "more than 10"),
            ("http://a/b", 0, "https to http"),
            ("https://[", 0, "invalid"),
        ] {
            let error = next(&from, location, followed).unwrap_err().to_string();
            assert!(error.contains(why), "{location}: {error}");
        }
    }

    #[test]
    fn credentials_stay_at_their_origin() {
        let home = url("https://charts.example.com/stable");
        for (asked, to, pass, trusted) in [
            (
                "https://charts.example.com/x.tgz",
                "https://charts.example.com:443/x.tgz",
                false,
                true,
            ),
            (
                "https://charts.example.com:444/x",
                "https://charts.example.com:444/x",
                false,
                false,
            ),
            (
                "http://charts.example.com/x",
                "http://charts.example.com/x",
                false,
                false,
            ),
            (
                "https://cdn.example.com/x",
                "https://cdn.example.com/x",
                false,
                false,
            ),
            (
                "https://cdn.example.com/x",
                "https://cdn.example.com/x",
                true,
                true,
            ),
            (
                "https://cdn.example.com/x",
                "https://evil.example.com/x",
                true,
                false,
            ),
            (
                "https://charts.example.com/x",
                "https://evil.example.com/x",
                true,
                false,
            ),
        ] {
            let case = format!("{asked} {to} {pass}");
            assert_eq!(is_trusted(&home, &url(asked), &url(to), pass), trusted, "{case}");
        }
    }
}
