//! Decryption of the files that a kustomization names, and of built Secrets, by SOPS.
//!
//! MACs are not checked, as in the original: patches may have changed an encrypted object.

use std::collections::{HashMap, HashSet};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kustomize::FILE_NAMES;
use limits::blocking::Job;
use objects::meta;
use parking_lot::Mutex;
use secrets::{DataKey, File, Format, Keys};
use serde_json::Value as Json;
use tokio::runtime::Handle;
use tree::{Budget, Overlay, Tree as _, TreePath};
use yaml::Value;

use crate::manifests::build_name;

/// Maximum size of an encrypted file in bytes.
const FILE_BYTES: usize = 5 << 20;
pub(crate) const DECRYPT: &str = "kustomize.toolkit.fluxcd.io/decrypt";
/// Strings that only encrypted files have, with their formats.
const MARKERS: [(&str, Format); 4] = [
    ("\"mac\": \"ENC[", Format::Json),
    ("sops_mac=ENC[", Format::Dotenv),
    ("[sops]", Format::Ini),
    ("mac: ENC[", Format::Yaml),
];

/// The reason why something can't be decrypted. It holds no secret.
#[derive(Debug, thiserror::Error)]
pub enum DecryptError {
    #[error("error decrypting sources: {file}: {why}")]
    Source { file: TreePath, why: String },
    #[error("decryption failed for '{name}': {why}")]
    Object { name: String, why: String },
}

/// Decrypts the files and objects of one build. Each data key is asked for once.
pub(crate) struct Decryptor<'a> {
    pub(crate) keys: &'a Keys,
    pub(crate) budget: &'a Budget,
    pub(crate) runtime: &'a Handle,
    pub(crate) job: &'a Job,
    data_keys: Mutex<HashMap<[u8; 32], DataKey>>,
}

impl<'a> Decryptor<'a> {
    pub(crate) fn new(keys: &'a Keys, budget: &'a Budget, runtime: &'a Handle, job: &'a Job) -> Self {
        Self {
            keys,
            budget,
            runtime,
            job,
            data_keys: Mutex::default(),
        }
    }

    /// Decrypts a file; `None` if it is not encrypted.
    fn content(&self, bytes: &[u8], input: Format, output: Format) -> Result<Option<Vec<u8>>, String> {
        if bytes.len() > FILE_BYTES {
            let size = bytes.len();
            return Err(format!(
                "cannot decrypt file with size ({size} bytes) exceeding limit ({FILE_BYTES})"
            ));
        }
        let file = File::read(input, bytes, self.budget).map_err(|error| error.to_string())?;
        let Some(file) = file else { return Ok(None) };
        let key = self.data_key(&file)?;
        let decrypted = file.decrypt_as(output, &key, self.budget);
        let decrypted = decrypted.map_err(|error| error.to_string())?;
        Ok(Some(decrypted.content))
    }

    fn data_key(&self, file: &File) -> Result<DataKey, String> {
        let id = file.key_id();
        if let Some(known) = self.data_keys.lock().get(&id) {
            return Ok(known.clone());
        }
        let asked = file.data_key_within(self.keys, self.budget);
        let asked = limits::blocking::wait(self.runtime, self.job, asked);
        let key = asked.map_err(|_| "the key services did not answer in time".to_owned())?;
        let key = key.map_err(|error| error.to_string())?;
        self.data_keys.lock().insert(id, key.clone());
        Ok(key)
    }

    /// Decrypts the files that a kustomization and those below it name for generators and patches, in place.
    pub(crate) fn sources(&self, files: &Overlay, dir: &TreePath) -> Result<(), DecryptError> {
        let mut open = vec![dir.clone()];
        let mut visited = HashSet::new();
        while let Some(dir) = open.pop() {
            if !visited.insert(dir.clone()) {
                continue;
            }
            let Some(fields) = self.kustomization(files, &dir) else {
                continue;
            };
            for (path, format) in named_files(&fields) {
                let Ok(file) = dir.join(&path) else { continue };
                self.source(files, &file, format)?;
            }
            let below = ["resources", "bases", "components"]
                .into_iter()
                .flat_map(|field| strings(fields.get(field)));
            let below = below.filter_map(|path| dir.join(&path).ok());
            open.extend(below.filter(|path| files.is_dir(path)));
        }
        Ok(())
    }

