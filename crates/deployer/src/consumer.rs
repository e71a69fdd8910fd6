//! The view of this crate on the objects of a controller.

use std::time::Duration;

use api::{DependencyReference, KubeConfig, SourceReference};
use kube::{
    Resource, ResourceExt,
    core::{DynamicObject, NamespaceResourceScope},
};
use runtime::ObjectKey;

use crate::{Links, SourceId, SourceKind};

/// A kind whose objects take their files from a source and deploy them to a cluster. It is implemented by a marker type
/// of the controller.
///
/// The methods without a body read single fields of a typed object. [`Consumer::links`] reads an untyped one.
pub trait Consumer: Send + Sync + 'static {
    type Object: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + serde::Serialize
        + Clone
        + Send
        + Sync
        + 'static;

    /// The kinds of sources that its objects may refer to, the most common one first.
    const SOURCE_KINDS: &'static [SourceKind];

    /// The fields of `spec` that [`Consumer::links`] reads. Watches keep no others.
    const LINK_SPEC: &'static [&'static str] = &["sourceRef", "dependsOn"];

    /// The fields of `status` that [`Consumer::links`] reads. Watches keep no others.
    const LINK_STATUS: &'static [&'static str] = &[
        "observedGeneration",
        "conditions",
        "lastAttemptedRevision",
        "lastAppliedRevision",
    ];

    fn source_ref(object: &Self::Object) -> Option<SourceReference>;

    /// Returns true if an object names its files without a source object, so that it needs no reference to one. False by default.
    fn has_own_source(object: &Self::Object) -> bool {
        let _ = object;
        false
    }

    /// Returns the references to the objects that must be ready first.
    fn depends_on(object: &Self::Object) -> Vec<DependencyReference>;

    /// Returns the reference to the kubeconfig of a remote cluster; `None` for the cluster of the controller.
    fn kube_config(object: &Self::Object) -> Option<&KubeConfig>;

    /// Returns true if an object deploys to another cluster than the one of the controller. Default: if it has a kubeconfig.
    fn is_remote(object: &Self::Object) -> bool {
        Self::kube_config(object).is_some()
    }

    /// Returns the ServiceAccount that an object deploys with, on the cluster that it deploys to.
    fn service_account_name(object: &Self::Object) -> Option<&str>;

    fn retry_interval(object: &Self::Object) -> Duration;

    /// Returns the request for a pass that was handled last, from the status.
    fn handled_request(object: &Self::Object) -> Option<&str>;

    /// Describes a dependency of the own kind that can't be read.
    fn unreadable_dependency(key: &ObjectKey, why: &str) -> String {
        format!("unable to get '{key}' dependency: {why}")
    }

    /// Describes a dependency of the own kind and the same source that doesn't have the revision of its artifact yet.
    fn outdated_dependency(key: &ObjectKey) -> String {
        format!("dependency '{key}' is not updated yet")
    }

    /// Reads the references and the progress of an untyped object, which has only the fields of [`Consumer::LINK_SPEC`] and
    /// [`Consumer::LINK_STATUS`]. By default from `spec.sourceRef` and `spec.dependsOn`.
    fn links(object: &DynamicObject) -> Links {
        Links::read(object, Self::SOURCE_KINDS, &Self::Object::kind(&()))
    }

    fn key(object: &Self::Object) -> ObjectKey {
        key(object)
    }

    /// Returns the source with its namespace filled in; `None` if it is missing or of a kind that is not accepted.
    fn source(object: &Self::Object) -> Option<SourceId> {
        let namespace = object.namespace().unwrap_or_default();
        SourceId::resolve(&Self::source_ref(object)?, &namespace, Self::SOURCE_KINDS)
    }

    fn dependencies(object: &Self::Object) -> Vec<ObjectKey> {
        let namespace = object.namespace().unwrap_or_default();
        let references = Self::depends_on(object);
        let own = references
            .iter()
            .filter(|reference| is_kind(reference, &Self::Object::kind(&())));
        own.map(|reference| dependency_key(reference, &namespace))
            .collect()
    }
}

/// Returns namespace and name of an object.
#[must_use]
pub fn key(object: &impl ResourceExt) -> ObjectKey {
    ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any())
}

/// Returns true if a dependency is of this kind, which is the default.
pub(crate) fn is_kind(reference: &DependencyReference, kind: &str) -> bool {
    reference
        .kind
        .as_deref()
        .is_none_or(|given| given.is_empty() || given == kind)
}

/// Fills in the namespace of a dependency.
pub(crate) fn dependency_key(reference: &DependencyReference, own_namespace: &str) -> ObjectKey {
    let namespace = reference.namespace.as_deref().filter(|name| !name.is_empty());
    ObjectKey::new(namespace.unwrap_or(own_namespace), reference.name.clone())
}
