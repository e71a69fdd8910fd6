//! Commands that read: lists, trees, events and causes.

pub(crate) mod debug;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod logs;
mod read;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod trace;
pub(crate) mod tree;

/// Returns the error about the word of an unknown kind.
fn unknown_kind(word: &str) -> String {
    let mut names: Vec<&str> = fleet::kind::ALL.iter().map(|kind| kind.kind).collect();
    names.sort_unstable();
    names.dedup();
    format!(
        "'{word}' is not a recognized Flux kind: use one of {}",
        names.join(", ")
    )
}

/// Returns the plural of the name of a kind.
fn plural(kind: &str) -> String {
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    }
}
