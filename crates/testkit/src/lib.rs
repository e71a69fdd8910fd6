//! Real servers and processes for the tests, the demo and the benchmarks: a Kubernetes control plane, a Git server, a
//! webhook sink, and our own controllers.
//!
//! The API server is a real one: [`ControlPlane`] runs etcd, kube-apiserver, kube-controller-manager,
//! kube-scheduler and kwok (which plays nodes and kubelets) as ordinary processes. They are built once from the Go
//! modules in `hack/` and kept in a cache.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use testkit::{ControlPlane, Controller, GitServer};
//!
//! let plane = ControlPlane::shared().await?; // one for the whole test run
//! let namespace = plane.namespace("shop").await?; // each test has its own
//! let git = GitServer::start()?;
//! let repo = git.repo("shop")?;
//! repo.commit("first", &[("deployment.yaml", "deployments: []\n")])?;
//! let source = Controller::named("source-controller").run_by(plane.kubeconfig()).start().await?;
//! plane.kubectl(&["get", "pods", "--namespace", &namespace]).await?;
//! source.terminate().await?;
//! # Ok(())
//! # }
//! ```
//!
//! The processes that a test starts end with it, even if it is killed: see [`process::Group`].

pub mod archive;
pub mod conformance;
pub mod controller;
pub mod controlplane;
mod debian;
pub mod flux;
pub mod flux_controllers;
pub mod fuzz;
pub mod git;
mod gobuild;
pub mod http;
pub mod http_proxy;
pub mod identities;
pub mod manifest;
pub mod nats;
pub mod nginx;
pub mod notation;
pub mod oracle;
pub mod ports;
pub mod process;
pub mod progress;
pub mod prometheus;
pub mod proxy;
mod python;
pub mod registry;
pub mod s3;
pub mod sigstore;
pub mod sink;
pub mod skipped;
pub mod ssh;
pub mod stack;
pub mod statuses;
pub mod storage;
pub mod tls;
pub mod wait;
pub mod web;

pub use controller::Controller;
pub use controlplane::{ControlPlane, LentPlane, Options, audit};
pub use git::{Fault, GitServer, Repo};
pub use gobuild::cache_dir;
pub use http_proxy::HttpProxy;
pub use identities::{CloudIdentities, CloudRegistries};
pub use manifest::Manifest;
pub use nats::{NatsMessage, NatsMessages, NatsServer};
pub use nginx::Nginx;
pub use notation::NotarySigner;
pub use prometheus::Prometheus;
pub use proxy::{FaultProxy, Outcome};
pub use registry::Registry;
pub use s3::{S3Options, S3Server};
pub use sigstore::Sigstore;
pub use sink::{Answer, Received, WebhookSink};
pub use ssh::{SshAgent, SshKeyPair, SshOptions, SshServer};
pub use stack::Stack;
pub use storage::CloudStorage;
pub use tls::Authority;
pub use wait::{WAIT_TIMEOUT, eventually, ready, wait_for, wait_gone};
pub use web::{Page, WebServer};
