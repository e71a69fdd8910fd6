//! Prepares a deployment: connects to the cluster, fetches the artifact, renders the project.

use std::{sync::Arc, time::Duration};

use api::{Fault, Reason, kluctl::KluctlDeployment};
use cluster::{Cluster, access::Contexts};
use deployer::{ClusterIdentity, key, retried_after, working};
use engine::{ExternalReads, PinnedSource, ReadObjects, RenderOptions};
use kluctl::{Rendered, Request, Target};
use objects::ObjectRef;
use remote::SshConnections;
use results::{Inventory, deployed::flux as inventory};
use runtime::Pass;
use tree::{Record, Recording, Tree};
use yaml::{Map, Value};

use super::{controller::Controller, discriminators, source::ProjectSource, spec};

/// Maximum size of the target in the status in bytes.
const TARGET_BYTES: usize = 48 << 10;

#[derive(Debug)]
pub struct Built {
    pub(crate) cluster: Cluster,
    pub(crate) identity: Arc<ClusterIdentity>,
    pub(crate) rendered: Rendered,
    pub(crate) hash: String,
    pub(crate) involved: Vec<PinnedSource>,
    /// The objects that the render depends on besides the artifact and the spec; `None` if it depends on anything else.
    pub(crate) outside: Option<ReadObjects>,
    /// The calls by which the render read the artifact, unless they were too many.
    pub(crate) record: Option<Record>,
    /// Discriminators that the object deployed with before.
    pub(crate) previous: Vec<String>,
}

impl Built {
    pub(crate) fn discriminator(&self) -> Option<&str> {
        self.rendered.target.discriminator.as_deref()
    }

    /// Returns the resolved target as YAML, with the previous discriminators and the inventory of a deployment that begins.
    pub(crate) fn raw_target(&self, previous: &[String], started: Option<&Inventory>) -> String {
        raw_target(&self.rendered.target, previous, started)
    }

    pub(crate) fn references(&self) -> Vec<ObjectRef> {
        let objects = self.rendered.objects();
        objects.filter_map(|object| ObjectRef::of(object).ok()).collect()
    }
}

/// Returns a target as YAML. Arguments that are too large for a status are left out. Pure.
fn raw_target(target: &Target, previous: &[String], started: Option<&Inventory>) -> String {
    let mut map = Map::new();
    map.insert("name", target.name.as_str());
    if let Some(context) = &target.context {
        map.insert("context", context.as_str());
    }
    if let Some(discriminator) = &target.discriminator {
        map.insert("discriminator", discriminator.as_str());
    }
    discriminators::remember(&mut map, previous);
    inventory::remember(&mut map, started);
    if target.args.is_empty() {
        return yaml::print::goyaml(&Value::Map(map));
    }
    let without = map.clone();
    map.insert("args", Value::Map(target.args.clone()));
    let text = yaml::print::goyaml(&Value::Map(map));
    if text.len() <= TARGET_BYTES {
        return text;
    }
    let mut map = without;
    map.insert(
        "args",
        format!("left out: {} bytes are too many for a status", text.len()),
    );
    yaml::print::goyaml(&Value::Map(map))
}

impl Controller {
    /// Connects to the cluster, fetches the artifact, and renders the project.
    pub(super) async fn render(
        &self,
        pass: &Pass<'_, KluctlDeployment>,
        source: &ProjectSource,
        ssh: SshConnections,
    ) -> Result<Built, Fault> {
        let spec = &pass.object.spec;
        let retry = spec::retry_interval(spec);
        let timeout = spec::timeout(spec);
        let target = pass.slot.lending(self.references.cluster(pass.object)).await?;
        let cluster = working(&target.cluster, pass);
        let request = request(pass.object)?;
        let secrets = self.secrets(pass.object, source);
        let (keys, external) = pass.slot.lending(secrets).await?;
        let files: Arc<dyn Tree> = match source {
            ProjectSource::Git(project) => Arc::clone(&project.files),
            ProjectSource::Artifact(artifact) => {
                let files = self
                    .references
                    .files(pass.object, artifact, timeout / 3, &pass.cancel);
                pass.slot.waiting(files).await?
            }
        };
        if !files.is_dir(&request.project_dir) {
            let path = spec::path_text(spec);
            return Err(Fault::wait(
                retry,
                Reason::PrepareFailed,
                format!("kluctlDeployment path not found: {path}"),
            ));
        }
        let recording = Arc::new(Recording::new(files));
        let files: Arc<dyn Tree> = Arc::<Recording>::clone(&recording);
        let rendering = RenderOptions {
            name: format!("KluctlDeployment/{}", key(pass.object)),
            slots: self.render_slots.clone(),
            chart_cache: self.chart_cache.clone(),
            external: external.clone(),
            ssh,
            keys,
            limits: self.rendering.clone(),
            timeout: Some(timeout / 2),
            external_reads: ExternalReads::default(),
        };
        let rendered = engine::render(&cluster, files, request, &rendering)
            .await
            .map_err(|error| render_fault(&error, retry))?;
        if rendered.objects().next().is_none() {
            return Err(engine::Error::EmptyRender.fault(Reason::EmptyRender));
        }
        let hash = kluctl::objects_hash(rendered.objects());
        let discriminator = rendered.target.discriminator.as_deref();
        let outside = rendering.external_reads.objects_of(&target.cluster);
        Ok(Built {
            outside: outside.map(|read| read.with_absent(&rendered)),
            previous: discriminators::previous(pass.object.status.as_ref(), discriminator),
            cluster,
            identity: target.identity,
            rendered,
            hash,
            involved: external.pinned.list(),
            record: recording.take(),
        })
    }
}

