//! Artifacts: pack, store, serve, fetch
