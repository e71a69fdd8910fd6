//! The kluctl-controller as a process, against a real API server; sources are played by the tests.

mod deploying;
mod failing;
mod removing;
mod sharing;
mod world;
