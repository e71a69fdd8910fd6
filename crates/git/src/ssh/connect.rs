//! Connections to SSH servers: host key, authentication, and the command that serves a repository.

use std::{borrow::Cow, path::Path, sync::Arc, time::Duration};

use net::{AddressPolicy, ConnectError, Duplex, Need, Proxy, Unresolved};
use parking_lot::Mutex;
use russh::{
    Channel, SshId,
    client::{self, AuthResult, ChannelOpenHandle, Handle, Msg, Session},
    keys::{
        Algorithm, HashAlg, PrivateKeyWithHashAlg, PublicKey, PublicKeyOrCertificate,
        agent::{AgentIdentity, client::AgentClient},
    },
};
use tokio::net::UnixStream;

use super::{
    address::SshAddress,
    algorithms::SshAlgorithms,
    key::SshKey,
    known_hosts::{KnownHosts, Verdict, describe, name},
    login::SshLogin,
};
use crate::{Error, clock::Clock};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

const MAX_AGENT_KEYS: usize = 20;

const WINDOW: u32 = 1 << 20;

/// Messages of a channel that are queued before the connection waits for its reader.
const CHANNEL_MESSAGES: usize = 16;

#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) address: SshAddress,
    pub(crate) login: SshLogin,
    pub(crate) algorithms: SshAlgorithms,
    pub(crate) policy: AddressPolicy,
    pub(crate) proxy: Option<Proxy>,
}

impl Server {
    fn host(&self) -> String {
        self.address.host.to_string()
    }

    fn port(&self) -> u16 {
        self.address.port()
    }

    fn user(&self) -> &str {
        let own = self.address.user.as_deref().or(self.login.user.as_deref());
        own.unwrap_or("git")
    }

    fn protocol(&self, why: impl Into<String>) -> Error {
        Error::Protocol {
            url: self.address.safe_url(),
            why: why.into(),
        }
    }

    fn network(&self, why: impl Into<String>) -> Error {
        Error::Network {
            url: self.address.safe_url(),
            why: why.into(),
        }
    }

    /// Returns true if a request to another server may use a connection to this one: they differ in the repository only.
    pub(crate) fn has_connection_of(&self, other: &Self) -> bool {
        let Self {
            address: _,
            login,
            algorithms,
            policy,
            proxy,
        } = self;
        (&self.address.host, self.port(), self.user()) == (&other.address.host, other.port(), other.user())
            && (login, algorithms) == (&other.login, &other.algorithms)
            && (policy, proxy) == (&other.policy, &other.proxy)
    }

    pub(crate) fn connect(&self, clock: &Clock) -> Result<Handle<Verifier>, Error> {
        let config = Arc::new(self.config()?);
        let stream = clock.wait(self.stream())?.map_err(|error| match error {
            ConnectError::Unresolved(Unresolved::Refused(why)) => Error::InvalidUrl {
                url: self.address.safe_url(),
                why: why.to_string(),
            },
            error => self.network(error.to_string()),
        })?;
        let refusal = Arc::new(Mutex::new(None));
        let verifier = Verifier {
            known: self.login.known_hosts.clone(),
            host: self.host(),
            port: self.port(),
            refusal: Arc::clone(&refusal),
        };
        let mut handle = clock
            .wait(client::connect_stream(config, stream, verifier))?
            .map_err(|error| match refusal.lock().take() {
                Some((why, need)) => self.host_key(why, need),
                None => self.explain(&error),
            })?;
        self.authenticate(clock, &mut handle)?;
        Ok(handle)
    }

    pub(crate) async fn ask(
        &self,
        handle: &Handle<Verifier>,
        program: &str,
    ) -> Result<Channel<Msg>, russh::Error> {
        let channel = handle.channel_open_session().await?;
        // Servers that don't accept it speak an older version of the protocol.
        channel.set_env(false, "GIT_PROTOCOL", "version=2").await?;
        channel.exec(true, self.address.command(program)).await?;
        Ok(channel)
    }

    async fn stream(&self) -> Result<Box<dyn Duplex>, ConnectError> {
        let (policy, host, port) = (&self.policy, &self.address.host, self.port());
        match &self.proxy {
            Some(proxy) => proxy.connect(policy, host, port, CONNECT_TIMEOUT).await,
            None => Ok(Box::new(net::connect(policy, host, port, CONNECT_TIMEOUT).await?)),
        }
    }

    fn host_key(&self, why: String, need: Option<Need>) -> Error {
        Error::HostKey {
            url: self.address.safe_url(),
            why,
            need,
        }
    }

