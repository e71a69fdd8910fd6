//! `weir create tenant`.

use anyhow::{Result, ensure};
use api::validation::{invalid_label, invalid_label_name};
use clap::Args;
use objects::{ObjectRef, meta};
use yaml::{Map, Value};

use super::{
    flags::{CreateFlags, UnusedIntervalFlag},
    store::{MANAGER, export},
};
use crate::{
    commands::flux::{
        Flux,
        steer::fields::{Fields, Identity},
    },
    usage::{boolean_flag, split_list},
};

const RBAC: &str = "rbac.authorization.k8s.io";
const TENANT_LABEL: &str = "toolkit.fluxcd.io/tenant";

const EXAMPLES: &str = "Examples:
  # A tenant with one namespace
  weir create tenant dev-team \\
    --with-namespace=frontend \\
    --label=environment=dev

  # The objects of a tenant, with a role that can't do everything
  weir create tenant dev-team \\
    --with-namespace=frontend \\
    --with-namespace=backend \\
    --cluster-role=edit \\
    --export";

/// Create or update a tenant: its namespaces, each with a ServiceAccount and its role
///
/// Kustomizations and HelmReleases of the tenant name the ServiceAccount in spec.serviceAccountName, and can do no more than its role
/// allows in the namespace.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct TenantArgs {
    /// Namespace of the tenant. Can be repeated
    #[arg(long, value_name = "NAME,...")]
    with_namespace: Vec<String>,
    /// ClusterRole that the ServiceAccount has in the namespaces
    #[arg(long, value_name = "NAME", default_value = "cluster-admin")]
    cluster_role: String,
    /// Name of the ServiceAccount; defaults to the name of the tenant
    #[arg(long, value_name = "NAME")]
    with_service_account: Option<String>,
    /// Don't create the namespaces: they exist
    #[arg(long)]
    skip_namespace: bool,
    #[command(flatten)]
    create: CreateFlags,
    #[command(flatten)]
    _interval: UnusedIntervalFlag,
}

/// The objects of a tenant in one of its namespaces.
struct Space {
    namespace: Value,
    account: Value,
    binding: Value,
}

impl TenantArgs {
    fn spaces(&self) -> Result<Vec<Space>> {
        let tenant = &self.create.name;
        ensure!(!self.cluster_role.is_empty(), "cluster-role is required");
        let namespaces = split_list(&self.with_namespace)?;
        ensure!(!namespaces.is_empty(), "with-namespace is required");
        let account = self.with_service_account.as_deref().unwrap_or(tenant);
        ensure!(
            invalid_label_name(account).is_none(),
            "invalid service-account name '{account}': use letters, digits, '-', '_' and '.', the first and last a letter or digit"
        );
        let mut labels = self.create.labels()?;
        labels.insert(TENANT_LABEL, &**tenant);
        let space = |namespace: &String| {
            ensure!(
                invalid_label(namespace).is_none(),
                "invalid namespace '{namespace}': use at most 63 lower-case letters, digits and '-', the first and last no '-'"
            );
            Ok(self.space(namespace, account, &labels))
        };
        namespaces.iter().map(space).collect()
    }

    fn space(&self, namespace: &str, account: &str, labels: &Map) -> Space {
        let tenant = &self.create.name;
        let object = |version: &str, kind: &str, (name, namespace): (&str, &str)| {
            let identity = Identity {
                name,
                namespace,
                labels,
            };
            Fields::default()
                .set("apiVersion", version)
                .set("kind", kind)
                .set("metadata", identity.metadata())
        };
        let user = Fields::default()
            .set("apiGroup", RBAC)
            .set("kind", "User")
            .set("name", format!("gotk:{namespace}:reconciler"));
        let own = Fields::default()
            .set("kind", "ServiceAccount")
            .set("name", account)
            .set("namespace", namespace);
        let role = Fields::default()
            .set("apiGroup", RBAC)
            .set("kind", "ClusterRole")
            .set("name", &*self.cluster_role);
        let binding = format!("{tenant}-reconciler");
        let version = format!("{RBAC}/v1");
        Space {
            namespace: object("v1", "Namespace", (namespace, "")).into(),
            account: object("v1", "ServiceAccount", (account, namespace)).into(),
            binding: object(&version, "RoleBinding", (&binding, namespace))
                .set("roleRef", role)
                .set("subjects", vec![Value::from(user), Value::from(own)])
                .into(),
        }
    }
}

