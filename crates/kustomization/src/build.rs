//! The build itself, on the thread of a job.

use std::sync::Arc;

use api::kustomize::KustomizationSpec;
use kustomize::Fetch;
use limits::blocking::Job;
use secrets::Keys;
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;
use tree::{Budget, Exceeded, Limits, Overlay, Tree, TreeError, TreePath};
use yaml::Value;

use crate::{
    LeftOut, ObjectError, Variables,
    decrypt::{DecryptError, Decryptor},
    manifests::{self, build_name, check, is_not_substituted, substituted},
    overlay::{self, OverlayError},
    substitute::Substitution,
    variables::invalid_name,
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
    /// The variables, or the reason why they can't be read, with which the first object that has any fails.
    pub variables: Result<Variables, String>,
    /// If set, a variable without a value and without a default is an error.
    pub strict: bool,
    pub limits: Limits,
    /// Fetches remote bases, which are refused without it.
    pub fetcher: Option<Box<dyn Fetch>>,
    pub left_out: LeftOut,
    pub runtime: Handle,
}

/// The manifests of a build.
#[derive(Debug)]
pub struct Built {
    pub manifests: Vec<Value>,
    /// Digest of the built documents before labels and annotations are added, as in `sha256:<hex>`.
    pub digest: String,
    /// The reason why nothing of the build may be applied: a Secret is still encrypted. There are no manifests then.
    pub refusal: Option<String>,
}

impl Build {
    /// Makes the manifests.
    ///
    /// # Errors
    /// If a file is invalid, something can't be decrypted, a variable is missing, or a limit is exceeded.
    pub fn manifests(&self, job: &Job) -> Result<Built, BuildError> {
        let objects = self.objects(job)?;
        let digest = digest(&objects);
        let (manifests, refusal) = match manifests::manifests(objects, self.spec.common_metadata.as_ref()) {
            Ok(manifests) => (manifests, None),
            Err(error @ ObjectError::Encrypted(_)) => (Vec::new(), Some(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        Ok(Built {
            manifests,
            digest,
            refusal,
        })
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
        let substitution = self.substitution();
        let mut built = Vec::new();
        kustomize::build_each(&files, &self.dir, &options, &budget, |one| built.push(one.object))?;
        for object in &mut built {
            check(object)?;
            let made = self.finished(
                std::mem::take(object),
                decryptor.as_ref(),
                substitution.as_ref(),
                &budget,
            )?;
            *object = made;
        }
        Ok(built)
    }

    fn finished(
        &self,
        object: Value,
        decryptor: Option<&Decryptor<'_>>,
        substitution: Option<&Result<Substitution<'_>, String>>,
        budget: &Budget,
    ) -> Result<Value, BuildError> {
        let object = match decryptor {
            Some(decryptor) => decryptor.object(object)?,
            None => object,
        };
        match substitution {
            None => Ok(object),
            Some(_) if is_not_substituted(&object) => Ok(object),
            Some(Ok(substitution)) => Ok(substituted(object, *substitution, budget)?),
            Some(Err(why)) => {
                let (name, why) = (build_name(&object), why.clone());
                Err(ObjectError::PostBuild { name, why }.into())
            }
        }
    }

    /// Returns the substitution of variables, or the reason why it fails; `None` if there is nothing to substitute.
    fn substitution(&self) -> Option<Result<Substitution<'_>, String>> {
        let variables = match &self.variables {
            Ok(variables) => &variables.values,
            Err(why) => return Some(Err(why.clone())),
        };
        let post_build = self.spec.post_build.as_ref();
        let strategy = post_build.and_then(|post_build| post_build.substitute_strategy.as_deref());
        if variables.is_empty() && strategy != Some("Always") {
            return None;
        }
        let substitution = Substitution {
            variables,
            strict: self.strict,
        };
        match invalid_name(variables.keys()) {
            Some(why) => Some(Err(format!("envsubst error: {why}"))),
            None => Some(Ok(substitution)),
        }
    }
}

/// Returns the digest of the documents as kustomize prints them.
fn digest(objects: &[Value]) -> String {
    let mut hash = Sha256::new();
    for (at, object) in objects.iter().enumerate() {
        if at > 0 {
            hash.update("---\n");
        }
        hash.update(yaml::print::goyaml(object));
    }
    format!("sha256:{}", hex::encode(hash.finalize()))
}

#[cfg(test)]
mod tests;
