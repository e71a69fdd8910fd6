//! The repository: reading a branch, and committing files to it.

use std::time::Duration;

use anyhow::{Context as _, Result};
use git::{Call, Commit, Error, Network, NewCommit, Remote, Selector};
use jiff::Timestamp;
use net::AddressPolicy;
use tokio::runtime::Handle;
use tree::{Tree as _, TreePath};

/// Attempts to push on top of a branch that others push to at the same time.
const ATTEMPTS: u32 = 3;
const FILE_BYTES: u64 = 16 << 20;

pub(super) struct Repository {
    network: Network,
    remote: Remote,
    call: Call,
    branch: String,
    author: (String, String),
}

/// The state of the branch: no commit if it doesn't exist.
pub(super) struct Head {
    pub(super) commit: Option<Commit>,
}

impl Head {
    /// Returns the text of a file; `None` if it is missing.
    pub(super) fn read(&self, path: &str) -> Result<Option<String>> {
        let Some(commit) = &self.commit else {
            return Ok(None);
        };
        let path = TreePath::parse(path)?;
        if !commit.is_file(&path) {
            return Ok(None);
        }
        let bytes = commit.read(&path).with_context(|| format!("read {path}"))?;
        let text = String::from_utf8(bytes.to_vec());
        Ok(Some(text.with_context(|| format!("{path} is not UTF-8"))?))
    }

    pub(super) fn id(&self) -> Option<String> {
        self.commit.as_ref().map(Commit::id)
    }
}

impl Repository {
    pub(super) fn new(
        runtime: Handle,
        remote: Remote,
        branch: &str,
        author: (&str, &str),
        timeout: Duration,
    ) -> Self {
        Self {
            network: Network::new(runtime, AddressPolicy::command_line()),
            remote,
            call: Call::new(timeout),
            branch: branch.to_owned(),
            author: (author.0.to_owned(), author.1.to_owned()),
        }
    }

    /// Fetches the newest commit of the branch.
    pub(super) fn fetch(&self) -> Result<Head> {
        let selector = Selector {
            branch: Some(self.branch.clone()),
            ..Selector::default()
        };
        let reference = selector.reference()?;
        let mut session = self.network.open(&self.remote, &self.call)?;
        let commit = match session.resolve(&reference) {
            Ok(resolved) => Some(Commit::fetch(&mut session, &resolved, FILE_BYTES)?),
            Err(Error::EmptyRepository { .. } | Error::RefNotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Head { commit })
    }

    /// Commits and pushes the files that `change` returns for the state of the branch; another push at the same time makes it try again.
    /// Returns the new commit, or `None` if the branch has the files.
    pub(super) fn commit(
        &self,
        message: &str,
        change: impl Fn(&Head) -> Result<Vec<(String, String)>>,
    ) -> Result<Option<String>> {
        let mut attempt = 1;
        loop {
            let head = self.fetch()?;
            let files = change(&head)?.into_iter();
            let files: Vec<_> = files.map(|(path, text)| (path, text.into_bytes())).collect();
            let commit = NewCommit {
                branch: &self.branch,
                author: (&self.author.0, &self.author.1),
                time: Timestamp::now().as_second(),
                message,
                files: &files,
            };
            let session = self.network.open(&self.remote, &self.call)?;
            match session.push_onto(head.commit.as_ref(), &commit) {
                Err(Error::Rejected { .. }) if attempt < ATTEMPTS => attempt += 1,
                done => return Ok(done?),
            }
        }
    }
}
