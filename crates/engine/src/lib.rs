//! What is done with a kluctl project on a cluster: render, compare, deploy, prune, validate, delete.
//!
//! The only crate that joins rendering (pure) with clusters (I/O). Each operation takes a [`cluster::Cluster`], which
//! carries identity and cancellation, and what was rendered. Nothing here decides when to do what: that is the
//! controllers' part. Values of Secrets show in no result and no error.

mod compare;
mod deploy;
mod error;
mod live;
mod prune;
mod raw;
mod remove;
mod render;
mod result;
mod seen;
mod stand_in;
mod validate;

pub use compare::{CompareOptions, Comparison, compare};
pub use deploy::{DeployOptions, deploy};
pub use error::Error;
pub use prune::{DeleteOptions, PruneOptions, delete, prune};
pub use render::{Rendering, render};
pub use result::{Command, CommandResult, Counts, ObjectError, ResultObject};
pub use seen::Seen;
pub use validate::{ValidateResult, validate};

/// Items, and deletions, that are worked on at once.
const PARALLEL: usize = 8;
