//! Where a request may go: pure decisions.

use net::is_refused;
use reqwest::Url;

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 10;

/// Why an address is not asked.
pub(crate) fn refusal(url: &Url) -> Option<&'static str> {
    if !matches!(url.scheme(), "http" | "https") {
        return Some("only http and https are spoken");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Some("it has no host");
    }
    is_refused(url).then_some("link-local addresses are not allowed")
}

/// Where a redirect leads.
pub(crate) fn next(from: &Url, location: &str, followed: usize) -> Result<Url, String> {
    if followed >= MAX_REDIRECTS {
        return Err(format!("more than {MAX_REDIRECTS} in a row"));
    }
    let to = from.join(location).map_err(|error| error.to_string())?;
    if from.scheme() == "https" && to.scheme() == "http" {
        return Err("it leads from https to http".to_owned());
    }
    match refusal(&to) {
        Some(why) => Err(why.to_owned()),
        None => Ok(to),
    }
}

/// Whether credentials of `home` are sent to `url`: they never leave their scheme, host and port, unless they are passed
/// on to what was `asked` first.
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
    fn services_of_clouds_are_not_asked() {
        for (text, refused) in [
            ("http://169.254.169.254/latest", true),
            ("http://[fe80::1]/x", true),
            ("http://2852039166/", true),
            ("http://[::ffff:169.254.169.254]/", true),
            ("ftp://example.com/x", true),
            ("file:///etc/passwd", true),
            ("http://127.0.0.1:1/x", false),
            ("https://example.com/x", false),
        ] {
            assert_eq!(refusal(&url(text)).is_some(), refused, "{text}");
        }
    }

    #[test]
    fn redirects_stay_safe() {
        let from = url("https://a/b/c");
        assert_eq!(next(&from, "../d?x=1", 0).unwrap().as_str(), "https://a/d?x=1");
        assert_eq!(next(&from, "//e/f", 9).unwrap().as_str(), "https://e/f");
        for (location, followed, why) in [
            ("/d", 10, "more than 10"),
            ("http://a/b", 0, "https to http"),
            ("https://169.254.169.254/", 0, "link-local"),
            ("file:///etc/passwd", 0, "only http"),
            ("https://[", 0, "invalid"),
        ] {
            let error = next(&from, location, followed).unwrap_err();
            assert!(error.contains(why), "{location}: {error}");
        }
    }

    #[test]
    fn credentials_stay_at_home() {
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
