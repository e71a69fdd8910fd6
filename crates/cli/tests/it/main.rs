//! The program, run as its users do.

#[cfg(test)]
mod build;
