//! Untyped Kubernetes objects: identity, order, diff, readiness
