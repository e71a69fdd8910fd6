//! `to_yaml` and `from_yaml`, as PyYAML's `safe_dump` and `safe_load` do it.

mod construct;
mod represent;

use crate::{
    eval::context::Cx,
    exc::{R, raise},
    rt::ENTRY,
    value::{Value, args::Args},
};

pub(super) fn to_yaml(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("to_yaml")?;
    let graph = represent::graph(cx.rt, &value)?;
    let limit = cx.rt.limit();
    match yaml::print::pyyaml_graph(&graph, limit) {
        Some(text) => cx.rt.text(text),
        None => {
            cx.rt.fits(limit.saturating_add(1))?;
            Ok(Value::None)
        }
    }
}

pub(super) fn from_yaml(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("from_yaml")?;
    let Some(text) = value.defined()?.as_str() else {
        return raise(
            "AttributeError",
            format!("'{}' object has no attribute 'read'", value.type_name()),
        );
    };
    // Two bytes can be an item of a list.
    cx.rt.alloc(text.len().saturating_mul(ENTRY))?;
    cx.rt.step(text.len() as u64 / 4)?;
    match yaml::read::graph(&**text, &cx.rt.budget()) {
        Ok(Some(graph)) => construct::value(cx.rt, &graph),
        Ok(None) => Ok(Value::None),
        Err(error) => match error.exceeded() {
            Some(exceeded) => Err(exceeded.clone().into()),
            None => raise(class(&error), error.to_string()),
        },
    }
}

/// Returns the class of PyYAML's exception for an error.
fn class(error: &yaml::Error) -> &'static str {
    use yaml::Problem;
    match &error.problem {
        Problem::ControlCharacter(_) | Problem::Encoding(_) => "ReaderError",
        Problem::UnknownAnchor(_) | Problem::SameAnchor(_) | Problem::SecondDocument => "ComposerError",
        Problem::Syntax(message) => {
            let parser = [
                "did not find expected",
                "found duplicate %",
                "undefined tag handle",
            ];
            let comment = message.contains("did not find expected whitespace or line break")
                || message.contains("did not find expected comment")
                || message.contains("did not find expected digit")
                || message.contains("did not find expected alphabetic")
                || message.contains("did not find expected tag")
                || message.contains("did not find expected '!'");
            if !comment && parser.iter().any(|part| message.contains(part)) {
                "ParserError"
            } else {
                "ScannerError"
            }
        }
        _ => "ConstructorError",
    }
}
