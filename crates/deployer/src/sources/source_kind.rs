//! The kinds of sources, and the names of single sources.

use std::fmt;

use api::{SourceReference, group};
use kube::core::{ApiResource, GroupVersionKind};
use runtime::ObjectKey;

macro_rules! source_kinds {
    ($($(#[$doc:meta])* $kind:ident: $plural:literal, $group:expr, [$($version:literal),+];)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum SourceKind { $($(#[$doc])* $kind),+ }

        impl SourceKind {
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            /// Returns the name of the kind, as in `GitRepository`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => stringify!($kind)),+ }
            }

            /// Returns the name of the resource, as in `gitrepositories`.
            #[must_use]
            pub const fn plural(self) -> &'static str {
                match self { $(Self::$kind => $plural),+ }
            }

            /// Returns the API group.
            #[must_use]
            pub const fn group(self) -> &'static str {
                match self { $(Self::$kind => $group),+ }
            }

            /// Returns the versions that a reference may name, the preferred one first. All of them hold the same
            /// `status.artifact`.
            #[must_use]
            pub const fn versions(self) -> &'static [&'static str] {
                match self { $(Self::$kind => &[$($version),+]),+ }
            }
        }
    };
}

source_kinds! {
    /// A branch, tag or commit of a Git repository.
    GitRepository: "gitrepositories", group::SOURCE, ["v1", "v1beta2", "v1beta1"];
    /// The objects of an S3-like bucket.
    Bucket: "buckets", group::SOURCE, ["v1", "v1beta2", "v1beta1"];
    /// A layer of an OCI artifact.
    OCIRepository: "ocirepositories", group::SOURCE, ["v1", "v1beta2"];
    /// An artifact that a controller of a third party produces.
    ExternalArtifact: "externalartifacts", group::SOURCE, ["v1"];
    /// A packaged Helm chart.
    HelmChart: "helmcharts", group::SOURCE, ["v1", "v1beta2", "v1beta1"];
}

impl SourceKind {
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Returns the version that sources are read in, unless a reference names another or the cluster does not serve it.
    #[must_use]
    pub fn preferred_version(self) -> &'static str {
        self.versions().first().copied().unwrap_or_default()
    }

    #[must_use]
    pub fn resource(self, version: &str) -> ApiResource {
        let kind = GroupVersionKind::gvk(self.group(), version, self.name());
        ApiResource::from_gvk_with_plural(&kind, self.plural())
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The kind, namespace and name of a source. Displays as `GitRepository/apps/shop`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId {
    pub kind: SourceKind,
    pub key: ObjectKey,
}

impl SourceId {
    /// Resolves a reference from an object in `own_namespace`. Returns `None` if the kind is not one of `accepted`.
    #[must_use]
    pub fn resolve(
        reference: &SourceReference,
        own_namespace: &str,
        accepted: &[SourceKind],
    ) -> Option<Self> {
        let kind = SourceKind::named(&reference.kind).filter(|kind| accepted.contains(kind))?;
        let namespace = reference.namespace.as_deref().filter(|name| !name.is_empty());
        let key = ObjectKey::new(namespace.unwrap_or(own_namespace), reference.name.clone());
        Some(Self { kind, key })
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.key)
    }
}
