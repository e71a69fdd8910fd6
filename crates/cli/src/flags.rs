//! Flags that several commands share.

pub(crate) mod args;
mod cluster;
mod images;
mod inclusion;
mod operation;
pub(crate) mod output;
pub(crate) mod path;
mod project;
mod sources;

pub(crate) use cluster::{ClusterFlags, Connection};
pub(crate) use images::ImageFlags;
pub(crate) use inclusion::InclusionFlags;
pub(crate) use operation::{
    ApplyFlags, ConfirmFlags, IgnoreFlags, OutputFlags, RenderOutputFlag, ResultFlags, WaitFlags,
};
pub(crate) use project::{ProjectFlags, RenderInputFlags, TargetFlags, TerminalFlags, duration};
pub(crate) use sources::LocalSourceFlags;
