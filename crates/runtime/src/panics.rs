//! Where a panic happened, for the log: the text of a panic stays out of conditions and events.

use std::{cell::RefCell, future::Future, panic::AssertUnwindSafe};

use futures::FutureExt;

thread_local! {
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Makes panics lines of the log, and remembers where they happened.
pub(crate) fn install_hook() {
    std::panic::set_hook(Box::new(|info| {
        let place = info
            .location()
            .map_or_else(|| "?".to_owned(), |at| format!("{}:{}", at.file(), at.line()));
        tracing::error!(place, "a panic: please report it");
        PLACE.with_borrow_mut(|last| *last = Some(place));
    }));
}

/// Runs a future; a panic in it becomes the place where it happened.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|_| {
        PLACE
            .with_borrow_mut(Option::take)
            .unwrap_or_else(|| "an unknown place".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_a_value() {
        assert_eq!(caught(async { 5 }).await, Ok(5));
        assert!(
            caught(async { panic!("s3cret") })
                .await
                .is_err_and(|place: String| !place.contains("s3cret"))
        );
    }
}
