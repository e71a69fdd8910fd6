//! The stages in which a list of manifests is applied: each is applied as a whole before the next one begins.

use std::borrow::Cow;

use objects::{ObjectRef, order};

/// A group of manifests that later ones may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Definitions of kinds, namespaces and cluster roles. The next stage waits until they are ready.
    Definitions,
    /// Kinds whose names end with `Class`. The next stage waits until they are ready.
    Classes,
    /// Kinds that the owner names.
    Custom,
    Rest,
}

impl Stage {
    pub const ALL: [Self; 4] = [Self::Definitions, Self::Classes, Self::Custom, Self::Rest];

    /// Returns the stage of an object; `custom` has groups and kinds.
    #[must_use]
    pub fn of(reference: &ObjectRef, custom: &[(Cow<'_, str>, Cow<'_, str>)]) -> Self {
        let is_definition = reference.is("", "Namespace")
            || reference.is("apiextensions.k8s.io", "CustomResourceDefinition")
            || reference.is("rbac.authorization.k8s.io", "ClusterRole");
        if is_definition {
            Self::Definitions
        } else if reference.kind.ends_with("Class") {
            Self::Classes
        } else if custom.iter().any(|(group, kind)| reference.is(group, kind)) {
            Self::Custom
        } else {
            Self::Rest
        }
    }

    /// Returns true if the next stage begins only when the objects of this one are ready.
    #[must_use]
    pub const fn waits(self) -> bool {
        matches!(self, Self::Definitions | Self::Classes)
    }
}

/// Returns the indexes of the objects of each stage, in the order of application; stages without objects are left out.
#[must_use]
pub(crate) fn plan(refs: &[ObjectRef], custom: &[(Cow<'_, str>, Cow<'_, str>)]) -> Vec<(Stage, Vec<usize>)> {
    let stages = Stage::ALL.into_iter().map(|stage| {
        let own = refs.iter().enumerate();
        let mut own: Vec<_> = own.filter(|(_, one)| Stage::of(one, custom) == stage).collect();
        own.sort_by(|(_, a), (_, b)| order::application(a, b));
        (stage, own.into_iter().map(|(index, _)| index).collect::<Vec<_>>())
    });
    stages.filter(|(_, own)| !own.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_orders_stages_and_the_objects_in_them() {
        let reference = |group: &str, kind: &str, name: &str| ObjectRef {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: name.to_owned(),
        };
        let refs = [
            reference("", "ConfigMap", "b"),
            reference("rbac.authorization.k8s.io", "RoleBinding", "r"),
            reference("", "Namespace", "n"),
            reference("x.io", "ThingClass", "t"),
            reference("storage.k8s.io", "StorageClass", "s"),
            reference("apiextensions.k8s.io", "CustomResourceDefinition", "d"),
            reference("", "ConfigMap", "a"),
            reference("rbac.authorization.k8s.io", "ClusterRole", "c"),
            reference("other.io", "Namespace", "o"),
        ];
        let custom = [("rbac.authorization.k8s.io".into(), "RoleBinding".into())];
        let named = |custom: &[(Cow<'_, str>, Cow<'_, str>)]| -> Vec<(Stage, String)> {
            let plan = plan(&refs, custom).into_iter();
            let names =
                plan.map(|(stage, own)| (stage, own.iter().map(|at| refs[*at].name.as_str()).collect()));
            names.collect()
        };
        let expected = [
            (Stage::Definitions, "dnc"),
            (Stage::Classes, "st"),
            (Stage::Custom, "r"),
            (Stage::Rest, "oab"),
        ];
        assert_eq!(
            named(&custom),
            expected.map(|(stage, names)| (stage, names.to_owned()))
        );
        let expected = [
            (Stage::Definitions, "dnc"),
            (Stage::Classes, "st"),
            (Stage::Rest, "orab"),
        ];
        assert_eq!(
            named(&[]),
            expected.map(|(stage, names)| (stage, names.to_owned()))
        );
        assert!(Stage::Definitions.waits() && Stage::Classes.waits());
        assert!(!Stage::Custom.waits() && !Stage::Rest.waits());
    }
}
