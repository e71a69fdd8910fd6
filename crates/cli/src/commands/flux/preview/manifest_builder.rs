//! Building the objects of a Kustomization from a directory, in memory.

use std::time::Duration;

use anyhow::{Result, anyhow};
use apply::{Labels, Owner};
use artifact::pack;
use cluster::Cluster;
use kustomization::{Build, LeftOut, OWNER_LABELS, Variables, variables};
use limits::blocking;
use remote::RemoteFetcher;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tree::{Budget, Tree, TreePath, ignore::Rules};
use yaml::Value;

use super::{configs::LiveConfigs, mask, subject::Subject};
use crate::{
    commands::kustomize::{self, BuildDirectory},
    logins::Logins,
};

/// Maximum nesting of directories in which ignore files are searched.
const DEPTH: usize = 64;

/// The objects of a Kustomization.
pub(super) struct Built {
    pub(super) objects: Vec<Value>,
    /// Values of Secrets among the variables, which errors don't show.
    pub(super) hidden: Vec<String>,
}

/// The settings that all builds of a command share.
pub(super) struct ManifestBuilder {
    /// The cluster with the variables; `None` in a dry run.
    pub(super) cluster: Option<Cluster>,
    /// Lines of `--ignore-paths`.
    pub(super) ignored_lines: Vec<String>,
    /// If set, a variable without a value and without a default is an error.
    pub(super) strict: bool,
    pub(super) timeout: Duration,
    pub(super) cancel: CancellationToken,
}

impl ManifestBuilder {
    /// Builds a Kustomization from a directory, without the entries that the rules leave out. Encrypted values are masked.
    ///
    /// # Errors
    /// If the build fails, or variables can't be read.
    pub(super) async fn build(
        &self,
        subject: &Subject,
        directory: &BuildDirectory,
        rules: Rules,
    ) -> Result<Built> {
        let variables = self.variables(subject).await;
        let build = Build {
            left_out: LeftOut {
                rules,
                lines: self.ignored_lines.clone(),
            },
            files: directory.tree.clone(),
            dir: directory.dir.clone(),
            spec: subject.spec.clone(),
            keys: None,
            variables: variables.clone(),
            strict: self.strict,
            limits: kustomize::limits(),
            fetcher: Some(Box::new(RemoteFetcher::new(Logins::default().servers()))),
            runtime: Handle::current(),
        };
        let job = blocking::run(&subject.namespace, self.timeout, &self.cancel, move |job| {
            build.objects(job)
        });
        let built = job.await?.map_err(|error| {
            let message = directory.absolute_paths(&error.to_string());
            let message = match &variables {
                Ok(variables) => variables.redact(&message),
                Err(_) => message,
            };
            anyhow!(api::redact(&message))
        });
        let mut objects = built?;
        for object in &mut objects {
            mask::mask(object)?;
        }
        let mut objects = kustomization::printable(objects, subject.spec.common_metadata.as_ref())?;
        let owner = owner(subject);
        for object in &mut objects {
            owner.mark(object);
        }
        Ok(Built {
            objects,
            hidden: variables.map(|variables| variables.secrets).unwrap_or_default(),
        })
    }

    async fn variables(&self, subject: &Subject) -> Result<Variables, String> {
        let Some(cluster) = &self.cluster else {
            return Ok(variables::inline(&subject.spec));
        };
        variables::read(&subject.spec, &subject.namespace, &mut LiveConfigs(cluster)).await
    }
}

/// Returns the owner of the objects of a Kustomization, as its controller is one.
pub(super) fn owner(subject: &Subject) -> Owner {
    let (name, namespace) = OWNER_LABELS;
    let labels = Labels::from([
        (name.to_owned(), subject.name.clone()),
        (namespace.to_owned(), subject.namespace.clone()),
    ]);
    let inventory = subject.inventory.clone();
    kustomization::with_rules(Owner::with_inventory(
        kustomization::FIELD_MANAGER,
        inventory,
        labels,
    ))
}

/// Returns the rules of the ignore files in a directory and below it.
pub(super) fn ignore_rules(files: &dyn Tree, dir: &TreePath, budget: &Budget) -> Result<Rules> {
    let found = ignore_files(files, dir, budget)?;
    Ok(pack::rules_below(dir, found, None))
}

/// Reads the ignore files in a directory and below it, and returns each with its directory.
pub(super) fn ignore_files(
    files: &dyn Tree,
    dir: &TreePath,
    budget: &Budget,
) -> Result<Vec<(TreePath, String)>> {
    let mut found = Vec::new();
    let mut open = vec![(dir.clone(), 0)];
    while let Some((at, depth)) = open.pop() {
        for entry in files.list(&at)? {
            budget.step(1)?;
            let path = at.child(&entry.name);
            if entry.is_dir && !entry.is_link && depth < DEPTH && entry.name != ".git" {
                open.push((path, depth + 1));
            } else if !entry.is_dir && entry.name == pack::IGNORE_FILE {
                let text = String::from_utf8_lossy(&files.read(&path)?).into_owned();
                found.push((at.clone(), text));
            }
        }
    }
    Ok(found)
}
