//! The program, run as its users do.

#[cfg(test)]
mod build;
#[cfg(test)]
mod charts;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod fetch;
mod helm;
#[cfg(test)]
mod inflate;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod program;
