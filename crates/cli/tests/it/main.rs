//! Integration tests of the binary `weir`.

#[cfg(test)]
mod access;
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
#[cfg(test)]
mod flux;
#[cfg(test)]
mod gitops;
mod helm;
#[cfg(test)]
mod help;
#[cfg(test)]
mod inflate;
mod install;
#[cfg(test)]
mod life;
#[cfg(test)]
mod oci;
#[cfg(test)]
mod offline;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod program;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod renders;
#[cfg(test)]
mod results;
#[cfg(test)]
mod rights;
#[cfg(test)]
mod ssh;
#[cfg(test)]
mod waiting;
