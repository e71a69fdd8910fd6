//! Buckets of a real S3-compatible server, and of services that check requests.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests, outside of test functions"
)]

mod clouds;
mod s3;

use api::Secret;
use bucket::{Bucket, Context, Entry, Error, Service, Settings};
use net::{AddressPolicy, Tls};

fn settings(name: &str, service: Service) -> Settings {
    Settings {
        name: name.to_owned(),
        service,
        tls: Tls::default(),
        proxy: None,
    }
}

fn context() -> Context {
    Context::new(AddressPolicy::command_line())
}

async fn connect(settings: &Settings) -> Bucket {
    Bucket::connect(settings, &context()).await.unwrap()
}

async fn list(bucket: &Bucket, prefix: &str) -> Vec<Entry> {
    let (mut entries, mut token) = (Vec::new(), None);
    loop {
        let page = bucket.list(prefix, token.as_deref()).await.unwrap();
        entries.extend(page.entries);
        token = page.next;
        if token.is_none() {
            return entries;
        }
    }
}

fn keys(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.key.as_str()).collect()
}

/// Returns the tag and the content of an object; `None` if it is missing.
async fn read(bucket: &Bucket, entry: &Entry) -> Option<(String, String)> {
    let mut object = bucket.get(entry).await.unwrap()?;
    let mut content = Vec::new();
    while let Some(chunk) = object.chunk().await.unwrap() {
        content.extend_from_slice(&chunk);
    }
    Some((object.etag().to_owned(), String::from_utf8(content).unwrap()))
}

fn secret(text: &str) -> Secret<String> {
    Secret::new(text.to_owned())
}

async fn refusal(settings: &Settings) -> String {
    let failed = |error: Error| {
        let message = error.to_string();
        assert!(!format!("{message} {error:?}").contains("s3cret"), "{error:?}");
        message
    };
    match Bucket::connect(settings, &context()).await {
        Err(error) => failed(error),
        Ok(mut bucket) => failed(bucket.exists("").await.unwrap_err()),
    }
}
