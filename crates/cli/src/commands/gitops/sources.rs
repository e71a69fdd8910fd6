//! Local sources of requests: the controller reads them from this process, through a connection to its port `source-override`.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use cluster::Detail;
use engine::{ExternalAccess, SourceOverride};
use objects::{ObjectRef, meta};
use overrides::{ARTIFACT_BYTES, Answer, CA, CONFIG_MAP, Client, OverrideUrl};
use tokio::{net::TcpStream, time::timeout};
use yaml::{Map, Value};

use super::{
    GitOps,
    flags::{LogFlags, OverrideFlags, SelectFlags},
    logs::{self, PODS, SELECTOR},
    select::{LocalProject, full_name},
};
use crate::{archive, terminal::Terminal};

/// Time to connect to the controller.
const CONNECT: Duration = Duration::from_secs(10);
const PORT: &str = "source-override";

/// Connects to the controller, if it listens for local sources, and returns the items of `spec.sourceOverrides`: the local project, and the
/// sources of the flags. The connection stays until the command ends. Fails without a connection if flags name local sources or a port, and
/// if a directory doesn't exist.
pub(super) fn offer(
    ops: &GitOps,
    flags: &OverrideFlags,
    logs: &LogFlags,
    select: &SelectFlags,
) -> Result<Vec<Value>> {
    let mut local = flags.sources.read()?;
    for one in &local {
        ensure!(one.dir.is_dir(), "{}: not a directory", one.dir.display());
    }
    let port = flags.local_source_override_port;
    let is_asked = port != 0 || !local.is_empty();
    local.extend(own_project(select));
    if local.is_empty() {
        return Ok(Vec::new());
    }
    let connection = match ops.block_on(connect(ops, logs, port)) {
        Ok(None) if is_asked => bail!(no_port(logs)),
        Ok(None) => return Ok(Vec::new()),
        Ok(Some(connection)) => connection,
        Err(error) if is_asked => return Err(error),
        Err(error) => {
            let warning =
                format!("The controller can't read the local project, and uses its repository: {error:#}");
            ops.terminal.warning(&warning);
            return Ok(Vec::new());
        }
    };
    let url = OverrideUrl {
        host: connection.host,
        port: connection.port,
        id: connection.client.id().to_owned(),
    };
    let items = local.iter().map(|one| item(one, &url)).collect();
    serve(ops, connection.client, local);
    Ok(items)
}

/// Answers the questions of the controller until the command ends.
fn serve(ops: &GitOps, client: Client, local: Vec<SourceOverride>) {
    let (terminal, end) = (ops.terminal.clone(), ops.cluster.cancellation().clone());
    let external = Arc::new(ExternalAccess {
        overrides: local,
        ..ExternalAccess::default()
    });
    ops.spawn(async move {
        let answering = terminal.clone();
        let answer = move |repo_key| answer(Arc::clone(&external), answering.clone(), repo_key);
        if let Err(error) = client.serve(end, answer).await {
            terminal.warning(&format!(
                "The controller can't read local sources any more: {error}"
            ));
        }
    });
}

/// Returns advice on getting a port.
fn no_port(logs: &LogFlags) -> String {
    format!(
        "the controller can't read files of this machine: no Pod with the label {SELECTOR} in {} is ready and has a port named \
         {PORT}. Start the controller with --source-override-bind-address=:8082 and with that port, or use --controller-namespace; if it \
         runs elsewhere, name a local port that leads to it by --local-source-override-port. Or use `weir deploy` or `weir diff` with the \
         same flags, which run without the controller",
        logs::named(logs)
    )
}

/// Returns the override of the repository of the local project, if it has a server.
fn own_project(select: &SelectFlags) -> Option<SourceOverride> {
    let project = LocalProject::find(select).ok()?;
    Some(SourceOverride {
        oci: false,
        group: false,
        key: project.repo_key,
        dir: project.root,
    })
}

struct Connection {
    client: Client,
    /// Address at which all Pods of the controller reach the connected one.
    host: String,
    port: u16,
}

