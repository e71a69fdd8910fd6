//! Expands the references to vars in a string.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::value::Value;
use crate::Error;

/// The result of expanding the vars of a string.
#[derive(Debug)]
pub(super) enum Expanded<'v> {
    /// The value of the only reference, with its type, if the string is nothing else.
    Alone(&'v Value),
    Text(String),
}

/// Replaces each `$(NAME)` for which `lookup` has a value. `$$` is a dollar sign; other dollar signs stay.
pub(super) fn expand<'v>(
    text: &str,
    lookup: &mut dyn FnMut(&str) -> Result<Option<&'v Value>, Error>,
) -> Result<Expanded<'v>, Error> {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    // Searched once: a string of nothing but openings takes no longer than others.
    let after_last_close = text.rfind(')').map_or(usize::MAX, |at| text.len() - at);
    while let Some((before, after)) = rest.split_once('$') {
        out.extend(before.as_bytes());
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            out.push(b'$');
            rest = after;
        } else if let Some((name, after)) = reference(rest, after_last_close) {
            match lookup(name)? {
                Some(value) if name.len() + "$()".len() == text.len() => return Ok(Expanded::Alone(value)),
                Some(value) => out.extend(value.text.as_bytes()),
                None => out.extend(["$(", name, ")"].concat().as_bytes()),
            }
            rest = after;
        } else {
            out.push(b'$');
            if let Some(broken) = rest.chars().next().filter(|next| !next.is_ascii()) {
                rest = rest.get(broken.len_utf8()..).unwrap_or_default();
                extend_broken(&mut out, broken);
            }
        }
    }
    out.extend(rest.as_bytes());
    let text = String::from_utf8(out).unwrap_or_else(|broken| STANDARD.encode(broken.as_bytes()));
    Ok(Expanded::Text(text))
}

fn reference(rest: &str, after_last_close: usize) -> Option<(&str, &str)> {
    let closes = rest.len() >= after_last_close;
    rest.strip_prefix('(').filter(|_| closes)?.split_once(')')
}

/// quirk: the original takes the first byte after a dollar sign for a character of its own. The rest of a longer character
/// is invalid UTF-8, and such strings become base64.
fn extend_broken(out: &mut Vec<u8>, broken: char) {
    let mut buffer = [0; 4];
    let mut bytes = broken.encode_utf8(&mut buffer).bytes();
    if let Some(first) = bytes.next() {
        out.extend(char::from(first).encode_utf8(&mut [0; 2]).as_bytes());
    }
    out.extend(bytes);
}
