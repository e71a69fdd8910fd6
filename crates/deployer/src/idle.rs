//! Passes that find nothing changed.
//!
//! Most passes are due by their interval alone, and find everything as the last one left it. They must cost next to nothing: no render, no
//! write, and no request to the API server. Three parts decide that:
//!
//! - [`UnchangedPasses`] remembers the inputs of a pass that left nothing to do. While watches show the same source, the same spec
//!   ([`spec_fingerprint`]) and the same deployed objects, the next pass ends before it reads anything.
//! - [`DeploymentStates`] has the versions in which objects were found equal to their manifests, and the ages of comparisons, which no status
//!   has. Losing it costs one comparison.
//! - [`search`] decides which kinds are searched for objects that are no longer rendered: a list of every kind is most of the work of a small
//!   deployment.
//!
//! Drift is seen by the index of labelled objects ([`crate::LabelIndex`]), which knows the version of each. Every object is read ten minutes
//! after its last complete pass at the latest, in case a watch missed something.

pub mod search;
mod state;
mod unchanged;

pub use state::{Ages, DeploymentStates, FailedAttempt, KnownDeployment, LastDeployment};
pub use unchanged::{KnownObjects, UnchangedPasses, fingerprint, spec_fingerprint};
