//! A real control plane, Git server, webhook sink and builders for tests, the demo and benchmarks
