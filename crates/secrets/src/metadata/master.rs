//! Master keys of SOPS: each opens a file, or its part of the data key.

use std::collections::BTreeMap;

use yaml::{Map, Value};

use super::text;
use crate::Error;

/// A master key, with the data key encrypted for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Master {
    pub(crate) kind: MasterKind,
    /// Encrypted data key, in the encoding of its kind.
    pub(crate) enc: String,
}

/// Kinds of master keys, with their identifiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MasterKind {
    Age {
        recipient: String,
    },
    Pgp {
        fingerprint: String,
    },
    Aws {
        arn: String,
        role: String,
        profile: String,
        context: BTreeMap<String, String>,
    },
    Gcp {
        resource: String,
    },
    Azure {
        vault: String,
        name: String,
        version: String,
    },
    Vault {
        address: String,
        engine: String,
        name: String,
    },
    /// Keys of Huawei Cloud, which are not supported.
    Huawei {
        id: String,
    },
}

impl Master {
    /// Returns the keys of one group, in SOPS' order.
    pub(super) fn all(group: &Map) -> Result<Vec<Self>, Error> {
        let mut found = Vec::new();
        for list in ["kms", "gcp_kms", "hckms", "azure_kv", "hc_vault", "pgp", "age"] {
            let Some(keys) = group.get(list).filter(|keys| !keys.is_null()) else {
                continue;
            };
            let wrong = || Error::Metadata(format!("`{list}` is no list of maps"));
            for key in keys.as_seq().ok_or_else(wrong)? {
                found.push(Self::read(list, key.as_map().ok_or_else(wrong)?)?);
            }
        }
        Ok(found)
    }

    fn read(list: &str, key: &Map) -> Result<Self, Error> {
        let text = |name: &str| text(key, name);
        let kind = match list {
            "age" => MasterKind::Age {
                recipient: text("recipient")?,
            },
            "pgp" => MasterKind::Pgp {
                fingerprint: text("fp")?,
            },
            "kms" => MasterKind::Aws {
                arn: text("arn")?,
                role: text("role")?,
                profile: text("aws_profile")?,
                context: context(key)?,
            },
            "gcp_kms" => MasterKind::Gcp {
                resource: text("resource_id")?,
            },
            "azure_kv" => MasterKind::Azure {
                vault: text("vault_url")?,
                name: text("name")?,
                version: text("version")?,
            },
            "hc_vault" => MasterKind::Vault {
                address: text("vault_address")?,
                engine: text("engine_path")?,
                name: text("key_name")?,
            },
            _ => MasterKind::Huawei { id: text("key_id")? },
        };
        Ok(Self {
            kind,
            enc: text("enc")?,
        })
    }

    /// Returns the order in which keys are tried: 0 for age, 1 for PGP, 2 for keys of network services.
    pub(crate) fn rank(&self) -> u8 {
        match self.kind {
            MasterKind::Age { .. } => 0,
            MasterKind::Pgp { .. } => 1,
            _ => 2,
        }
    }

    /// Returns the name of the key for messages; it contains no secrets.
    pub(crate) fn name(&self) -> String {
        match &self.kind {
            MasterKind::Age { recipient } => recipient.clone(),
            MasterKind::Pgp { fingerprint } => fingerprint.clone(),
            MasterKind::Aws { arn, role, .. } if role.is_empty() => arn.clone(),
            MasterKind::Aws { arn, role, .. } => format!("{arn}+{role}"),
            MasterKind::Gcp { resource } => resource.clone(),
            MasterKind::Azure { vault, name, version } => format!("{vault}/keys/{name}/{version}"),
            MasterKind::Vault {
                address,
                engine,
                name,
            } => format!("{address}/v1/{engine}/keys/{name}"),
            MasterKind::Huawei { id } => id.clone(),
        }
    }
}

fn context(key: &Map) -> Result<BTreeMap<String, String>, Error> {
    let Some(context) = key.get("context").filter(|context| !context.is_null()) else {
        return Ok(BTreeMap::new());
    };
    let context = context
        .as_map()
        .ok_or_else(|| Error::Metadata("the `context` of a kms key is no map".to_owned()))?;
    context
        .iter()
        .filter(|(_, value)| !matches!(value, Value::Null))
        .map(|(name, _)| Ok((name.to_owned(), text(context, name)?)))
        .collect()
}
