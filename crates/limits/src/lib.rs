//! Limits that the work of a process shares, so that no tenant stops another. Nothing here knows Kubernetes.

pub mod blocking;
mod byte_budget;
mod compressed;
mod compute;
mod credential_cache;
mod exclusive;
mod fair_permits;
mod fair_queue;
mod keyed_permits;
mod process_memory;
mod request_quota;
mod shared_memory;
mod single_flight;
mod tenant_cache;
mod tenant_permits;
mod threads;

pub use byte_budget::{ByteBudget, ByteBudgetError, Share, Tenant};
pub use compressed::Compressed;
pub use compute::{INLINE_BYTES, compute, compute_sized};
pub use credential_cache::{CacheBounds, CredentialCache};
pub use exclusive::{Claim, ExclusiveNames};
pub use fair_permits::{FairPermit, FairPermits};
pub use fair_queue::{FairQueue, NextItem};
pub use keyed_permits::KeyedPermits;
pub use process_memory::{process_memory, set_process_memory};
pub use request_quota::{RequestQuota, RequestSlot};
pub use shared_memory::from_process_memory;
pub use single_flight::{Flight, FlightKey, Flights};
pub use tenant_cache::TenantCache;
pub use tenant_permits::{PermitLimits, TenantPermit, TenantPermits};
