//! Running the kind's own work within its time, and ending it when it has become pointless.

use std::{future::Future, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{client::describe, panics};

/// How long cancelled work gets to end by itself.
const CANCEL_GRACE: Duration = Duration::from_secs(2);
/// The longest time that a small request may take, retries included.
const SMALL_WORK: Duration = Duration::from_secs(60);

/// How a pass can be told to stop.
pub(crate) struct Stop {
    /// A newer generation is there.
    pub(crate) superseded: CancellationToken,
    /// The process ends, or lost its lease.
    pub(crate) abort: CancellationToken,
}

/// How the kind's own work ended.
pub(crate) enum Worked<T> {
    Done(T),
    Superseded,
    Aborted,
    TimedOut,
    Panicked(String),
}

/// Runs the kind's own work until it ends, is cancelled, or takes too long.
pub(crate) async fn worked<T>(
    work: impl Future<Output = T>,
    timeout: Duration,
    cancel: CancellationToken,
    stop: &Stop,
) -> Worked<T> {
    let mut work = std::pin::pin!(panics::caught(work));
    let ended = tokio::select! {
        biased;
        () = stop.abort.cancelled() => Worked::Aborted,
        () = stop.superseded.cancelled() => Worked::Superseded,
        result = work.as_mut() => return match result {
            Ok(value) => Worked::Done(value),
            Err(place) => Worked::Panicked(place),
        },
        () = tokio::time::sleep(timeout) => Worked::TimedOut,
    };
    // What it answers now is about a cancelled pass; it only gets the time to put its things away.
    cancel.cancel();
    let _ = tokio::time::timeout(CANCEL_GRACE, work).await;
    ended
}

/// A small request that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Small {
    #[error("{}", describe(.0))]
    Api(kube::Error),
    #[error("the API server did not answer in time")]
    Late,
}

pub(crate) async fn limited<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Small> {
    match tokio::time::timeout(SMALL_WORK, request).await {
        Ok(result) => result.map_err(Small::Api),
        Err(_) => Err(Small::Late),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop() -> Stop {
        Stop {
            superseded: CancellationToken::new(),
            abort: CancellationToken::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_ends_in_one_of_five_ways() {
        let minute = Duration::from_secs(60);
        assert!(matches!(
            worked(async { 1 }, minute, CancellationToken::new(), &stop()).await,
            Worked::Done(1)
        ));
        let forever = std::future::pending::<()>;
        assert!(matches!(
            worked(forever(), minute, CancellationToken::new(), &stop()).await,
            Worked::TimedOut
        ));
        let panicking = async { panic!("on purpose") };
        assert!(matches!(
            worked(panicking, minute, CancellationToken::new(), &stop()).await,
            Worked::Panicked(_)
        ));
        let newer = stop();
        newer.superseded.cancel();
        assert!(matches!(
            worked(forever(), minute, CancellationToken::new(), &newer).await,
            Worked::Superseded
        ));
        let ending = stop();
        ending.abort.cancel();
        assert!(matches!(
            worked(forever(), minute, CancellationToken::new(), &ending).await,
            Worked::Aborted
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_pass_gets_time_to_put_its_things_away() {
        let (cancel, stop) = (CancellationToken::new(), stop());
        let (tidied, seen) = tokio::sync::oneshot::channel();
        let token = cancel.clone();
        let work = async move {
            token.cancelled().await;
            tidied.send(()).unwrap();
        };
        assert!(matches!(
            worked(work, Duration::from_secs(5), cancel, &stop).await,
            Worked::TimedOut
        ));
        seen.await.unwrap();
    }
}
