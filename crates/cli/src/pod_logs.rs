//! Logs of Pods, followed over broken connections.

use std::time::Duration;

use anyhow::Result;
use cluster::{Cluster, LogLine, LogLines, LogOptions};
use jiff::Timestamp;
use objects::{ObjectRef, meta};
use tokio::sync::mpsc;
use yaml::Value;

/// Pause before a log whose connection broke is read on.
const AGAIN: Duration = Duration::from_secs(1);

/// The log of one container of a Pod.
pub(crate) struct PodLog {
    cluster: Cluster,
    pod: ObjectRef,
    options: LogOptions,
    opened: LogLines,
}

impl PodLog {
    /// Opens the log of the container that kubectl would take.
    pub(crate) async fn open(cluster: &Cluster, pod: &Value, options: LogOptions) -> Result<Self> {
        let options = LogOptions {
            container: container(pod).to_owned(),
            ..options
        };
        let pod = ObjectRef::of(pod)?;
        Ok(Self {
            opened: cluster.pod_log(&pod, &options).await?,
            cluster: cluster.clone(),
            pod,
            options,
        })
    }

    /// Sends its lines with an index until it ends, or for ever if it is followed: a broken connection is opened again.
    pub(crate) async fn send(mut self, index: usize, sender: mpsc::Sender<(usize, LogLine)>) {
        let (mut last, mut sent) = (None, None);
        loop {
            while let Ok(Some(line)) = self.opened.next().await {
                let time = line.time.parse::<Timestamp>().ok();
                // Lines of the connection before.
                if time.is_some() && time <= sent {
                    continue;
                }
                last = time.or(last);
                if sender.send((index, line)).await.is_err() {
                    return;
                }
            }
            if !self.options.follow {
                return;
            }
            sent = last;
            self.options.since_time = sent.map(|time| time.to_string());
            self.options.tail = None;
            self.opened = loop {
                if self.cluster.pause(AGAIN).await.is_err() {
                    return;
                }
                match self.cluster.pod_log(&self.pod, &self.options).await {
                    Ok(opened) => break opened,
                    Err(error) if error.is_not_found() => return,
                    Err(_) => {}
                }
            };
        }
    }
}

/// Returns the name of the container that kubectl would take.
fn container(pod: &Value) -> &str {
    let first = || {
        pod.pointer(&["spec", "containers", "0", "name"])
            .and_then(Value::as_str)
    };
    meta::annotation(pod, "kubectl.kubernetes.io/default-container")
        .or_else(first)
        .unwrap_or_default()
}
