//! The work of one directory: what it names, what it generates, and the transformers in their order.
