//! One session with a Git server: list refs, fetch a commit.

mod conversation;
pub(crate) mod non_commits;
mod on_branch;
pub(crate) mod proofs;

use std::{cell::Cell, path::Path, sync::Arc};

use gix::{
    bstr::BString,
    error::Error as GixError,
    progress::Discard,
    protocol::{
        self, Handshake, LsRefsCommand,
        ls_refs::RefPrefixes,
        transport::{
            Protocol, Service,
            client::{
                blocking_io::{Transport, http},
                git::{ConnectMode, blocking_io::Connection},
            },
        },
    },
};
use limits::ByteBudgetError;
use net::Client;

use crate::{
    Advertised, Call, Error, Limits, Reference, Remote, Resolved, Snapshot,
    announced::Announcement,
    clock::Clock,
    error::chain,
    http::Smart,
    intake::Intake,
    listing::{Listing, Recorder},
    receiver::Receiver,
    refs::{describe, select_polling},
    ssh::{link, reuse::Access},
    wire::Wire,
};
use conversation::Wanted;
use non_commits::NonCommits;
use proofs::Proofs;

/// Maximum number of attempts with reserved memory or space, each with twice as much as the one before.
const ATTEMPTS: u32 = 8;

/// A session with one server about one repository. All methods block, at most until the call's deadline.
pub struct Session {
    remote: Remote,
    limits: Limits,
    clock: Clock,
    intake: Arc<Intake>,
    pub(crate) connector: Connector,
    transport: Box<dyn Transport + Send>,
    handshake: Option<Handshake>,
    tenant: String,
    proofs: Proofs,
    non_commits: NonCommits,
}

pub(crate) enum Connector {
    Http(Client, Arc<Announcement>, Arc<Recorder>),
    Ssh(Box<Access>),
}

impl Session {
    pub(crate) fn new(
        connector: Connector,
        clock: Clock,
        intake: Intake,
        (remote, call): (&Remote, &Call),
        (tenant, proofs, non_commits): (&str, &Proofs, &NonCommits),
    ) -> Result<Self, Error> {
        let intake = Arc::new(intake);
        let transport = connector.transport(remote, &clock, &intake)?;
        Ok(Self {
            remote: remote.clone(),
            limits: call.limits.clone(),
            clock,
            intake,
            connector,
            transport,
            handshake: None,
            tenant: tenant.to_owned(),
            proofs: proofs.clone(),
            non_commits: non_commits.clone(),
        })
    }

    /// Lists the refs that `reference` needs (a server of protocol 2 sends no others).
    ///
    /// # Errors
    /// Fails when the server cannot be reached, refuses, or does not speak Git.
    pub fn list_refs(&mut self, reference: &Reference) -> Result<Vec<Advertised>, Error> {
        self.list(&reference.prefixes())
    }

    /// Lists all branches and tags, and `HEAD`, which points to the default branch.
    pub fn list_all(&mut self) -> Result<Vec<Advertised>, Error> {
        self.list(&["HEAD", "refs/heads/", "refs/tags/"].map(str::to_owned))
    }

    /// Lists and resolves `reference`. A commit with a branch must be on it; the server is asked if the branch has moved. A range
    /// passes over tags that were found to lead to no commit by [`Session::fetch`].
    ///
    /// # Errors
    /// Fails as [`Session::list_refs`] does, with [`Error::RefNotFound`], with [`Error::EmptyRepository`] if there is no ref at
    /// all, or with [`Error::NotOnBranch`].
    pub fn resolve(&mut self, reference: &Reference) -> Result<Resolved, Error> {
        match (reference.without_refs()?, reference) {
            (
                Some(resolved),
                Reference::Commit {
                    branch: Some(branch), ..
                },
            ) => return self.resolve_on(branch, resolved),
            (Some(resolved), _) => return Ok(resolved),
            (None, _) => {}
        }
        let refs = self.list_refs(reference)?;
        let passes_over = |id: &str| self.non_commits.has(id);
        match select_polling(reference, &refs, passes_over, || self.clock.check()) {
            Err(Error::RefNotFound { what, .. }) => Err(self.not_found(reference, what)),
            Err(Error::NoMatch(range)) if refs.is_empty() => match self.not_found(reference, String::new()) {
                empty @ Error::EmptyRepository { .. } => Err(empty),
                _ => Err(Error::NoMatch(range)),
            },
            other => other,
        }
    }

    /// Returns the session's list of refs, to repeat its request with [`Network::is_unchanged`]. `None` if it listed refs more
    /// than once or never, after a redirect, by SSH, and with an older protocol than 2.
    #[must_use]
    pub fn listing(&self) -> Option<Listing> {
        match &self.connector {
            Connector::Http(.., recorder) => recorder.listing(&self.remote),
            Connector::Ssh(_) => None,
        }
    }

