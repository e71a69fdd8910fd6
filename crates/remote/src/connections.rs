//! Connections to Git servers that all users of a process share.

use std::{fmt, sync::Arc};

use git::Network;
use net::AddressPolicy;
use parking_lot::Mutex;
use tokio::runtime::Handle;

/// Connections to Git servers, and parts that they share, such as the certificate authorities of the system. Credentials are not
/// among them. Clones are the same.
#[derive(Clone, Default)]
pub struct GitConnections(Arc<Mutex<Option<(AddressPolicy, Network)>>>);

impl fmt::Debug for GitConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GitConnections")
    }
}

impl GitConnections {
    /// Returns the connections that lead to `addresses` alone. They replace connections under another policy.
    pub(crate) fn network(&self, runtime: &Handle, addresses: &AddressPolicy) -> Network {
        let mut shared = self.0.lock();
        if let Some((_, network)) = shared.as_ref().filter(|(policy, _)| policy == addresses) {
            return network.clone();
        }
        let network = Network::new(runtime.clone(), addresses.clone());
        *shared = Some((addresses.clone(), network.clone()));
        network
    }
}