/// Connects to a local port that leads to the controller, or, if it is 0, through the cluster to the first of its Pods that is ready;
/// `None` if no Pod has the port.
async fn connect(ops: &GitOps, logs: &LogFlags, port: u16) -> Result<Option<Connection>> {
    if port != 0 {
        let ca = authority(ops, logs).await?;
        let connecting = timeout(CONNECT, TcpStream::connect(("localhost", port))).await;
        let stream = connecting.with_context(|| format!("connect to local port {port}: no answer"))?;
        let stream = stream.with_context(|| format!("connect to local port {port}"))?;
        let client = Client::connect(stream, &ca).await;
        let client = client.with_context(|| format!("connect to the controller at local port {port}"))?;
        let host = "localhost".to_owned();
        return Ok(Some(Connection { client, host, port }));
    }
    let Some(listener) = listener(ops, logs).await? else {
        return Ok(None);
    };
    let ca = authority(ops, logs).await?;
    let stream = ops.cluster.forward(&listener.pod, listener.port).await;
    let (pod, port) = (full_name(&listener.pod), listener.port);
    let stream = stream.with_context(|| {
        format!(
            "connect to port {port} of Pod {pod} through the cluster, which needs the rights to get and create pods/portforward in its \
             namespace"
        )
    })?;
    let client = Client::connect(stream, &ca).await;
    let client = client.with_context(|| format!("connect to the controller at port {port} of Pod {pod}"))?;
    Ok(Some(Connection {
        client,
        host: listener.host,
        port,
    }))
}

/// A Pod of the controller that listens for local sources.
#[derive(Debug, PartialEq)]
struct Listener {
    pod: ObjectRef,
    /// IP address of the Pod.
    host: String,
    port: u16,
}

