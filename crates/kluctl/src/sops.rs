//! Files encrypted with SOPS are recognised, so that they are refused and never applied as they are.

use tree::{Budget, TreePath};
use yaml::Value;

use crate::Error;

/// Whether a value carries the metadata of SOPS.
pub(crate) fn is_encrypted(value: &Value) -> bool {
    let sops = value.get("sops").and_then(Value::as_map);
    sops.is_some_and(|sops| sops.contains_key("mac") || sops.contains_key("lastmodified"))
}

/// Refuses an encrypted file.
pub(crate) fn refuse(file: &TreePath, text: &[u8], budget: &Budget) -> Result<(), Error> {
    let mentioned = text.windows(4).any(|window| window == b"sops");
    let structured = [".yaml", ".yml", ".json"]
        .iter()
        .any(|end| file.as_str().ends_with(end));
    if !mentioned {
        return Ok(());
    }
    let encrypted = if structured {
        // A file that is no YAML fails later, where its content matters.
        yaml::read::kustomize_all(text, budget)
            .is_ok_and(|documents| documents.iter().any(|document| is_encrypted(&document.value)))
    } else {
        String::from_utf8_lossy(text)
            .lines()
            .any(|line| line.starts_with("sops_mac=") || line == "[sops]")
    };
    if encrypted { Err(unsupported(file)) } else { Ok(()) }
}

/// The error for an encrypted file.
pub(crate) fn unsupported(file: &TreePath) -> Error {
    Error::Unsupported {
        file: file.clone(),
        line: 1,
        field: "encryption with SOPS".to_owned(),
    }
}
