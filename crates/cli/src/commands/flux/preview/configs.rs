//! ConfigMaps and Secrets with the variables of a Kustomization.

use cluster::Cluster;
use kustomization::variables::ReadConfigs;
use objects::ObjectRef;
use yaml::Value;

/// Reads from the cluster of the command.
pub(super) struct LiveConfigs<'a>(pub(super) &'a Cluster);

impl ReadConfigs for LiveConfigs<'_> {
    async fn read(
        &mut self,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, cluster::Error> {
        let reference = ObjectRef::core(kind, namespace, name);
        self.0.get(&reference).await
    }
}
