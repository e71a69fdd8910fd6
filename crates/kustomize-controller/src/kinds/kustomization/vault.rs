//! The servers of Vault that ServiceAccounts may log in to: a list of the administrator.

use std::collections::BTreeMap;

use kustomization::variables::ReadConfigs as _;
use remote::ServiceAccountVault;
use serde_json::Value as Json;
use tree::Budget;
use yaml::Value;

use super::{Kustomizations, reads::BuildReads};

/// Key of the ConfigMap with the list.
const KEY: &str = "config.yaml";

/// Reads the paths of logins by the addresses of their servers. The error is in words. Pure.
fn servers(map: &Value) -> Result<BTreeMap<String, String>, String> {
    let text = map.pointer(&["data", KEY]).and_then(Value::as_str);
    let text = text.ok_or_else(|| format!("is missing the '{KEY}' key"))?;
    let invalid = |why: &dyn std::fmt::Display| format!("'{KEY}': {why}");
    let read = yaml::read::goyaml_lenient(text.as_bytes(), &Budget::default());
    let read = read.map_err(|error| invalid(&error))?;
    let config = read.value.to_json();
    let instances = config.get("instances").and_then(Json::as_array).into_iter();
    let instances = instances.flatten().enumerate().map(|(at, instance)| {
        let field = |name: &str| {
            let text = instance.get(name).and_then(Json::as_str).map(str::to_owned);
            text.ok_or_else(|| invalid(&format_args!("instances[{at}].{name} is not a string")))
        };
        Ok((field("address")?, field("loginPath")?))
    });
    instances.collect()
}

impl Kustomizations {
    /// Returns the logins of a ServiceAccount to Vault; `None` if the administrator gave no list. The error is in words.
    pub(super) async fn vault_account(
        &self,
        namespace: &str,
        account: &str,
        reads: &mut BuildReads,
    ) -> Result<Option<ServiceAccountVault>, String> {
        let name = self.sops_vault_configmap.as_str();
        if name.is_empty() {
            return Ok(None);
        }
        let own = &self.parts.ctx.flags().runtime_namespace;
        let list = format!("Vault ConfigMap '{own}/{name}'");
        let found = reads.read("ConfigMap", own, name).await;
        let found = found.map_err(|error| format!("failed to get {list}: {error}"))?;
        let map = found.ok_or_else(|| format!("failed to get {list}: it does not exist"))?;
        Ok(Some(ServiceAccountVault {
            cluster: self.parts.clusters.local().of_tenant(namespace),
            namespace: namespace.to_owned(),
            name: account.to_owned(),
            servers: servers(&map).map_err(|why| format!("{list} {why}"))?,
            list,
        }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn servers_are_read_from_the_list() {
        let read = |data| servers(&Value::from_json(json!({ "data": data })));
        let text = "instances:\n- address: https://vault.example.com\n  loginPath: auth/kubernetes/login\n";
        let found = read(json!({ KEY: text })).unwrap();
        assert_eq!(found["https://vault.example.com"], "auth/kubernetes/login");
        assert!(read(json!({ KEY: "{}" })).unwrap().is_empty());
        for (data, part) in [
            (json!({}), "is missing the 'config.yaml' key"),
            (
                json!({ KEY: "instances: [{ address: a }]" }),
                "instances[0].loginPath is not a string",
            ),
            (json!({ KEY: "a: [" }), "'config.yaml': "),
        ] {
            let error = read(data).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
