//! Connections to SSH servers that the requests of a pass share.
//!
//! A connection has one request at a time, so that none waits for another or ends with it. A request has its own channel; when
//! the server has ended it, the connection is kept for the next. A connection on which a request failed is closed, and one that
//! refuses the next request is replaced.

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
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
use crate::{Error, clock::Clock};

const MAX_IDLE: usize = 8;

/// Maximum number of idle connections of all passes of a process: a pass that waits for its permit has one.
pub(crate) const MAX_IDLE_BY_ALL: usize = 64;

/// Bytes of an answer that are read after its request has ended. A longer one ends the connection.
const REST_BYTES: usize = 64 << 10;

/// Timeout for the end of a request: Git's programs end at once.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Timeout for the end of the last request on an idle connection and the start of the next.
const REUSE_TIMEOUT: Duration = Duration::from_secs(5);

const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

const FLUSH: &[u8] = b"0000";

/// SSH connections for the requests of one pass, which log in once to each server. They are closed with the last clone.
/// Requests share a connection if they have the same server, user, keys, known hosts, proxy and algorithms.
#[derive(Clone, Default)]
pub struct SshConnections(Arc<Mutex<Vec<IdleConnection>>>);

impl fmt::Debug for SshConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SshConnections")
    }
}

struct IdleConnection {
    server: Server,
    /// The connection after the end of its last request; `None` if it can't be used any more.
    connection: JoinHandle<Option<Connection>>,
    _permit: OwnedSemaphorePermit,
}

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

pub(crate) struct Connected {
    pub(crate) channel: Channel<Msg>,
    connection: Connection,
    pub(crate) is_reused: bool,
}

#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) server: Server,
    /// Program of Git that the server runs.
    pub(crate) program: &'static str,
    pub(crate) connections: SshConnections,
    pub(crate) permits: Arc<Semaphore>,
}

impl Access {
    /// Asks for the repository, on an idle connection if there is one. Blocks the thread.
    pub(crate) fn open(&self, clock: &Clock) -> Result<Connected, Error> {
        let Some(idle) = self.connections.take(&self.server) else {
            return self.open_new(clock);
        };
        let asked = async {
            let connection = idle.connection.await.ok().flatten()?;
            let asked = match self.server.ask(&connection.handle, self.program).await {
                // OpenSSH counts the last session until it has noticed its end, and may allow only one.
                Err(russh::Error::ChannelOpenFailure(_)) => {
                    self.server.ask(&connection.handle, self.program).await
                }
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

    pub(crate) fn open_new(&self, clock: &Clock) -> Result<Connected, Error> {
        let connection = Connection {
            handle: Arc::new(self.server.connect(clock)?),
            runtime: clock.runtime().clone(),
        };
        let asked = clock.wait(self.server.ask(&connection.handle, self.program))?;
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
        self.connections.add(IdleConnection {
            server: self.server.clone(),
            connection: runtime.spawn(end(connected)),
            _permit: permit,
        });
    }
}

impl SshConnections {
    fn take(&self, server: &Server) -> Option<IdleConnection> {
        let mut all = self.0.lock();
        let at = all
            .iter()
            .rposition(|idle| idle.server.has_connection_of(server))?;
        Some(all.remove(at))
    }

    fn add(&self, idle: IdleConnection) {
        let mut all = self.0.lock();
        if all.len() >= MAX_IDLE {
            all.remove(0);
        }
        all.push(idle);
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
        // Without an end of file, for which OpenSSH would close the channel before the program has ended: the session counts
        // until then.
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
        let other = Server {
            policy: AddressPolicy::unrestricted(),
            ..own.clone()
        };
        assert!(!own.has_connection_of(&other));
    }

    #[tokio::test]
    async fn kept_connections_are_bounded_in_number() {
        let (permits, all) = (
            Arc::new(Semaphore::new(MAX_IDLE_BY_ALL)),
            SshConnections::default(),
        );
        let add = |host: String| {
            all.add(IdleConnection {
                server: server(&format!("ssh://git@{host}/a"), None),
                connection: tokio::spawn(async { None }),
                _permit: Arc::clone(&permits).try_acquire_owned().unwrap(),
            });
        };
        (0..=MAX_IDLE).for_each(|number| add(format!("h{number}")));
        let has = |host: &str| all.take(&server(&format!("ssh://git@{host}/b"), None)).is_some();
        assert_eq!(all.0.lock().len(), MAX_IDLE);
        assert_eq!(permits.available_permits(), MAX_IDLE_BY_ALL - MAX_IDLE);
        assert!(has("h1") && !has("h1") && !has("h0"), "the oldest was closed");
        drop(all);
        assert_eq!(permits.available_permits(), MAX_IDLE_BY_ALL);
    }
}