    /// Returns a kustomization file; `None` if there is none that can be read: the build says why.
    fn kustomization(&self, files: &Overlay, dir: &TreePath) -> Option<Json> {
        let file = FILE_NAMES.iter().map(|name| dir.child(name));
        let file = file.into_iter().find(|file| files.is_file(file))?;
        let document = yaml::read::kustomize(files.read(&file).ok()?, self.budget).ok()?;
        Some(document.value.to_json())
    }

    fn source(&self, files: &Overlay, file: &TreePath, format: Format) -> Result<(), DecryptError> {
        // A missing file is the build's to report.
        let Ok(bytes) = files.read(file) else {
            return Ok(());
        };
        if !has_marker(&bytes, format) {
            return Ok(());
        }
        let failed = |why: String| DecryptError::Source {
            file: file.clone(),
            why,
        };
        match self.content(&bytes, format, format).map_err(failed)? {
            Some(content) => files
                .write(file, content)
                .map_err(|error| failed(error.to_string())),
            None => Ok(()),
        }
    }

    /// Decrypts a built object as a whole, or the values of a Secret.
    pub(crate) fn object(&self, mut object: Value) -> Result<Value, DecryptError> {
        if meta::annotation(&object, DECRYPT).is_some_and(|value| value.eq_ignore_ascii_case("disabled")) {
            return Ok(object);
        }
        let name = build_name(&object);
        let failed = |why: String| DecryptError::Object {
            name: name.clone(),
            why,
        };
        let place = format!(
            "'{}/{}'",
            meta::text(&object, "namespace").unwrap_or_default(),
            meta::text(&object, "name").unwrap_or_default()
        );
        if object.pointer(&["sops", "mac"]).is_some() {
            let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
            let failed =
                |why: String| failed(format!("failed to decrypt and format {place} {kind} data: {why}"));
            let text = yaml::print::json(&object);
            let content = self.content(text.as_bytes(), Format::Json, Format::Json);
            let Some(content) = content.map_err(failed)? else {
                return Ok(object);
            };
            let read: Json = serde_json::from_slice(&content).map_err(|error| failed(error.to_string()))?;
            return Ok(Value::from_json(read));
        }
        let field = |name: &str| object.get(name).and_then(Value::as_str);
        if (field("apiVersion"), field("kind")) != (Some("v1"), Some("Secret")) {
            return Ok(object);
        }
        for (key, value) in object
            .get_mut("data")
            .and_then(Value::as_map_mut)
            .into_iter()
            .flat_map(yaml::Map::iter_mut)
        {
            let decoded = value.as_str().and_then(|text| STANDARD.decode(text).ok());
            let Some((decoded, input)) = decoded.and_then(|bytes| {
                let input = detected(&bytes)?;
                Some((bytes, input))
            }) else {
                continue;
            };
            let output = format_of(key);
            // Any other file is encrypted as JSON.
            let input = match (input, output) {
                (Format::Json, Format::Binary) => Format::Binary,
                (input, _) => input,
            };
            let failed = |why: String| {
                failed(format!(
                    "failed to decrypt and format {place} Secret field '{key}': {why}"
                ))
            };
            if let Some(content) = self.content(&decoded, input, output).map_err(failed)? {
                *value = Value::from(STANDARD.encode(content));
            }
        }
        Ok(object)
    }
}

/// Returns the format of an encrypted file by its content; `None` if it is not encrypted.
fn detected(bytes: &[u8]) -> Option<Format> {
    let found = MARKERS.into_iter().find(|(marker, _)| contains(bytes, marker));
    found.map(|(_, format)| format)
}

/// Returns true if a file was encrypted in the given format. A file in another one is left as it is, as by the original.
fn has_marker(bytes: &[u8], format: Format) -> bool {
    // Any other file is encrypted as JSON.
    let format = match format {
        Format::Binary => Format::Json,
        format => format,
    };
    MARKERS
        .into_iter()
        .any(|(marker, of)| of == format && contains(bytes, marker))
}

fn contains(bytes: &[u8], marker: &str) -> bool {
    bytes
        .windows(marker.len())
        .any(|window| window == marker.as_bytes())
}

/// Returns the format of a file by its name; Docker's credentials are JSON.
fn format_of(name: &str) -> Format {
    match name.ends_with(".dockerconfigjson") {
        true => Format::Json,
        false => Format::of_name(name),
    }
}

