//! Errors of the process around the passes.

use crate::flags::FlagsError;

/// A failure of the process; a failure of a pass is an [`api::Fault`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Flags(#[from] FlagsError),
    #[error("cannot listen on {address}: {source}")]
    Listen { address: String, source: std::io::Error },
    #[error("cannot register the metrics: {0}")]
    Metrics(prometheus::Error),
    #[error("cannot find a configuration for the API server, neither in KUBECONFIG nor in the cluster: {0}")]
    Config(String),
    #[error("cannot make a client for the API server: {0}")]
    Client(String),
    #[error("lost the lease {0}: another process may act now")]
    LeaseLost(String),
    #[error("told to end")]
    Ended,
    #[error("cannot start: {0}")]
    Start(std::io::Error),
    #[error("--events-addr is not an http or https URL: {0}")]
    EventsAddress(String),
    /// The controller's `body` ended.
    #[error("the controller cannot go on: {0}")]
    Body(String),
}
