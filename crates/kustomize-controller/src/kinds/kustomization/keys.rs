//! The keys of the decryption of a Kustomization.

use std::sync::Arc;

use api::kustomize::{Decryption, Kustomization};
use deployer::credentials::DecryptionIdentity;
use kube::ResourceExt as _;
use kustomization::variables::{self, ReadConfigs as _};
use secrets::Keys;

use super::{Kustomizations, reads::BuildReads};

/// A Secret with keys.
#[derive(Debug, PartialEq, Eq)]
struct KeySecret<'a> {
    namespace: &'a str,
    name: &'a str,
    /// True if only its age keys count.
    age_only: bool,
}

impl KeySecret<'_> {
    fn accepts(&self, entry: &str) -> bool {
        !self.age_only || entry.ends_with(".agekey")
    }
}

/// Returns the Secret with the keys of a decryption: its own one, otherwise the Secret `global` of the controller, if there is one. Pure.
fn key_secret<'a>(
    decryption: &'a Decryption,
    namespace: &'a str,
    (own_namespace, global): (&'a str, &'a str),
) -> Option<KeySecret<'a>> {
    match &decryption.secret_ref {
        Some(secret) => Some(KeySecret {
            namespace,
            name: &secret.name,
            age_only: false,
        }),
        None => (!global.is_empty()).then_some(KeySecret {
            namespace: own_namespace,
            name: global,
            age_only: true,
        }),
    }
}

/// Returns the identity that may use key services: the account of the decryption, otherwise the default account of decryptions. The identity of
/// the controller is used only where objects deploy as the controller, too. Pure.
fn identity<'a>(
    decryption: &'a Decryption,
    default_account: &'a str,
    default_deployer: &str,
) -> DecryptionIdentity<'a> {
    let given = decryption.service_account_name.as_deref();
    let account = given.filter(|name| !name.is_empty()).unwrap_or(default_account);
    match (account, default_deployer) {
        ("", "") => DecryptionIdentity::Controller,
        ("", _) => DecryptionIdentity::Nobody,
        (name, _) => DecryptionIdentity::Account(name),
    }
}

impl Kustomizations {
    /// Returns the keys of the decryption; `None` without one. The error is in words.
    pub(super) async fn keys(
        &self,
        object: &Kustomization,
        reads: &mut BuildReads,
    ) -> Result<Option<Keys>, String> {
        let Some(decryption) = &object.spec.decryption else {
            return Ok(None);
        };
        let mut keys = Keys::new();
        let namespace = object.namespace().unwrap_or_default();
        let flags = self.parts.ctx.flags();
        let global = (flags.runtime_namespace.as_str(), self.sops_age_secret.as_str());
        if let Some(secret) = key_secret(decryption, &namespace, global) {
            add_keys(&mut keys, &secret, reads).await?;
        }
        keys.set_addresses(self.parts.ctx.addresses().clone());
        let default = &self.default_decryption_account;
        let identity = identity(decryption, default, &flags.default_service_account);
        if let DecryptionIdentity::Account(account) = identity
            && let Some(vault) = self.vault_account(&namespace, account, reads).await?
        {
            keys.set_vault_account(Arc::new(vault));
        }
        self.identities.add_to(&mut keys, &namespace, identity);
        Ok(Some(keys))
    }
}

/// Adds the keys of a Secret.
async fn add_keys(keys: &mut Keys, secret: &KeySecret<'_>, reads: &mut BuildReads) -> Result<(), String> {
    let (namespace, name) = (secret.namespace, secret.name);
    let failed = |why: &str| format!("cannot get sops decryption Secret '{namespace}/{name}': {why}");
    let found = reads.read("Secret", namespace, name).await;
    let found = found.map_err(|error| failed(&error.to_string()))?;
    let found = found.ok_or_else(|| failed("it does not exist"))?;
    for (key, value) in variables::secret_data(&found).map_err(|why| failed(&why))? {
        if secret.accepts(&key) {
            let added = keys.add_entry(&key, &value);
            added.map_err(|error| failed(&format!("{key}: {error}")))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn decryption(fields: &Value) -> Decryption {
        let mut decryption = json!({ "provider": "sops" });
        for (name, value) in fields.as_object().unwrap() {
            decryption[name] = value.clone();
        }
        serde_json::from_value(decryption).unwrap()
    }

    #[test]
    fn global_age_secret_is_read_only_without_an_own_one() {
        let own = decryption(&json!({ "secretRef": { "name": "keys" } }));
        let none = decryption(&json!({}));
        let secret = key_secret(&own, "apps", ("flux-system", "global")).unwrap();
        assert_eq!((secret.namespace, secret.name), ("apps", "keys"));
        assert!(secret.accepts("sops.aws-kms") && secret.accepts("a.agekey"));
        let global = key_secret(&none, "apps", ("flux-system", "global")).unwrap();
        assert_eq!((global.namespace, global.name), ("flux-system", "global"));
        assert!(global.accepts("a.agekey") && !global.accepts("sops.aws-kms") && !global.accepts("a.asc"));
        assert_eq!(key_secret(&none, "apps", ("flux-system", "")), None);
    }

    #[test]
    fn identity_is_the_own_account_then_the_default_one_then_the_controller() {
        use DecryptionIdentity::{Account, Controller, Nobody};
        let own = decryption(&json!({ "serviceAccountName": "own" }));
        let none = decryption(&json!({ "serviceAccountName": "" }));
        for (decryption, default_account, default_deployer, expected) in [
            (&own, "keys", "", Account("own")),
            (&own, "", "tenant", Account("own")),
            (&none, "keys", "", Account("keys")),
            (&none, "keys", "tenant", Account("keys")),
            (&none, "", "", Controller),
            (&none, "", "tenant", Nobody),
        ] {
            let found = identity(decryption, default_account, default_deployer);
            assert_eq!(found, expected, "{default_account} {default_deployer}");
        }
    }
}