/// Returns the files that a kustomization names for generators of Secrets and for patches, with their formats.
fn named_files(fields: &Json) -> Vec<(String, Format)> {
    let mut named = Vec::new();
    for generator in list(fields.get("secretGenerator")) {
        for file in strings(generator.get("files")) {
            let (key, path) = file.split_once('=').unwrap_or((&file, &file));
            named.push((path.to_owned(), format_of(key)));
        }
        let envs = strings(generator.get("envs"));
        let env = generator.get("env").and_then(Json::as_str).map(str::to_owned);
        for file in envs.into_iter().chain(env) {
            let format = match format_of(&file) {
                Format::Binary => Format::Dotenv,
                format => format,
            };
            named.push((file, format));
        }
    }
    for patches in ["patches", "patchesJson6902"] {
        for patch in list(fields.get(patches)) {
            if let Some(path) = patch.get("path").and_then(Json::as_str) {
                named.push((path.to_owned(), format_of(path)));
            }
        }
    }
    let paths = strings(fields.get("patchesStrategicMerge")).into_iter();
    let paths = paths.filter(|path| !path.contains(['\n', '{']));
    named.extend(paths.map(|path| {
        let format = format_of(&path);
        (path, format)
    }));
    named.retain(|(path, _)| !path.contains("://"));
    named
}

fn list(value: Option<&Json>) -> &[Json] {
    value.and_then(Json::as_array).map_or(&[], Vec::as_slice)
}

