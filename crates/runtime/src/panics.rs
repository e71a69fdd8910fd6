//! Catching panics. Conditions and events report only the location, never the message.

use std::{cell::RefCell, future::Future, panic::AssertUnwindSafe};

use futures::FutureExt;

thread_local! {
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

pub(crate) fn install_hook() {
    std::panic::set_hook(Box::new(|info| {
        let location = info
            .location()
            .map_or_else(|| "?".to_owned(), |at| format!("{}:{}", at.file(), at.line()));
        tracing::error!(location, "a panic: please report it");
        LOCATION.with_borrow_mut(|last| *last = Some(location));
    }));
}

/// Runs a future; returns the location of a panic in it as error. It takes a pinned one, because a future that is given by value needs its
/// space in the caller and in this function.
pub(crate) async fn caught<T>(work: impl Future<Output = T> + Unpin) -> Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|_| {
        LOCATION
            .with_borrow_mut(Option::take)
            .unwrap_or_else(|| "an unknown location".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn caught_returns_the_location_of_a_panic() {
        assert_eq!(caught(Box::pin(async { 5 })).await, Ok(5));
        assert!(
            caught(Box::pin(async { panic!("s3cret") }))
                .await
                .is_err_and(|location: String| !location.contains("s3cret"))
        );
    }
}
