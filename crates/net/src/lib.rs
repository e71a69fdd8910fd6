//! What holds for every server that users name: where nothing may lead to, whether by address or by name.
//!
//! Nothing here knows what is asked of the server.

mod address;
mod resolver;

pub use address::{is_link_local, plain};
pub use resolver::{Resolver, is_refused};
