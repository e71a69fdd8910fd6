//! Server-side apply, discovery, pruning, waiting, impersonation
