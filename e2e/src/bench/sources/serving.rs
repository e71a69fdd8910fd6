//! The throughput of the artifact server beside nginx, which serves the same files.

use std::{
    fmt::Write as _,
    fs,
    net::SocketAddr,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use testkit::Nginx;

use super::{
    NAME,
    load::{self, Served},
};
use crate::{
    bench::measure::{mebibytes, print},
    cluster::{NAMESPACE, TestCluster},
};

const TIME: Duration = Duration::from_secs(3);
const CONNECTIONS: [usize; 3] = [1, 8, 64];
/// Names and bytes of the files.
const FILES: [(&str, usize); 3] = [
    ("1KiB.tar.gz", 1 << 10),
    ("1MiB.tar.gz", 1 << 20),
    ("100MiB.tar.gz", 100 << 20),
];

pub(super) async fn measure() -> Result<String> {
    let mut cluster = TestCluster::bare().await?;
    cluster.plane.apply(owner()).await?;
    cluster.start(NAME, &[]).await?;
    let controller = cluster.controller(NAME)?;
    let storage = controller.storage_path();
    let dir = format!("gitrepository/{NAMESPACE}/bench");
    write(&storage.join(&dir))?;
    let ours = controller.addresses().storage;
    let nginx = match Nginx::start(&storage).await {
        Ok(nginx) => Some(nginx),
        Err(error) => {
            print(&format!(
                "nginx: SKIPPED: {error:#} (it is taken from /usr/sbin/nginx, or from the Debian package nginx: apt-get install nginx)"
            ));
            None
        }
    };
    let mut text = format!(
        "\nthe artifact server beside nginx, {} s each; CPU of the server alone\n  {:<14} {:>11} {:>34} {:>34}\n",
        TIME.as_secs(),
        "file",
        "connections",
        "weir",
        "nginx"
    );
    for (name, _) in FILES {
        let path = format!("/{dir}/{name}");
        print(&format!("artifact server: {name}"));
        for connections in CONNECTIONS {
            let cpu = || Ok(controller.usage()?.cpu);
            let of_ours = serve(ours, &path, connections, cpu).await?;
            let of_nginx = match &nginx {
                Some(nginx) => cell(&serve(nginx.address(), &path, connections, || nginx.cpu()).await?),
                None => "SKIPPED".to_owned(),
            };
            let name = name.trim_end_matches(".tar.gz");
            let of_ours = cell(&of_ours);
            let _ = writeln!(
                text,
                "  {name:<14} {connections:>11} {of_ours:>34} {of_nginx:>34}"
            );
        }
    }
    let _ = write!(
        text,
        "  peak memory {:.1} MiB",
        mebibytes(controller.usage()?.peak)
    );
    cluster.stop().await?;
    Ok(text)
}

/// Returns an object that owns the artifacts: those without an object are removed.
fn owner() -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "bench", "namespace": NAMESPACE},
        "spec": {"interval": "1h", "url": "https://git.invalid/bench", "suspend": true},
    })
}

fn write(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir)?;
    let mut random = fastrand::Rng::with_seed(16);
    for (name, bytes) in FILES {
        let mut content = vec![0; bytes];
        random.fill(&mut content);
        fs::write(dir.join(name), content).with_context(|| format!("can't write {name}"))?;
    }
    Ok(())
}

struct Throughput {
    served: Served,
    time: Duration,
    cpu: Duration,
}

async fn serve(
    address: SocketAddr,
    path: &str,
    connections: usize,
    cpu: impl Fn() -> Result<Duration>,
) -> Result<Throughput> {
    // The first read of a file, which fills the caches, isn't measured.
    load::once(address, path).await?;
    let (began, before) = (Instant::now(), cpu()?);
    let served = load::run(address, path, connections, began + TIME).await?;
    Ok(Throughput {
        served,
        time: began.elapsed(),
        cpu: cpu()?.saturating_sub(before),
    })
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn cell(throughput: &Throughput) -> String {
    let seconds = throughput.time.as_secs_f64();
    format!(
        "{:>6.0} MiB/s {:>6.0}/s {:>5.2} s CPU",
        mebibytes(throughput.served.bytes) / seconds,
        throughput.served.answers as f64 / seconds,
        throughput.cpu.as_secs_f64(),
    )
}
