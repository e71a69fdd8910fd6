//! The contract between the controllers: resource types, conditions, events, faults.
//!
//! Controllers never use each other's code; they share this crate only: the CRDs, [`SourceView`] (the view of consumers on
//! sources of any kind), the [`Event`] that is posted to the notification-controller, and the conditions and reasons. This crate
//! performs no I/O.

mod artifact;
mod condition;
pub mod conditions;
pub mod crd;
mod duration;
mod event;
pub mod fault;
#[cfg(test)]
mod fuzz;
mod initializing;
pub mod kluctl;
pub mod kustomize;
mod names;
pub mod notification;
mod reference;
pub mod revision;
mod safe_url;
mod schema;
mod secret;
pub mod source;
pub mod validation;
mod view;

pub use artifact::Artifact;
pub use condition::{Condition, ConditionStatus};
pub use duration::{DurationOrNever, GoDuration, InvalidDuration, MIN_INTERVAL};
pub use event::{Event, Severity};
pub use fault::{Class, Fault, Reason};
pub use initializing::is_initializing;
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
pub use names::{annotation, commit_metadata, condition_type, finalizer, group};
pub use reference::{
    DependencyReference, KubeConfig, LocalObjectReference, NamespacedObjectReference, SecretKeyReference,
    SourceReference,
};
pub use safe_url::{InvalidUrl, SafeUrl, UrlText, redact};
pub use secret::Secret;
pub use validation::{check_object_name, is_object_name};
pub use view::SourceView;