/// Returns the fault of a failed render. A stuck one is awaited with backoff: its end has nothing to do with the retry
/// interval.
fn render_fault(error: &engine::Error, retry: Duration) -> Fault {
    let fault = error.fault(Reason::PrepareFailed);
    match error {
        engine::Error::StillRendering { .. } => fault,
        _ => retried_after(fault, retry),
    }
}

fn request(object: &KluctlDeployment) -> Result<Request, Fault> {
    let spec = &object.spec;
    let renames = spec
        .rename_contexts
        .iter()
        .map(|rename| (rename.old_context.as_str(), rename.new_context.as_str()));
    let contexts = Contexts::default().rename(renames).map_err(|error| {
        Fault::wait(
            spec::retry_interval(spec),
            Reason::PrepareFailed,
            error.to_string(),
        )
    })?;
    let contexts = kluctl::Contexts {
        current: contexts.current,
        names: contexts.names,
    };
    Ok(spec::request(spec, spec::path(spec)?, contexts))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(spec: &serde_json::Value) -> KluctlDeployment {
        let object = json!({
            "apiVersion": "flux.kluctl.io/v1alpha1",
            "kind": "KluctlDeployment",
            "metadata": { "name": "shop", "namespace": "apps" },
            "spec": spec,
        });
        serde_json::from_value(object).expect("decodes")
    }

    #[test]
    fn request_has_the_values_of_the_spec() {
        let request = request(&object(&json!({
            "interval": "5m", "path": "./shop/", "target": "test", "targetNameOverride": "other", "context": "kind-kind",
            "args": { "replicas": 3, "image": { "tag": "v1" } },
            "renameContexts": [{ "oldContext": "default", "newContext": "kind-kind" }],
        })))
        .expect("a request");
        assert_eq!(request.project_dir.as_str(), "shop");
        assert_eq!(
            (request.target.as_deref(), request.target_name_override.as_deref()),
            (Some("test"), Some("other"))
        );
        assert_eq!(request.context_override.as_deref(), Some("kind-kind"));
        assert_eq!(request.contexts.current.as_deref(), Some("kind-kind"));
        assert_eq!(request.contexts.names, ["kind-kind"]);
        assert_eq!(request.args.get("replicas").and_then(Value::as_i64), Some(3));
    }

    #[test]
    fn request_refuses_to_rename_a_missing_context() {
        let renames = json!([{ "oldContext": "prod", "newContext": "kind-kind" }]);
        let fault = request(&object(&json!({ "interval": "5m", "renameContexts": renames })))
            .expect_err("no such context");
        assert_eq!(fault.reason, Reason::PrepareFailed);
        assert_eq!(
            fault.message,
            "failed to rename context prod -> kind-kind. Old context not found in kubeconfig"
        );
    }

    #[test]
    fn stuck_render_is_retried_with_backoff_and_an_invalid_project_after_the_interval() {
        let hour = Duration::from_secs(3600);
        let stuck = engine::Error::StillRendering {
            name: "apps/shop".to_owned(),
        };
        let fault = render_fault(&stuck, hour);
        assert_eq!(
            (fault.class, fault.reason),
            (api::Class::Retry, Reason::PrepareFailed)
        );
        assert_eq!(
            render_fault(&engine::Error::Cancelled, hour).class,
            api::Class::Wait(hour)
        );
    }
}