/// Finds a Pod of the controller; `None` if there is none, or the user may not list Pods.
async fn listener(ops: &GitOps, logs: &LogFlags) -> Result<Option<Listener>> {
    let kind = ops.cluster.kind("", "v1", "Pod").await?;
    for namespace in logs::controller_namespaces(logs) {
        let pods = ops
            .cluster
            .list_selected(&kind, Some(namespace), SELECTOR, Detail::Full, PODS);
        let pods = match pods.await {
            Err(error) if error.is_forbidden() => continue,
            pods => pods?,
        };
        if let Some(found) = pods.iter().find_map(listening) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns the port of a Pod that is ready and doesn't end; `None` if it has none. Pure.
fn listening(pod: &Value) -> Option<Listener> {
    let list = |path: &[&str]| pod.pointer(path).and_then(Value::as_seq).unwrap_or_default();
    let has =
        |value: &Value, name: &str, expected: &str| value.get(name).and_then(Value::as_str) == Some(expected);
    let is_ready = list(&["status", "conditions"])
        .iter()
        .any(|one| has(one, "type", "Ready") && has(one, "status", "True"));
    if !is_ready || meta::text(pod, "deletionTimestamp").is_some() {
        return None;
    }
    let ports = list(&["spec", "containers"])
        .iter()
        .filter_map(|container| container.get("ports")?.as_seq());
    let port = ports.flatten().find(|port| has(port, "name", PORT))?;
    Some(Listener {
        pod: ObjectRef::of(pod).ok()?,
        host: pod.pointer(&["status", "podIP"])?.as_str()?.to_owned(),
        port: u16::try_from(port.get("containerPort")?.as_u64()?).ok()?,
    })
}

async fn authority(ops: &GitOps, logs: &LogFlags) -> Result<String> {
    let namespaces = logs::controller_namespaces(logs);
    for namespace in &namespaces {
        let map = ObjectRef::core("ConfigMap", namespace, CONFIG_MAP);
        let map = ops.cluster.get(&map).await?;
        let ca = map.as_ref().and_then(|map| map.pointer(&["data", CA])?.as_str());
        if let Some(ca) = ca {
            return Ok(ca.to_owned());
        }
    }
    bail!(
        "there is no ConfigMap {CONFIG_MAP} in {}: start the controller with --source-override-bind-address=:8082, or use \
         --controller-namespace",
        logs::named(logs)
    )
}

fn item(one: &SourceOverride, url: &OverrideUrl) -> Value {
    let kind = if one.oci { "oci" } else { "git" };
    let key = one.key.split_once("://").map_or(one.key.as_str(), |(_, key)| key);
    let mut item = Map::from([
        ("repoKey", Value::from(format!("{kind}://{key}"))),
        ("url", Value::from(url.to_string())),
    ]);
    if one.group {
        item.insert("isGroup", true);
    }
    Value::Map(item)
}

/// Answers a question for the files of a repository.
async fn answer(external: Arc<ExternalAccess>, terminal: Terminal, repo_key: String) -> Answer {
    let Some(dir) = directory(&external, &repo_key) else {
        return Answer::default();
    };
    terminal.info(&format!(
        "The controller reads {} from {}",
        crate::terminal::printable(&repo_key),
        dir.display()
    ));
    let packing = tokio::task::spawn_blocking(move || archive::pack(&dir, ARTIFACT_BYTES));
    let failed = |error: String| Answer {
        error: Some(error),
        artifact: None,
    };
    match packing.await {
        Ok(Ok(packed)) => {
            if let Some(warning) = packed.warning {
                terminal.warning(&warning);
            }
            Answer {
                error: None,
                artifact: Some(packed.tarball.into()),
            }
        }
        Ok(Err(error)) => failed(format!("{error:#}")),
        Err(error) => failed(error.to_string()),
    }
}

/// Returns the directory that replaces a repository: a named one, or one below a group that no link leads out of.
fn directory(external: &ExternalAccess, repo_key: &str) -> Option<PathBuf> {
    let found = external.overridden(repo_key, repo_key.starts_with("oci://"))?;
    let found = found.canonicalize().ok().filter(|found| found.is_dir())?;
    let offered = external
        .overrides
        .iter()
        .filter_map(|one| one.dir.canonicalize().ok());
    let is_offered = offered.into_iter().any(|dir| found.starts_with(dir));
    is_offered.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_that_are_ready_and_have_the_port_listen() {
        let pod = |change: serde_json::Value| {
            let mut pod = serde_json::json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c", "namespace": "n"},
                "spec": {"containers": [{"name": "side"}, {"name": "manager", "ports": [
                    {"name": "http", "containerPort": 8080}, {"name": "source-override", "containerPort": 8082}]}]},
                "status": {"podIP": "10.0.0.7", "conditions": [{"type": "Ready", "status": "True"}]},
            });
            for (part, fields) in change.as_object().unwrap() {
                let part = pod[part].as_object_mut().unwrap();
                part.extend(fields.as_object().unwrap().clone());
            }
            listening(&Value::from_json(pod))
        };
        let found = pod(serde_json::json!({})).unwrap();
        assert_eq!(
            (found.host.as_str(), found.port, full_name(&found.pod).as_str()),
            ("10.0.0.7", 8082, "n/c")
        );
        for change in [
            serde_json::json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
            serde_json::json!({"status": {"podIP": null}}),
            serde_json::json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            serde_json::json!({"spec": {"containers": [{"ports": [{"name": "http", "containerPort": 1}]}]}}),
        ] {
            assert_eq!(pod(change.clone()), None, "{change}");
        }
    }

    #[test]
    fn directories_below_a_group_are_offered_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("group");
        std::fs::create_dir_all(group.join("one")).unwrap();
        std::fs::create_dir(dir.path().join("secret")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), group.join("link")).unwrap();
        std::fs::write(group.join("file"), "").unwrap();
        let external = ExternalAccess {
            overrides: vec![SourceOverride {
                oci: false,
                group: true,
                key: "git://h.io/g".to_owned(),
                dir: group.clone(),
            }],
            ..ExternalAccess::default()
        };
        let one = group.join("one").canonicalize().unwrap();
        assert_eq!(directory(&external, "git://h.io/g/one"), Some(one));
        for key in [
            "git://h.io/g/link",
            "git://h.io/g/file",
            "git://h.io/g/none",
            "git://h.io/g/../secret",
            "git://h.io/other",
            "oci://h.io/g/one",
        ] {
            assert_eq!(directory(&external, key), None, "{key}");
        }
    }
}