    fn config(&self) -> Result<client::Config, Error> {
        let known = self.login.known_hosts.algorithms(&self.host(), self.port());
        let preferred = self.algorithms.preferred(&known).ok_or_else(|| {
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            let why = format!(
                "known_hosts has keys of the algorithms {} for {}, but only {} are allowed",
                known.join(", "),
                name(&self.host(), self.port()),
                self.algorithms.host_keys()
            );
            self.host_key(why, Some(Need::HostKey))
        })?;
        Ok(client::Config {
            client_id: SshId::Standard(Cow::Borrowed(concat!("SSH-2.0-weir_", env!("CARGO_PKG_VERSION")))),
            preferred,
            window_size: WINDOW,
            channel_buffer_size: CHANNEL_MESSAGES,
            ..client::Config::default()
        })
    }

    pub(crate) fn explain(&self, error: &russh::Error) -> Error {
        match error {
            russh::Error::NoCommonAlgo { kind, ours, theirs } => self.protocol(format!(
                "ssh: handshake failed: no common algorithm ({kind:?}): offered {}, the server has {}",
                ours.join(", "),
                cut(&theirs.join(", "))
            )),
            russh::Error::Version => self.protocol("no SSH server is there, but something else is"),
            russh::Error::Disconnect | russh::Error::HUP | russh::Error::SendError => {
                self.network("ssh: the server closed the connection")
            }
            russh::Error::IO(error) => self.network(format!("ssh: {error}")),
            russh::Error::ChannelOpenFailure(_) => {
                self.protocol("ssh: the server refuses sessions for this user")
            }
            error => self.protocol(format!("ssh: {}", cut(&error.to_string()))),
        }
    }

    fn authenticate(&self, clock: &Clock, handle: &mut Handle<Verifier>) -> Result<(), Error> {
        let rsa = clock
            .wait(handle.best_supported_rsa_hash())?
            .map_err(|error| self.explain(&error))?;
        let mut tried = Attempts {
            server: self,
            clock,
            handle,
            rsa,
            refused: Vec::new(),
        };
        if let Some(socket) = &self.login.agent
            && tried.agent(socket)?
        {
            return Ok(());
        }
        for key in &self.login.keys {
            if tried.key(key)? {
                return Ok(());
            }
        }
        Err(tried.failure())
    }
}

struct Attempts<'a> {
    server: &'a Server,
    clock: &'a Clock,
    handle: &'a mut Handle<Verifier>,
    /// Hash that the server requires of RSA keys: `None` if unknown, `Some(None)` for SHA-1 alone.
    rsa: Option<Option<HashAlg>>,
    refused: Vec<String>,
}

impl Attempts<'_> {
    fn hashes(&mut self, key: &PublicKey) -> Vec<Option<HashAlg>> {
        if !matches!(key.algorithm(), Algorithm::Rsa { .. }) {
            return vec![None];
        }
        match self.rsa {
            Some(Some(hash)) => vec![Some(hash)],
            Some(None) => Vec::new(),
            None => vec![Some(HashAlg::Sha512), Some(HashAlg::Sha256)],
        }
    }

    fn refuse(&mut self, key: &PublicKey, name: &str) {
        let sha1 = matches!(key.algorithm(), Algorithm::Rsa { .. }) && self.rsa == Some(None);
        let why = if sha1 {
            ", as the server only knows SHA-1 signatures"
        } else {
            ""
        };
        let name = cut(name);
        self.refused.push(format!("{} ({name}{why})", describe(key)));
    }

    fn key(&mut self, key: &SshKey) -> Result<bool, Error> {
        for hash in self.hashes(key.public()) {
            let signer = PrivateKeyWithHashAlg::new(key.private(), hash);
            let asked = self.handle.authenticate_publickey(self.server.user(), signer);
            let answer = self.clock.wait(asked)?;
            if answer.map_err(|error| self.server.explain(&error))?.success() {
                return Ok(true);
            }
        }
        self.refuse(key.public(), key.name());
        Ok(false)
    }

    /// Tries the keys of an agent. An agent that does not answer has none.
    fn agent(&mut self, socket: &Path) -> Result<bool, Error> {
        let binding = self.handle.agent_session_binding().cloned();
        let listed = self.clock.wait(async {
            let stream = UnixStream::connect(socket).await?;
            let mut agent = AgentClient::connect(stream);
            if let Some(binding) = &binding {
                // Older agents don't know it.
                let _ = agent.bind_session(binding, false).await;
            }
            let keys = agent.request_identities().await?;
            Ok::<_, russh::keys::Error>((agent, keys))
        })?;
        let Ok((mut agent, keys)) = listed else {
            self.refused
                .push(format!("the SSH agent at {} does not answer", socket.display()));
            return Ok(false);
        };
        for identity in keys.into_iter().take(MAX_AGENT_KEYS) {
            let AgentIdentity::PublicKey { key, comment } = identity else {
                continue;
            };
            for hash in self.hashes(&key) {
                let asked = self.handle.authenticate_publickey_with(
                    self.server.user(),
                    key.clone(),
                    hash,
                    &mut agent,
                );
                if let Ok(AuthResult::Success) = self.clock.wait(asked)? {
                    return Ok(true);
                }
            }
            self.refuse(&key, &format!("{comment}, of the SSH agent"));
        }
        Ok(false)
    }

    fn failure(self) -> Error {
        let login = &self.server.login;
        let user = self.server.user();
        let skipped = match login.skipped.is_empty() {
            true => String::new(),
            false => format!("; not used: {}", login.skipped.join(", ")),
        };
        let (why, need) = if self.refused.is_empty() {
            let why = format!("ssh: unable to authenticate as '{user}': there is no key{skipped}");
            (why, Need::SshKey)
        } else {
            let refused = self.refused.join(", ");
            let why = format!("ssh: unable to authenticate as '{user}' with {refused}{skipped}");
            (why, Need::OtherSshKey)
        };
        Error::AuthenticationFailed {
            url: self.server.address.safe_url(),
            why,
            need: Some(need),
        }
    }
}

