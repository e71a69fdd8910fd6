//! Posting events to the notification-controller, one after the other.

use std::time::Duration;

use api::Event;
use net::{AddressPolicy, Client, ClientOptions, Proxies, Timeouts};
use reqwest::{
    Method, Request, StatusCode,
    header::{CONTENT_TYPE, HeaderValue},
};
use url::Url;

use super::inbox::Inbox;
use crate::{error::Error, metrics::Metrics};

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The pauses before the second and later attempts.
const PAUSES: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];

/// Meaning of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Response {
    Accepted,
    Duplicate,
    Refused,
    Retry,
}

fn meaning(status: StatusCode) -> Response {
    match status {
        _ if status.is_success() => Response::Accepted,
        StatusCode::TOO_MANY_REQUESTS => Response::Duplicate,
        StatusCode::NOT_IMPLEMENTED => Response::Refused,
        _ if status.is_server_error() => Response::Retry,
        _ => Response::Refused,
    }
}

/// Makes a client that follows no redirect and uses no proxy: events go to the address that the operator chose.
pub(super) fn client() -> Result<Client, Error> {
    let options = ClientOptions {
        timeouts: Timeouts {
            connect: TIMEOUT,
            read: None,
            total: Some(TIMEOUT),
        },
        proxies: Proxies::Direct,
        idle_per_host: 1,
        ..ClientOptions::new(AddressPolicy::unrestricted())
    };
    options.build().map_err(|error| Error::Client(error.to_string()))
}

/// Posts the events of the queue until it ends.
pub(super) async fn post_events(client: Client, url: Url, mut events: Inbox<Event>, metrics: Metrics) {
    while let Some(event) = events.next().await {
        if !post(&client, &url, &event).await {
            metrics.event_dropped("webhook");
        }
    }
}

/// Posts an event; returns false if it was dropped.
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
    let Ok(body) = serde_json::to_vec(event) else {
        tracing::error!(
            kind,
            namespace,
            name,
            "an event that cannot be encoded is not posted"
        );
        return false;
    };
    let mut pauses = PAUSES.iter();
    loop {
        let mut request = Request::new(Method::POST, url.clone());
        request
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *request.body_mut() = Some(body.clone().into());
        let why = match client.send(request).await.map(|answer| answer.status()) {
            Err(error) => api::redact(&error.to_string()),
            Ok(status) => match meaning(status) {
                Response::Accepted => return true,
                Response::Duplicate => {
                    tracing::debug!(
                        kind,
                        namespace,
                        name,
                        "the notification-controller has this event already"
                    );
                    return true;
                }
                Response::Refused => {
                    tracing::error!(kind, namespace, name, %status, "the notification-controller refused an event");
                    return false;
                }
                Response::Retry => format!("status {status}"),
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
    fn meaning_separates_accepted_retried_and_refused() {
        for (code, response) in [
            (200, Response::Accepted),
            (202, Response::Accepted),
            (429, Response::Duplicate),
            (400, Response::Refused),
            (404, Response::Refused),
            (500, Response::Retry),
            (503, Response::Retry),
            (501, Response::Refused),
        ] {
            assert_eq!(meaning(StatusCode::from_u16(code).unwrap()), response, "{code}");
        }
    }
}
