//! CodeCommit: the name and password of a Git repository, as `git-remote-codecommit` makes them.

use api::Secret;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::{
    Credentials,
    ecr::Login,
    is_region,
    sign::{scope, signature},
};

/// Lifetime of a password, in seconds.
pub const LIFETIME: i64 = 900;

/// Returns the region in a repository's URL, as in `https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/shop`.
#[must_use]
pub fn region(url: &Url) -> Option<&str> {
    let host = url.host_str().filter(|_| url.scheme() == "https")?;
    let domains = [".amazonaws.com", ".amazonaws.com.cn"];
    let rest = domains.iter().find_map(|domain| host.strip_suffix(domain))?;
    let (service, region) = rest.split_once('.')?;
    let is_known = matches!(service, "git-codecommit" | "git-codecommit-fips");
    (is_known && is_region(region)).then_some(region)
}

#[must_use]
pub fn login(url: &Url, region: &str, credentials: &Credentials, now: Timestamp) -> Login {
    let time = now.strftime("%Y%m%dT%H%M%S").to_string();
    let day = now.strftime("%Y%m%d").to_string();
    let host = url.host_str().unwrap_or_default();
    let canonical = format!("GIT\n{}\n\nhost:{host}\n\nhost\n", url.path());
    let text = format!(
        "AWS4-HMAC-SHA256\n{time}\n{}\n{}",
        scope(&day, region, "codecommit"),
        hex::encode(Sha256::digest(canonical))
    );
    let signature = signature(credentials, &day, region, "codecommit", &text);
    let id = &credentials.access_key_id;
    Login {
        username: match &credentials.session_token {
            Some(token) => format!("{id}%{}", token.expose()),
            None => id.clone(),
        },
        password: Secret::new(format!("{time}Z{signature}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_have_a_region() {
        for (url, expected) in [
            (
                "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/a",
                Some("eu-west-1"),
            ),
            (
                "https://git-codecommit-fips.us-east-1.amazonaws.com/v1/repos/a",
                Some("us-east-1"),
            ),
            ("http://git-codecommit.eu-west-1.amazonaws.com/v1/repos/a", None),
            ("https://git-codecommit.eu-west-1.amazonaws.com.evil.test/a", None),
            ("https://github.com/a/b", None),
        ] {
            assert_eq!(region(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn passwords_are_signatures_of_the_repository() {
        let url = Url::parse("https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/shop").unwrap();
        let credentials = Credentials {
            access_key_id: "AKID".to_owned(),
            secret_access_key: Secret::new("secret".to_owned()),
            session_token: Some(Secret::new("session".to_owned())),
        };
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let login = login(&url, "eu-west-1", &credentials, now);
        assert_eq!(login.username, "AKID%session");
        assert_eq!(
            login.password.expose(),
            "20260102T030405Z591dfffa82990197ff4f02997f6932879674fa39ad5e2fb5cb707cc0fbb0ae31"
        );
    }
}
