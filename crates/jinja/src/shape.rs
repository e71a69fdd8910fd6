//! What values hold when a part that they share counts as often as it is reached, and comparing them.
//!
//! A few rounds of `[x, x]` make a value that takes little memory and no end of time. Here everything that walks
//! through values counts its steps, looks at the clock, and goes no deeper than the stack allows.

use std::{cell::RefCell, cmp::Ordering};

use minijinja::{Error, Value as Dynamic, tests::is_sameas, value::ValueKind};

use crate::{
    account::{self, ITEM},
    functions::{Cycler, fail, type_name},
    lists::Group,
};

/// How deep a value may nest.
pub(crate) const MAX_DEPTH: u32 = 200;

/// How many parts a key of a map may have.
const MAX_KEY: usize = 1_000;

/// How often a namespace may be put into another one.
const MAX_HELD: u64 = 500;

/// How many values are remembered; what a loop appends to is among them.
const REMEMBERED: usize = 8;

/// Values with at least this many items are remembered.
const WORTH: usize = 32;

/// What a walk through a value found.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Shape {
    parts: usize,
    depth: u32,
    namespaces: usize,
    loops: usize,
    /// Whether it came upon one of the values that it looked for.
    found: bool,
}

#[derive(Default)]
struct Memory {
    shapes: Vec<(Dynamic, Shape)>,
    next: usize,
    held: u64,
}

thread_local! {
    static MEMORY: RefCell<Memory> = RefCell::default();
}

/// Forgets the values of the template before.
pub(crate) fn forget() {
    // What is dropped here may be large, but it is no deeper than allowed.
    let old = MEMORY.with_borrow_mut(std::mem::take);
    drop(old);
}

fn remembered(value: &Dynamic) -> Option<Shape> {
    MEMORY.with_borrow(|memory| {
        let known = memory.shapes.iter().find(|(known, _)| is_sameas(known, value));
        known.map(|(_, shape)| *shape)
    })
}

/// Keeps the shape of a value that can't change.
fn remember(value: &Dynamic, shape: Shape) {
    if shape.parts < WORTH || shape.namespaces > 0 || shape.loops > 0 {
        return;
    }
    let old = MEMORY.with_borrow_mut(|memory| {
        let entry = (value.clone(), shape);
        let next = memory.next;
        memory.next = (next + 1) % REMEMBERED;
        match memory.shapes.get_mut(next) {
            Some(place) => Some(std::mem::replace(place, entry)),
            None => {
                memory.shapes.push(entry);
                None
            }
        }
    });
    drop(old);
}

/// Keeps the shape of a list that holds the items of two others, or of a map that holds their entries.
pub(crate) fn remember_joined(joined: &Dynamic, left: &Dynamic, right: &Dynamic) {
    let known = |value: &Dynamic| match value.len() {
        Some(0) => Some(Shape::default()),
        Some(length) if length >= WORTH => remembered(value),
        _ => remembered(value).or_else(|| measure(value).ok()),
    };
    if let (Some(left), Some(right)) = (known(left), known(right)) {
        let shape = Shape {
            parts: left.parts.saturating_add(right.parts),
            depth: left.depth.max(right.depth),
            namespaces: left.namespaces + right.namespaces,
            loops: left.loops + right.loops,
            found: false,
        };
        remember(joined, shape);
    }
}

pub(crate) fn too_deep() -> Error {
    account::reached("levels that a value of a template nests", u64::from(MAX_DEPTH))
}

fn is_list(value: &Dynamic) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

fn is_map(value: &Dynamic) -> bool {
    value.kind() == ValueKind::Map
}

/// Whether a value has parts.
pub(crate) fn is_composite(value: &Dynamic) -> bool {
    is_list(value) || is_map(value) || value.downcast_object_ref::<Cycler>().is_some()
}

/// The engine's own types are known by their names only.
fn is_engine(value: &Dynamic, name: &str) -> bool {
    let object = value.as_object();
    object.is_some_and(|object| {
        object.type_name().starts_with("minijinja::") && object.type_name().ends_with(name)
    })
}

struct Walk<'a> {
    shape: Shape,
    wanted: &'a [Dynamic],
}

impl Walk<'_> {
    fn count(&mut self, parts: usize) -> Result<(), Error> {
        self.shape.parts = self.shape.parts.saturating_add(parts);
        account::fits(self.shape.parts.saturating_mul(ITEM))
    }

    fn visit(&mut self, value: &Dynamic, depth: u32) -> Result<(), Error> {
        account::step(1)?;
        self.count(1)?;
        if !is_composite(value) {
            return Ok(());
        }
        if depth >= MAX_DEPTH {
            return Err(too_deep());
        }
        if let Some(known) = remembered(value) {
            self.reach(depth + known.depth)?;
            return self.count(known.parts);
        }
        self.reach(depth + 1)?;
        if let Some(cycler) = value.downcast_object_ref::<Cycler>() {
            return cycler
                .items
                .iter()
                .try_for_each(|item| self.visit(item, depth + 1));
        }
        if let Some(group) = value.downcast_object_ref::<Group>() {
            self.visit(&group.grouper, depth + 1)?;
            return group.list.iter().try_for_each(|item| self.visit(item, depth + 1));
        }
        if is_list(value) {
            for item in value.try_iter()?.checked() {
                self.visit(&item?, depth + 1)?;
            }
            return Ok(());
        }
        self.map(value, depth)
    }

    fn map(&mut self, value: &Dynamic, depth: u32) -> Result<(), Error> {
        if is_engine(value, "::Loop") {
            // What it goes through is a value of the template by itself.
            self.shape.loops += 1;
            return Ok(());
        }
        if is_engine(value, "::Namespace") {
            self.shape.namespaces += 1;
            self.shape.found |= self.wanted.iter().any(|wanted| is_sameas(wanted, value));
        }
        for key in value.try_iter()?.checked() {
            let key = key?;
            self.visit(&key, depth + 1)?;
            self.visit(&value.get_item(&key)?, depth + 1)?;
        }
        Ok(())
    }

    fn reach(&mut self, depth: u32) -> Result<(), Error> {
        self.shape.depth = self.shape.depth.max(depth);
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        Ok(())
    }
}

