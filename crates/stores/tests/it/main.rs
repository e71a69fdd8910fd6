//! The stores, against a server that checks credentials.

#[cfg(test)]
mod fake;
#[cfg(test)]
mod stores;
