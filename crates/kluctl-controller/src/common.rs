//! Parts that both kinds of KluctlDeployment share.

pub(crate) mod cluster_id;
pub(crate) mod memory;
pub(crate) mod message;
pub(crate) mod owners;
pub(crate) mod patience;
pub(crate) mod search;
pub(crate) mod settled;
pub(crate) mod sharers;
mod work;

pub(crate) use work::{in_time, working};
