//! The stores, against a server that checks who asks.

#[cfg(test)]
mod fake;
#[cfg(test)]
mod stores;