    pub fn fetch(&mut self, wanted: &Resolved, above: &Path) -> Result<Snapshot, Error> {
        let mut fetched = self.fetch_within(wanted, above);
        for _ in 0..ATTEMPTS {
            let Err(Error::Space {
                why: ByteBudgetError::InUse,
                ..
            }) = fetched
            else {
                break;
            };
            // The old one has the rest of a broken answer.
            self.connect_anew()?;
            self.intake
                .reserve_disk(self.limits.pack_bytes.saturating_mul(2))?;
            fetched = self.fetch_within(wanted, above);
        }
        fetched
    }

    /// Fetches a commit. A failure leaves the reserved space as it was.
    fn fetch_within(&mut self, wanted: &Resolved, above: &Path) -> Result<Snapshot, Error> {
        let (stored, small_pack) = (self.intake.disk_bytes(), self.intake.small_pack_bytes());
        let fetched = self.fetch_as_announced(wanted, above);
        if fetched.is_err() {
            let (disk, memory) = (self.intake.disk_bytes(), self.intake.small_pack_bytes());
            self.intake.release_disk(disk.saturating_sub(stored));
            self.intake.release_small_pack(memory.saturating_sub(small_pack));
        }
        fetched
    }

    /// Fetches a commit; repeats if the server differs from its remembered announcement.
    fn fetch_as_announced(&mut self, wanted: &Resolved, above: &Path) -> Result<Snapshot, Error> {
        let has_begun = Cell::new(false);
        match self.fetch_once(wanted, above, &has_begun) {
            // The server may differ from its remembered announcement.
            Err(_) if !has_begun.get() && self.connector.forgets_announcement() => {
                self.connect_anew()?;
                self.fetch_once(wanted, above, &has_begun)
            }
            done => done,
        }
    }

    /// Fetches a commit, and reports if the server has started to send its pack.
    fn fetch_once(
        &mut self,
        wanted: &Resolved,
        above: &Path,
        has_begun: &Cell<bool>,
    ) -> Result<Snapshot, Error> {
        let want = wanted.want()?;
        let handshake = self.with_memory(Self::handshake)?;
        self.intake.allow_pack(self.limits.pack_bytes);
        let watch = self.clock.watch();
        let receiver = Receiver {
            above,
            limits: &self.limits,
            clock: &self.clock,
            intake: &self.intake,
            safe_url: &self.remote.safe_url(),
            stop: &watch.stop,
        };
        let (wants, transport) = (Wanted::Alone(want), &mut self.transport);
        let received = conversation::fetch(wants, &handshake, transport, &watch.stop, |pack| {
            has_begun.set(true);
            Ok((receiver.receive(pack)?, true))
        });
        let objects = received.map_err(|error| self.explain(&error, Some(wanted)))?;
        let opened = Snapshot::open(objects, want, &self.limits, self.intake.reservations());
        opened.map_err(|error| match error {
            Error::NotACommit { kind, .. } => {
                self.non_commits.remember(&wanted.want);
                Error::NotACommit {
                    name: wanted.name.clone().unwrap_or_else(|| wanted.commit.clone()),
                    url: self.remote.safe_url(),
                    kind,
                }
            }
            error => error,
        })
    }

    fn connect_anew(&mut self) -> Result<(), Error> {
        self.transport = self
            .connector
            .transport(&self.remote, &self.clock, &self.intake)?;
        Ok(())
    }

    fn list(&mut self, prefixes: &[String]) -> Result<Vec<Advertised>, Error> {
        match self.with_memory(|session| session.list_once(prefixes)) {
            Err(_) if self.connector.forgets_announcement() => {
                self.connect_anew()?;
                self.with_memory(|session| session.list_once(prefixes))
            }
            done => done,
        }
    }

