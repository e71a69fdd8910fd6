//! Processes: their identity, their resource use, and groups that end with their owner.

mod group;
mod identity;
mod machine;
mod usage;

pub use group::{Group, STATE_DIR, end_strays, sweep};
pub(crate) use group::{root as group_root, write_private};
pub use identity::Identity;
pub use machine::MachineTimes;
pub use usage::Usage;
