//! Pushing one commit to a branch, without a checkout.
//!
//! The new objects are made in memory: the files, the directories above them, and the commit. All other objects of the base are on the
//! server, so a shallow fetch of one commit suffices.

mod pack;
mod report;
mod tree;

use std::{
    io::{self, Read as _, Write as _},
    sync::Arc,
};

use gix::{
    ObjectId,
    actor::Signature,
    bstr::BString,
    date::Time,
    objs::{Commit, Kind, WriteTo as _},
    progress::Discard,
    protocol::{
        self,
        transport::{
            Service,
            client::{
                MessageKind, WriteMode,
                blocking_io::{ExtendedBufRead, Transport},
            },
        },
    },
};

use crate::{
    Commit as FetchedCommit, Error, Session, Snapshot,
    error::chain,
    session::Connector,
    ssh::address::{FETCH, PUSH},
};
use pack::Objects;

const HASH: gix::hash::Kind = gix::hash::Kind::Sha1;
/// Maximum size in bytes of a report: two lines.
const REPORT_BYTES: u64 = 64 << 10;

/// A commit that is to be made on a branch.
#[derive(Debug, Clone)]
pub struct NewCommit<'a> {
    /// Name without `refs/heads/`. It is created if it doesn't exist.
    pub branch: &'a str,
    /// Name and mail address of author and committer.
    pub author: (&'a str, &'a str),
    /// Seconds since 1970.
    pub time: i64,
    pub message: &'a str,
    /// Paths and contents of the files to write. Others stay as they are.
    pub files: &'a [(String, Vec<u8>)],
}

impl Session {
    /// Commits files on top of `base`, the commit that the branch has (`None` for a branch that doesn't exist), and pushes the commit.
    /// Returns its hash; `None` if the files are in the base already, so that nothing is pushed.
    ///
    /// # Errors
    /// Fails with [`Error::Rejected`] if the branch has moved or is protected, when a path is invalid, the server can't be reached, refuses,
    /// or does not speak Git.
    pub fn push(&self, base: Option<&Snapshot>, commit: &NewCommit<'_>) -> Result<Option<String>, Error> {
        let mut objects = Objects::default();
        let tree = tree::write(base, commit.files, &mut objects)?;
        if base.is_some_and(|base| base.tree() == tree) {
            return Ok(None);
        }
        let parent = base.map(Snapshot::commit_id);
        let id = objects.add(Kind::Commit, encode(commit, tree, parent)?)?;
        let command = Command {
            reference: format!("refs/heads/{}", commit.branch),
            old: parent.unwrap_or_else(|| ObjectId::null(HASH)),
            new: id,
        };
        self.send(&command, &objects.pack()?)?;
        Ok(Some(id.to_string()))
    }

    /// Does the same as [`Session::push`] on top of a commit that was fetched as a tree.
    ///
    /// # Errors
    /// Fails as [`Session::push`] does, and if the commit is a copy in memory.
    pub fn push_onto(
        &self,
        base: Option<&FetchedCommit>,
        commit: &NewCommit<'_>,
    ) -> Result<Option<String>, Error> {
        match base {
            Some(base) => base.with_snapshot(|snapshot| self.push(Some(snapshot), commit)),
            None => self.push(None, commit),
        }
    }

    fn send(&self, command: &Command, pack: &[u8]) -> Result<(), Error> {
        let connector = self.connector.pushing();
        let mut transport = connector.transport(self.remote(), self.clock(), self.intake())?;
        self.intake().allow_refs(self.limits().refs_bytes);
        let nobody = |_: gix::credentials::helper::Action| Ok(None);
        let handshake = protocol::handshake(
            &mut transport,
            Service::ReceivePack,
            nobody,
            Vec::new(),
            &mut Discard,
        );
        let handshake = handshake.map_err(|error| self.explain(&error, None))?;
        if !handshake.capabilities.contains("report-status") {
            return Err(self.protocol("it doesn't report whether it accepts a push"));
        }
        let report = command.send(&mut transport, pack);
        let report = report.map_err(|error| match self.intake().take_failure() {
            Some(failure) => failure,
            None => self.protocol(&error.to_string()),
        })?;
        report::check(&report, &command.reference, &self.remote().safe_url())
    }

    fn protocol(&self, why: &str) -> Error {
        Error::Protocol {
            url: self.remote().safe_url(),
            why: api::redact(why),
        }
    }
}

impl Connector {
    /// Returns a connector for a push: it shares the connections, but no list of refs.
    fn pushing(&self) -> Self {
        match self {
            Self::Http(client, announcement, _) => {
                Self::Http(client.clone(), Arc::clone(announcement), Arc::default())
            }
            Self::Ssh(access) => {
                debug_assert_eq!(access.program, FETCH);
                let mut access = access.clone();
                access.program = PUSH;
                Self::Ssh(access)
            }
        }
    }
}

struct Command {
    reference: String,
    old: ObjectId,
    new: ObjectId,
}

impl Command {
    /// Sends the command and the pack, and returns the report of the server.
    fn send(&self, transport: &mut Box<dyn Transport + Send>, pack: &[u8]) -> io::Result<String> {
        let opened = transport.request(WriteMode::Binary, MessageKind::Flush, false);
        let (mut request, answer) = opened
            .map_err(|error| io::Error::other(error.to_string()))?
            .into_parts();
        request.write_all(&self.lines())?;
        request.write_all(pack)?;
        // Transports may send a request when its writer is dropped.
        drop(request);
        read(answer)
    }

    fn lines(&self) -> Vec<u8> {
        let agent = concat!("git/weir-", env!("CARGO_PKG_VERSION"));
        let line = format!(
            "{} {} {}\0 report-status agent={agent}",
            self.old, self.new, self.reference
        );
        format!("{:04x}{line}0000", line.len() + 4).into_bytes()
    }
}

fn read(answer: Box<dyn ExtendedBufRead<'_> + Unpin + '_>) -> io::Result<String> {
    let mut report = Vec::new();
    answer.take(REPORT_BYTES).read_to_end(&mut report)?;
    Ok(String::from_utf8_lossy(&report).into_owned())
}

fn encode(commit: &NewCommit<'_>, tree: ObjectId, parent: Option<ObjectId>) -> Result<Vec<u8>, Error> {
    let (name, email) = commit.author;
    let is_clean = |text: &str| !text.contains(['<', '>', '\n', '\0']);
    if !is_clean(name) || !is_clean(email) || name.is_empty() {
        return Err(Error::InvalidReference(
            "the author of a commit needs a name, and neither it nor the address may have '<', '>' or line ends".to_owned(),
        ));
    }
    let signature = Signature {
        name: BString::from(name),
        email: BString::from(email),
        time: Time::new(commit.time, 0),
    };
    let commit = Commit {
        tree,
        parents: parent.into_iter().collect(),
        author: signature.clone(),
        committer: signature,
        encoding: None,
        message: BString::from(format!("{}\n", commit.message.trim_end())),
        extra_headers: Vec::new(),
    };
    let mut bytes = Vec::new();
    commit
        .write_to(&mut bytes)
        .map_err(|error| Error::InvalidReference(error.to_string()))?;
    Ok(bytes)
}

/// Explains an error about an object that was just made.
fn unmade(error: &gix::Error) -> Error {
    Error::Disk(chain(error))
}
