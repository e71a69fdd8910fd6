//! The references of a Kustomization.

use std::time::Duration;

use api::{DependencyReference, KubeConfig, SourceReference, kustomize::Kustomization};
use deployer::{ConfigId, ConfigKind, Consumer, Links, SourceKind};
use kube::{Resource as _, ResourceExt as _, core::DynamicObject};
use runtime::ObjectKey;

use super::spec;

#[derive(Debug)]
pub(super) struct KustomizationConsumer;

impl Consumer for KustomizationConsumer {
    type Object = Kustomization;

    const SOURCE_KINDS: &'static [SourceKind] = &[
        SourceKind::GitRepository,
        SourceKind::OCIRepository,
        SourceKind::Bucket,
        SourceKind::ExternalArtifact,
    ];

    const LINK_SPEC: &'static [&'static str] =
        &["sourceRef", "dependsOn", "kubeConfig", "postBuild", "decryption"];

    fn links(object: &DynamicObject) -> Links {
        Links {
            configs: configs(object),
            ..Links::read(object, Self::SOURCE_KINDS, &Kustomization::kind(&()))
        }
    }

    fn source_ref(object: &Kustomization) -> Option<SourceReference> {
        Some(object.spec.source_ref.clone())
    }

    fn depends_on(object: &Kustomization) -> Vec<DependencyReference> {
        object.spec.depends_on.clone()
    }

    fn kube_config(object: &Kustomization) -> Option<&KubeConfig> {
        object.spec.kube_config.as_ref()?.secret.as_ref()
    }

    fn is_remote(object: &Kustomization) -> bool {
        object.spec.kube_config.is_some()
    }

    fn service_account_name(object: &Kustomization) -> Option<&str> {
        object.spec.service_account_name.as_deref()
    }

    fn unreadable_dependency(key: &ObjectKey, why: &str) -> String {
        format!("dependency '{key}' not found: {why}")
    }

    fn outdated_dependency(key: &ObjectKey) -> String {
        format!("dependency '{key}' revision is not up to date")
    }

    fn retry_interval(object: &Kustomization) -> Duration {
        spec::retry_interval(&object.spec)
    }

    fn handled_request(object: &Kustomization) -> Option<&str> {
        object.status.as_ref()?.last_handled_reconcile_at.as_deref()
    }
}

/// Returns the ConfigMaps and Secrets of an object whose changes make another pass necessary.
fn configs(object: &DynamicObject) -> Vec<ConfigId> {
    use ConfigKind::{ConfigMap, Secret};
    let name = |pointer| object.data.pointer(pointer).and_then(|name| name.as_str());
    let named = [
        (ConfigMap, name("/spec/kubeConfig/configMapRef/name")),
        (Secret, name("/spec/kubeConfig/secretRef/name")),
        (Secret, name("/spec/decryption/secretRef/name")),
    ];
    let variables = object.data.pointer("/spec/postBuild/substituteFrom");
    let variables = variables.and_then(|list| list.as_array()).into_iter().flatten();
    let variables = variables.filter_map(|reference| {
        let kind = match reference.get("kind")?.as_str()? {
            "ConfigMap" => ConfigMap,
            "Secret" => Secret,
            _ => return None,
        };
        Some((kind, reference.get("name")?.as_str()))
    });
    let namespace = object.namespace().unwrap_or_default();
    let all = named.into_iter().chain(variables);
    let all = all.filter_map(|(kind, name)| {
        let key = ObjectKey::new(namespace.clone(), name?.to_owned());
        Some(ConfigId { kind, key })
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_found_in_all_their_fields() {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": { "name": "shop", "namespace": "apps" },
            "spec": {
                "kubeConfig": { "configMapRef": { "name": "a" }, "secretRef": { "name": "b" } },
                "decryption": { "provider": "sops", "secretRef": { "name": "c" } },
                "postBuild": { "substituteFrom": [
                    { "kind": "ConfigMap", "name": "d" }, { "kind": "Secret", "name": "e" }, { "kind": "Other", "name": "f" }, 1,
                ] },
            },
        }))
        .unwrap();
        let found = KustomizationConsumer::links(&object).configs.into_iter();
        let found: Vec<_> = found
            .map(|config| (config.kind, config.key.to_string()))
            .collect();
        let expected = [
            (ConfigKind::ConfigMap, "apps/a"),
            (ConfigKind::Secret, "apps/b"),
            (ConfigKind::Secret, "apps/c"),
            (ConfigKind::ConfigMap, "apps/d"),
            (ConfigKind::Secret, "apps/e"),
        ];
        assert_eq!(found, expected.map(|(kind, key)| (kind, key.to_owned())));
    }
}