fn measure_for(value: &Dynamic, wanted: &[Dynamic]) -> Result<Shape, Error> {
    if !is_composite(value) {
        return Ok(Shape::default());
    }
    if let Some(shape) = remembered(value) {
        return Ok(shape);
    }
    let shape = Shape::default();
    let mut walk = Walk { shape, wanted };
    walk.visit(value, 0)?;
    remember(value, walk.shape);
    Ok(walk.shape)
}

fn measure(value: &Dynamic) -> Result<Shape, Error> {
    measure_for(value, &[])
}

/// Fails when a value is too large or too deep, with all that it shares.
pub(crate) fn whole(value: &Dynamic) -> Result<(), Error> {
    measure(value).map(|_| ())
}

/// Checks a value that becomes a part of the namespaces `into`.
pub(crate) fn held(value: &Dynamic, into: &[Dynamic]) -> Result<(), Error> {
    let shape = measure_for(value, into)?;
    if shape.loops > 0 {
        return Err(fail("NotImplementedError: a namespace can't hold a loop"));
    }
    if shape.found {
        return Err(fail("ValueError: a namespace can't hold itself"));
    }
    if shape.namespaces == 0 {
        return Ok(());
    }
    let held = MEMORY.with_borrow_mut(|memory| {
        memory.held += 1;
        memory.held
    });
    if held > MAX_HELD {
        return Err(account::reached("namespaces in other ones", MAX_HELD));
    }
    Ok(())
}

/// Checks a key that is put into a map.
pub(crate) fn new_key(key: &Dynamic) -> Result<(), Error> {
    if is_composite(key) && !key.is_tuple() {
        return Err(fail(format!("TypeError: unhashable type: '{}'", type_name(key))));
    }
    if measure(key)?.parts > MAX_KEY {
        return Err(account::reached("parts of a key", MAX_KEY as u64));
    }
    Ok(())
}

/// Counts a look at two values that are compared.
fn look(a: &Dynamic, b: &Dynamic, depth: u32) -> Result<(), Error> {
    let length = |value: &Dynamic| value.as_str().map_or(0, str::len);
    account::step(1 + length(a).min(length(b)) as u64 / 64)?;
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    Ok(())
}

/// Whether two values are equal, as the engine sees it.
pub(crate) fn equal(a: &Dynamic, b: &Dynamic) -> Result<bool, Error> {
    equal_at(a, b, 0)
}

fn equal_at(a: &Dynamic, b: &Dynamic, depth: u32) -> Result<bool, Error> {
    look(a, b, depth)?;
    let lists = is_list(a) && is_list(b);
    if !(lists || is_map(a) && is_map(b)) {
        return Ok(!(is_composite(a) && is_composite(b)) && a == b);
    }
    if a.is_tuple() != b.is_tuple() {
        return Ok(false);
    }
    if is_sameas(a, b) {
        return Ok(true);
    }
    if let (Some(left), Some(right)) = (a.len(), b.len())
        && left != right
    {
        return Ok(false);
    }
    if lists {
        let (mut left, mut right) = (a.try_iter()?.checked(), b.try_iter()?.checked());
        loop {
            match (left.next().transpose()?, right.next().transpose()?) {
                (None, None) => return Ok(true),
                (Some(a), Some(b)) if equal_at(&a, &b, depth + 1)? => {}
                _ => return Ok(false),
            }
        }
    }
    for key in a.try_iter()?.checked() {
        let key = key?;
        if !equal_at(&a.get_item(&key)?, &b.get_item(&key)?, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The order of two values, as the engine sees it.
pub(crate) fn order(a: &Dynamic, b: &Dynamic) -> Result<Ordering, Error> {
    order_at(a, b, 0)
}

fn order_at(a: &Dynamic, b: &Dynamic, depth: u32) -> Result<Ordering, Error> {
    look(a, b, depth)?;
    let (lists, maps) = (is_list(a) && is_list(b), is_map(a) && is_map(b));
    if a.kind() != b.kind() || !lists && !maps {
        return Ok(a.kind().cmp(&b.kind()).then_with(|| a.cmp(b)));
    }
    let tuples = a.is_tuple().cmp(&b.is_tuple());
    if tuples != Ordering::Equal || is_sameas(a, b) {
        return Ok(tuples);
    }
    let (mut left, mut right) = (a.try_iter()?.checked(), b.try_iter()?.checked());
    loop {
        let (one, other) = match (left.next().transpose()?, right.next().transpose()?) {
            (None, None) => return Ok(Ordering::Equal),
            (None, _) => return Ok(Ordering::Less),
            (_, None) => return Ok(Ordering::Greater),
            (Some(one), Some(other)) => (one, other),
        };
        let mut found = order_at(&one, &other, depth + 1)?;
        if maps && found == Ordering::Equal {
            found = order_at(&a.get_item(&one)?, &b.get_item(&other)?, depth + 1)?;
        }
        if found != Ordering::Equal {
            return Ok(found);
        }
    }
}

/// Whether `list` has an item that is equal to `value`.
pub(crate) fn place_of(list: &Dynamic, value: &Dynamic) -> Result<Option<usize>, Error> {
    for (place, item) in list.try_iter()?.checked().enumerate() {
        if equal(&item?, value)? {
            return Ok(Some(place));
        }
    }
    Ok(None)
}
