//! The request for a pack and its answer.
//!
//! Same as the fetch of gix without the file `shallow`, in which a repository records missing parents: nothing is kept between
//! fetches.

use std::{
    io::{self, BufRead},
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
};

use gix::{
    ObjectId,
    error::{Error as GixError, ResultExt, message},
    protocol::{
        Command, Handshake,
        fetch::{Arguments, Response},
        transport::client::blocking_io::{ExtendedBufRead, HandleProgress, Transport},
    },
};

pub(super) fn agent() -> (&'static str, Option<String>) {
    (
        "agent",
        Some(concat!("git/weir-", env!("CARGO_PKG_VERSION")).to_owned()),
    )
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    Alone(ObjectId),
    /// The commits that are reachable from `commit` and not from `head`, with their files if the server has no filter.
    Beside {
        commit: ObjectId,
        head: ObjectId,
    },
}

/// Asks for a pack, and returns the result of `read_pack`. With true beside it, the rest of the answer is read, too, so that
/// the session can continue.
///
/// # Errors
/// Fails when the server refuses, lacks a feature, or does not answer as a Git server, when `stop` becomes true, and when
/// `read_pack` fails.
pub(super) fn fetch<T>(
    wanted: Wanted,
    handshake: &Handshake,
    transport: &mut Box<dyn Transport + Send>,
    stop: &AtomicBool,
    read_pack: impl FnOnce(&mut dyn BufRead) -> gix::Result<(T, bool)>,
) -> gix::Result<T> {
    let version = handshake.server_protocol_version;
    let mut features = Command::Fetch.default_features(version, &handshake.capabilities);
    features.push(agent());
    Response::check_required_features(version, &features)?;
    let only_sidebands = features.iter().any(|(name, _)| *name == "sideband-all");
    let mut arguments = Arguments::new(version, features, false);
    wanted.add(&mut arguments)?;
    let mut reader = loop {
        if stop.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        if let Wanted::Beside { head, .. } = wanted {
            arguments.have(head);
        }
        let sent = arguments.send(transport, true);
        let mut reader = sent.or_raise(|| message("Failed to send fetch arguments"))?;
        if only_sidebands {
            stop_with(&mut reader, stop);
        }
        let response = Response::from_line_reader(version, &mut reader, true, false);
        if response
            .or_raise(|| message("Could not decode server reply"))?
            .has_pack()
        {
            break reader;
        }
    };
    if !only_sidebands {
        stop_with(&mut reader, stop);
    }
    let (found, goes_on) =
        read_pack(&mut reader).or_raise(|| message("Failed to consume the pack sent by the remote"))?;
    if goes_on && reader.stopped_at().is_none() {
        let rest = io::copy(&mut reader, &mut io::sink());
        rest.or_raise(|| message("Failed to read remaining bytes in stream"))?;
    }
    Ok(found)
}

impl Wanted {
    fn add(self, arguments: &mut Arguments) -> gix::Result<()> {
        match self {
            Self::Alone(id) => {
                if !arguments.can_use_shallow() {
                    let why = "the server lacks the feature \"shallow\", without which a commit comes with its whole history";
                    return Err(GixError::from_error(io::Error::other(why)));
                }
                arguments.deepen(1);
                arguments.want(id);
            }
            Self::Beside { commit, .. } => {
                arguments.want(commit);
                if arguments.can_use_filter() {
                    // Only commits are of interest.
                    arguments.filter("tree:0");
                }
            }
        }
        Ok(())
    }
}

/// Gives up an answer when `stop` becomes true; it is checked at each message of the server.
fn stop_with<'a>(reader: &mut Box<dyn ExtendedBufRead<'a> + Unpin + 'a>, stop: &'a AtomicBool) {
    let check: HandleProgress<'a> = Box::new(|_, _| match stop.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    reader.set_progress_handler(Some(check));
}

fn stopped() -> GixError {
    GixError::from_error(io::Error::other("the conversation was stopped"))
}
