//! One conversation with a Git server: list refs, fetch a commit.

mod conversation;
pub(crate) mod on_branch;

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
use net::Client;
use tree::ByteBudgetError;

use crate::{
    Advertised, Call, Error, Limits, Reference, Remote, Resolved, Snapshot,
    announced::Announcement,
    clock::Clock,
    error::chain,
    http::Smart,
    intake::Intake,
    listing::{Listing, Recorder},
    receiver::Receiver,
    refs::{describe, select},
    ssh::{link, reuse::Access},
    wire::Wire,
};
use conversation::Wanted;
use on_branch::Proofs;

/// A conversation with one server about one repository. All methods block until the call's deadline at most.
pub struct Session {
    remote: Remote,
    limits: Limits,
    clock: Clock,
    intake: Arc<Intake>,
    way: Way,
    transport: Box<dyn Transport + Send>,
    handshake: Option<Handshake>,
    /// Name of the tenant that the proofs are for.
    tenant: String,
    proofs: Proofs,
}

/// The way to a server.
pub(crate) enum Way {
    Http(Client, Arc<Announcement>, Arc<Recorder>),
    Ssh(Box<Access>),
}

impl Session {
    pub(crate) fn new(
        way: Way,
        clock: Clock,
        intake: Intake,
        (remote, call): (&Remote, &Call),
        (tenant, proofs): (&str, &Proofs),
    ) -> Result<Self, Error> {
        let intake = Arc::new(intake);
        let transport = way.transport(remote, &clock, &intake)?;
        Ok(Self {
            remote: remote.clone(),
            limits: call.limits.clone(),
            clock,
            intake,
            way,
            transport,
            handshake: None,
            tenant: tenant.to_owned(),
            proofs: proofs.clone(),
        })
    }

    /// Lists the refs that `reference` needs (a server of protocol 2 sends no others).
    ///
    /// # Errors
    /// Fails when the server cannot be reached, refuses, or does not speak Git.
    pub fn list_refs(&mut self, reference: &Reference) -> Result<Vec<Advertised>, Error> {
        self.list(&reference.prefixes())
    }

    /// Lists all branches and tags, and `HEAD`, which says which branch is the default.
    ///
    /// # Errors
    /// Fails when [`Session::list_refs`] does.
    pub fn list_all(&mut self) -> Result<Vec<Advertised>, Error> {
        self.list(&["HEAD", "refs/heads/", "refs/tags/"].map(str::to_owned))
    }

