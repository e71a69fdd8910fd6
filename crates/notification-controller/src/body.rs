//! Reads request bodies within a limit for each and a limit for all together.

use std::sync::Arc;

use axum::body::{Body, HttpBody};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    TooLarge,
    /// All bodies together would exceed their limit.
    Overloaded,
    Broken,
}

/// Reads a body of at most `limit` bytes, each of which takes a permit of `bytes` that is returned with it.
pub(crate) async fn read(
    mut body: Body,
    limit: usize,
    bytes: &Arc<Semaphore>,
) -> Result<(Vec<u8>, OwnedSemaphorePermit), Refused> {
    // The announced length already says that it is too large.
    if body.size_hint().lower() > limit as u64 {
        return Err(Refused::TooLarge);
    }
    let mut share = reserve(bytes, 1)?;
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Refused::Broken)?.into_data() else {
            continue;
        };
        if read.len() + data.len() > limit {
            return Err(Refused::TooLarge);
        }
        share.merge(reserve(bytes, data.len())?);
        read.extend_from_slice(&data);
    }
    Ok((read, share))
}

fn reserve(bytes: &Arc<Semaphore>, count: usize) -> Result<OwnedSemaphorePermit, Refused> {
    let count = u32::try_from(count).map_err(|_| Refused::TooLarge)?;
    Arc::clone(bytes)
        .try_acquire_many_owned(count)
        .map_err(|_| Refused::Overloaded)
}

#[cfg(test)]
mod tests {
    use futures::stream;

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
        assert_eq!(read(chunks(&[50, 50]), 100, &bytes).await.unwrap().0.len(), 100);
        assert_eq!(
            read(chunks(&[50, 51]), 100, &bytes).await.unwrap_err(),
            Refused::TooLarge
        );
        assert_eq!(
            read(Body::from(vec![0; 101]), 100, &bytes).await.unwrap_err(),
            Refused::TooLarge
        );
        assert_eq!(bytes.available_permits(), 1000);
    }

    #[tokio::test]
    async fn all_bodies_share_one_limit() {
        let bytes = Arc::new(Semaphore::new(150));
        let (_, held) = read(chunks(&[100]), 100, &bytes).await.unwrap();
        assert_eq!(
            read(chunks(&[60]), 100, &bytes).await.unwrap_err(),
            Refused::Overloaded
        );
        drop(held);
        assert!(read(chunks(&[60]), 100, &bytes).await.is_ok());
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_refused() {
        let body = Body::from_stream(stream::iter([Ok(vec![1]), Err(std::io::Error::other("cut"))]));
        assert_eq!(
            read(body, 100, &Arc::new(Semaphore::new(100))).await.unwrap_err(),
            Refused::Broken
        );
    }
}