fn strings(value: Option<&Json>) -> Vec<String> {
    let strings = list(value).iter().filter_map(Json::as_str);
    strings.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use serde_json::json;
    use tree::Mem;

    use super::*;

    const KEY: &str = include_str!("../../secrets/fixtures/age.txt");
    const FILE: &str = include_str!("../../secrets/fixtures/secret.yaml");

    fn within<T: Send + 'static>(work: impl FnOnce(&Decryptor<'_>) -> T + Send + 'static) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let handle = runtime.handle().clone();
        let mut keys = Keys::new();
        keys.add_age(&KEY.to_owned().into()).unwrap();
        let job = Job {
            namespace: "apps".to_owned(),
            timeout: Duration::from_secs(60),
            cancelled: Arc::default(),
            revoked: Default::default(),
        };
        let budget = Budget::default();
        work(&Decryptor::new(&keys, &budget, &handle, &job))
    }

    #[test]
    fn named_files_have_the_formats_of_their_keys_and_names() {
        let fields = json!({
            "secretGenerator": [{
                "files": ["a.yaml", "key.json=b.txt", ".dockerconfigjson=c"], "envs": ["d.env", "e"], "env": "f.ini",
            }],
            "patches": [{ "path": "g.yaml" }, { "patch": "inline" }],
            "patchesStrategicMerge": ["h.yaml", "kind: A\n"],
            "patchesJson6902": [{ "path": "https://example.com/i.yaml" }],
        });
        let expected = [
            ("a.yaml", Format::Yaml),
            ("b.txt", Format::Json),
            ("c", Format::Json),
            ("d.env", Format::Dotenv),
            ("e", Format::Dotenv),
            ("f.ini", Format::Ini),
            ("g.yaml", Format::Yaml),
            ("h.yaml", Format::Yaml),
        ];
        let expected = expected.map(|(path, format)| (path.to_owned(), format));
        assert_eq!(named_files(&fields), expected);
    }

    #[test]
    fn files_of_generators_are_decrypted_below_the_root_only() {
        let files = [
            ("app/kustomization.yaml", "resources: [../base, ../missing]\n"),
            (
                "base/kustomization.yaml",
                "resources: [../app]\nsecretGenerator: [{ name: a, files: [s.yaml, ../../../outside, plain.yaml] }]\n",
            ),
            ("base/s.yaml", FILE),
            ("base/plain.yaml", "password: plain\n"),
        ];
        let tree = Mem::from_files(files.map(|(path, text)| (path, text.to_owned()))).unwrap();
        let overlay = Overlay::new(Arc::new(tree));
        let read = within(move |decryptor| {
            let dir = TreePath::parse("app").unwrap();
            decryptor.sources(&overlay, &dir).unwrap();
            let read = |path: &str| overlay.read(&TreePath::parse(path).unwrap()).unwrap();
            (read("base/s.yaml"), read("base/plain.yaml"))
        });
        assert!(read.0.ends_with(b"password: hunter2\n"), "{:?}", read.0);
        assert_eq!(read.1, "password: plain\n");
    }

    #[test]
    fn values_of_secrets_are_decrypted_unless_they_opt_out() {
        let secret = |annotation: &str| {
            json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": { "name": "s", "annotations": { DECRYPT: annotation } },
                "data": { "s.yaml": STANDARD.encode(FILE), "plain": "eA==" },
            })
        };
        let data = |annotation: &str| {
            let object = Value::from_json(secret(annotation));
            within(move |decryptor| decryptor.object(object).unwrap().to_json()["data"].clone())
        };
        let opened = data("enabled");
        let text = STANDARD.decode(opened["s.yaml"].as_str().unwrap()).unwrap();
        assert!(text.ends_with(b"password: hunter2\n"));
        assert_eq!(opened["plain"], "eA==");
        assert_eq!(data("Disabled")["s.yaml"], STANDARD.encode(FILE));
    }

    #[test]
    fn values_get_the_formats_of_their_keys() {
        let json_file = include_str!("../../secrets/fixtures/notes.json");
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" },
            "data": { "n.yaml": STANDARD.encode(json_file), ".dockerconfigjson": STANDARD.encode(json_file) },
        });
        let object = Value::from_json(secret);
        let opened = within(move |decryptor| decryptor.object(object).unwrap().to_json()["data"].clone());
        let text = |key: &str| STANDARD.decode(opened[key].as_str().unwrap()).unwrap();
        assert!(text("n.yaml").starts_with(b"a: 1\n"), "{opened}");
        assert_eq!(
            text(".dockerconfigjson"),
            include_bytes!("../../secrets/fixtures/notes.json.clear")
        );
    }

    #[test]
    fn files_in_another_format_than_their_names_are_left_alone() {
        let kustomization = "secretGenerator: [{ name: a, files: [s.json, t=s.json], envs: [s.env] }]\n";
        let names = ["s.json", "s.env"];
        let files = names.map(|name| (name, FILE.to_owned()));
        let files = files
            .into_iter()
            .chain([("kustomization.yaml", kustomization.to_owned())]);
        let overlay = Overlay::new(Arc::new(Mem::from_files(files).unwrap()));
        within(move |decryptor| {
            decryptor.sources(&overlay, &TreePath::root()).unwrap();
            for name in names {
                assert_eq!(overlay.read(&TreePath::parse(name).unwrap()).unwrap(), FILE);
            }
        });
    }

    #[test]
    fn changed_objects_are_decrypted_all_the_same() {
        let object = yaml::read::kustomize(FILE.replace("name: shop", "name: cart"), &Budget::default());
        let object = object.unwrap().value;
        let opened = within(move |decryptor| decryptor.object(object).unwrap().to_json());
        assert_eq!(opened["metadata"]["name"], "cart");
        assert_eq!(opened["stringData"]["password"], "hunter2");
    }

    #[test]
    fn failures_name_the_object_and_the_field() {
        let failure = |object: Json| {
            let object = Value::from_json(object);
            within(move |decryptor| decryptor.object(object).unwrap_err().to_string())
        };
        // Encrypted for nobody.
        let sops = json!({ "mac": "ENC[AES256_GCM,data:,iv:,tag:,type:str]", "lastmodified": "2026-01-01T00:00:00Z", "version": "3.9.0" });
        let whole = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "m", "namespace": "n" }, "sops": sops,
        });
        let start = "decryption failed for 'ConfigMap.v1.[noGrp]/m': failed to decrypt and format 'n/m' ConfigMap data: ";
        let error = failure(whole);
        assert!(error.starts_with(start), "{error}");
        let file = yaml::print::goyaml(&Value::from_json(json!({ "a": "b", "sops": sops })));
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" },
            "data": { "a.yaml": STANDARD.encode(file) },
        });
        let start = "decryption failed for 'Secret.v1.[noGrp]/s': failed to decrypt and format '/s' Secret field 'a.yaml': ";
        let error = failure(secret);
        assert!(error.starts_with(start), "{error}");
    }

    #[test]
    fn large_files_are_refused() {
        let large = format!("{FILE}# {}", "x".repeat(FILE_BYTES));
        let error = within(move |decryptor| {
            decryptor
                .content(large.as_bytes(), Format::Yaml, Format::Yaml)
                .unwrap_err()
        });
        assert!(error.starts_with("cannot decrypt file with size ("), "{error}");
    }
}
