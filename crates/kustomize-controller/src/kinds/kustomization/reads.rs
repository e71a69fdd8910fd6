//! The objects that a build reads by name.

use cluster::Cluster;
use deployer::ReadObjects;
use futures::{FutureExt as _, future::BoxFuture};
use kustomization::variables::ReadConfigs;
use objects::{ObjectRef, meta};
use yaml::Value;

/// The objects that a build read by name, in the versions that it saw.
#[derive(Debug)]
pub(super) struct BuildReads {
    cluster: Cluster,
    objects: Vec<(ObjectRef, Option<String>)>,
    /// True if something was read that has no version, such as a remote base.
    pub(super) has_others: bool,
}

impl BuildReads {
    /// Starts without any object. They are read with the rights of the cluster's identity, which is the controller's.
    pub(super) fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            objects: Vec::new(),
            has_others: false,
        }
    }
}

impl ReadConfigs for BuildReads {
    /// Reads an object and notes its version.
    async fn read(
        &mut self,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, cluster::Error> {
        let reference = ObjectRef::core(kind, namespace, name);
        let found = self.cluster.get(&reference).await?;
        let version = found.as_ref().and_then(meta::resource_version);
        self.objects.push((reference, version.map(str::to_owned)));
        Ok(found)
    }
}

impl ReadObjects for BuildReads {
    fn is_empty(&self) -> bool {
        self.objects.is_empty() && !self.has_others
    }

    fn are_unchanged(&self) -> BoxFuture<'_, bool> {
        async move {
            if self.has_others {
                return false;
            }
            for (reference, version) in &self.objects {
                let read = self.cluster.read_since(reference, version.as_deref()).await;
                let is_same = read.is_ok_and(|found| {
                    let found = found.as_ref();
                    found.and_then(|(object, _)| meta::resource_version(object)) == version.as_deref()
                });
                if !is_same {
                    return false;
                }
            }
            true
        }
        .boxed()
    }
}
