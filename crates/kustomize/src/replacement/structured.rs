//! Paths that continue inside of a scalar that is YAML or JSON: it is parsed, changed and printed again.

use yaml::{
    Node,
    node::{Content, Scalar},
};

use super::{
    meter::{Meter, parse},
    path::Path,
    target::{ContentKind, Walk},
    value::{SourceValue, write},
};
use crate::{
    Error,
    error::Step,
    lookup::{self, Leads, raw_text},
    resource::Written,
};

/// Sets a path in the content of a scalar. Returns false, without a change, if no such scalar is on the path or the write
/// fails for any reason.
pub(super) fn set(
    object: &mut Node,
    source: &SourceValue,
    path: &Path<'_>,
    create: Option<ContentKind>,
    meter: &Meter<'_>,
    written: &mut Written,
) -> Result<bool, Error> {
    let Some((indices, used)) = find(object, path, meter)? else {
        return Ok(false);
    };
    let scalar = indices
        .iter()
        .try_fold(object, |node, index| lookup::child_mut(node, *index));
    let Some(scalar) = scalar else {
        return Ok(false);
    };
    match changed(raw_text(scalar), used, source, path, create, meter) {
        Ok(Some(text)) => {
            written.write(scalar, |scalar| write(scalar, text.into()));
            Ok(true)
        }
        Ok(None) => Ok(false),
        // quirk: the reason is not reported.
        Err(error) if error.exceeded().is_none() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Finds the first scalar on a path whose content is YAML: its indices from the object down, and the number of path elements
/// to it.
fn find(object: &Node, path: &Path<'_>, meter: &Meter<'_>) -> Result<Option<(Vec<usize>, usize)>, Error> {
    let mut node = object;
    let mut indices = Vec::new();
    for (index, element) in path.elements.iter().enumerate() {
        let used = index + 1;
        if used == path.elements.len() {
            break;
        }
        match lookup::step(node, element) {
            Ok(Leads::Stay) => {}
            Ok(Leads::Down(index)) => {
                let Some(child) = lookup::child(node, index) else {
                    break;
                };
                node = child;
                indices.push(index);
            }
            Ok(Leads::Nowhere) | Err(_) => break,
        }
        if node.as_scalar().is_some() {
            meter.work(raw_text(node).len())?;
            match parse(raw_text(node), meter) {
                Ok(_) => return Ok(Some((indices, used))),
                Err(error) if error.exceeded().is_some() => return Err(error),
                Err(_) => {}
            }
        }
    }
    Ok(None)
}

/// Returns the content with the value in it; `None` if the path doesn't fit.
fn changed(
    before: &str,
    used: usize,
    source: &SourceValue,
    path: &Path<'_>,
    create: Option<ContentKind>,
    meter: &Meter<'_>,
) -> Result<Option<String>, Error> {
    let Some(mut node) = parse(before, meter)? else {
        return Ok(None);
    };
    let original = node.clone();
    let rest = path.parts.get(used..).unwrap_or_default();
    let walk = Walk { create, meter };
    let found = walk.visit(&mut node, rest, 0, &mut |found| source.put_plainly(found, meter))?;
    if found == 0 {
        return Ok(None);
    }
    let printed = if before.trim_start().starts_with(['{', '[']) {
        json(node, before)
    } else {
        yaml_text(before, &original, &node, meter)
    };
    printed
        .map(Some)
        .map_err(|error| Error::new(Step::Replacement, error))
}

fn yaml_text(before: &str, original: &Node, node: &Node, meter: &Meter<'_>) -> Result<String, yaml::Error> {
    let text = yaml::print::restyled(before, original, node, meter.run.budget)?;
    Ok(text.trim().to_owned())
}

/// Prints a node as JSON: on one line, or indented if the content was.
fn json(mut node: Node, before: &str) -> Result<String, yaml::Error> {
    quote_empty(&mut node);
    let value = node.into_value()?;
    let compact = yaml::print::json_sorted_html(&value);
    if before.contains('\n') && before.contains("  ") {
        return Ok(indented(&compact));
    }
    Ok(compact)
}

/// Converts nulls without characters to empty strings: between brackets, they are printed in quotes before they become JSON.
fn quote_empty(node: &mut Node) {
    match &mut node.content {
        Content::Scalar(scalar) if scalar.text.is_empty() && scalar.is_null() => *scalar = Scalar::string(""),
        Content::Scalar(_) => {}
        Content::Seq(items) => items.iter_mut().for_each(quote_empty),
        Content::Map(map) => map.values_mut().for_each(quote_empty),
    }
}

/// Indents compact JSON with a line for every entry, as Go does: empty maps and lists stay on one line.
fn indented(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() * 2);
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    let mut chars = compact.chars().peekable();
    let newline = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(c) = chars.next() {
        if in_text {
            out.push(c);
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => {
                out.push(c);
                match chars.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        newline(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                newline(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                newline(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                in_text = c == '"';
                out.push(c);
            }
        }
    }
    out
}
