//! No template makes the renderer panic.
