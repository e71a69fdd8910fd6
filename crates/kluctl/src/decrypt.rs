//! Decryption of SOPS files, and their detection in renders without decryption.

use std::collections::HashMap;

use bytes::Bytes;
use tree::{Budget, Entry, NodeKind, Tree, TreeError, TreePath};
use yaml::Value;

use crate::{CallbackError, Error};

/// Decrypts files that are encrypted with SOPS.
pub trait Decrypt: Send + Sync {
    /// Returns the plain content; `None` if it isn't encrypted. The extension of the path selects the format. Error messages
    /// hold no secret.
    fn decrypt(&self, file: Encrypted<'_>) -> Result<Option<Bytes>, CallbackError>;
}

#[derive(Clone, Copy)]
pub struct Encrypted<'a> {
    /// The files of its repository, before rendering.
    pub sources: &'a dyn Tree,
    /// The path among the sources, where it is missing if a template or a chart made the file.
    pub path: &'a TreePath,
    pub content: &'a Bytes,
}

impl std::fmt::Debug for dyn Decrypt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decrypt")
    }
}

/// The content of a file; `true` if it was encrypted.
pub(crate) struct Opened {
    pub(crate) bytes: Bytes,
    pub(crate) secret: bool,
}

impl Opened {
    /// Parses the content. Errors don't quote content that was encrypted.
    pub(crate) fn read(
        &self,
        file: &TreePath,
        parse: impl FnOnce(&TreePath, &[u8], &Budget) -> Result<Value, Error>,
        budget: &Budget,
    ) -> Result<Value, Error> {
        let read = parse(file, &self.bytes, budget);
        read.map_err(|error| match self.secret {
            true => error.veiled(|line, problem| Error::Invalid {
                file: file.clone(),
                line: line.unwrap_or(1),
                problem: format!("it {problem}"),
            }),
            false => error,
        })
    }
}

/// Decrypts a file if it is encrypted. Fails for encrypted files if the render has no decryption.
pub(crate) fn open(
    decrypt: Option<&dyn Decrypt>,
    sources: &dyn Tree,
    path: &TreePath,
    bytes: Bytes,
    budget: &Budget,
) -> Result<Opened, Error> {
    let clear = |bytes| Opened { bytes, secret: false };
    if !bytes.windows(4).any(|window| window == b"sops") {
        return Ok(clear(bytes));
    }
    let file = || path.clone();
    match decrypt {
        Some(decrypt) => match decrypt.decrypt(Encrypted {
            sources,
            path,
            content: &bytes,
        }) {
            Ok(Some(bytes)) => Ok(Opened { bytes, secret: true }),
            Ok(None) => Ok(clear(bytes)),
            Err(problem) => Err(Error::Decrypt {
                file: file(),
                problem,
            }),
        },
        None if is_encrypted(path, &bytes, budget) => Err(Error::NoDecryption(file())),
        None => Ok(clear(bytes)),
    }
}

/// Returns true if a file that mentions `sops` has SOPS metadata.
fn is_encrypted(file: &TreePath, text: &[u8], budget: &Budget) -> bool {
    let structured = [".yaml", ".yml", ".json"]
        .iter()
        .any(|end| file.as_str().ends_with(end));
    if structured {
        // Invalid YAML fails later, when the content is used.
        yaml::read::kustomize_all(text, budget)
            .is_ok_and(|documents| documents.iter().any(|document| has_metadata(&document.value)))
    } else {
        String::from_utf8_lossy(text)
            .lines()
            .any(|line| line.starts_with("sops_mac=") || line == "[sops]")
    }
}

fn has_metadata(value: &Value) -> bool {
    let sops = value.get("sops").and_then(Value::as_map);
    sops.is_some_and(|sops| sops.contains_key("mac") || sops.contains_key("lastmodified"))
}

/// A tree whose encrypted files are decrypted when they are read.
pub(crate) struct Decrypting<'a> {
    pub(crate) tree: &'a dyn Tree,
    pub(crate) sources: &'a dyn Tree,
    /// Paths in the source of files that have another path in the tree.
    pub(crate) moved: &'a HashMap<TreePath, TreePath>,
    pub(crate) decrypt: Option<&'a dyn Decrypt>,
    pub(crate) budget: &'a Budget,
}

impl Tree for Decrypting<'_> {
    fn read(&self, path: &TreePath) -> Result<Bytes, TreeError> {
        let bytes = self.tree.read(path)?;
        let source = self.moved.get(path).unwrap_or(path);
        let opened = open(self.decrypt, self.sources, source, bytes, self.budget);
        opened.map(|opened| opened.bytes).map_err(|error| TreeError::Io {
            path: path.clone(),
            source: std::io::Error::other(match error {
                Error::Decrypt { problem, .. } => format!("failed to decrypt: {problem}"),
                _ => NO_DECRYPTION.to_owned(),
            }),
        })
    }

    fn list(&self, dir: &TreePath) -> Result<Vec<Entry>, TreeError> {
        self.tree.list(dir)
    }

    fn kind(&self, path: &TreePath) -> Result<Option<NodeKind>, TreeError> {
        self.tree.kind(path)
    }

    fn resolve(&self, path: &TreePath) -> Result<Option<TreePath>, TreeError> {
        self.tree.resolve(path)
    }
}

/// Message for an encrypted file in a render without decryption.
pub(crate) const NO_DECRYPTION: &str =
    "cannot get sops data key: the file is encrypted with SOPS, and no decryption keys are configured";
