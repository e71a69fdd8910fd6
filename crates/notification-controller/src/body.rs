//! Reads request bodies within a limit for each, a quota for all together, and a slowest pace.

use std::{sync::Arc, time::Duration};

use axum::body::{Body, HttpBody};
use http_body_util::BodyExt;
use limits::RequestSlot;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

/// Maximum time of a body.
const TIME: Duration = Duration::from_secs(20);
/// Time that any body has before its pace counts.
const GRACE: Duration = Duration::from_secs(5);
/// Slowest pace after [`GRACE`], in bytes a second.
const SLOWEST: u32 = 16 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    TooLarge,
    /// The quota of its bytes is used up.
    Overloaded,
    /// It came too slowly.
    Slow,
    Broken,
}

/// The quota that the bytes of a body are taken from before they are held.
pub(crate) trait Quota {
    fn take(&mut self, bytes: usize) -> bool;
}

impl Quota for RequestSlot {
    fn take(&mut self, bytes: usize) -> bool {
        self.try_grow(bytes as u64)
    }
}

/// A quota of which each byte takes a permit.
#[derive(Debug)]
pub(crate) struct SharedBytes {
    bytes: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
}

impl SharedBytes {
    pub(crate) fn new(bytes: &Arc<Semaphore>) -> Self {
        Self {
            bytes: Arc::clone(bytes),
            taken: None,
        }
    }
}

impl Quota for SharedBytes {
    fn take(&mut self, bytes: usize) -> bool {
        let count = u32::try_from(bytes).ok();
        let more = count.and_then(|count| Arc::clone(&self.bytes).try_acquire_many_owned(count).ok());
        match (more, &mut self.taken) {
            (None, _) => false,
            (Some(more), Some(taken)) => {
                taken.merge(more);
                true
            }
            (Some(more), none) => {
                *none = Some(more);
                true
            }
        }
    }
}

/// Reads a body of at most `limit` bytes, which are taken from a quota.
pub(crate) async fn read(mut body: Body, limit: usize, quota: &mut impl Quota) -> Result<Vec<u8>, Refused> {
    // The announced length already says that it is too large.
    if body.size_hint().lower() > limit as u64 {
        return Err(Refused::TooLarge);
    }
    if !quota.take(1) {
        return Err(Refused::Overloaded);
    }
    let (start, mut read) = (Instant::now(), Vec::new());
    loop {
        let frame = timeout_at(start + time_of(read.len()), body.frame()).await;
        let Some(frame) = frame.map_err(|_| Refused::Slow)? else {
            return Ok(read);
        };
        let Ok(data) = frame.map_err(|_| Refused::Broken)?.into_data() else {
            continue;
        };
        if read.len() + data.len() > limit {
            return Err(Refused::TooLarge);
        }
        if !quota.take(data.len()) {
            return Err(Refused::Overloaded);
        }
        read.extend_from_slice(&data);
    }
}

/// Returns the time until which more than these bytes must have come.
fn time_of(bytes: usize) -> Duration {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    let paced = Duration::from_secs(1).saturating_mul(bytes) / SLOWEST;
    GRACE.saturating_add(paced).min(TIME)
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt as _, stream};
    use limits::RequestQuota;

    use super::*;

    fn chunks(sizes: &[usize]) -> Body {
        let chunks: Vec<_> = sizes
            .iter()
            .map(|size| Ok::<_, std::io::Error>(vec![b'x'; *size]))
            .collect();
        Body::from_stream(stream::iter(chunks))
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        let bytes = Arc::new(Semaphore::new(1000));
        let read = async |body| read(body, 100, &mut SharedBytes::new(&bytes)).await;
        assert_eq!(read(chunks(&[50, 50])).await.unwrap().len(), 100);
        assert_eq!(read(chunks(&[50, 51])).await, Err(Refused::TooLarge));
        assert_eq!(read(Body::from(vec![0; 101])).await, Err(Refused::TooLarge));
        assert_eq!(bytes.available_permits(), 1000);
    }

    #[tokio::test]
    async fn all_bodies_share_one_limit() {
        let bytes = Arc::new(Semaphore::new(150));
        let mut held = SharedBytes::new(&bytes);
        assert!(read(chunks(&[100]), 100, &mut held).await.is_ok());
        let other = read(chunks(&[60]), 100, &mut SharedBytes::new(&bytes)).await;
        assert_eq!(other, Err(Refused::Overloaded));
        drop(held);
        let other = read(chunks(&[60]), 100, &mut SharedBytes::new(&bytes)).await;
        assert!(other.is_ok());
    }

    #[tokio::test]
    async fn large_bodies_of_one_namespace_take_nothing_from_another() {
        let quota = RequestQuota::new(64, limits::ByteBudget::new(13 << 10));
        let mut greedy: Vec<_> = (0..9).map(|_| quota.start("greedy").unwrap()).collect();
        for slot in &mut greedy {
            assert!(read(chunks(&[90]), 100, slot).await.is_ok());
        }
        let mut more = quota.start("greedy").unwrap();
        assert_eq!(
            read(chunks(&[100]), 100, &mut more).await,
            Err(Refused::Overloaded)
        );
        let mut other = quota.start("other").unwrap();
        assert!(read(chunks(&[100]), 100, &mut other).await.is_ok());
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_refused() {
        let body = Body::from_stream(stream::iter([Ok(vec![1]), Err(std::io::Error::other("cut"))]));
        let bytes = Arc::new(Semaphore::new(100));
        let refused = read(body, 100, &mut SharedBytes::new(&bytes)).await;
        assert_eq!(refused, Err(Refused::Broken));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_bodies_are_given_up_and_those_of_a_slow_line_are_read() {
        let paced = |size: usize, count: usize| {
            let chunks = stream::iter(0..count).then(move |_| async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok::<_, std::io::Error>(vec![b'x'; size])
            });
            Body::from_stream(chunks)
        };
        let bytes = Arc::new(Semaphore::new(1 << 20));
        let start = Instant::now();
        let slow = read(paced(1, 3600), 1 << 20, &mut SharedBytes::new(&bytes)).await;
        assert_eq!(slow, Err(Refused::Slow));
        assert!(start.elapsed() <= Duration::from_secs(6), "{:?}", start.elapsed());
        let line = read(paced(20 << 10, 18), 1 << 20, &mut SharedBytes::new(&bytes)).await;
        assert_eq!(line.map(|read| read.len()), Ok(18 * (20 << 10)));
    }
}
