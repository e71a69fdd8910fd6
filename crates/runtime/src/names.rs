//! Names that users choose, as parts of the URLs of the API server. Pure.

/// Returns false if a name could lead to another object, maybe of another namespace, as a part of a path.
#[must_use]
pub fn is_object_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain)
}

/// Returns true if a string is one segment of a URL path and can't change the rest of the path. The author of an
/// event or a Receiver chooses these strings, and must not choose requests that have the rights of this process.
#[must_use]
pub fn is_path_segment(text: &str) -> bool {
    let plain = |c: char| !c.is_control() && !c.is_whitespace() && !matches!(c, '/' | '\\' | '%' | '?' | '#');
    !matches!(text, "" | "." | "..") && text.len() <= 253 && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_lead_nowhere_else() {
        for (name, expected) in [
            ("shop", true),
            ("shop-2.credentials", true),
            ("", false),
            ("..", false),
            ("../../other/secrets/shop", false),
            ("shop?x=y", false),
            ("a%2fb", false),
        ] {
            assert_eq!(is_object_name(name), expected, "{name}");
        }
    }

    #[test]
    fn segments_that_change_the_url_path_are_refused() {
        for name in ["shop", "v1", "source.toolkit.fluxcd.io", "system:node"] {
            assert!(is_path_segment(name), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "../secrets",
            "a?watch=1",
            "a#b",
            "a%2fb",
            "a b",
            "a\nb",
            "a\\b",
        ] {
            assert!(!is_path_segment(name), "{name}");
        }
    }
}
