//! Errors of the frame around the passes.

use crate::flags::FlagsError;

/// A failure of the process frame; a failure of a pass is an [`api::Fault`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Flags that contradict each other.
    #[error(transparent)]
    Flags(#[from] FlagsError),
    /// An address that cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address as given.
        address: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Metrics that cannot be registered.
    #[error("cannot register the metrics: {0}")]
    Metrics(prometheus::Error),
    /// No usable configuration for the API server.
    #[error("cannot find a configuration for the API server, neither in KUBECONFIG nor in the cluster: {0}")]
    Config(String),
    /// No client can be made of the configuration.
    #[error("cannot make a client for the API server: {0}")]
    Client(String),
    /// The lease went to another process, or could not be renewed in time.
    #[error("lost the lease {0}: another process may act now")]
    LeaseLost(String),
    /// The process was asked to end before it could lead.
    #[error("told to end")]
    Ended,
    /// The operating system refused what the process needs.
    #[error("cannot start: {0}")]
    Start(std::io::Error),
    /// A URL that events cannot be posted to.
    #[error("--events-addr is not an http or https URL: {0}")]
    EventsAddress(String),
    /// The controller's own part ended.
    #[error("the controller cannot go on: {0}")]
    Body(String),
}
