//! Decrypts the SOPS files of a project while it is rendered.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use kluctl::{CallbackError, Encrypted};
use parking_lot::Mutex;
use secrets::{Cache, Format, Keys, Original, Session};
use tree::{Budget, TreeError, TreePath};

use super::blocking::BlockingContext;

pub(crate) struct Decryption {
    keys: Arc<Keys>,
    cache: Cache,
    budget: Budget,
    blocking: BlockingContext,
    warnings: Mutex<Vec<String>>,
}

impl fmt::Debug for Decryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decryption({:?})", self.keys)
    }
}

impl Decryption {
    pub(crate) fn new(keys: Arc<Keys>, budget: &Budget, blocking: BlockingContext) -> Self {
        Self {
            keys,
            cache: Cache::default(),
            budget: budget.clone(),
            blocking,
            warnings: Mutex::default(),
        }
    }

    /// Returns the warnings about the files decrypted so far, without duplicates, and forgets them.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock())
    }

    fn warn(&self, path: &TreePath) {
        let warning = format!(
            "{path}: the MAC of SOPS doesn't match what templates made of the file; it does match the file itself"
        );
        let mut warnings = self.warnings.lock();
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
}

/// Returns the file as it is in its repository, before templates were rendered.
fn original(file: Encrypted<'_>) -> Original {
    match file.sources.read(file.path) {
        Ok(bytes) => Original::Bytes(bytes.to_vec()),
        // A template or a chart generated the file.
        Err(TreeError::NotFound(_)) => Original::Unknown,
        Err(_) => Original::Bytes(Vec::new()),
    }
}

impl kluctl::Decrypt for Decryption {
    fn decrypt(&self, file: Encrypted<'_>) -> Result<Option<Bytes>, CallbackError> {
        // As in kluctl, files with other extensions are copied without decryption.
        let format = Format::of_name(file.path.as_str());
        if format == Format::Binary {
            return Ok(None);
        }
        let session = Session::new(&self.keys, &self.cache);
        let opening = session.open(format, file.content, || original(file), &self.budget);
        let opened = self
            .blocking
            .block_on(opening)?
            .map_err(CallbackError::from_display)?;
        Ok(opened.map(|opened| {
            if opened.changed {
                self.warn(file.path);
            }
            Bytes::from(opened.content)
        }))
    }
}

#[cfg(test)]
mod tests {
    use kluctl::Decrypt as _;
    use tokio_util::sync::CancellationToken;
    use tree::Mem;

    use super::*;

    const KEY: &str = include_str!("../../../secrets/fixtures/age.txt");
    const FILE: &str = include_str!("../../../secrets/fixtures/secret.yaml");

    fn path() -> TreePath {
        TreePath::parse("app/secret.yaml").unwrap()
    }

    fn decryption() -> Arc<Decryption> {
        let mut keys = Keys::new();
        keys.add_age(&KEY.to_owned().into()).unwrap();
        let blocking = BlockingContext::new(CancellationToken::new());
        Arc::new(Decryption::new(Arc::new(keys), &Budget::default(), blocking))
    }

    /// Decrypts `text`, which templates rendered from the repository's file `source`.
    async fn decrypted(
        decryption: &Arc<Decryption>,
        source: Option<&str>,
        text: &str,
    ) -> Result<Option<Bytes>, CallbackError> {
        let (decryption, content) = (Arc::clone(decryption), Bytes::from(text.to_owned()));
        let mut sources = Mem::new();
        if let Some(source) = source {
            sources.insert(path(), source.to_owned(), false);
        }
        let work = move || {
            decryption.decrypt(Encrypted {
                sources: &sources,
                path: &path(),
                content: &content,
            })
        };
        tokio::task::spawn_blocking(work).await.unwrap()
    }

    #[tokio::test]
    async fn mac_mismatch_caused_by_templates_is_a_warning() {
        let decryption = decryption();
        let clear = decrypted(&decryption, Some(FILE), FILE).await.unwrap().unwrap();
        assert!(clear.ends_with(b"password: hunter2\n"));
        assert_eq!(decryption.take_warnings(), Vec::<String>::new());
        let rendered = FILE.replace("name: shop", "name: shop-test");
        for _ in 0..2 {
            let clear = decrypted(&decryption, Some(FILE), &rendered)
                .await
                .unwrap()
                .unwrap();
            assert!(String::from_utf8_lossy(&clear).contains("shop-test"));
        }
        let warnings = decryption.take_warnings();
        assert_eq!(warnings.len(), 1);
        assert!(
            warnings[0].starts_with("app/secret.yaml: the MAC"),
            "{warnings:?}"
        );
        assert_eq!(decrypted(&decryption, Some(FILE), "a: sops\n").await, Ok(None));
        let made = decrypted(&decryption, None, &rendered).await.unwrap();
        assert!(made.is_some(), "a template generated it");
    }

    #[tokio::test]
    async fn mac_mismatch_of_the_repository_file_is_refused() {
        let changed = FILE.replace("name: shop", "name: store");
        let decryption = decryption();
        let error = decrypted(&decryption, Some(&changed), &changed)
            .await
            .unwrap_err();
        assert!(error.to_string().starts_with("MAC mismatch"), "{error}");
        decryption.blocking.cancelled().cancel();
        let ended = decrypted(&decryption, Some(FILE), FILE).await;
        assert_eq!(ended, Err(CallbackError::new("cancelled")));
    }
}
