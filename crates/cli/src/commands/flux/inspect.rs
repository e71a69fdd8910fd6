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

/// Returns the plural of the name of a kind.
fn plural(kind: &str) -> String {
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    }
}
