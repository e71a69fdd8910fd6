//! Reads the RBAC rules of a service account.

use anyhow::Result;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject};
use kube::Api;

use crate::cluster::{NAMESPACE, TestCluster};

pub async fn rules_of(cluster: &TestCluster, account: &str) -> Result<Vec<PolicyRule>> {
    let client = &cluster.client;
    let everything = Default::default();
    let mut rules = Vec::new();
    for binding in Api::<ClusterRoleBinding>::all(client.clone())
        .list(&everything)
        .await?
    {
        if names(binding.subjects.as_deref(), account) {
            let role = Api::<ClusterRole>::all(client.clone())
                .get(&binding.role_ref.name)
                .await?;
            rules.extend(role.rules.unwrap_or_default());
        }
    }
    for binding in Api::<RoleBinding>::namespaced(client.clone(), NAMESPACE)
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
                    Api::<Role>::namespaced(client.clone(), NAMESPACE)
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
            && subject.namespace.as_deref() == Some(NAMESPACE)
    })
}
