//! Comparing the objects of a Kustomization with the cluster, by a dry run.

use std::{collections::HashSet, path::Path};

use anyhow::Result;
use cluster::Cluster;
use futures::future::{FutureExt as _, LocalBoxFuture};
use objects::ObjectRef;
use yaml::Value;

use super::{
    builder::Builder,
    report,
    subject::{Subject, is_kustomization},
    trial::{ObjectChange, Trial},
};
use crate::output::error_chain;

/// The result of a comparison.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) text: String,
    pub(super) differs: bool,
    pub(super) errors: Vec<String>,
}

impl Findings {
    fn add(&mut self, change: &ObjectChange) {
        self.text.push_str(&change.lines());
        self.differs = true;
    }
}

/// Compares Kustomizations, each once.
pub(super) struct Comparison<'a> {
    pub(super) builder: &'a Builder<'a>,
    pub(super) cluster: &'a Cluster,
    pub(super) visited: HashSet<(String, String)>,
}

impl Comparison<'_> {
    /// Compares the objects of a Kustomization and, if asked, of the Kustomizations among them.
    ///
    /// # Errors
    /// If the build fails, or the API server can't be asked. Objects that it refuses are errors of the findings.
    pub(super) fn compare<'f>(
        &'f mut self,
        subject: &'f Subject,
        dir: &'f Path,
    ) -> LocalBoxFuture<'f, Result<Findings>> {
        async move {
            self.visited
                .insert((subject.namespace.clone(), subject.name.clone()));
            let built = self.builder.build(subject, dir).await?;
            let trial = Trial::new(self.cluster, subject);
            let mut findings = Findings::default();
            let mut current: Vec<ObjectRef> = Vec::new();
            for tried in trial.objects(built).await? {
                current.push(tried.reference.clone());
                match &tried.result {
                    Ok(change) => change.iter().for_each(|change| findings.add(change)),
                    Err(refusal) => {
                        let name = report::name(&tried.reference);
                        let why = &refusal.message;
                        findings.errors.push(format!("{name} dry-run failed: {why}"));
                        continue;
                    }
                }
                if self.builder.flags.recursive && is_kustomization(&tried.manifest) && !tried.is_new() {
                    self.descend(&mut findings, &tried.manifest, subject).await?;
                }
            }
            if subject.spec.prune && findings.errors.is_empty() {
                let deleted = trial.pruned(&current).await?;
                deleted.iter().for_each(|change| findings.add(change));
            }
            Ok(findings)
        }
        .boxed_local()
    }

    /// Compares a Kustomization among the objects.
    async fn descend(&mut self, findings: &mut Findings, object: &Value, parent: &Subject) -> Result<()> {
        let child = self.builder.child(object, parent).await?;
        if self
            .visited
            .contains(&(child.namespace.clone(), child.name.clone()))
        {
            return Ok(());
        }
        let name = format!("Kustomization/{}/{}", child.namespace, child.name);
        if child.spec.kube_config.is_some() {
            let line = format!("⚠️ {name} skipped: diff not supported for remote clusters\n");
            findings.text.push_str(&line);
            return Ok(());
        }
        let dir = match self.builder.dir(&child) {
            Ok(dir) => dir,
            Err(error) => {
                findings.errors.push(error_chain(&error));
                return Ok(());
            }
        };
        let found = self.compare(&child, &dir).await;
        let found = found.unwrap_or_else(|error| Findings {
            errors: vec![format!("{name}: {}", error_chain(&error))],
            ..Findings::default()
        });
        if found.differs {
            findings.differs = true;
            findings.text.push_str(&format!("📁 {name} changed\n"));
            findings.text.push_str(&found.text);
        }
        findings.errors.extend(found.errors);
        Ok(())
    }
}
