//! The binary against a real API server and real webhooks.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests, too, fail by panicking"
)]

mod alerts;
mod backlog;
mod delivery;
mod endpoint;
mod extensions;
mod health;
mod identities;
mod journal;
mod nats;
mod outages;
mod proxies;
mod pubsub;
mod push;
mod receivers;
mod refusals;
mod schemas;
mod secrets;
mod senders;
mod setup;
mod tokens;
mod types;
mod webhooks;
