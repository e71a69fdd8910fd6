//! Errors of templates in the several lines of Helm 4: position, expression and message of each template in the chain.

use std::fmt::Write as _;

#[derive(PartialEq, Eq)]
struct Frame<'a> {
    location: &'a str,
    /// `executing "NAME" at <node>:`
    executed: Option<(&'a str, &'a str)>,
    message: &'a str,
}

/// Prints a chain of errors of Go's text/template; returns `None` if one of them has another form, as the error of a function.
pub(super) fn print(error: &str) -> Option<String> {
    let mut frames: Vec<Frame<'_>> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let (frame, inner) = parse(error)?;
        if frames.last() != Some(&frame) {
            frames.push(frame);
        }
        next = inner;
    }
    let mut printed = String::new();
    for Frame {
        location,
        executed,
        message,
    } in frames
    {
        if !location.is_empty() {
            let _ = write!(printed, "{location}\n  ");
        }
        if let Some((name, node)) = executed {
            let _ = write!(printed, "executing \"{name}\" at <{node}>:\n    ");
        }
        if !message.is_empty() {
            let _ = writeln!(printed, "{message}");
        }
    }
    Some(printed.trim().to_owned())
}

/// Parses one error, and returns it with the error of a called function, which it wraps.
fn parse(error: &str) -> Option<(Frame<'_>, Option<&str>)> {
    let rest = error.strip_prefix("template: ")?;
    let frame = |location, executed, message| Frame {
        location,
        executed,
        message,
    };
    if rest.starts_with("no template ") {
        return Some((frame("", None, error), None));
    }
    let Some((location, after)) = rest.split_once(": executing ") else {
        let (location, message) = rest.rsplit_once(": ")?;
        return Some((frame(location, None, before_next(message)), None));
    };
    let (name, after) = after.strip_prefix('"')?.split_once('"')?;
    let (node, message) = after.strip_prefix(" at <")?.split_once(">: ")?;
    let inner = message
        .strip_prefix("error calling ")
        .and_then(|call| call.split_once(": "))
        .map(|(_, inner)| inner);
    let message = before_next(message);
    Some((frame(location, Some((name, node)), message), inner))
}

fn before_next(message: &str) -> &str {
    message
        .split_once(" template:")
        .map_or(message, |(before, _)| before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_of_templates_have_several_lines() {
        let plain =
            "template: c/t.yaml:1:2: executing \"c/t.yaml\" at <.a.b>: nil pointer evaluating interface {}.b";
        let include = "template: c/t.yaml:1:2: executing \"c/t.yaml\" at <include \"x\" .>: error calling include: template: \
                       c/_h.tpl:3:4: executing \"x\" at <.a>: can't evaluate";
        let none = "template: c/t.yaml:1:2: executing \"c/t.yaml\" at <include \"x\" .>: error calling include: template: no \
                    template \"x\" associated with template \"gotpl\"";
        let table = [
            (
                plain,
                "c/t.yaml:1:2\n  executing \"c/t.yaml\" at <.a.b>:\n    nil pointer evaluating interface {}.b",
            ),
            (
                include,
                "c/t.yaml:1:2\n  executing \"c/t.yaml\" at <include \"x\" .>:\n    error calling include:\n\
                 c/_h.tpl:3:4\n  executing \"x\" at <.a>:\n    can't evaluate",
            ),
            (
                none,
                "c/t.yaml:1:2\n  executing \"c/t.yaml\" at <include \"x\" .>:\n    error calling include:\n\
                 template: no template \"x\" associated with template \"gotpl\"",
            ),
            (
                "template: t: \"t\" is an incomplete or empty template",
                "t\n  \"t\" is an incomplete or empty template",
            ),
        ];
        for (error, expected) in table {
            assert_eq!(print(error).as_deref(), Some(expected), "{error}");
        }
    }

    #[test]
    fn errors_of_functions_stay_in_one_line() {
        for error in [
            "template: c/t.yaml:1:2: executing \"c/t.yaml\" at <index 1 2>: error calling index: can't index item of type int",
            "template: c/t.yaml:1:2: executing \"c/t.yaml\" at <tpl \"x\" .>: error calling tpl: error during tpl function \
             execution for \"x\": template: gotpl:1:2: executing \"gotpl\" at <x>: y",
        ] {
            assert_eq!(print(error), None, "{error}");
        }
    }
}
