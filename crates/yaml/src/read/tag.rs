//! Tags of scalars.

use crate::Problem;

const STANDARD: &str = "tag:yaml.org,2002:";

/// Writes a standard tag as `!!name`; others stay as they are.
pub(super) fn short(tag: &str) -> String {
    tag.strip_prefix(STANDARD)
        .map_or_else(|| tag.to_owned(), |name| format!("!!{name}"))
}

/// The error of a scalar that isn't what its tag says.
pub(super) fn mismatch(text: &str, tag: &str) -> Problem {
    Problem::Tag {
        text: text.to_owned(),
        tag: tag.to_owned(),
    }
}

/// The text of a `!!binary` scalar; what isn't UTF-8 in it is replaced.
pub(super) fn binary(text: &str) -> Result<String, Problem> {
    use base64::Engine as _;
    let compact: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(compact)
        .map_err(|_| mismatch(text, "!!binary"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
