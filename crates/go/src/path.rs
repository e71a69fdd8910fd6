//! Package `path`: slash-separated paths and their patterns.

mod pattern;

pub use pattern::{Pattern, PatternError};

/// Returns the last element of a path (`path.Base`): `.` for an empty path, `/` for one of slashes only.
#[must_use]
pub fn base(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    match (path, trimmed) {
        ("", _) => ".",
        (_, "") => "/",
        (_, trimmed) => trimmed.rsplit('/').next().unwrap_or(trimmed),
    }
}

/// Returns all but the last element of a path, cleaned (`path.Dir`).
#[must_use]
pub fn dir(path: &str) -> String {
    let end = path.rfind('/').map_or(0, |slash| slash + 1);
    clean(path.get(..end).unwrap_or_default())
}

/// Returns the shortest equivalent path (`path.Clean`).
#[must_use]
pub fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(last) if *last != ".." => {
                    parts.pop();
                }
                _ if rooted => {}
                _ => parts.push(part),
            },
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// Returns the extension of the last element with its dot, or an empty string (`path.Ext`).
#[must_use]
pub fn ext(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    let dot = name.rfind('.').unwrap_or(name.len());
    name.get(dot..).unwrap_or_default()
}

/// Returns true if a path begins with a slash (`path.IsAbs`).
#[must_use]
pub fn is_abs(path: &str) -> bool {
    path.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_and_cleaned_as_in_go() {
        for (path, last, parent, cleaned, extension) in [
            ("", ".", ".", ".", ""),
            ("/", "/", "/", "/", ""),
            ("a", "a", ".", "a", ""),
            ("a/b.c/", "b.c", "a/b.c", "a/b.c", ""),
            ("a/../../b.tar.gz", "b.tar.gz", "..", "../b.tar.gz", ".gz"),
            ("/../a//./b", "b", "/a", "/a/b", ""),
        ] {
            assert_eq!(base(path), last, "{path}");
            assert_eq!(dir(path), parent, "{path}");
            assert_eq!(clean(path), cleaned, "{path}");
            assert_eq!(ext(path), extension, "{path}");
        }
        assert!(is_abs("/a") && !is_abs("a"));
    }
}
