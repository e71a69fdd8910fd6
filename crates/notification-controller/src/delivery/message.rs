//! The event as a provider gets it: with the metadata of its Alert and its commit, and the message of the Alert's template.

use api::{Event, Reason, notification::Alert};

use super::{job::Delivery, reports::Reports};
use crate::{
    event::{self, object_name},
    extensions, template,
};

pub(super) async fn compose(delivery: &Delivery, reports: &Reports) -> Event {
    let alert = &delivery.alert;
    let mut combined = event::combine(&delivery.event, &alert.spec);
    reports.conflicts(alert, combined.conflicts);
    if extensions::asks_for_commits(alert) {
        event::add_commit(&mut combined.event, &delivery.event);
    }
    render(alert, &mut combined.event, reports).await;
    combined.event
}

/// Replaces the message of an event by the template of an Alert. If that fails, the message is unchanged.
async fn render(alert: &Alert, event: &mut Event, reports: &Reports) {
    let Some(text) = extensions::message_template(alert) else {
        return;
    };
    match template::render(text, alert, event).await {
        Ok(message) => event.message = message,
        Err(error) => {
            let message = format!(
                "the message about {} was sent as it is: {error}",
                object_name(event)
            );
            reports.warn(alert, Reason::InvalidConfig, message);
        }
    }
}
