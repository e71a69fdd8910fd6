//! The build itself, on the thread of a job.

use std::sync::Arc;

use api::kustomize::KustomizationSpec;
use kustomize::Fetch;
use limits::blocking::Job;
use secrets::Keys;
use tokio::runtime::Handle;
use tree::{Budget, Exceeded, Limits, Overlay, Tree, TreeError, TreePath};
use yaml::Value;

use crate::{
    LeftOut, ObjectError, Variables,
    decrypt::{DecryptError, Decryptor},
    manifests::{self, check, substituted},
    overlay::{self, OverlayError},
    substitute::Substitution,
};

/// The reason why a Kustomization can't be built. It may hold values of variables ([`Variables::redact`]).
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error(transparent)]
    Overlay(#[from] OverlayError),
    #[error("kustomize build failed: {0}")]
    Kustomize(#[from] kustomize::Error),
    #[error(transparent)]
    Decrypt(#[from] DecryptError),
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
}

/// The inputs of a build.
pub struct Build {
    pub files: Arc<dyn Tree>,
    pub dir: TreePath,
    pub spec: KustomizationSpec,
    /// The keys of encrypted files and Secrets, which stay encrypted without any.
    pub keys: Option<Keys>,
    pub variables: Variables,
    /// If set, a variable without a value and without a default is an error.
    pub strict: bool,
    pub limits: Limits,
    /// Fetches remote bases, which are refused without it.
    pub fetcher: Option<Box<dyn Fetch>>,
    pub left_out: LeftOut,
    pub runtime: Handle,
}

impl Build {
    /// Makes the manifests.
    ///
    /// # Errors
    /// If a file is invalid, something can't be decrypted, a variable is missing, or a limit is exceeded.
    pub fn manifests(&self, job: &Job) -> Result<Vec<Value>, BuildError> {
        let built = self.objects(job)?;
        Ok(manifests::manifests(built, self.spec.common_metadata.as_ref())?)
    }

    /// Builds the objects, decrypts them and substitutes their variables. [`manifests`](crate::manifests()) makes manifests of them.
    ///
    /// # Errors
    /// As [`Build::manifests`].
    pub fn objects(&self, job: &Job) -> Result<Vec<Value>, BuildError> {
        let budget = Budget::new(self.limits.clone())
            .with_timeout(job.timeout)
            .with_cancellation(Arc::clone(&job.cancelled));
        let budget = limits::from_process_memory(budget, &job.namespace);
        let files = Overlay::new(Arc::clone(&self.files));
        let (file, text) = overlay::kustomization(&files, &self.dir, &self.spec, &budget)?;
        files.write(file, text)?;
        self.left_out.remove(&files, &self.dir, &budget)?;
        let keys = self.keys.as_ref();
        let decryptor = keys.map(|keys| Decryptor::new(keys, &budget, &self.runtime, job));
        if let Some(decryptor) = &decryptor {
            decryptor.sources(&files, &self.dir)?;
        }
        let options = kustomize::Options {
            load_restriction: kustomize::LoadRestriction::None,
            openapi: kustomize::OpenApi::Add,
            fetch: self.fetcher.as_deref(),
            ..kustomize::Options::default()
        };
        let mut built = Vec::new();
        kustomize::build_each(&files, &self.dir, &options, &budget, |one| built.push(one.object))?;
        for object in &mut built {
            check(object)?;
            let made = self.finished(std::mem::take(object), decryptor.as_ref(), &budget)?;
            *object = made;
        }
        Ok(built)
    }

    fn finished(
        &self,
        object: Value,
        decryptor: Option<&Decryptor<'_>>,
        budget: &Budget,
    ) -> Result<Value, BuildError> {
        let object = match decryptor {
            Some(decryptor) => decryptor.object(object)?,
            None => object,
        };
        if !self.substitutes() {
            return Ok(object);
        }
        let substitution = Substitution {
            variables: &self.variables.values,
            strict: self.strict,
        };
        Ok(substituted(object, substitution, budget)?)
    }

    fn substitutes(&self) -> bool {
        let post_build = self.spec.post_build.as_ref();
        let strategy = post_build.and_then(|post_build| post_build.substitute_strategy.as_deref());
        !self.variables.values.is_empty() || strategy == Some("Always")
    }
}
