//! Running the kind's own work with a timeout, and cancelling it.

use std::{future::Future, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    client::describe,
    panics,
    report::{self, Report},
};

const CANCEL_GRACE: Duration = Duration::from_secs(2);
/// Timeout of a single request of the pass itself, with retries.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct StopSignals {
    /// There is a newer generation.
    pub(crate) superseded: CancellationToken,
    /// The process ends, or lost its lease.
    pub(crate) abort: CancellationToken,
    pub(crate) evicted: CancellationToken,
}

impl StopSignals {
    /// Returns the result of some work, or of the pass if a signal came first, which drops the work.
    pub(crate) async fn until_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, Report> {
        tokio::select! {
            biased;
            () = self.abort.cancelled() => Err(report::CANCELLED),
            () = self.superseded.cancelled() => Err(report::CANCELLED),
            () = self.evicted.cancelled() => Err(report::RETRY),
            result = work => Ok(result),
        }
    }
}

pub(crate) enum WorkEnd<T> {
    Done(T),
    Superseded,
    Aborted,
    Evicted,
    TimedOut,
    Panicked(String),
}

/// Runs the kind's own work until it ends, is cancelled, or exceeds its timeout. Work that `finishes` is not cancelled when it is
/// superseded: it ends itself. The work is pinned by the caller: it is the largest part of a pass, and many passes wait at the same time.
pub(crate) async fn run_work<T>(
    work: impl Future<Output = T> + Unpin,
    timeout: Duration,
    cancel: &CancellationToken,
    stop: &StopSignals,
    finishes: bool,
) -> WorkEnd<T> {
    let mut work = std::pin::pin!(panics::caught(work));
    let ended = tokio::select! {
        biased;
        () = stop.abort.cancelled() => WorkEnd::Aborted,
        () = stop.superseded.cancelled(), if !finishes => WorkEnd::Superseded,
        () = stop.evicted.cancelled() => WorkEnd::Evicted,
        result = work.as_mut() => return match result {
            Ok(value) => WorkEnd::Done(value),
            Err(location) => WorkEnd::Panicked(location),
        },
        () = tokio::time::sleep(timeout) => WorkEnd::TimedOut,
    };
    // Its result is about a cancelled pass; it only gets the time to clean up.
    cancel.cancel();
    let _ = tokio::time::timeout(CANCEL_GRACE, work).await;
    ended
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("{}", describe(.0))]
    Api(kube::Error),
    #[error("the API server did not answer in time")]
    Timeout,
}

pub(crate) async fn with_timeout<T>(
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, RequestError> {
    match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
        Ok(result) => result.map_err(RequestError::Api),
        Err(_) => Err(RequestError::Timeout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop() -> StopSignals {
        StopSignals {
            superseded: CancellationToken::new(),
            abort: CancellationToken::new(),
            evicted: CancellationToken::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn run_work_returns_how_the_work_ended() {
        let minute = Duration::from_secs(60);
        assert!(matches!(
            run_work(
                Box::pin(async { 1 }),
                minute,
                &CancellationToken::new(),
                &stop(),
                false
            )
            .await,
            WorkEnd::Done(1)
        ));
        let forever = || Box::pin(std::future::pending::<()>());
        assert!(matches!(
            run_work(forever(), minute, &CancellationToken::new(), &stop(), false).await,
            WorkEnd::TimedOut
        ));
        let panicking = Box::pin(async { panic!("on purpose") });
        assert!(matches!(
            run_work(panicking, minute, &CancellationToken::new(), &stop(), false).await,
            WorkEnd::Panicked(_)
        ));
        let newer = stop();
        newer.superseded.cancel();
        assert!(matches!(
            run_work(forever(), minute, &CancellationToken::new(), &newer, false).await,
            WorkEnd::Superseded
        ));
        let finishing = run_work(
            Box::pin(async { 2 }),
            minute,
            &CancellationToken::new(),
            &newer,
            true,
        )
        .await;
        assert!(matches!(finishing, WorkEnd::Done(2)));
        let ending = stop();
        ending.abort.cancel();
        assert!(matches!(
            run_work(forever(), minute, &CancellationToken::new(), &ending, false).await,
            WorkEnd::Aborted
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn cancelled_work_gets_time_to_clean_up() {
        let (cancel, stop) = (CancellationToken::new(), stop());
        let (send, receive) = tokio::sync::oneshot::channel();
        let token = cancel.clone();
        let work = Box::pin(async move {
            token.cancelled().await;
            send.send(()).unwrap();
        });
        assert!(matches!(
            run_work(work, Duration::from_secs(5), &cancel, &stop, false).await,
            WorkEnd::TimedOut
        ));
        receive.await.unwrap();
    }
}
