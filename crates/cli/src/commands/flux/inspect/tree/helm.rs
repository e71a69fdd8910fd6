//! The objects of a HelmRelease whose status does not list them, from the release that Helm stored in a Secret.

use std::io::Read as _;

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use cluster::Scope;
use objects::{ObjectId, ObjectRef};
use tree::Budget;
use yaml::Value;

use super::read;
use crate::commands::flux::Flux;

/// Maximum size of a stored release.
const MOST: u64 = 32 << 20;
const GZIP: [u8; 2] = [0x1f, 0x8b];

pub(super) async fn objects(flux: &Flux, release: &Value) -> Result<Vec<ObjectId>> {
    let namespace = read::text(release, &["status", "storageNamespace"]);
    let latest = release.pointer(&["status", "history", "0"]);
    let (false, Some(latest)) = (namespace.is_empty(), latest) else {
        return Ok(Vec::new());
    };
    let version = latest.get("version").and_then(Value::as_i64).unwrap_or_default();
    let secret = ObjectRef::core(
        "Secret",
        namespace,
        &format!("sh.helm.release.v1.{}.v{version}", read::text(latest, &["name"])),
    );
    let Some(stored) = flux.cluster.get(&secret).await? else {
        return Ok(Vec::new());
    };
    let name = read::text(release, &["metadata", "name"]);
    let manifest = manifest(read::text(&stored, &["data", "release"]))
        .with_context(|| format!("failed to decode the Helm storage object for HelmRelease '{name}'"))?;
    let documents = yaml::read::goyaml_all(&manifest, &Budget::default())?;
    let mut ids = Vec::new();
    for document in documents {
        let Ok(reference) = ObjectRef::of(&document.value) else {
            continue;
        };
        let mut id = reference.id();
        let is_namespaced = flux.cluster.scope(&id.group, &id.kind).await? == Some(Scope::Namespaced);
        if id.namespace.is_none() && is_namespaced {
            id.namespace = Some(read::text(latest, &["namespace"]).to_owned());
        }
        ids.push(id);
    }
    Ok(ids)
}

/// Returns the manifest of a stored release: base64 in base64, of JSON that is usually compressed.
fn manifest(data: &str) -> Result<String> {
    let encoded = STANDARD.decode(data)?;
    let mut bytes = STANDARD.decode(encoded)?;
    if bytes.starts_with(&GZIP) {
        let mut plain = Vec::new();
        let decoder = flate2::read::GzDecoder::new(bytes.as_slice());
        let read = decoder.take(MOST + 1).read_to_end(&mut plain)?;
        anyhow::ensure!(read as u64 <= MOST, "it has more than {MOST} bytes");
        bytes = plain;
    }
    let release: serde_json::Value = serde_json::from_slice(&bytes)?;
    let manifest = release.get("manifest").and_then(serde_json::Value::as_str);
    Ok(manifest.unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn stored_releases_are_decoded() {
        let json = br#"{"name":"a","manifest":"kind: Pod\n"}"#;
        let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        zip.write_all(json).unwrap();
        let zipped = zip.finish().unwrap();
        for bytes in [&json[..], &zipped] {
            let data = STANDARD.encode(STANDARD.encode(bytes));
            assert_eq!(manifest(&data).unwrap(), "kind: Pod\n");
        }
        assert!(manifest("%").is_err());
        let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        for _ in 0..33 {
            bomb.write_all(&vec![b' '; 1 << 20]).unwrap();
        }
        let data = STANDARD.encode(STANDARD.encode(bomb.finish().unwrap()));
        assert!(manifest(&data).unwrap_err().to_string().contains("more than"));
    }
}
