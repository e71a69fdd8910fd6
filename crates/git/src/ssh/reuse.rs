//! Connections to SSH servers that the requests of a pass share.
//!
//! A connection has one request at a time, so that none waits for another or ends with it. A request is a channel of its own; when the
//! server has ended it, the connection is kept for the next. A connection on which a request failed is closed, and one that refuses the next
//! request is replaced.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use russh::{
    Channel, ChannelMsg, Disconnect,
    client::{Handle, Msg},
};
use tokio::{
    runtime,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinHandle,
    time::timeout,
};

use super::connect::{Server, Verifier};
use crate::{Error, clock::Clock, lock::lock};

/// Maximum number of connections that one pass keeps.
const MAX_KEPT: usize = 8;

/// Maximum number of connections that all passes of a process keep: a pass that waits for its turn has one.
pub(crate) const MAX_KEPT_BY_ALL: usize = 64;

/// Bytes of an answer that are read after its request has ended. A longer one ends the connection.
const REST_BYTES: usize = 64 << 10;

/// Time for the end of a request. Programs of Git end at once when they are told.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Time for the end of the last request on a kept connection and the start of the next.
const REUSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Time for telling a server that a connection ends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Packet of Git's protocol that ends a conversation.
const FLUSH: &[u8] = b"0000";

/// Connections to SSH servers for the requests of one pass, which log in once to each server. Clones are the same; the connections are
/// closed with the last one. Requests share a connection if they have the same server, user, keys, known hosts, proxy and algorithms.
#[derive(Clone, Default)]
pub struct SshConnections(Arc<Mutex<Vec<Kept>>>);

impl fmt::Debug for SshConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SshConnections")
    }
}

/// A connection that waits for its next request.
struct Kept {
    server: Server,
    /// The connection, when the last request on it has ended; `None` if it can't be used any more.
    connection: JoinHandle<Option<Connection>>,
    _permit: OwnedSemaphorePermit,
}

/// An authenticated connection. It is closed when it is dropped.
struct Connection {
    handle: Arc<Handle<Verifier>>,
    runtime: runtime::Handle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let handle = Arc::clone(&self.handle);
        self.runtime.spawn(async move {
            let closing = handle.disconnect(Disconnect::ByApplication, "", "");
            // Without an answer, the connection ends with its handle.
            let _ = timeout(CLOSE_TIMEOUT, closing).await;
        });
    }
}

/// A channel on which `git-upload-pack` was asked for, and its connection.
pub(crate) struct Connected {
    pub(crate) channel: Channel<Msg>,
    connection: Connection,
    /// True if the connection had another request before.
    pub(crate) is_reused: bool,
}

/// A server, and the connections to it that a pass keeps.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) server: Server,
    pub(crate) connections: SshConnections,
    /// Permits for keeping connections, of the whole process.
    pub(crate) permits: Arc<Semaphore>,
}

impl Access {
    /// Asks for the repository, on a kept connection if there is one. Blocks the thread.
    pub(crate) fn open(&self, clock: &Clock) -> Result<Connected, Error> {
        let Some(kept) = self.connections.take(&self.server) else {
            return self.open_new(clock);
        };
        let asked = async {
            let connection = kept.connection.await.ok().flatten()?;
            let asked = match self.server.ask(&connection.handle).await {
                // OpenSSH counts the last session until it has looked at its end again, and may allow one.
                Err(russh::Error::ChannelOpenFailure(_)) => self.server.ask(&connection.handle).await,
                asked => asked,
            };
            Some(Connected {
                channel: asked.ok()?,
                connection,
                is_reused: true,
            })
        };
        match clock.wait(async { timeout(REUSE_TIMEOUT, asked).await })? {
            Ok(Some(connected)) => Ok(connected),
            Ok(None) | Err(_) => self.open_new(clock),
        }
    }

    /// Asks for the repository on a new connection. Blocks the thread.
    pub(crate) fn open_new(&self, clock: &Clock) -> Result<Connected, Error> {
        let connection = Connection {
            handle: Arc::new(self.server.connect(clock)?),
            runtime: clock.runtime().clone(),
        };
        let asked = clock.wait(self.server.ask(&connection.handle))?;
        Ok(Connected {
            channel: asked.map_err(|error| self.server.explain(&error))?,
            connection,
            is_reused: false,
        })
    }

