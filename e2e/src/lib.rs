//! Scenarios with the real binaries against a real control plane.
