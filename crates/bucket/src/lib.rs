//! Lists and reads buckets of S3-compatible services, Google Cloud Storage and Azure Blob Storage.
//!
//! [`Settings`] name a bucket and the credentials for it; [`Bucket::connect`] obtains the credentials and makes the clients. A bucket that is
//! written to is an [`s3::Store`]. Answers of servers are bounded: a page of a listing is read whole, the content of an object piece by
//! piece. The URLs of requests, and the listings, are made and read by pure functions.
//!
//! ```no_run
//! use bucket::{Bucket, Context, Service, Settings, s3};
//!
//! # async fn example() -> Result<(), bucket::Error> {
//! let settings = Settings {
//!     name: "shop".to_owned(),
//!     service: Service::S3(s3::Location::new("minio.example:9000", s3::Login::Anonymous, false)?),
//!     tls: net::Tls::default(),
//!     proxy: None,
//! };
//! let bucket = Bucket::connect(&settings, &Context::new(net::AddressPolicy::command_line())).await?;
//! let mut page = bucket.list("deploy/", None).await?;
//! for entry in page.entries.drain(..) {
//!     println!("{} {}", entry.key, entry.etag);
//! }
//! # Ok(())
//! # }
//! ```

pub mod azure;
mod client;
mod context;
mod encode;
mod error;
#[cfg(test)]
mod fuzz;
pub mod gcs;
mod http;
mod listing;
pub mod s3;
mod xml;

pub use client::{Bucket, Object, Service, Settings};
pub use context::Context;
pub use error::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    /// Without quotes. Changes with the content.
    pub etag: String,
    /// Bytes of the content; 0 if the listing doesn't have it.
    pub size: u64,
    /// Version of the content, if reading needs it.
    pub version: Option<String>,
}

impl Entry {
    #[must_use]
    pub fn named(key: &str) -> Self {
        Self {
            key: key.to_owned(),
            etag: String::new(),
            size: 0,
            version: None,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListPage {
    pub entries: Vec<Entry>,
    /// Token of the next page; `None` for the last one.
    pub next: Option<String>,
}
