//! The value of a replacement, and its write into a field.

use yaml::{Node, node::Text};

use super::{meter::Meter, target::Found};
use crate::{
    Error,
    error::Step,
    lookup::{has_type, raw_text},
    measure::{NODE_SIZE, measure},
    model::FieldOptions,
};

pub(super) struct SourceValue {
    node: Node,
    /// Number of levels.
    depth: usize,
    /// Approximate number of bytes.
    size: usize,
}

impl SourceValue {
    pub(super) fn new(node: Node) -> Self {
        let (depth, size) = measure(&node);
        Self { node, depth, size }
    }

    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// Writes the value into a field, or into a piece of it.
    pub(super) fn put(
        &self,
        found: &mut Found<'_>,
        options: Option<&FieldOptions>,
        meter: &Meter<'_>,
    ) -> Result<(), Error> {
        let Some(options) = options.filter(|options| !options.delimiter.is_empty()) else {
            return self.put_plainly(found, meter);
        };
        if found.node.as_scalar().is_none() {
            return Err(only_scalars());
        }
        let is_null = self.node.is_null() && has_type(&self.node);
        let value = if is_null { "" } else { raw_text(&self.node) };
        let text = raw_text(found.node);
        meter.work(text.len())?;
        meter.grow(value.len() + options.delimiter.len())?;
        let mut pieces: Vec<&str> = text.split(options.delimiter.as_str()).collect();
        match usize::try_from(options.index) {
            Err(_) => pieces.insert(0, value),
            Ok(index) => match pieces.get_mut(index) {
                Some(piece) => *piece = value,
                None => pieces.push(value),
            },
        }
        let joined = pieces.join(&options.delimiter);
        write(found.node, joined.into());
        Ok(())
    }

    /// Writes the value into a field as it is. A scalar keeps its type and gets the content alone, which is empty for a
    /// missing value.
    pub(super) fn put_plainly(&self, found: &mut Found<'_>, meter: &Meter<'_>) -> Result<(), Error> {
        meter.work(1 + self.size / NODE_SIZE)?;
        if found.node.as_scalar().is_some() {
            let text = raw_text(&self.node);
            meter.grow(text.len())?;
            write(found.node, text.into());
            return Ok(());
        }
        meter.grow(self.size)?;
        meter.nest(found.depth + self.depth)?;
        *found.node = self.node.clone();
        found.node.unshare();
        Ok(())
    }
}

/// Returns the piece of a source that its options name.
pub(super) fn refine(node: &Node, options: Option<&FieldOptions>, is_secret: bool) -> Result<Node, Error> {
    let Some(options) = options.filter(|options| !options.delimiter.is_empty()) else {
        return Ok(node.clone());
    };
    if node.as_scalar().is_none() {
        return Err(only_scalars());
    }
    let text = raw_text(node);
    let index = usize::try_from(options.index).ok();
    let found = index.and_then(|index| text.split(options.delimiter.as_str()).nth(index));
    let Some(found) = found else {
        let printed = if is_secret { "of a secret" } else { text };
        let index = options.index;
        let problem = format!("options.index {index} is out of bounds for value {printed}");
        return Err(Error::new(Step::Replacement, problem));
    };
    let mut piece = node.clone();
    write(&mut piece, found.into());
    Ok(piece)
}

/// Sets the content of a scalar without its type. A plain scalar that was read keeps its resolved type; one that the build
/// made is resolved from its content.
pub(super) fn write(node: &mut Node, text: Text) {
    let has_type = has_type(node);
    if let Some(scalar) = node.as_scalar_mut() {
        if has_type {
            scalar.tag = Some(scalar.kind());
        }
        scalar.text = text;
    }
}

fn only_scalars() -> Error {
    Error::new(
        Step::Replacement,
        "delimiter option can only be used with scalar nodes",
    )
}