pub(super) fn run(args: &TenantArgs) -> Result<()> {
    let spaces = args.spaces()?;
    if args.create.export {
        for space in &spaces {
            if !args.skip_namespace {
                export(&space.namespace)?;
            }
            export(&space.account)?;
            export(&space.binding)?;
        }
        return Ok(());
    }
    let flux = args.create.open()?;
    for space in &spaces {
        let name = |object| meta::text(object, "name").unwrap_or_default();
        if !args.skip_namespace {
            flux.action(&format!("applying namespace {}", name(&space.namespace)));
            flux.block_on(upsert_labels(&flux, &space.namespace))?;
        }
        flux.action(&format!("applying service account {}", name(&space.account)));
        flux.block_on(upsert_labels(&flux, &space.account))?;
        flux.action(&format!("applying role binding {}", name(&space.binding)));
        flux.block_on(upsert_binding(&flux, &space.binding))?;
    }
    flux.success("tenant setup completed");
    Ok(())
}

/// Creates an object, or adds its labels to the existing one.
async fn upsert_labels(flux: &Flux, object: &Value) -> Result<()> {
    let reference = ObjectRef::of(object)?;
    match flux.cluster.get(&reference).await? {
        None => drop(flux.cluster.apply(object, MANAGER).await?),
        Some(live) if has_labels(&live, object) => {}
        Some(_) => {
            let labels = object.pointer(&["metadata", "labels"]).cloned();
            let metadata = Map::from([("labels", labels.unwrap_or_default())]);
            let patch = cluster::Patch::Merge(Value::Map(Map::from([("metadata", metadata)])));
            flux.cluster.patch(&reference, &patch, MANAGER.manager).await?;
        }
    }
    Ok(())
}

/// Creates a role binding, or recreates it if it is another one: its role can't be changed.
async fn upsert_binding(flux: &Flux, object: &Value) -> Result<()> {
    let reference = ObjectRef::of(object)?;
    if let Some(live) = flux.cluster.get(&reference).await? {
        let is_same = ["roleRef", "subjects"]
            .iter()
            .all(|field| same(live.get(field), object.get(field)));
        if is_same && has_labels(&live, object) {
            return Ok(());
        }
        let options = cluster::DeleteOptions {
            uid: meta::uid(&live),
            ..cluster::DeleteOptions::default()
        };
        flux.cluster.delete(&reference, options).await?;
    }
    flux.cluster.apply(object, MANAGER).await?;
    Ok(())
}

/// Returns true if a live field has all that is wanted; the API server adds defaults.
fn same(live: Option<&Value>, wanted: Option<&Value>) -> bool {
    match (live, wanted) {
        (Some(Value::Map(live)), Some(Value::Map(wanted))) => {
            wanted.iter().all(|(key, value)| same(live.get(key), Some(value)))
        }
        (Some(Value::Seq(live)), Some(Value::Seq(wanted))) => {
            live.len() == wanted.len()
                && live
                    .iter()
                    .zip(wanted)
                    .all(|(live, wanted)| same(Some(live), Some(wanted)))
        }
        (live, wanted) => live == wanted,
    }
}

fn has_labels(live: &Value, wanted: &Value) -> bool {
    let labels = ["metadata", "labels"];
    same(live.pointer(&labels), wanted.pointer(&labels))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn live_objects_may_have_more_fields() {
        let value = |json| Some(Value::from_json(json));
        let wanted = value(json!({"a": [{"b": 1}]}));
        for (live, expected) in [
            (json!({"a": [{"b": 1, "c": 2}], "d": 3}), true),
            (json!({"a": [{"b": 2}]}), false),
            (json!({"a": [{"b": 1}, {}]}), false),
            (json!({}), false),
        ] {
            assert_eq!(
                same(value(live.clone()).as_ref(), wanted.as_ref()),
                expected,
                "{live}"
            );
        }
    }
}
