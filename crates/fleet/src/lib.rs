//! The objects that controllers reconcile, as people look at them.
//!
//! [`Kind`] is the table of all kinds, [`Object`] the fields of an object that people look at, [`Health`] the one scale of its
//! state. Everything is a function of values that a caller has read; times are passed in.

pub mod cause;
pub mod event;
mod health;
pub mod inventory;
pub mod kind;
mod log;
mod object;
pub mod report;
mod row;
mod selector;
pub mod stats;
pub mod suspension;
mod table;
mod text;

pub use event::Event;
pub use health::Health;
pub use inventory::Tree;
pub use kind::{Family, Kind};
pub use log::{LogEntry, LogFilter};
pub use object::{Artifact, Condition, Metadata, Object, Reference, Spec, Status};
pub use row::{Columns, Row};
pub use selector::{InvalidSelector, StatusSelector};
pub use stats::Stats;
pub use suspension::Suspension;
pub use table::Table;
pub use text::{age, shorten_hashes};
