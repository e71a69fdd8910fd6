//! What holds for every server that users name: where nothing may lead to, whether by address or by name, and how is told
//! why it could not be asked.
//!
//! Nothing here knows what is asked of the server.

mod address;
mod cause;
mod resolver;

pub use address::{is_link_local, plain};
pub use cause::{innermost, tls as tls_cause, tls_problem};
pub use resolver::{Resolver, is_refused};
