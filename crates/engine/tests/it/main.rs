//! The engine against a real control plane.

mod compare;
mod conflicts;
mod deploy;
mod faults;
mod identity;
mod prune;
mod readiness;
mod render;
mod world;
