//! Posting events to the notification-controller, one after the other.

use std::time::Duration;

use api::Event;
use reqwest::{Client, StatusCode, redirect};
use url::Url;

use super::Inbox;
use crate::{error::Error, metrics::Metrics};

/// The longest wait for one answer.
const ANSWER: Duration = Duration::from_secs(5);
/// The pauses before the second and later attempts.
const PAUSES: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Taken,
    Duplicate,
    Refused,
    TryAgain,
}

fn meaning(status: StatusCode) -> Answer {
    match status {
        _ if status.is_success() => Answer::Taken,
        StatusCode::TOO_MANY_REQUESTS => Answer::Duplicate,
        StatusCode::NOT_IMPLEMENTED => Answer::Refused,
        _ if status.is_server_error() => Answer::TryAgain,
        _ => Answer::Refused,
    }
}

/// A client that follows no redirect: events go where the operator said.
pub(super) fn client() -> Result<Client, Error> {
    Client::builder()
        .timeout(ANSWER)
        .redirect(redirect::Policy::none())
        .no_proxy()
        .pool_max_idle_per_host(1)
        .build()
        .map_err(|error| Error::Client(error.to_string()))
}

/// Posts what comes out of the queue until nobody can put anything in.
pub(super) async fn post_events(client: Client, url: Url, mut events: Inbox<Event>, metrics: Metrics) {
    while let Some(event) = events.next().await {
        if !post(&client, &url, &event).await {
            metrics.event_dropped("webhook");
        }
    }
}

async fn post(client: &Client, url: &Url, event: &Event) -> bool {
    let object = &event.involved_object;
    let names = (
        object.kind.as_deref(),
        object.namespace.as_deref(),
        object.name.as_deref(),
    );
    let (Some(kind), Some(namespace), Some(name)) = names else {
        tracing::error!("an event without kind, namespace or name is not posted");
        return false;
    };
    let mut pauses = PAUSES.iter();
    loop {
        let why = match client
            .post(url.clone())
            .json(event)
            .send()
            .await
            .map(|answer| answer.status())
        {
            Err(error) => api::redact(&error.without_url().to_string()),
            Ok(status) => match meaning(status) {
                Answer::Taken => return true,
                Answer::Duplicate => {
                    tracing::debug!(
                        kind,
                        namespace,
                        name,
                        "the notification-controller has this event already"
                    );
                    return true;
                }
                Answer::Refused => {
                    tracing::error!(kind, namespace, name, %status, "the notification-controller refused an event");
                    return false;
                }
                Answer::TryAgain => format!("status {status}"),
            },
        };
        let Some(pause) = pauses.next() else {
            tracing::error!(
                kind,
                namespace,
                name,
                error = why,
                "cannot post an event to the notification-controller"
            );
            return false;
        };
        tokio::time::sleep(*pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_retried_or_final() {
        for (code, answer) in [
            (200, Answer::Taken),
            (202, Answer::Taken),
            (429, Answer::Duplicate),
            (400, Answer::Refused),
            (404, Answer::Refused),
            (500, Answer::TryAgain),
            (503, Answer::TryAgain),
            (501, Answer::Refused),
        ] {
            assert_eq!(meaning(StatusCode::from_u16(code).unwrap()), answer, "{code}");
        }
    }
}
