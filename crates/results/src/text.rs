//! Results in the form for people.

use std::{borrow::Cow, fmt::Write as _};

use objects::ObjectRef;
use yaml::Value;

use crate::{CommandResult, ObjectError, ValidateResult};

/// Maximum width of the first column of a table, in characters.
const FIRST_COLUMN: usize = 60;

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

#[must_use]
pub fn command_result(result: &CommandResult, style: Style) -> String {
    let objects = result.objects.iter().map(|object| PrintedObject {
        reference: object.reference.clone(),
        new: object.new,
        deleted: object.deleted,
        hook: object.hook,
        orphan: object.orphan,
        changes: object
            .changes
            .iter()
            .map(|change| [change.json_path(), change.unified()])
            .collect(),
    });
    let printed = PrintedResult {
        objects: objects.collect(),
        warnings: Cow::Borrowed(&result.warnings),
        errors: Cow::Borrowed(&result.errors),
    };
    printed.print(style)
}

/// Prints the stored result of an operation ([`crate::ResultStore::read_compacted`]), as [`command_result`] does.
#[must_use]
pub fn stored_command_result(result: &Value, style: Style) -> String {
    let lists = ["objects", "compactedObjects"].iter();
    let objects = lists.flat_map(|name| list(result, name)).map(|object| {
        let is = |name: &str| object.get(name).and_then(Value::as_bool).unwrap_or_default();
        let changes = list(object, "changes").iter();
        PrintedObject {
            reference: reference(object.get("ref")),
            new: is("new"),
            deleted: is("deleted"),
            hook: is("hook"),
            orphan: is("orphan"),
            changes: changes
                .map(|change| [string(change, "jsonPath"), string(change, "unifiedDiff")])
                .collect(),
        }
    });
    let printed = PrintedResult {
        objects: objects.collect(),
        warnings: Cow::Owned(stored_messages(result, "warnings")),
        errors: Cow::Owned(stored_messages(result, "errors")),
    };
    printed.print(style)
}

#[must_use]
pub fn validate_result(result: &ValidateResult, style: Style) -> String {
    let found = result.results.iter();
    let rows = found.map(|(of, found)| [of.to_string(), found.message.clone()]);
    validation(&result.warnings, &result.errors, &rows.collect::<Vec<_>>(), style)
}

#[must_use]
pub fn stored_validate_result(result: &Value, style: Style) -> String {
    let found = list(result, "results").iter();
    let rows = found.map(|found| [reference(found.get("ref")).to_string(), string(found, "message")]);
    let (warnings, errors) = (
        stored_messages(result, "warnings"),
        stored_messages(result, "errors"),
    );
    validation(&warnings, &errors, &rows.collect::<Vec<_>>(), style)
}

fn validation(
    warnings: &[ObjectError],
    errors: &[ObjectError],
    results: &[[String; 2]],
    style: Style,
) -> String {
    let mut text = String::new();
    messages(&mut text, "Validation Warnings", warnings);
    messages(&mut text, "Validation Errors", errors);
    if !results.is_empty() {
        text.push_str("\nResults:\n");
        text.push_str(&table(["Object", "Message"], results, style.width));
    }
    text
}

struct PrintedObject {
    reference: ObjectRef,
    new: bool,
    deleted: bool,
    hook: bool,
    orphan: bool,
    changes: Vec<[String; 2]>,
}

struct PrintedResult<'a> {
    objects: Vec<PrintedObject>,
    warnings: Cow<'a, [ObjectError]>,
    errors: Cow<'a, [ObjectError]>,
}

impl PrintedResult<'_> {
    fn print(&self, style: Style) -> String {
        let mut text = String::new();
        let refs = |accept: fn(&PrintedObject) -> bool| -> Vec<&ObjectRef> {
            let objects = self.objects.iter().filter(|object| accept(object));
            objects.map(|object| &object.reference).collect()
        };
        let is_changed = |object: &PrintedObject| !object.changes.is_empty();
        section(&mut text, "New objects", &refs(|object| object.new));
        section(&mut text, "Changed objects", &refs(is_changed));
        if !style.short {
            for object in self.objects.iter().filter(|object| is_changed(object)) {
                let _ = writeln!(text, "\nDiff for object {}", object.reference);
                text.push_str(&table(["Path", "Diff"], &object.changes, style.width));
            }
        }
        section(&mut text, "Deleted objects", &refs(|object| object.deleted));
        section(&mut text, "Applied hooks", &refs(|object| object.hook));
        section(&mut text, "Orphan objects", &refs(|object| object.orphan));
        messages(&mut text, "Warnings", &self.warnings);
        messages(&mut text, "Errors", &self.errors);
        text
    }
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_seq).unwrap_or_default()
}

fn string(value: &Value, name: &str) -> String {
    let text = value.get(name).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

fn reference(stored: Option<&Value>) -> ObjectRef {
    let field = |name: &str| stored.map(|stored| string(stored, name)).unwrap_or_default();
    ObjectRef {
        group: field("group"),
        version: field("version"),
        kind: field("kind"),
        namespace: Some(field("namespace")).filter(|namespace| !namespace.is_empty()),
        name: field("name"),
    }
}

/// Reads the messages of a stored result. One about the operation as a whole has a reference with empty names.
fn stored_messages(result: &Value, name: &str) -> Vec<ObjectError> {
    let messages = list(result, name).iter().map(|stored| {
        let (of, message) = (reference(stored.get("ref")), string(stored, "message"));
        match of.name.is_empty() {
            true => ObjectError::general(message),
            false => ObjectError::of(&of, message),
        }
    });
    messages.collect()
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

/// Prints a table of two columns. The first one is at most 60 characters wide, the second one takes the rest, at least 20 characters.
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
    use crate::{Command, Contents, ResultObject};
    use objects::diff;
    use serde_json::json;

    fn object(name: &str) -> ResultObject {
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}});
        ResultObject::new(ObjectRef::of(&Value::from_json(object)).unwrap())
    }

    #[test]
    fn result_is_printed_as_text() {
        let mut result = CommandResult::new(Command::Deploy, false, Some("d"));
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
        for contents in [Contents::Compacted, Contents::None] {
            let stored = result.to_value(contents);
            for style in [style, short] {
                assert_eq!(
                    stored_command_result(&stored, style),
                    command_result(&result, style)
                );
            }
        }
        // Stored results may be written by other programs, too.
        for broken in [
            json!(null),
            json!({"objects": [1, {"ref": 2, "changes": [3]}], "errors": [4]}),
        ] {
            let _ = stored_command_result(&Value::from_json(broken.clone()), style);
            let _ = stored_validate_result(&Value::from_json(broken), style);
        }
    }

    #[test]
    fn long_cells_are_wrapped() {
        let rows = [["x".repeat(70), format!("{}\n\nend", "y".repeat(50))]];
        let text = table(["Path", "Diff"], &rows, 100);
        assert!(text.lines().all(|line| line.chars().count() == 100), "{text}");
        assert_eq!(text.lines().count(), 8, "{text}");
    }
}
