//! One controller process: logs, metrics, admin ports, lease, shutdown, queue, the pass.
//!
//! A kind is its decisions ([`Reconciler`]), and a controller's `main` is its flags and [`start`].

pub mod accounts;
pub mod admin;
mod allocator;
pub mod backoff;
pub mod client;
mod clock;
mod context;
mod crash_marks;
mod decode;
mod driver;
pub mod duration;
mod error;
pub mod events;
pub mod flags;
pub mod gate;
pub mod http;
mod in_flight;
pub mod lease;
mod live;
pub mod logging;
mod memory;
pub mod metrics;
pub mod names;
mod own_addresses;
mod panics;
mod pass;
mod process;
mod queue;
mod reconciler;
mod report;
pub mod requests;
pub mod scratch;
pub mod secret;
mod slots;
mod status;
pub mod tokens;
pub mod triggers;
pub mod watch_backoff;
mod watchdog;
mod watched;
mod watching;
mod work;

pub use clock::now;
pub use context::Context;
pub use driver::{RunOptions, Trigger, run_kind};
pub use error::Error;
pub use events::{EventDraft, Recorder, Severity};
pub use flags::{CommonFlags, Connection, EventsFlags, FlagsError};
pub use gate::WriteGate;

pub use process::{Spec, start};
pub use queue::ObjectKey;
pub use reconciler::{Outcome, Pass, Reconciler, Requeue};
pub use slots::WorkSlot;
pub use status::bounded_text;
