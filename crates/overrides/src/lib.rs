//! Local sources for a controller: the source override protocol of kluctl.
//!
//! A command line keeps a stream open to a controller ([`Client`]), and is asked through it for files of repositories. The
//! controller has a [`Server`] with all open streams, identified by the hash of a key that each command line generates and
//! proves to have. Both use gRPC over TLS; `grpc` and `message` have the parts that this protocol needs. All input is bounded
//! before it is stored.

mod client;
mod error;
mod grpc;
mod message;
mod proof;
mod server;
mod tls;
mod url;

pub use client::{Client, ask};
pub use error::Error;
pub use message::Answer;
pub use server::{Server, Sessions};
pub use tls::Material;
pub use url::OverrideUrl;

/// Maximum size of the packed files of a repository, in bytes.
pub const ARTIFACT_BYTES: usize = 32 << 20;
/// Maximum total size of the unpacked files of a repository, in bytes.
pub const UNPACKED_BYTES: u64 = 64 << 20;
/// Secret with certificate, key and shared secret of the controllers of a namespace.
pub const SECRET: &str = "kluctl-source-override-secret";
/// ConfigMap with the certificate authority that command lines trust.
pub const CONFIG_MAP: &str = "kluctl-source-override-ca";
/// Key of the certificate authority in the Secret and in the ConfigMap.
pub const CA: &str = "ca.pem";
pub const PORT: &str = "source-override";

const MESSAGE_BYTES: usize = ARTIFACT_BYTES + 1024;
const SHORT_MESSAGE_BYTES: usize = 8 << 10;
const STREAM: &str = "/sourceoverride.Proxy/ProxyStream";
const RESOLVE: &str = "/sourceoverride.Proxy/ResolveOverride";
