//! HTTP answers from the storage: files only, no listings. Listening, and its limits, are left to callers.

mod body;
mod handler;
mod request;

pub use body::Body;
pub use handler::{Asked, Described, Prepared, answer, content_type, local, not_found, unavailable};

#[cfg(test)]
mod changes;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
