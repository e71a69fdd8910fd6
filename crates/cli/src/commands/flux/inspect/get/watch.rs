//! `weir get --watch`.

use anyhow::Result;
use cluster::{Change, Changes};
use fleet::Kind;
use jiff::Timestamp;
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    Format, Get, GetArgs,
    find::{decode, row},
    print,
};
use crate::{
    commands::flux::{ByKind, Flux},
    output,
};

/// Changes that are read ahead.
const AHEAD: usize = 100;

/// Prints the objects, then each change, until the command is cancelled.
pub(super) async fn run(flux: &Flux, command: &ByKind<Get>) -> Result<()> {
    let args = &*command.args;
    let mut printer = Printer {
        args,
        tables: args.tables(false),
        has_header: false,
    };
    let mut watches = Vec::new();
    let mut first = Vec::new();
    for kind in &command.kinds {
        let resource = match flux.served(kind).await {
            Ok(resource) => resource,
            // Of kinds that share a word, one is enough.
            Err(_) if command.kinds.len() > 1 => continue,
            Err(error) => return Err(error),
        };
        let selection = args.selection(flux);
        let add = |json: &str| -> Result<(), anyhow::Error> {
            let object = json.to_owned();
            first.push((
                *kind,
                Change {
                    object,
                    is_deleted: false,
                },
            ));
            Ok(())
        };
        let version = flux.cluster.each_object(&resource, &selection, add).await?;
        watches.push((*kind, flux.cluster.changes(&resource, &selection, version)));
    }
    printer.print(first)?;
    let mut changes = join(watches);
    while let Some(change) = changes.receiver.recv().await {
        printer.print(vec![change?])?;
    }
    Ok(())
}

type Known = (&'static Kind, Change);

/// Watches that are read together.
struct Joined {
    receiver: mpsc::Receiver<Result<Known>>,
    /// Ends with the value.
    _readers: JoinSet<()>,
}

fn join(watches: Vec<(&'static Kind, Changes)>) -> Joined {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let mut readers = JoinSet::new();
    for (kind, mut changes) in watches {
        let sender = sender.clone();
        readers.spawn(async move {
            loop {
                let change = match changes.next().await {
                    Ok(change) => Ok((kind, change)),
                    // The requested end.
                    Err(cluster::Error::Cancelled) => return,
                    Err(error) => Err(error.into()),
                };
                let ends = change.is_err();
                if sender.send(change).await.is_err() || ends {
                    return;
                }
            }
        });
    }
    Joined {
        receiver,
        _readers: readers,
    }
}

struct Printer<'a> {
    args: &'a GetArgs,
    tables: print::Tables<'a>,
    has_header: bool,
}

impl Printer<'_> {
    fn print(&mut self, changes: Vec<Known>) -> Result<()> {
        let now = Timestamp::now();
        let mut text = String::new();
        let mut rows = Vec::new();
        for (kind, change) in changes {
            let object = decode(&change.object)?;
            if !self.args.accepts(kind, &object) {
                continue;
            }
            if let Some(format @ (Format::Json | Format::Yaml)) = self.args.output {
                if format == Format::Yaml {
                    text.push_str("---\n");
                }
                text.push_str(&print::text(format, print::whole(&change.object)?)?);
                continue;
            }
            let row = row(kind, object, now);
            rows.push((kind, if change.is_deleted { row.deleted() } else { row }));
        }
        for (kind, row) in rows {
            if self.args.output == Some(Format::Name) {
                text.push_str(&(row.resource_name() + "\n"));
                continue;
            }
            let cells = self.args.columns(false, kind).cells(kind, row);
            let table = self.tables.table(kind);
            match self.has_header {
                true => text.push_str(&table.later(cells)),
                false => table.push(cells),
            }
        }
        if !self.has_header {
            let first = self.tables.text();
            self.has_header = !first.is_empty();
            text.push_str(&first);
        }
        output::print(&text)
    }
}