    /// Ends a request that did not fail, and keeps its connection for the next. Doesn't wait.
    pub(crate) fn keep(&self, connected: Connected) {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return;
        };
        let runtime = connected.connection.runtime.clone();
        self.connections.add(Kept {
            server: self.server.clone(),
            connection: runtime.spawn(end(connected)),
            _permit: permit,
        });
    }
}

impl SshConnections {
    /// Returns the connection to a server that was used last.
    fn take(&self, server: &Server) -> Option<Kept> {
        let mut all = lock(&self.0);
        let at = all
            .iter()
            .rposition(|kept| kept.server.has_connection_of(server))?;
        Some(all.remove(at))
    }

    fn add(&self, kept: Kept) {
        let mut all = lock(&self.0);
        if all.len() >= MAX_KEPT {
            all.remove(0);
        }
        all.push(kept);
    }
}

/// Ends a request, and returns its connection if the server agrees soon.
async fn end(connected: Connected) -> Option<Connection> {
    let Connected {
        mut channel,
        connection,
        ..
    } = connected;
    let ending = async {
        // Without an end of file, for which OpenSSH would close the channel before the program has ended: the session counts until then.
        channel.data_bytes(FLUSH).await.ok()?;
        let mut rest = 0;
        loop {
            match channel.wait().await {
                Some(ChannelMsg::Data { data } | ChannelMsg::ExtendedData { data, .. }) => rest += data.len(),
                Some(ChannelMsg::Close) | None => return Some(()),
                Some(_) => {}
            }
            if rest > REST_BYTES {
                return None;
            }
        }
    };
    timeout(END_TIMEOUT, ending).await.ok()??;
    (!connection.handle.is_closed()).then_some(connection)
}

#[cfg(test)]
mod tests {
    use net::AddressPolicy;

    use super::*;
    use crate::{Remote, SshAlgorithms};

    fn server(url: &str, user: Option<&str>) -> Server {
        let remote = Remote::new(url).unwrap();
        let (address, login) = remote.ssh().unwrap().clone();
        Server {
            address,
            login: crate::SshLogin {
                user: user.map(str::to_owned),
                ..login
            },
            algorithms: SshAlgorithms::default(),
            policy: AddressPolicy::command_line(),
            proxy: None,
        }
    }

    #[test]
    fn connection_is_for_all_repositories_of_a_user_and_server() {
        let own = server("ssh://git@h/a", None);
        for (url, same) in [
            ("ssh://git@h:22/b", true),
            ("git@h:c", true),
            ("ssh://h/a", true),
            ("ssh://other@h/a", false),
            ("ssh://git@h:2222/a", false),
            ("ssh://git@g/a", false),
        ] {
            let other = server(url, None);
            assert_eq!(own.has_connection_of(&other), same, "{url}");
            assert_eq!(other.has_connection_of(&own), same, "{url}");
        }
        assert!(!own.has_connection_of(&server("ssh://h/a", Some("me"))));
        let elsewhere = Server {
            policy: AddressPolicy::unrestricted(),
            ..own.clone()
        };
        assert!(!own.has_connection_of(&elsewhere));
    }

    #[tokio::test]
    async fn kept_connections_are_bounded_in_number() {
        let (permits, all) = (
            Arc::new(Semaphore::new(MAX_KEPT_BY_ALL)),
            SshConnections::default(),
        );
        let add = |host: String| {
            all.add(Kept {
                server: server(&format!("ssh://git@{host}/a"), None),
                connection: tokio::spawn(async { None }),
                _permit: Arc::clone(&permits).try_acquire_owned().unwrap(),
            });
        };
        (0..=MAX_KEPT).for_each(|number| add(format!("h{number}")));
        let has = |host: &str| all.take(&server(&format!("ssh://git@{host}/b"), None)).is_some();
        assert_eq!(lock(&all.0).len(), MAX_KEPT);
        assert_eq!(permits.available_permits(), MAX_KEPT_BY_ALL - MAX_KEPT);
        assert!(has("h1") && !has("h1") && !has("h0"), "the oldest was closed");
        drop(all);
        assert_eq!(permits.available_permits(), MAX_KEPT_BY_ALL);
    }
}
