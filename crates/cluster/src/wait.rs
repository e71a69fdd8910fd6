//! Waiting until an object is ready.

use std::time::Duration;

use jiff::Timestamp;
use objects::{
    ObjectRef,
    readiness::{self, Policy, Readiness},
};
use tokio::time::Instant;
use yaml::Value;

use crate::{Cluster, Error};

/// How to wait.
#[derive(Debug, Clone, Copy)]
pub struct WaitOptions {
    /// How long.
    pub limit: Duration,
}

/// How a wait ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited {
    /// The object is ready.
    Ready,
    /// It failed and will not become ready.
    Failed(Vec<String>),
    /// It was there and vanished.
    Disappeared,
    /// The time is over; what was last not ready about it.
    TimedOut(Vec<String>),
    /// The work was cancelled.
    Cancelled,
}

impl Cluster {
    /// Looks at a live object.
    ///
    /// # Errors
    /// When the API server can't be asked whether a status is to be expected.
    pub async fn readiness(&self, object: &Value, not_ready_is_error: bool) -> Result<Readiness, Error> {
        // A kind that has a status is nowhere looked up as long as the status is there.
        let status = match object.get("status") {
            Some(status) if !status.is_null() => readiness::StatusNeed::Required,
            _ => self.status_need(&ObjectRef::of(object)?).await?,
        };
        Ok(readiness::check(
            object,
            Policy {
                status,
                now: Timestamp::now(),
                not_ready_is_error,
            },
        ))
    }

    /// Waits until an object is ready. An object that is not there yet is waited for too.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn wait_ready(&self, reference: &ObjectRef, options: WaitOptions) -> Result<Waited, Error> {
        let deadline = Instant::now() + options.limit;
        let mut pause = Duration::from_millis(50);
        let (mut seen, mut last) = (false, vec![format!("{reference} does not exist")]);
        loop {
            match self.get(reference).await {
                Ok(Some(object)) => {
                    seen = true;
                    let readiness = self.readiness(&object, false).await?;
                    if !readiness.errors.is_empty() {
                        return Ok(Waited::Failed(readiness.errors));
                    }
                    if readiness.ready {
                        return Ok(Waited::Ready);
                    }
                    last = readiness.warnings;
                }
                Ok(None) if seen => return Ok(Waited::Disappeared),
                Ok(None) => {}
                Err(Error::Cancelled) => return Ok(Waited::Cancelled),
                Err(error) => return Err(error),
            }
            if Instant::now() + pause > deadline {
                return Ok(Waited::TimedOut(last));
            }
            if self.pause(pause).await.is_err() {
                return Ok(Waited::Cancelled);
            }
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }
}
