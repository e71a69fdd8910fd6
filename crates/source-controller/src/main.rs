//! source-controller.

fn main() {}
