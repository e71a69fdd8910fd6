//! The tables of the database: events in pieces, and the ends of single deliveries.

use std::collections::BTreeMap;

use redb::{
    Database, Error, ReadTransaction, ReadableDatabase as _, ReadableTable as _, ReadableTableMetadata as _,
    Table, TableDefinition,
};

/// The payload of an event, by its ID and the number of the piece.
const EVENTS: TableDefinition<'_, (u64, u32), &[u8]> = TableDefinition::new("events");
/// Deliveries that have ended, of events that have not: ID of the event, delivery.
const DELIVERIES: TableDefinition<'_, (u64, u64), ()> = TableDefinition::new("ended-deliveries");

/// Maximum length of a piece. A value that doesn't fit into a page of 4 KiB takes a power of two of them; pieces leave less than a third unused.
const PIECE: usize = 1000;
/// Maximum length of an event that is read, in bytes.
const LONGEST: usize = 16 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Event(u64),
    /// One delivery of an event.
    Delivery(u64, u64),
}

impl Ended {
    pub(super) fn id(self) -> u64 {
        match self {
            Self::Event(id) | Self::Delivery(id, _) => id,
        }
    }
}

/// An event of an earlier process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Live<T> {
    pub(super) id: u64,
    pub(super) length: u32,
    pub(super) deliveries: Vec<u64>,
    pub(super) summary: T,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) events: usize,
    pub(super) bytes: u64,
}

/// Creates missing tables. Fails if the database has others of the same name.
pub(super) fn create(database: &Database) -> Result<(), Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(EVENTS)?;
    transaction.open_table(DELIVERIES)?;
    Ok(transaction.commit()?)
}

/// Adds events and records ends, which are on the disk when this returns the totals of the events that were removed.
/// Ends of single deliveries are left out if they are not retained.
pub(super) fn write(
    database: &Database,
    adds: &[(u64, Vec<u8>)],
    ended: &[Ended],
    retains: bool,
) -> Result<Totals, Error> {
    let transaction = database.begin_write()?;
    let mut removed = Totals::default();
    {
        let mut events = transaction.open_table(EVENTS)?;
        let mut deliveries = transaction.open_table(DELIVERIES)?;
        let mut has_deliveries = !deliveries.is_empty()?;
        for ended in ended {
            match *ended {
                Ended::Event(id) => {
                    if let Some(length) = remove(&mut events, id)? {
                        removed.events += 1;
                        removed.bytes += length;
                    }
                    if has_deliveries {
                        deliveries.retain_in((id, 0)..=(id, u64::MAX), |_, ()| false)?;
                    }
                }
                Ended::Delivery(id, delivery) => {
                    if retains && events.get((id, 0))?.is_some() {
                        deliveries.insert((id, delivery), ())?;
                        has_deliveries = true;
                    }
                }
            }
        }
        for (id, payload) in adds {
            for (number, piece) in (0..).zip(payload.chunks(PIECE)) {
                events.insert((*id, number), piece)?;
            }
        }
    }
    transaction.commit()?;
    Ok(removed)
}

/// Removes an event, and returns the length of its payload.
fn remove(events: &mut Table<'_, (u64, u32), &'static [u8]>, id: u64) -> Result<Option<u64>, Error> {
    let mut length = None;
    for number in 0..=u32::MAX {
        let Some(piece) = events.remove((id, number))? else {
            break;
        };
        let piece = piece.value().len();
        length = Some(length.unwrap_or_default() + piece as u64);
        if piece < PIECE {
            break;
        }
    }
    Ok(length)
}

/// Returns the payload of an event.
pub(super) fn read(transaction: &ReadTransaction, id: u64) -> Result<Option<Vec<u8>>, Error> {
    let events = transaction.open_table(EVENTS)?;
    let mut payload = Vec::new();
    for piece in events.range((id, 0)..=(id, u32::MAX))? {
        payload.extend_from_slice(piece?.1.value());
        if payload.len() > LONGEST {
            return Ok(None);
        }
    }
    Ok((!payload.is_empty()).then_some(payload))
}

/// Returns all events, the oldest first, each with the result of `summarize` for its payload.
pub(super) fn live<T>(database: &Database, summarize: impl Fn(&[u8]) -> T) -> Result<Vec<Live<T>>, Error> {
    let transaction = database.begin_read()?;
    let mut deliveries: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for row in transaction.open_table(DELIVERIES)?.iter()? {
        let (id, delivery) = row?.0.value();
        deliveries.entry(id).or_default().push(delivery);
    }
    let mut live = Vec::new();
    let mut last: Option<(u64, Vec<u8>)> = None;
    let mut end = |(id, payload): (u64, Vec<u8>)| {
        live.push(Live {
            id,
            length: u32::try_from(payload.len()).unwrap_or(u32::MAX),
            deliveries: deliveries.remove(&id).unwrap_or_default(),
            summary: summarize(&payload),
        });
    };
    for row in transaction.open_table(EVENTS)?.iter()? {
        let (key, piece) = row?;
        let (id, _) = key.value();
        match &mut last {
            Some((same, payload)) if *same == id => payload.extend_from_slice(piece.value()),
            _ => {
                if let Some(before) = last.replace((id, piece.value().to_vec())) {
                    end(before);
                }
            }
        }
    }
    if let Some(last) = last {
        end(last);
    }
    Ok(live)
}
