//! Local sources of requests: the controller reads them from this process, through a connection to its port `source-override`.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use engine::{ExternalAccess, SourceOverride};
use objects::ObjectRef;
use overrides::{ARTIFACT_BYTES, Answer, CA, CONFIG_MAP, Client, OverrideUrl};
use tokio::{net::TcpStream, time::timeout};
use yaml::{Map, Value};

use super::{
    GitOps,
    flags::{LogFlags, OverrideFlags, SelectFlags},
    logs,
    select::LocalProject,
};
use crate::{archive, terminal::Terminal};

/// Time to connect to the forwarded port.
const CONNECT: Duration = Duration::from_secs(10);

/// Connects to the controller if the flags name local sources or a port, and returns the items of `spec.sourceOverrides`. The connection
/// stays until the command ends.
///
/// # Errors
///
/// There is no connection, or a directory doesn't exist.
pub(super) fn offer(
    ops: &GitOps,
    flags: &OverrideFlags,
    logs: &LogFlags,
    select: &SelectFlags,
) -> Result<Vec<Value>> {
    let mut local = flags.sources.read()?;
    let port = flags.local_source_override_port;
    if port == 0 {
        ensure!(local.is_empty(), no_port(logs));
        return Ok(Vec::new());
    }
    for one in &local {
        ensure!(one.dir.is_dir(), "{}: not a directory", one.dir.display());
    }
    local.extend(own_project(select));
    let client = ops.block_on(connect(ops, logs, port))?;
    let url = OverrideUrl {
        host: "localhost".to_owned(),
        port,
        id: client.id().to_owned(),
    };
    let items = local.iter().map(|one| item(one, &url)).collect();
    let (terminal, end) = (ops.terminal.clone(), ops.cluster.cancellation().clone());
    let external = Arc::new(ExternalAccess {
        overrides: local,
        ..ExternalAccess::default()
    });
    ops.runtime.spawn(async move {
        let answering = terminal.clone();
        let answer = move |repo_key| answer(Arc::clone(&external), answering.clone(), repo_key);
        if let Err(error) = client.serve(end, answer).await {
            terminal.warning(&format!(
                "The controller can't read local sources any more: {error}"
            ));
        }
    });
    Ok(items)
}

/// Returns how to get a port.
fn no_port(logs: &LogFlags) -> String {
    let places = logs::places(logs);
    let namespace = places.last().copied().unwrap_or_default();
    format!(
        "the controller can't read files of this machine without a connection: run `kubectl port-forward -n {namespace} \
         deployment/kluctl-controller 8082`, and add --local-source-override-port=8082. Or use `weir deploy` or `weir diff` with the \
         same flags, which run without the controller"
    )
}

/// Returns the override of the repository of the local project, if it is one that has a server.
fn own_project(select: &SelectFlags) -> Option<SourceOverride> {
    let project = LocalProject::find(select).ok()?;
    Some(SourceOverride {
        oci: false,
        group: false,
        key: project.repo_key,
        dir: project.root,
    })
}

async fn connect(ops: &GitOps, logs: &LogFlags, port: u16) -> Result<Client> {
    let ca = authority(ops, logs).await?;
    let connecting = timeout(CONNECT, TcpStream::connect(("localhost", port))).await;
    let stream = connecting.with_context(|| format!("connect to local port {port}: no answer"))?;
    let stream = stream.with_context(|| format!("connect to local port {port}"))?;
    let client = Client::connect(stream, &ca).await;
    client.with_context(|| format!("connect to the controller at local port {port}"))
}

/// Returns the certificate authority of the controller.
async fn authority(ops: &GitOps, logs: &LogFlags) -> Result<String> {
    let places = logs::places(logs);
    for namespace in &places {
        let map = ObjectRef {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some((*namespace).to_owned()),
            name: CONFIG_MAP.to_owned(),
        };
        let map = ops.cluster.get(&map).await?;
        let ca = map.as_ref().and_then(|map| map.pointer(&["data", CA])?.as_str());
        if let Some(ca) = ca {
            return Ok(ca.to_owned());
        }
    }
    anyhow::bail!(
        "there is no ConfigMap {CONFIG_MAP} in namespace {}: start the controller with --source-override-bind-address=:8082, or use \
         --controller-namespace",
        places.join(" and ")
    )
}

/// Returns an item of `spec.sourceOverrides`.
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
        Ok(Ok(packed)) => Answer {
            error: None,
            artifact: Some(packed.into()),
        },
        Ok(Err(error)) => failed(format!("{error:#}")),
        Err(error) => failed(error.to_string()),
    }
}

/// Returns the directory that replaces a repository: one that is named, or one below a group that no link leads out of.
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
