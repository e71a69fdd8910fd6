//! The contract between the controllers: resource types, conditions, events, faults.
//!
//! Controllers never use each other's code; they meet through what is defined here: the CRDs, [`SourceView`] (all that
//! a consumer may know of a producer), the event that is posted to the notification-controller, and the vocabulary of
//! conditions and reasons. This crate performs no I/O.

pub mod fault;

pub use fault::{Class, Fault, Reason};
