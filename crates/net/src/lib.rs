//! HTTP clients for servers that users name, and the policy of addresses for them.
//!
//! Every HTTP client of the workspace is a [`Client`] of [`ClientOptions`]: one user agent, bounded redirects that never carry
//! credentials or custom headers to another origin, timeouts, TLS, proxies, and an [`AddressPolicy`]. The policy is applied to
//! hosts that are IP addresses, to the result of each name resolution, and to the target of each redirect.
//!
//! ```
//! use net::{AddressPolicy, ClientOptions, ClusterServices, Redirects};
//!
//! let policy = AddressPolicy::controller(ClusterServices::default());
//! let client = ClientOptions { redirects: Redirects::FOLLOW, ..ClientOptions::new(policy) }.build()?;
//! let metadata = "http://169.254.169.254/latest".parse()?;
//! assert!(client.policy().check_url(&metadata).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod body;
mod cause;
mod client;
mod connect;
mod error;
mod exception;
#[cfg(test)]
mod fuzz;
mod need;
mod own;
mod policy;
mod proxy;
mod redirect;
mod resolver;
mod server_proxy;
mod tls;
mod tls_stream;
mod token_file;
mod tunnel;

pub use address::is_loopback;
pub use body::read_body;
pub use cause::{innermost, tls as tls_cause, tls_problem};
pub use client::{Client, ClientOptions, Proxies, Timeouts, USER_AGENT, basic_auth, bearer_auth};
pub use connect::{ConnectError, connect};
pub use error::Error;
pub use exception::{Exception, InvalidException};
pub use need::Need;
pub use own::{OwnAddresses, add_listener};
pub use policy::{AddressPolicy, ClusterServices, Refusal, Unresolved};
pub use proxy::{InvalidProxy, Proxy, ProxyProtocol};
pub use redirect::Redirects;
pub use resolver::Resolver;
pub use server_proxy::server_proxy;
pub use tls::{Roots, Tls};
pub use token_file::{TokenFile, TokenFileError};
pub use tunnel::Duplex;
