//! The build of a Kustomization of `kustomize.toolkit.fluxcd.io`: from a file tree and a spec to the manifests that are applied.
//!
//! [`Build`] does the work in its order:
//!
//! - `overlay` makes the kustomization.yaml that is built (pure), [`LeftOut`] removes entries from it;
//! - `decrypt` opens encrypted files and Secrets with [`secrets::Keys`];
//! - [`variables`] has the variables, `substitute` their grammar (pure);
//! - `manifests` makes the manifests of the built objects (pure).
//!
//! [`check`] refuses specs that the schema lets through (pure), [`CelHealth`] evaluates the health checks of a spec, on threads of the tenant.
//!
//! [`IgnoreRules`] has the fields of applied objects that are left to others (pure), [`with_rules`] makes the owner of applied objects: the
//! annotations that they obey, and the managers that are taken over ([`takeover`]).

mod build;
pub mod check;
mod decrypt;
mod health;
mod ignored;
mod left_out;
mod manifests;
mod overlay;
mod owner;
mod substitute;
pub mod variables;

pub use build::{Build, BuildError, Built};
pub use health::CelHealth;
pub use ignored::{IgnoreRules, InvalidRule};
pub use left_out::LeftOut;
pub use manifests::{ObjectError, manifests, printable};
pub use owner::{FIELD_MANAGER, OWNER_LABELS, takeover, with_rules};
pub use variables::Variables;
