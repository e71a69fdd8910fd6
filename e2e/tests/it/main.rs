//! Scenarios that need more than one controller.
