//! The configurations that `generators`, `transformers` and `validators` name.