type Refusal = (String, Option<Need>);

/// Checks the server's host key, and refuses every channel that the server opens.
pub(crate) struct Verifier {
    known: KnownHosts,
    host: String,
    port: u16,
    refusal: Arc<Mutex<Option<Refusal>>>,
}

impl Verifier {
    fn judge(&self, key: &PublicKeyOrCertificate) -> Result<(), Refusal> {
        let host = name(&self.host, self.port);
        let PublicKeyOrCertificate::PublicKey { key, .. } = key else {
            return Err((format!("{host} has a certificate, which is not supported"), None));
        };
        let described = describe(key);
        let (unread, authority) = match self.known.check(&self.host, self.port, key) {
            Verdict::Trusted => return Ok(()),
            Verdict::Revoked => {
                return Err((
                    format!("knownhosts: key is revoked: {host} has {described}"),
                    None,
                ));
            }
            Verdict::Mismatch(known) => {
                let known = known.join(", ");
                let why = format!(
                    "knownhosts: key mismatch: {host} has {described}, but known_hosts has {known}: someone may be listening in, \
                     or the key of the server was changed"
                );
                return Err((why, Some(Need::OtherHostKey)));
            }
            Verdict::Unknown { unread, authority } => (unread, authority),
        };
        let mut why = format!("knownhosts: key is unknown: {host} has {described}");
        if authority {
            why.push_str("; certificates of hosts (@cert-authority) are not supported");
        }
        if let Some(line) = unread {
            why.push_str(&format!("; line {line} of known_hosts is not understood"));
        }
        Err((why, Some(Need::HostKey)))
    }
}

impl client::Handler for Verifier {
    type Error = russh::Error;

    async fn check_server_key(&mut self, key: &PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        let judged = self.judge(key);
        let trusted = judged.is_ok();
        *self.refusal.lock() = judged.err();
        Ok(trusted)
    }

    // Dropping `reply` rejects a channel.

    async fn server_channel_open_forwarded_tcpip(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: u32,
        _: &str,
        _: u32,
        _: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        Ok(())
    }

    async fn server_channel_open_forwarded_streamlocal(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        Ok(())
    }

    async fn server_channel_open_agent_forward(
        &mut self,
        _: Channel<Msg>,
        _: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        Ok(())
    }

    async fn server_channel_open_session(
        &mut self,
        _: Channel<Msg>,
        _: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        Ok(())
    }

    async fn server_channel_open_direct_tcpip(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: u32,
        _: &str,
        _: u32,
        _: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        Ok(())
    }

    async fn server_channel_open_direct_streamlocal(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        Ok(())
    }

    async fn server_channel_open_x11(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: u32,
        _: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        Ok(())
    }
}

/// Returns the beginning of a server's string, printable and in one line.
pub(crate) fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).take(300).collect();
    api::redact(&line)
}
