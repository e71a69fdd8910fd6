//! KluctlDeployment of `flux.kluctl.io/v1alpha1`.

mod observe;
mod plan;
mod spec;
mod status;
mod text;
mod triggers;
