//! The steps of a delivery, which the type of the Provider makes. Pure, apart from the thread of large ones.

use std::sync::Arc;

use api::Event;
use limits::{INLINE_BYTES, compute, compute_sized};

use super::job::Delivery;
use crate::{
    error::Error,
    providers::{
        interface::{Config, Next, Step},
        status_id,
    },
};

/// Returns the first steps of a delivery, made on a thread if the event is large or the Provider has an expression.
pub(super) async fn first(
    delivery: &Delivery,
    event: &Event,
    mut config: Config,
) -> Result<Vec<Step>, Error> {
    let kind = delivery.kind;
    let metadata = event.metadata.iter();
    let size = event.message.len()
        + metadata
            .map(|(key, value)| key.len() + value.len())
            .sum::<usize>();
    let has_expression = delivery.provider.spec.commit_status_expr.is_some();
    if size <= INLINE_BYTES && !has_expression {
        return (kind.steps)(event, &config);
    }
    let (alert, provider) = (Arc::clone(&delivery.alert), Arc::clone(&delivery.provider));
    let (namespace, event) = (delivery.lane().namespace, event.clone());
    let made = compute(&namespace, move |_| {
        config.status_id = status_id::evaluate(&event, &alert, &provider)?;
        (kind.steps)(&event, &config)
    });
    made.await.unwrap_or(Err(Error::Busy))
}

/// Returns the steps that follow from a response of a Provider in `namespace`, made on a thread if it is large.
pub(super) async fn after(namespace: &str, answer: Vec<u8>, next: Next) -> Result<Vec<Step>, Error> {
    let next = compute_sized(namespace, answer.len(), move || next(&answer));
    next.await.unwrap_or(Err(Error::Busy))
}
