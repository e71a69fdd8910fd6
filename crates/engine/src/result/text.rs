//! Results as people read them.

use std::fmt::Write as _;

use objects::ObjectRef;

use crate::{CommandResult, ObjectError, ResultObject, ValidateResult};

/// Maximum width of the first column of a table, in characters.
const FIRST_COLUMN: usize = 60;

/// Style of the text form of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Names alone, no differences.
    pub short: bool,
    /// Width of tables, in characters; default 80.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            short: false,
            width: 80,
        }
    }
}

/// The result of an operation.
#[must_use]
pub fn command_result(result: &CommandResult, style: Style) -> String {
    let mut text = String::new();
    let refs = |accept: fn(&ResultObject) -> bool| -> Vec<&ObjectRef> {
        let objects = result.objects.iter().filter(|object| accept(object));
        objects.map(|object| &object.reference).collect()
    };
    section(&mut text, "New objects", &refs(|object| object.new));
    let changed: Vec<&ResultObject> = result
        .objects
        .iter()
        .filter(|object| !object.changes.is_empty())
        .collect();
    section(
        &mut text,
        "Changed objects",
        &changed.iter().map(|object| &object.reference).collect::<Vec<_>>(),
    );
    if !style.short {
        for object in changed {
            let _ = writeln!(text, "\nDiff for object {}", object.reference);
            let rows: Vec<[String; 2]> = object
                .changes
                .iter()
                .map(|change| [change.json_path(), change.unified()])
                .collect();
            text.push_str(&table(["Path", "Diff"], &rows, style.width));
        }
    }
    section(&mut text, "Deleted objects", &refs(|object| object.deleted));
    section(&mut text, "Applied hooks", &refs(|object| object.hook));
    section(&mut text, "Orphan objects", &refs(|object| object.orphan));
    messages(&mut text, "Warnings", &result.warnings);
    messages(&mut text, "Errors", &result.errors);
    text
}

/// The result of a validation.
#[must_use]
pub fn validate_result(result: &ValidateResult, style: Style) -> String {
    let mut text = String::new();
    messages(&mut text, "Validation Warnings", &result.warnings);
    messages(&mut text, "Validation Errors", &result.errors);
    if !result.results.is_empty() {
        text.push_str("\nResults:\n");
        let rows: Vec<[String; 2]> = result
            .results
            .iter()
            .map(|(of, found)| [of.to_string(), found.message.clone()])
            .collect();
        text.push_str(&table(["Object", "Message"], &rows, style.width));
    }
    text
}

fn section(text: &mut String, title: &str, refs: &[&ObjectRef]) {
    if refs.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title}:");
    for reference in refs {
        let _ = writeln!(text, "  {reference}");
    }
}

fn messages(text: &mut String, title: &str, list: &[ObjectError]) {
    if list.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title}:");
    for error in list {
        let _ = match &error.reference {
            Some(reference) => writeln!(text, "  {reference}: {}", error.message),
            None => writeln!(text, "  {}", error.message),
        };
    }
}

/// A table of two columns. The first one is at most 60 characters wide, the second one takes the rest, at least 20 characters.
#[must_use]
pub fn table(head: [&str; 2], rows: &[[String; 2]], width: usize) -> String {
    let cells = rows.iter().flat_map(|[cell, _]| cell.lines());
    let widths = cells.chain([head[0]]).map(|line| line.chars().count());
    let first = widths.max().unwrap_or_default().min(FIRST_COLUMN);
    // Borders and blanks take seven characters.
    let second = width.saturating_sub(first + 7).max(20);
    let line = format!("+-{}-+-{}-+\n", "-".repeat(first), "-".repeat(second));
    let mut text = line.clone();
    let mut row = |cells: [&str; 2]| {
        let (left, right) = (wrapped(cells[0], first), wrapped(cells[1], second));
        for index in 0..left.len().max(right.len()) {
            let cell = |lines: &[String]| lines.get(index).cloned().unwrap_or_default();
            let _ = writeln!(text, "| {:<first$} | {:<second$} |", cell(&left), cell(&right));
        }
        text.push_str(&line);
    };
    row(head);
    for [left, right] in rows {
        row([left, right]);
    }
    text
}

/// The lines of a cell, none longer than the column.
fn wrapped(cell: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in cell.lines() {
        let characters: Vec<char> = line.chars().collect();
        if characters.is_empty() {
            lines.push(String::new());
        }
        lines.extend(
            characters
                .chunks(width.max(1))
                .map(|chunk| chunk.iter().collect::<String>()),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use objects::diff;
    use serde_json::json;
    use yaml::Value;

    fn object(name: &str) -> ResultObject {
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}});
        ResultObject::new(ObjectRef::of(&Value::from_json(object)).unwrap())
    }

    #[test]
    fn result_is_printed_as_text() {
        let mut result = CommandResult::begin(Command::Deploy, false, Some("d"));
        let (old, new) = (json!({"data": {"key": "1"}}), json!({"data": {"key": "2"}}));
        result.objects = vec![
            ResultObject {
                new: true,
                ..object("a")
            },
            ResultObject {
                changes: diff::changes(&Value::from_json(old), &Value::from_json(new)),
                ..object("b")
            },
            ResultObject {
                orphan: true,
                ..object("c")
            },
            ResultObject {
                hook: true,
                ..object("h")
            },
        ];
        result.errors = vec![
            ObjectError::general("broken"),
            ObjectError::of(&object("a").reference, "no"),
        ];
        let tail = "\nApplied hooks:\n  n/ConfigMap/h\n\nOrphan objects:\n  n/ConfigMap/c\n\nErrors:\n  broken\n  n/ConfigMap/a: no\n";
        let head = "\nNew objects:\n  n/ConfigMap/a\n\nChanged objects:\n  n/ConfigMap/b\n";
        // As with kluctl, tables fill the width.
        let line = "+----------+----------------------+\n";
        let row = |left: &str, right: &str| format!("| {left:<8} | {right:<20} |\n");
        let table = [
            "\nDiff for object n/ConfigMap/b\n",
            line,
            &row("Path", "Diff"),
            line,
            &row("data.key", "-1"),
            &row("", "+2"),
            line,
        ]
        .concat();
        let style = Style {
            short: false,
            width: 35,
        };
        assert_eq!(command_result(&result, style), format!("{head}{table}{tail}"));
        let short = Style {
            short: true,
            ..Style::default()
        };
        assert_eq!(command_result(&result, short), format!("{head}{tail}"));
    }

    #[test]
    fn long_cells_are_wrapped() {
        let rows = [["x".repeat(70), format!("{}\n\nend", "y".repeat(50))]];
        let text = table(["Path", "Diff"], &rows, 100);
        assert!(text.lines().all(|line| line.chars().count() == 100), "{text}");
        assert_eq!(text.lines().count(), 8, "{text}");
    }
}
