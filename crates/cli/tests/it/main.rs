//! The program, run as its users do.

#[cfg(test)]
mod build;
#[cfg(test)]
mod fetch;
#[cfg(test)]
mod program;
