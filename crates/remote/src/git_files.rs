//! Files of commits.

use std::sync::Arc;

use git::{Commit, Error, Resolved, Selector, Session};

use crate::{FetchedFiles, ScopedCache, source_cache::MAX_SOURCE_BYTES};

pub enum CommitFiles {
    /// They were fetched before, and the server announced the commit again.
    Cached(FetchedFiles),
    Fetched(Commit),
}

/// Resolves the first selector that the server has a reference for. Blocks.
pub fn resolve(session: &mut Session, selectors: &[Selector]) -> Result<Resolved, Error> {
    let mut selectors = selectors.iter().peekable();
    while let Some(selector) = selectors.next() {
        match session.resolve(&selector.reference()?) {
            Err(Error::RefNotFound { .. }) if selectors.peek().is_some() => {}
            resolved => return resolved,
        }
    }
    session.resolve(&Selector::default().reference()?)
}

/// Fetches the commit of the first selector that the server has a reference for, unless it is cached. Files have at most `file_bytes`
/// bytes. Blocks.
pub fn fetch(
    session: &mut Session,
    selectors: &[Selector],
    cache: Option<&ScopedCache>,
    file_bytes: u64,
) -> Result<CommitFiles, Error> {
    let resolved = resolve(session, selectors)?;
    if let Some(cached) = cache.and_then(|cache| cache.get(&resolved.commit))
        && is_announced(session, selectors, &resolved.commit)?
    {
        return Ok(CommitFiles::Cached(cached));
    }
    Commit::fetch(session, &resolved, file_bytes).map(CommitFiles::Fetched)
}

/// Returns the files of a fetched commit, and caches them if they are small.
#[must_use]
pub fn keep(commit: Commit, cache: Option<&ScopedCache>) -> FetchedFiles {
    let id = commit.id();
    let files = |commit| FetchedFiles {
        commit: Some(id.clone()),
        revision: Some(id.clone()),
        tree: Arc::new(commit),
    };
    if let Some(cache) = cache
        && let Some((in_memory, bytes)) = commit.in_memory(MAX_SOURCE_BYTES)
    {
        let in_memory = files(in_memory);
        cache.insert(&id, in_memory.clone(), bytes);
        return in_memory;
    }
    files(commit)
}

/// Returns true if the server has announced a commit, so that it may be fetched with the credentials of the session. A reference that is
/// a commit was resolved without the server.
fn is_announced(session: &mut Session, selectors: &[Selector], commit: &str) -> Result<bool, Error> {
    if selectors.iter().all(|selector| selector.commit.is_none()) {
        return Ok(true);
    }
    let refs = session.list_all()?;
    Ok(refs.iter().any(|listed| listed.commit() == commit))
}
