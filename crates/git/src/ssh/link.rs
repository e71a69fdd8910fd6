//! Output and input of a program of Git on the server, as the blocking reader and writer for gix.

use std::{
    io::{self, Read, Write},
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex;
use russh::ChannelMsg;

use super::{
    connect::cut,
    reuse::{Access, Connected},
};
use crate::{Error, clock::Clock, intake::Intake};

/// Maximum size of a request: wants and haves of a shallow fetch are a few hundred bytes.
const MAX_REQUEST_BYTES: usize = 4 << 20;

const MAX_MESSAGE_BYTES: usize = 4 << 10;

struct Link {
    access: Access,
    clock: Clock,
    intake: Arc<Intake>,
    connected: Option<Connected>,
    request: Vec<u8>,
    messages: Vec<u8>,
    exit: Option<u32>,
    answered: bool,
    failed: bool,
}

impl Link {
    fn send(&mut self) -> Result<&mut Connected, Error> {
        let connected = match self.connected.take() {
            Some(connected) => connected,
            None => self.access.open(&self.clock)?,
        };
        let connected = self.connected.insert(connected);
        if !self.request.is_empty() {
            self.intake.begin()?;
            let sent = connected.channel.data_bytes(std::mem::take(&mut self.request));
            // A server that ended gives the reason in its output.
            let _ = self.clock.wait(sent)?;
        }
        Ok(connected)
    }

    /// Returns true if a reused connection has not answered this request. Nothing was sent on it, as servers speak first.
    fn can_be_repeated(&self) -> bool {
        let connected = self.connected.as_ref();
        !self.answered && connected.is_some_and(|connected| connected.is_reused)
    }

    fn repeat(&mut self) -> Result<(), Error> {
        (self.connected, self.exit) = (None, None);
        self.messages.clear();
        self.connected = Some(self.access.open_new(&self.clock)?);
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let clock = self.clock.clone();
            let message = clock.wait(self.send()?.channel.wait())?;
            match message {
                // The server may have closed the reused connection.
                Some(ChannelMsg::Failure | ChannelMsg::Close) | None if self.can_be_repeated() => {
                    self.repeat()?;
                }
                Some(ChannelMsg::Data { data }) => {
                    self.intake.take(data.len() as u64)?;
                    self.answered = true;
                    return Ok(Some(data));
                }
                Some(ChannelMsg::ExtendedData { data, .. }) => {
                    self.intake.take(data.len() as u64)?;
                    let rest = MAX_MESSAGE_BYTES.saturating_sub(self.messages.len());
                    self.messages.extend(data.iter().take(rest));
                }
                Some(ChannelMsg::ExitStatus { exit_status }) => self.exit = Some(exit_status),
                Some(ChannelMsg::ExitSignal { .. }) => self.exit = Some(1),
                Some(ChannelMsg::Failure) => {
                    return Err(
                        self.protocol(format!("ssh: the server refuses to run {}", self.access.program))
                    );
                }
                Some(ChannelMsg::Close) | None => {
                    let failed = !self.answered || self.exit.is_some_and(|status| status != 0);
                    return if failed { Err(self.ended()) } else { Ok(None) };
                }
                Some(_) => {}
            }
        }
    }

    fn protocol(&self, why: String) -> Error {
        Error::Protocol {
            url: self.access.server.address.safe_url(),
            why,
        }
    }

    /// Explains the end of the server's program by its output.
    fn ended(&self) -> Error {
        let url = self.access.server.address.safe_url();
        let said = cut(&String::from_utf8_lossy(&self.messages));
        let lower = said.to_ascii_lowercase();
        let missing = [
            "not found",
            "does not exist",
            "does not appear to be a git repository",
            "could not be found",
            "not a git repository",
        ];
        if missing.iter().any(|words| lower.contains(words)) && !lower.contains("command not found") {
            return Error::NotFound { url };
        }
        let status = self
            .exit
            .map(|status| format!(" with status {status}"))
            .unwrap_or_default();
        if said.is_empty() {
            let why = format!("ssh: the server ended the session{status}");
            return Error::Network { url, why };
        }
        self.protocol(format!("ssh: the server ended the session{status}: {said}"))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(connected) = self.connected.take().filter(|_| !self.failed) {
            self.access.keep(connected);
        }
    }
}

pub(crate) struct Answer {
    link: Arc<Mutex<Link>>,
    buffered: Bytes,
}

pub(crate) struct Request(Arc<Mutex<Link>>);

pub(crate) fn open(access: Access, clock: Clock, intake: Arc<Intake>) -> (Answer, Request) {
    let link = Arc::new(Mutex::new(Link {
        access,
        clock,
        intake,
        connected: None,
        request: Vec::new(),
        messages: Vec::new(),
        exit: None,
        answered: false,
        failed: false,
    }));
    let answer = Answer {
        link: Arc::clone(&link),
        buffered: Bytes::new(),
    };
    (answer, Request(link))
}

impl Read for Answer {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.buffered.is_empty() {
            let mut link = self.link.lock();
            let next = link.next();
            link.failed |= next.is_err();
            self.buffered = next.map_err(|error| link.intake.fail(error))?.unwrap_or_default();
        }
        let piece = self.buffered.split_to(out.len().min(self.buffered.len()));
        if let Some(to) = out.get_mut(..piece.len()) {
            to.copy_from_slice(&piece);
        }
        Ok(piece.len())
    }
}

impl Write for Request {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut link = self.0.lock();
        if link.request.len() + bytes.len() > MAX_REQUEST_BYTES {
            return Err(io::Error::other("the request is too long"));
        }
        link.request.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    /// Does nothing: the request is sent before the answer is read.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
