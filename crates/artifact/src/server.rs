//! HTTP answers from the storage: files only, no listing, nothing that is not an artifact. Listening, and its limits,
//! are left to others.

mod body;
mod handler;
mod request;

pub use handler::{Asked, Body, Described, Prepared, answer, content_type, local, not_found, unavailable};

#[cfg(test)]
mod changes;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
