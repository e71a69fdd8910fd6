//! Tests of the test kit itself: that its peers are real, and that they end with their owner.

mod git;
mod plane;
mod sink;
