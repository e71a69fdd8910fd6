//! Reads the RBAC rules of a service account.

use anyhow::Result;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject};
use kube::{Api, ResourceExt as _};

use crate::cluster::{NAMESPACE, TestCluster};

/// A rule, and where it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Granted {
    pub rule: PolicyRule,
    /// `None` for all namespaces.
    pub namespace: Option<String>,
}

/// Returns the rules of a service account in [`NAMESPACE`].
pub async fn rules_of(cluster: &TestCluster, account: &str) -> Result<Vec<PolicyRule>> {
    let granted = granted(cluster, account).await?.into_iter();
    Ok(granted.map(|granted| granted.rule).collect())
}

/// Returns the rules of a service account in [`NAMESPACE`], each with its namespace.
pub async fn granted(cluster: &TestCluster, account: &str) -> Result<Vec<Granted>> {
    let client = &cluster.client;
    let everything = Default::default();
    let cluster_role = async |name: &str| Api::<ClusterRole>::all(client.clone()).get(name).await;
    let mut granted = Vec::new();
    let mut add = |namespace: Option<String>, rules: Option<Vec<PolicyRule>>| {
        granted.extend(rules.unwrap_or_default().into_iter().map(|rule| Granted {
            rule,
            namespace: namespace.clone(),
        }));
    };
    let bindings = Api::<ClusterRoleBinding>::all(client.clone());
    for binding in bindings.list(&everything).await? {
        if names(binding.subjects.as_deref(), account) {
            add(None, cluster_role(&binding.role_ref.name).await?.rules);
        }
    }
    let bindings = Api::<RoleBinding>::all(client.clone());
    for binding in bindings.list(&everything).await? {
        if !names(binding.subjects.as_deref(), account) {
            continue;
        }
        let (namespace, role) = (binding.namespace().unwrap_or_default(), &binding.role_ref.name);
        let rules = match binding.role_ref.kind.as_str() {
            "Role" => {
                let roles = Api::<Role>::namespaced(client.clone(), &namespace);
                roles.get(role).await?.rules
            }
            _ => cluster_role(role).await?.rules,
        };
        add(Some(namespace), rules);
    }
    Ok(granted)
}

fn names(subjects: Option<&[Subject]>, account: &str) -> bool {
    subjects.unwrap_or_default().iter().any(|subject| {
        subject.kind == "ServiceAccount"
            && subject.name == account
            && subject.namespace.as_deref() == Some(NAMESPACE)
    })
}