    /// Lists what `reference` needs and says which commit it means. A commit with a branch must be on it; the server is asked for that when
    /// the branch has moved.
    ///
    /// # Errors
    /// Fails when [`Session::list_refs`] does, with [`Error::RefNotFound`] if the repository has no such ref, with
    /// [`Error::EmptyRepository`] when it has none at all, or with [`Error::NotOnBranch`].
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
        match select(reference, &refs) {
            Err(Error::RefNotFound { what, .. }) => Err(self.not_found(reference, what)),
            Err(Error::NoMatch(range)) if refs.is_empty() => match self.not_found(reference, String::new()) {
                empty @ Error::EmptyRepository { .. } => Err(empty),
                _ => Err(Error::NoMatch(range)),
            },
            other => other,
        }
    }

    /// Returns the list of refs that the session asked for, to ask for it again with [`Network::is_unchanged`]. `None` if it asked for more
    /// than one or none at all, after a redirect, by SSH, and with an older protocol than 2.
    #[must_use]
    pub fn listing(&self) -> Option<Listing> {
        match &self.way {
            Way::Http(.., recorder) => recorder.listing(&self.remote),
            Way::Ssh(_) => None,
        }
    }

    /// Fetches one commit without its history. A pack of at most 256 KiB is kept in memory if there is some; another one goes to a temporary
    /// directory in `above`, which is removed with the last clone of the snapshot.
    ///
    /// # Errors
    /// Fails when the server cannot be reached or refuses, a limit is reached, or `above` cannot be written.
    pub fn fetch(&mut self, wanted: &Resolved, above: &Path) -> Result<Snapshot, Error> {
        match self.fetch_within(wanted, above) {
            Err(Error::Space {
                why: ByteBudgetError::InUse,
                ..
            }) => {
                // The old one has the rest of a broken answer.
                self.connect_anew()?;
                self.intake
                    .reserve_disk(self.limits.pack_bytes.saturating_mul(2))?;
                self.fetch_within(wanted, above)
            }
            done => done,
        }
    }

    /// Fetches a commit with the space that is free. After a failure, it has as much as before.
    fn fetch_within(&mut self, wanted: &Resolved, above: &Path) -> Result<Snapshot, Error> {
        let (stored, kept) = (self.intake.disk_bytes(), self.intake.kept_bytes());
        let fetched = self.fetch_as_announced(wanted, above);
        if fetched.is_err() {
            let (disk, memory) = (self.intake.disk_bytes(), self.intake.kept_bytes());
            self.intake.give_back_disk(disk.saturating_sub(stored));
            self.intake.give_back_kept(memory.saturating_sub(kept));
        }
        fetched
    }

    /// Fetches a commit, again if the server is another one than it announced.
    fn fetch_as_announced(&mut self, wanted: &Resolved, above: &Path) -> Result<Snapshot, Error> {
        let has_begun = Cell::new(false);
        match self.fetch_once(wanted, above, &has_begun) {
            // The server may be another one than when it announced itself.
            Err(_) if !has_begun.get() && self.way.forgets_announcement() => {
                self.connect_anew()?;
                self.fetch_once(wanted, above, &has_begun)
            }
            done => done,
        }
    }

    /// Fetches a commit; says if the server has begun to send its pack.
    fn fetch_once(
        &mut self,
        wanted: &Resolved,
        above: &Path,
        has_begun: &Cell<bool>,
    ) -> Result<Snapshot, Error> {
        let want = wanted.want()?;
        let handshake = self.with_room(Self::handshake)?;
        self.intake.allow_pack(self.limits.pack_bytes);
        let watch = self.clock.watch();
        let receiver = Receiver {
            above,
            limits: &self.limits,
            clock: &self.clock,
            intake: &self.intake,
            shown: &self.remote.shown(),
            stop: &watch.stop,
        };
        let (wants, transport) = (Wanted::Alone(want), &mut self.transport);
        let received = conversation::fetch(wants, &handshake, transport, &watch.stop, |pack| {
            has_begun.set(true);
            Ok((receiver.receive(pack)?, true))
        });
        let objects = received.map_err(|error| self.explain(&error, Some(wanted)))?;
        Snapshot::open(objects, want, &self.limits, self.intake.holdings())
    }

    /// Replaces the transport by a new one, which connects when it is used.
    fn connect_anew(&mut self) -> Result<(), Error> {
        self.transport = self.way.transport(&self.remote, &self.clock, &self.intake)?;
        Ok(())
    }

    fn list(&mut self, prefixes: &[String]) -> Result<Vec<Advertised>, Error> {
        match self.with_room(|session| session.list_once(prefixes)) {
            // The server may be another one than when it announced itself.
            Err(_) if self.way.forgets_announcement() => {
                self.connect_anew()?;
                self.with_room(|session| session.list_once(prefixes))
            }
            done => done,
        }
    }

    /// Reads refs with the memory that is free, and else once more with all that they may need.
    fn with_room<T>(&mut self, read: impl Fn(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        match read(self) {
            Err(Error::Memory {
                why: ByteBudgetError::InUse,
                ..
            }) => {
                self.intake.reserve_refs(self.limits.refs_bytes)?;
                // The old one has the rest of a broken answer.
                self.connect_anew()?;
                read(self)
            }
            done => done,
        }
    }

    fn list_once(&mut self, prefixes: &[String]) -> Result<Vec<Advertised>, Error> {
        let mut handshake = self.handshake()?;
        let refs = match handshake.refs.take() {
            Some(refs) => refs,
            None => {
                self.intake.allow_refs(self.limits.refs_bytes);
                let mut wanted = RefPrefixes::new();
                wanted.extend(prefixes.iter().map(|prefix| BString::from(prefix.as_str())));
                LsRefsCommand::new(Some(wanted), &handshake.capabilities, agent())
                    .invoke_blocking(&mut self.transport, &mut Discard, false)
                    .map_err(|error| self.explain(&error, None))?
            }
        };
        let listed = refs.iter().filter_map(Advertised::read).collect();
        // An older server lists everything once, with the handshake.
        match handshake.server_protocol_version {
            Protocol::V2 => self.way.remember_announcement(),
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
                url: self.remote.shown(),
                why,
            });
        }
        Ok(done)
    }

    /// Tells an empty repository from one that lacks a ref, and names a few that it has.
    fn not_found(&mut self, reference: &Reference, what: String) -> Error {
        let url = self.remote.shown();
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

    /// The failure behind an error of gix.
    fn explain(&self, error: &GixError, wanted: Option<&Resolved>) -> Error {
        if let Some(failure) = self.intake.take_failure() {
            return failure;
        }
        if let Err(over) = self.clock.check() {
            return over;
        }
        let why = chain(error);
        let url = self.remote.shown();
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

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("remote", &self.remote)
            .finish_non_exhaustive()
    }
}

impl Way {
    /// Remembers the capabilities with which refs were listed.
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

    /// Returns a new transport. It connects when it is used.
    fn transport(
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
                return Ok(Box::new(connection.custom_url(Some(remote.shown().into()))));
            }
        };
        let url = gix::url::parse(remote.url().as_str()).map_err(|error| Error::InvalidUrl {
            url: remote.shown(),
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

fn agent() -> (&'static str, Option<String>) {
    (
        "agent",
        Some(concat!("git/weir-", env!("CARGO_PKG_VERSION")).to_owned()),
    )
}
