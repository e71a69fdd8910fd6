//! The cluster of commands without a project, and the connection to it.

use std::{future::Future, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use clap::Args;
use cluster::{Cluster, access::LocalKubeconfig};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::{TerminalFlags, path::existing_file};
use crate::{session::end_early, terminal::Terminal};

#[derive(Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterFlags {
    /// Kubeconfig file; defaults to $KUBECONFIG, then ~/.kube/config
    #[arg(long, value_name = "FILE", value_parser = existing_file)]
    kubeconfig: Option<PathBuf>,
    /// Kubeconfig context; defaults to the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    #[command(flatten)]
    terminal: TerminalFlags,
}

/// A connection to the cluster of a kubeconfig.
pub(crate) struct Connection {
    pub(crate) terminal: Terminal,
    runtime: Runtime,
    pub(crate) cluster: Cluster,
    /// Namespace of the kubeconfig context.
    pub(crate) namespace: String,
}

impl ClusterFlags {
    /// Connects to the cluster. Work is cancelled after the timeout, and at Ctrl-C.
    pub(crate) fn connect(&self, timeout: Duration) -> Result<Connection> {
        let terminal = self.terminal.terminal();
        let runtime = Runtime::new().context("start the async runtime")?;
        let _ = rustls::crypto::ring::default_provider().install_default();
        let kubeconfig = self.kubeconfig()?;
        let context = self.context.as_deref();
        let client = runtime.block_on(async {
            let config = kubeconfig.config(context).await?;
            cluster::access::client(config)
        })?;
        let cancel = CancellationToken::new();
        runtime.spawn(end_early(cancel.clone(), terminal.clone(), timeout));
        Ok(Connection {
            terminal,
            runtime,
            cluster: Cluster::new(client).until(cancel),
            namespace: context_namespace(&kubeconfig, context),
        })
    }

    pub(crate) fn terminal(&self) -> Terminal {
        self.terminal.terminal()
    }

    /// Returns the namespace of the kubeconfig context, without a connection to the cluster.
    pub(crate) fn namespace(&self) -> Result<String> {
        let kubeconfig = self.kubeconfig()?;
        Ok(context_namespace(&kubeconfig, self.context.as_deref()))
    }

    fn kubeconfig(&self) -> Result<LocalKubeconfig> {
        LocalKubeconfig::read(self.kubeconfig.as_deref())?
            .context("no kubeconfig found: use --kubeconfig, $KUBECONFIG or ~/.kube/config")
    }
}

fn context_namespace(kubeconfig: &LocalKubeconfig, context: Option<&str>) -> String {
    let namespace = kubeconfig.namespace(context).filter(|name| !name.is_empty());
    namespace.unwrap_or_else(|| "default".to_owned())
}

impl Connection {
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(work);
    }
}
