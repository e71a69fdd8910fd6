//! What templates may rely on, and how they fail.
