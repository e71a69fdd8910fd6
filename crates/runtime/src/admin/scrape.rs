//! Serves the metrics as a stream: a scrape holds one family and a few chunks, however many objects there are.

use std::{
    io::{self, Write},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::stream;
use tokio::{
    runtime::Handle,
    sync::{Semaphore, mpsc},
};

use crate::metrics::Metrics;

pub(super) const SCRAPES: usize = 2;
const PERMIT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a scrape, which depends on the speed of its reader.
pub(super) const WHOLE: Duration = Duration::from_secs(30);
const CHUNK: usize = 64 * 1024;

/// A part of the answer. An answer without an end breaks off, so that no reader takes it for whole.
enum Part {
    Chunk(Bytes),
    End,
}

pub(super) async fn scrape(metrics: Metrics, turns: Arc<Semaphore>, whole: Duration) -> Response {
    let Ok(Ok(turn)) = tokio::time::timeout(PERMIT_TIMEOUT, turns.acquire_owned()).await else {
        let why = "other scrapes are being read too slowly";
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            [(header::RETRY_AFTER, "10")],
            why,
        )
            .into_response();
    };
    let (parts, received) = mpsc::channel(2);
    let handle = Handle::current();
    tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let mut chunks = Chunks {
            buffer: Vec::with_capacity(CHUNK),
            parts,
            handle,
            until: Instant::now() + whole,
        };
        // A reader that went away, or is too slow, sees no end.
        let _ = metrics.write(&mut chunks).and_then(|()| Ok(chunks.end()?));
    });
    let body = stream::unfold(Some(received), |received| async move {
        let mut received: mpsc::Receiver<Part> = received?;
        match received.recv().await {
            Some(Part::Chunk(bytes)) => Some((Ok(bytes), Some(received))),
            Some(Part::End) => None,
            None => Some((Err(io::Error::other("the metrics broke off")), None)),
        }
    });
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    (kind, Body::from_stream(body)).into_response()
}

struct Chunks {
    buffer: Vec<u8>,
    parts: mpsc::Sender<Part>,
    handle: Handle,
    until: Instant,
}

impl Chunks {
    fn send(&self, part: Part) -> io::Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        let sent = self
            .handle
            .block_on(async { tokio::time::timeout(left, self.parts.send(part)).await });
        match sent {
            Ok(Ok(())) => Ok(()),
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        self.flush()?;
        self.send(Part::End)
    }
}

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let full = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK));
        self.send(Part::Chunk(full.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use futures::StreamExt as _;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{
        http::{Limits, serve},
        metrics::Ending,
        queue::ObjectKey,
    };

    const OBJECTS: usize = 10_000;

    fn many(per_object: bool) -> Metrics {
        let metrics = Metrics::with("source-controller", per_object).unwrap();
        let kind = metrics.kind("GitRepository", "gitrepository", None).unwrap();
        kind.start(4);
        for number in 0..OBJECTS {
            let key = ObjectKey::new(format!("team-{}", number % 100), format!("application-{number}"));
            kind.started(&key, Instant::now(), Duration::ZERO);
            kind.ended(&key, Some(Ending::Success), Duration::from_millis(20));
            kind.suspended(&key, false);
            kind.ready(&key, "True");
        }
        metrics
    }

    async fn served(metrics: Metrics) -> (SocketAddr, CancellationToken) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, shutdown) = (listener.local_addr().unwrap(), CancellationToken::new());
        let router = super::super::metrics_router(metrics);
        tokio::spawn(serve(listener, router, Limits::default(), shutdown.clone()));
        (address, shutdown)
    }

    fn memory(field: &str) -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() << 10
    }

    #[test]
    fn many_objects_have_few_lines_each() {
        let count = |text: &str| text.lines().filter(|line| line.contains("application-")).count();
        let few = many(false).text();
        // Four statuses, suspension, and sum, count and one bucket of the durations.
        assert_eq!(count(&few), OBJECTS * 8);
        assert!(few.len() < 9 << 20, "{} bytes", few.len());
        assert_eq!(count(&many(true).text()), OBJECTS * 18);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn prometheus_reads_the_metrics_of_many_objects() {
        let (address, _shutdown) = served(many(false)).await;
        let config = serde_json::json!({
            "scrape_configs": [{
                "job_name": "weir", "scrape_interval": "10s", "scrape_timeout": "10s",
                "static_configs": [{"targets": [address.to_string()]}],
            }],
        });
        let prometheus = testkit::Prometheus::start(&config.to_string()).await.unwrap();
        for expression in [
            format!("count(gotk_reconcile_condition{{status=\"True\"}} == 1) == {OBJECTS}"),
            format!(
                "count(gotk_reconcile_duration_seconds_sum / gotk_reconcile_duration_seconds_count) == {OBJECTS}"
            ),
            "controller_runtime_reconcile_time_seconds_bucket{le=\"0.025\"} > 0".to_owned(),
        ] {
            let patience = Duration::from_secs(60);
            prometheus.wait_for(&expression, patience).await.unwrap();
        }
    }

    /// Set in the process in which the test runs alone, so that memory of other tests is not measured.
    const ALONE: &str = "WEIR_TEST_RUNS_ALONE";

    #[test]
    fn a_scrape_of_many_objects_takes_less_memory_than_its_text() {
        let name = "admin::scrape::tests::a_scrape_of_many_objects_takes_less_memory_than_its_text";
        if std::env::var_os(ALONE).is_none() {
            let test = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", name, "--nocapture"])
                .env(ALONE, "1")
                .output()
                .unwrap();
            let output = [test.stdout, test.stderr].concat();
            let output = String::from_utf8_lossy(&output);
            assert!(test.status.success() && output.contains("1 passed"), "{output}");
            return;
        }
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (text, grown) = runtime.block_on(async {
            let (metrics, turns) = (many(true), Arc::new(Semaphore::new(SCRAPES)));
            let read = async || {
                let mut body = scrape(metrics.clone(), Arc::clone(&turns), WHOLE)
                    .await
                    .into_body()
                    .into_data_stream();
                let mut read = 0;
                while let Some(chunk) = body.next().await {
                    read += u64::try_from(chunk.unwrap().len()).unwrap();
                }
                read
            };
            // The first one grows buffers that later ones use again.
            read().await;
            std::fs::write("/proc/self/clear_refs", "5").unwrap();
            let before = memory("VmRSS:");
            let text = read().await;
            (text, memory("VmHWM:").saturating_sub(before))
        });
        assert!(grown < text, "{grown} bytes for a text of {text} bytes");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_answer_that_is_not_read_in_time_breaks_off() {
        let turns = Arc::new(Semaphore::new(SCRAPES));
        let metrics = many(false);
        drop(scrape(metrics.clone(), Arc::clone(&turns), WHOLE).await);
        let unread = scrape(metrics, Arc::clone(&turns), Duration::ZERO).await;
        // The permits come back although nobody reads.
        let all = turns.acquire_many(u32::try_from(SCRAPES).unwrap());
        drop(tokio::time::timeout(WHOLE / 3, all).await.unwrap().unwrap());
        let read = axum::body::to_bytes(unread.into_body(), usize::MAX).await;
        assert!(
            read.is_err(),
            "a part of the metrics must not pass for all of them"
        );
    }
}
