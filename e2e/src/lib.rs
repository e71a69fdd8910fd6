//! Scenarios with the real binaries against a real control plane: the demo, injected faults, and the benchmark.

pub mod stage;
