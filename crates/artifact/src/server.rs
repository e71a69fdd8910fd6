//! HTTP answers from the storage: files only, no listing, nothing that is not an artifact. Listening, and its limits,
//! are left to others.

mod body;
mod handler;
mod request;

pub use handler::{Body, answer};

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
