//! Flags that the commands of `weir create` share.

use anyhow::Result;
use api::GoDuration;
use clap::{
    Args,
    builder::{Resettable, Str},
};
use yaml::{Map, Value};

use crate::{
    commands::flux::{
        Flux, FluxFlags,
        steer::{
            fields::{Fields, Identity},
            words,
        },
    },
    usage::split_list,
};

/// Heading of flags that follow others with a heading.
pub(super) const NO_HEADING: Resettable<Str> = Resettable::Reset;

/// Flags of all commands that create objects.
#[derive(Args)]
pub(super) struct CreateFlags {
    /// Name of the object
    #[arg(value_name = "NAME", value_parser = name)]
    pub(super) name: String,
    /// Print the object as YAML instead of creating it
    #[arg(long, help_heading = "Output")]
    pub(super) export: bool,
    /// Labels of the object. Can be repeated
    #[arg(long, value_name = "NAME=VALUE,...", help_heading = NO_HEADING)]
    label: Vec<String>,
    #[command(flatten)]
    flux: FluxFlags,
}

#[derive(Args)]
pub(super) struct IntervalFlag {
    /// Interval of reconciliations
    #[arg(long, value_name = "DURATION", default_value = "1m", help_heading = NO_HEADING)]
    pub(super) interval: GoDuration,
}

/// An interval that has no meaning for an object.
#[derive(Args)]
pub(super) struct UnusedIntervalFlag {
    /// Accepted for compatibility with flux, whose commands all take it
    #[arg(long = "interval", hide = true)]
    _interval: Option<GoDuration>,
}

fn name(text: &str) -> Result<String> {
    words::check_name(text)?;
    Ok(text.to_owned())
}

impl CreateFlags {
    pub(super) fn labels(&self) -> Result<Map> {
        words::labels(&self.label)
    }

    /// Returns the namespace of the object, without a connection to the cluster.
    pub(super) fn namespace(&self) -> Result<String> {
        self.flux.namespace()
    }

    pub(super) fn open(&self) -> Result<Flux> {
        Flux::open(&self.flux)
    }

    /// Builds a Secret with the name, namespace and labels of the flags.
    pub(super) fn build(&self, build: impl FnOnce(&Identity<'_>) -> Result<Value>) -> Result<Value> {
        build(&Identity {
            name: &self.name,
            namespace: &self.namespace()?,
            labels: &self.labels()?,
        })
    }
}

/// Parses references to objects of the same kind, as `[NAMESPACE/]NAME`.
pub(super) fn depends_on(flags: &[String]) -> Result<Vec<Value>> {
    let reference = |text: &String| {
        let fields = match text.split_once('/') {
            Some((namespace, name)) => Fields::default().set("name", name).text("namespace", namespace),
            None => Fields::default().set("name", &**text),
        };
        Value::from(fields)
    };
    Ok(split_list(flags)?.iter().map(reference).collect())
}
