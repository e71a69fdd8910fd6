//! notification-controller.

fn main() {}
