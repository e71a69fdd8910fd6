//! kluctl-controller.

fn main() {}