    /// Reads refs with the memory that is free, or repeats with a reservation for a list of twice the length, up to the longest.
    fn with_memory<T>(&mut self, read: impl Fn(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let mut done = read(self);
        for _ in 0..ATTEMPTS {
            let Err(Error::Memory {
                why: ByteBudgetError::InUse,
                ..
            }) = done
            else {
                break;
            };
            self.intake.reserve_refs(self.limits.refs_bytes)?;
            // The old one has the rest of a broken answer.
            self.connect_anew()?;
            done = read(self);
        }
        done
    }

    fn list_once(&mut self, prefixes: &[String]) -> Result<Vec<Advertised>, Error> {
        let mut handshake = self.handshake()?;
        let refs = match handshake.refs.take() {
            Some(refs) => refs,
            None => {
                self.intake.allow_refs(self.limits.refs_bytes);
                let mut wanted = RefPrefixes::new();
                wanted.extend(prefixes.iter().map(|prefix| BString::from(prefix.as_str())));
                LsRefsCommand::new(Some(wanted), &handshake.capabilities, conversation::agent())
                    .invoke_blocking(&mut self.transport, &mut Discard, false)
                    .map_err(|error| self.explain(&error, None))?
            }
        };
        let listed = refs.iter().filter_map(Advertised::read).collect();
        // An older server lists everything once, with the handshake.
        match handshake.server_protocol_version {
            Protocol::V2 => self.connector.remember_announcement(),
            _ => handshake.refs = Some(refs),
        }
        self.handshake = Some(handshake);
        Ok(listed)
    }

    fn handshake(&mut self) -> Result<Handshake, Error> {
        if let Some(done) = self.handshake.take() {
            return Ok(done);
        }
        self.clock.check()?;
        self.intake.allow_refs(self.limits.refs_bytes);
        let nobody = |_: gix::credentials::helper::Action| Ok(None);
        let done = protocol::handshake(
            &mut self.transport,
            Service::UploadPack,
            nobody,
            Vec::new(),
            &mut Discard,
        )
        .map_err(|error| self.explain(&error, None))?;
        let format = done
            .capabilities
            .capability("object-format")
            .and_then(|format| format.value());
        if format.is_some_and(|format| format != "sha1") {
            let why = "its object format is not SHA-1, the only one supported".to_owned();
            return Err(Error::Protocol {
                url: self.remote.safe_url(),
                why,
            });
        }
        Ok(done)
    }

    /// Distinguishes an empty repository from a missing ref, and names a few refs.
    fn not_found(&mut self, reference: &Reference, what: String) -> Error {
        let url = self.remote.safe_url();
        match self.list_all() {
            Err(error) => error,
            Ok(refs) if refs.iter().all(|listed| listed.name == "HEAD") => Error::EmptyRepository { url },
            Ok(refs) => Error::RefNotFound {
                what,
                url,
                hint: describe(reference, &refs),
            },
        }
    }

    pub(crate) fn explain(&self, error: &GixError, wanted: Option<&Resolved>) -> Error {
        if let Some(failure) = self.intake.take_failure() {
            return failure;
        }
        if let Err(over) = self.clock.check() {
            return over;
        }
        let why = chain(error);
        let url = self.remote.safe_url();
        match wanted {
            Some(wanted) if why.contains("not our ref") || why.contains("unadvertised object") => {
                let hint = ": it is not in the repository, or the server doesn't hand out commits by hash"
                    .to_owned();
                Error::RefNotFound {
                    what: format!("commit '{}'", wanted.commit),
                    url,
                    hint,
                }
            }
            _ if why.contains("smart' protocol") => Error::Protocol {
                url,
                why: "no Git repository is there, but something else is".to_owned(),
            },
            _ => Error::Protocol { url, why },
        }
    }
}

/// Parts that a push needs.
impl Session {
    pub(crate) fn remote(&self) -> &Remote {
        &self.remote
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn intake(&self) -> &Arc<Intake> {
        &self.intake
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("remote", &self.remote)
            .finish_non_exhaustive()
    }
}

impl Connector {
    fn remember_announcement(&self) {
        if let Self::Http(_, announcement, _) = self {
            announcement.remember();
        }
    }

    /// Forgets the capabilities of an earlier session. Returns true if this session used them.
    fn forgets_announcement(&self) -> bool {
        match self {
            Self::Http(_, announcement, _) => announcement.forget(),
            Self::Ssh(_) => false,
        }
    }

    pub(crate) fn transport(
        &self,
        remote: &Remote,
        clock: &Clock,
        intake: &Arc<Intake>,
    ) -> Result<Box<dyn Transport + Send>, Error> {
        let (client, known) = match self {
            Self::Http(client, announcement, recorder) => {
                (client.clone(), (Arc::clone(announcement), Arc::clone(recorder)))
            }
            Self::Ssh(access) => {
                let (answer, request) =
                    link::open(access.as_ref().clone(), clock.clone(), Arc::clone(intake));
                let (path, host) = (access.server.address.path.as_str(), None::<(String, Option<u16>)>);
                let mode = ConnectMode::Process;
                let connection = Connection::new(answer, request, Protocol::V2, path, host, mode, false);
                return Ok(Box::new(connection.custom_url(Some(remote.safe_url().into()))));
            }
        };
        let url = gix::url::parse(remote.url().as_str()).map_err(|error| Error::InvalidUrl {
            url: remote.safe_url(),
            why: chain(&error),
        })?;
        let wire = Wire::new(client, known, Arc::clone(intake), remote.clone(), clock.clone());
        Ok(Box::new(http::Transport::new_http(
            Smart(Arc::new(wire)),
            url,
            Protocol::V2,
            false,
        )))
    }
}
