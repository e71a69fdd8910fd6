//! Tests over real charts.

mod conformance;
mod options;
