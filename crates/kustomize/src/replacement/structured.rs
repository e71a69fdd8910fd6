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

/// Sets what a path means in the text of a scalar; false, and nothing done, when there is no such scalar on the path or it
/// can't be done, whatever the reason.
pub(super) fn set(
    object: &mut Node,
    source: &SourceValue,
    path: &Path<'_>,
    create: Option<ContentKind>,
    meter: &Meter<'_>,
    written: &mut Written,
) -> Result<bool, Error> {
    let Some((places, used)) = find(object, path, meter)? else {
        return Ok(false);
    };
    let scalar = places
        .iter()
        .try_fold(object, |node, place| lookup::child_mut(node, *place));
    let Some(scalar) = scalar else {
        return Ok(false);
    };
    match changed(raw_text(scalar), used, source, path, create, meter) {
        Ok(Some(text)) => {
            written.write(scalar, |scalar| write(scalar, text.into()));
            Ok(true)
        }
        Ok(None) => Ok(false),
        // quirk: why it can't be done is not said.
        Err(error) if error.exceeded().is_none() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The first scalar on a path whose text is YAML: its places from the object down, and how many elements of the path lead
/// to it.
fn find(object: &Node, path: &Path<'_>, meter: &Meter<'_>) -> Result<Option<(Vec<usize>, usize)>, Error> {
    let mut node = object;
    let mut places = Vec::new();
    for (index, element) in path.elements.iter().enumerate() {
        let used = index + 1;
        if used == path.elements.len() {
            break;
        }
        match lookup::step(node, element) {
            Ok(Leads::Stay) => {}
            Ok(Leads::Down(place)) => {
                let Some(child) = lookup::child(node, place) else {
                    break;
                };
                node = child;
                places.push(place);
            }
            Ok(Leads::Nowhere) | Err(_) => break,
        }
        if node.as_scalar().is_some() {
            meter.work(raw_text(node).len())?;
            match parse(raw_text(node), meter) {
                Ok(_) => return Ok(Some((places, used))),
                Err(error) if error.exceeded().is_some() => return Err(error),
                Err(_) => {}
            }
        }
    }
    Ok(None)
}

/// The text with the value in it; nothing when the path leads nowhere.
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

/// The node as JSON: on one line, or indented when the text had lines and was.
fn json(mut node: Node, before: &str) -> Result<String, yaml::Error> {
    quote_empty(&mut node);
    let value = node.into_value()?;
    let compact = yaml::print::json_sorted_html(&value);
    if before.contains('\n') && before.contains("  ") {
        return Ok(indented(&compact));
    }
    Ok(compact)
}

/// Makes empty texts of nulls without one: between brackets, they are printed in quotes before they become JSON.
fn quote_empty(node: &mut Node) {
    match &mut node.content {
        Content::Scalar(scalar) if scalar.text.is_empty() && scalar.is_null() => *scalar = Scalar::string(""),
        Content::Scalar(_) => {}
        Content::Seq(items) => items.iter_mut().for_each(quote_empty),
        Content::Map(map) => map.values_mut().for_each(quote_empty),
    }
}

/// Compact JSON with a line for every entry, as Go indents it: empty maps and lists stay as they are.
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
