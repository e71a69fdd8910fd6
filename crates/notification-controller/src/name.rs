//! The name of the controller, in events, field managers and metrics.

pub const NAME: &str = "notification-controller";
