//! Names in registries: `oci://host/repository:tag@digest`.

use std::fmt;

use api::UrlText;

use crate::{Digest, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    host: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Tag(String),
    Digest(Digest),
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => f.write_str(tag),
            Self::Digest(digest) => digest.fmt(f),
        }
    }
}

impl Reference {
    pub fn parse(text: &str) -> Result<Self, Error> {
        parse(text).map_err(|why| Error::InvalidUrl {
            url: UrlText::from(text).to_string(),
            why: why.to_owned(),
        })
    }

    /// Returns the repository one level deeper.
    pub fn child(&self, name: &str) -> Result<Self, Error> {
        Self::parse(&format!("{}/{}/{name}", self.host, self.repository))
    }

    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Returns the digest if there is one, else the tag, else `latest`.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => Wanted::Digest(digest.clone()),
            (None, tag) => Wanted::Tag(tag.clone().unwrap_or_else(|| "latest".to_owned())),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oci://{}/{}", self.host, self.repository)
    }
}

pub(crate) fn tag_of(version: &str) -> String {
    version.replace('+', "_")
}

fn parse(text: &str) -> Result<Reference, &'static str> {
    let bare = text.strip_prefix("oci://").unwrap_or(text);
    let (host, path) = bare
        .split_once('/')
        .ok_or("it has no repository behind the host")?;
    if host.contains('@') {
        return Err("credentials can't be part of it");
    }
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']' | '_');
    if host.is_empty() || !host.chars().all(is_host) {
        return Err("its host is none");
    }
    let (path, digest) = match path.split_once('@') {
        None => (path, None),
        Some((path, digest)) => (path, Some(Digest::parse(digest).ok_or("its digest is none")?)),
    };
    let (repository, tag) = match path.split_once(':') {
        None => (path, None),
        Some((path, tag)) => (path, Some(tag_of(tag))),
    };
    if tag.as_deref().is_some_and(|tag| !is_tag(tag)) {
        return Err("its tag is none");
    }
    let repository = repository.trim_end_matches('/');
    if repository.len() > 255 || !repository.split('/').all(is_component) {
        return Err("a repository has lower-case letters, digits, and single separators in its name");
    }
    Ok(Reference {
        host: host.to_ascii_lowercase(),
        repository: repository.to_owned(),
        tag,
        digest,
    })
}

/// Maximum length of a tag in bytes.
pub(crate) const MAX_TAG: usize = 128;

pub(crate) fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let inner = |byte: u8| is_word(byte) || matches!(byte, b'.' | b'-');
    tag.len() <= MAX_TAG && tag.bytes().next().is_some_and(is_word) && tag.bytes().all(inner)
}

/// Returns true for lower-case letters and digits with single separators between them.
pub(crate) fn is_component(part: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [part.bytes().next(), part.bytes().next_back()];
    ends.iter().all(|byte| byte.is_some_and(is_plain))
        && part
            .split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            .all(|between| {
                matches!(between, "" | "." | "_" | "__") || between.bytes().all(|byte| byte == b'-')
            })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_taken_apart() {
        let hex = "0".repeat(64);
        for (text, host, repository, wanted) in [
            ("oci://h/a", "h", "a", "latest".to_owned()),
            (
                "oci://H:5000/a/b-c/d__e:1.0+x",
                "h:5000",
                "a/b-c/d__e",
                "1.0_x".to_owned(),
            ),
            (&*format!("h/a:1@sha256:{hex}"), "h", "a", format!("sha256:{hex}")),
            ("oci://[::1]:5000/a/", "[::1]:5000", "a", "latest".to_owned()),
        ] {
            let reference = Reference::parse(text).unwrap();
            let found = (
                reference.host(),
                reference.repository(),
                reference.wanted().to_string(),
            );
            assert_eq!(found, (host, repository, wanted), "{text}");
        }
        let below = Reference::parse("oci://h/charts")
            .unwrap()
            .child("redis")
            .unwrap();
        assert_eq!(below.to_string(), "oci://h/charts/redis");
    }

    #[test]
    fn invalid_references_are_refused() {
        for text in [
            "oci://h",
            "oci://",
            "oci:///a",
            "oci://h/",
            "oci://h/A",
            "oci://h/a//b",
            "oci://h/../b",
            "oci://h/a/.b",
            "oci://h/a..b",
            "oci://h/a:",
            "oci://h/a:-x",
            "oci://h/a:b/c",
            "oci://h/a@sha256:0",
            "oci://h?x/a",
            "oci://h/a?x=1",
        ] {
            assert!(Reference::parse(text).is_err(), "{text}");
        }
        let error = Reference::parse("oci://me:s3cret@h/a").unwrap_err().to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }
}
