//! The service account that is bound to one of a cloud.

use std::sync::Arc;

use serde::Deserialize;
use yaml::{Node, node::Mapping};

use super::Generator;
use crate::{Error, error::Step, resmap::ResMap, resource::Resource, transform::PluginContext};

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Policy {
    cloud: String,
    kubernetes_service: Service,
    service_account: Account,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Service {
    name: String,
    namespace: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Account {
    name: String,
    project_id: String,
}

impl Generator for Policy {
    fn generate(&self, ctx: &PluginContext<'_>) -> Result<ResMap, Error> {
        if self.cloud != "gke" {
            let problem = format!("cloud provider {} not supported yet", self.cloud);
            return Err(Error::new(Step::Generator, problem));
        }
        let account = &self.service_account;
        let account = format!("{}@{}.iam.gserviceaccount.com", account.name, account.project_id);
        let annotations = [("iam.gke.io/gcp-service-account", Node::plain(account))];
        let mut metadata = Mapping::from_iter([
            ("annotations", Mapping::from_iter(annotations).into()),
            ("name", Node::plain(self.kubernetes_service.name.as_str())),
        ]);
        if !self.kubernetes_service.namespace.is_empty() {
            let namespace = Node::plain(self.kubernetes_service.namespace.as_str());
            metadata.set("namespace", namespace);
        }
        let object = Mapping::from_iter([
            ("apiVersion", Node::string("v1")),
            ("kind", Node::string("ServiceAccount")),
            ("metadata", metadata.into()),
        ]);
        let root = Arc::new(ctx.loader.root().clone());
        Ok(ResMap::from_iter([Resource::new(object.into(), root, 1)]))
    }
}
