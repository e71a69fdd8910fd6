//! Results of commands on kluctl projects, as kluctl and its web UI read them: data, summaries, the forms for people and for
//! statuses, and the store in the cluster.
//!
//! Readers of results need this crate alone: it links neither Git nor SOPS nor templates.

mod bound;
mod command;
mod contents;
mod delta;
pub mod deployed;
mod early;
mod entry;
mod error;
mod inventory;
mod message;
mod object;
mod origin;
mod orphans;
mod status;
pub mod status_json;
mod store;
mod summary;
pub mod text;
mod validation;
mod value;

pub use bound::{bounded, left_out};
pub use command::{Command, CommandOptions, CommandResult, Counts};
pub use contents::Contents;
pub use error::Error;
pub use inventory::{Inventory, status_objects, with_inventory};
pub use object::{ObjectError, ResultObject};
pub use origin::{GitInfo, Initiator, KluctlDeployment, Origin, ProjectKey};
pub use orphans::OrphanedResults;
pub use store::{ResultStore, Retention, StoredResult};
pub use validation::ValidateResult;
