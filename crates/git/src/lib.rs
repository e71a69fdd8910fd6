//! Git over the network
