//! What the roles that bind a service account let it do.

use anyhow::Result;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject};
use kube::Api;

use crate::world::{SYSTEM, World};

/// The rules that bind a service account of ours, but for the role that is bound to let it deploy anything.
///
/// # Errors
/// When the API server does not answer.
pub async fn rules_of(world: &World, account: &str) -> Result<Vec<PolicyRule>> {
    let client = &world.client;
    let everything = Default::default();
    let mut rules = Vec::new();
    for binding in Api::<ClusterRoleBinding>::all(client.clone())
        .list(&everything)
        .await?
    {
        if names(binding.subjects.as_deref(), account) && binding.role_ref.name != "cluster-admin" {
            let role = Api::<ClusterRole>::all(client.clone())
                .get(&binding.role_ref.name)
                .await?;
            rules.extend(role.rules.unwrap_or_default());
        }
    }
    for binding in Api::<RoleBinding>::namespaced(client.clone(), SYSTEM)
        .list(&everything)
        .await?
    {
        if !names(binding.subjects.as_deref(), account) {
            continue;
        }
        let role = &binding.role_ref.name;
        rules.extend(
            match binding.role_ref.kind.as_str() {
                "Role" => {
                    Api::<Role>::namespaced(client.clone(), SYSTEM)
                        .get(role)
                        .await?
                        .rules
                }
                _ => Api::<ClusterRole>::all(client.clone()).get(role).await?.rules,
            }
            .unwrap_or_default(),
        );
    }
    Ok(rules)
}

fn names(subjects: Option<&[Subject]>, account: &str) -> bool {
    subjects.unwrap_or_default().iter().any(|subject| {
        subject.kind == "ServiceAccount"
            && subject.name == account
            && subject.namespace.as_deref() == Some(SYSTEM)
    })
}
