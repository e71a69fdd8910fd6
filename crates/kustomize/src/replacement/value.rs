//! The value of a replacement, and how it is written into a field.

use yaml::{
    Node,
    node::{Content, Scalar},
};

use super::target::{Found, Meter, NODE_SIZE};
use crate::{Error, error::Step, lookup::raw_text, model::FieldOptions};

/// The value of a replacement, measured.
pub(super) struct Source {
    node: Node,
    /// How many levels it has.
    depth: usize,
    /// About how many bytes it takes.
    size: usize,
}

impl Source {
    pub(super) fn new(node: Node) -> Self {
        let (depth, size) = measure(&node);
        Self { node, depth, size }
    }

    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// Writes the value into a field, or into a piece of its text.
    pub(super) fn put(
        &self,
        found: Found<'_>,
        options: Option<&FieldOptions>,
        meter: &Meter<'_>,
    ) -> Result<(), Error> {
        let Some(options) = options.filter(|options| !options.delimiter.is_empty()) else {
            return self.put_plainly(found, meter);
        };
        let Some(scalar) = found.node.as_scalar_mut() else {
            return Err(only_scalars());
        };
        let value = if self.node.is_null() {
            ""
        } else {
            raw_text(&self.node)
        };
        meter.work(scalar.text.len())?;
        meter.grow(value.len() + options.delimiter.len())?;
        let mut pieces: Vec<&str> = scalar.text.split(options.delimiter.as_str()).collect();
        match usize::try_from(options.index) {
            Err(_) => pieces.insert(0, value),
            Ok(index) => match pieces.get_mut(index) {
                Some(piece) => *piece = value,
                None => pieces.push(value),
            },
        }
        let joined = pieces.join(&options.delimiter);
        write(scalar, joined.into(), found.fresh);
        Ok(())
    }

    /// Writes the value into a field as it is. A scalar keeps its type and gets the text alone, which is empty when the
    /// value is none.
    pub(super) fn put_plainly(&self, found: Found<'_>, meter: &Meter<'_>) -> Result<(), Error> {
        meter.work(1 + self.size / NODE_SIZE)?;
        if let Some(scalar) = found.node.as_scalar_mut() {
            let text = raw_text(&self.node);
            meter.grow(text.len())?;
            write(scalar, text.into(), found.fresh);
            return Ok(());
        }
        meter.grow(self.size)?;
        meter.nest(found.depth + self.depth)?;
        found.node.content = self.node.content.clone();
        Ok(())
    }
}

/// The piece of a source that its options name.
pub(super) fn refine(node: &Node, options: Option<&FieldOptions>, is_secret: bool) -> Result<Node, Error> {
    let Some(options) = options.filter(|options| !options.delimiter.is_empty()) else {
        return Ok(node.clone());
    };
    let mut piece = node.clone();
    let Some(scalar) = piece.as_scalar_mut() else {
        return Err(only_scalars());
    };
    let index = usize::try_from(options.index).ok();
    let found = index.and_then(|index| scalar.text.split(options.delimiter.as_str()).nth(index));
    let Some(found) = found.map(Box::<str>::from) else {
        let shown = if is_secret { "of a secret" } else { &scalar.text };
        let index = options.index;
        let problem = format!("options.index {index} is out of bounds for value {shown}");
        return Err(Error::new(Step::Replacement, problem));
    };
    write(scalar, found, false);
    Ok(piece)
}

/// Fixes the type that plain text has by its looks, so that another text has it too.
pub(super) fn freeze(scalar: &mut Scalar) {
    scalar.tag = Some(scalar.kind());
}

fn write(scalar: &mut Scalar, text: Box<str>, fresh: bool) {
    // What was just created has the type that its text looks like.
    if !fresh {
        freeze(scalar);
    }
    scalar.text = text;
}

fn only_scalars() -> Error {
    Error::new(
        Step::Replacement,
        "delimiter option can only be used with scalar nodes",
    )
}

/// Levels and bytes of a node; it is not nested deeper than documents may be.
fn measure(node: &Node) -> (usize, usize) {
    let add = |(depth, size): (usize, usize), (key, child): (&str, &Node)| {
        let (below, bytes) = measure(child);
        (depth.max(below + 1), size + bytes + key.len())
    };
    let own = (0, NODE_SIZE);
    match &node.content {
        Content::Scalar(scalar) => (0, NODE_SIZE + scalar.text.len()),
        Content::Seq(items) => items.iter().map(|item| ("", item)).fold(own, add),
        Content::Map(map) => map.iter().fold(own, add),
    }
}
