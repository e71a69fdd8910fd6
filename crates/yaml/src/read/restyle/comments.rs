//! Moves the comments of a source next to the same neighbours in the printed document.
//!
//! A trailing comment stays one. Comments on lines of their own stay before the next node, or at the end of the collection
//! with their indentation. Those between the brackets of a flow collection come after or before its line.

use std::collections::BTreeMap;

use super::span::{LineColumn, Span, SpanKind};
use crate::{Position, read::written};

struct Comment<'t> {
    at: LineColumn,
    text: &'t str,
    alone: bool,
    /// The dash of a list item is between it and the event before.
    in_item: bool,
    before: Option<usize>,
    /// The event after it.
    behind: Option<usize>,
}

/// Inserts the comments of `text` into `printed`.
pub(super) fn keep(
    text: &str,
    spans: &[Span],
    printed: &str,
    spans_after: &[Span],
    origins: &[Option<usize>],
) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let printed_lines: Vec<&str> = printed.lines().collect();
    let keeper = Keeper {
        lines: &lines,
        spans,
        keys: keys(spans),
        parents: parents(spans),
        printed: &printed_lines,
        spans_after,
        moved: moved(spans.len(), origins),
    };
    let mut woven = Woven::default();
    let comments = find(&lines, spans);
    for gap in comments.chunk_by(|a, b| a.alone && b.alone && a.before == b.before && a.in_item == b.in_item)
    {
        keeper.weave(gap, &mut woven);
    }
    woven.into_text(&printed_lines)
}

/// Comments to be inserted, by lines of the printed document.
#[derive(Default)]
struct Woven {
    before: BTreeMap<usize, Vec<String>>,
    behind: BTreeMap<usize, String>,
    /// Comments between the dash of an item and the item, which starts at the column.
    inside: BTreeMap<usize, (usize, Vec<String>)>,
}

impl Woven {
    fn into_text(mut self, lines: &[&str]) -> String {
        let mut out = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            out.extend(self.before.remove(&number).unwrap_or_default());
            let mut line = (*line).to_owned();
            if let Some((column, comments)) = self.inside.remove(&number) {
                let split = line
                    .char_indices()
                    .nth(column)
                    .map_or(line.len(), |(index, _)| index);
                let item = line.split_off(split);
                let indent = " ".repeat(column);
                for (index, comment) in comments.into_iter().enumerate() {
                    let lead = if index == 0 { &line } else { &indent };
                    out.push(format!("{lead}{comment}"));
                }
                line = indent + &item;
            }
            if let Some(comment) = self.behind.remove(&number) {
                line = format!("{line} {comment}");
            }
            out.push(line);
        }
        out.extend(self.before.into_values().flatten());
        out.join("\n") + "\n"
    }
}

struct Keeper<'a> {
    lines: &'a [&'a str],
    spans: &'a [Span],
    parents: Vec<Option<usize>>,
    /// For each event, true if it is the key of a map.
    keys: Vec<bool>,
    printed: &'a [&'a str],
    spans_after: &'a [Span],
    moved: Vec<Option<usize>>,
}

impl Keeper<'_> {
    /// Inserts a comment, or a block of comments on lines of their own.
    fn weave(&self, gap: &[Comment<'_>], woven: &mut Woven) {
        let Some(first) = gap.first() else {
            return;
        };
        let behind = first.behind.and_then(|event| self.after(event));
        let texts = gap.iter().map(|comment| comment.text.to_owned());
        if first.in_item {
            if let Some(after) = behind {
                woven
                    .inside
                    .insert(after.start.0, (after.start.1, texts.collect()));
            }
            return;
        }
        if !first.alone {
            if let Some(after) = first.before.and_then(|event| self.after(event)) {
                woven.behind.insert(after.end.0, first.text.to_owned());
            }
            return;
        }
        // Comments within a replaced node are dropped with it.
        if first.behind.is_some() && behind.is_none() {
            return;
        }
        let line = behind.map_or(self.printed.len(), |after| after.start.0);
        let next = first.behind.and_then(|event| self.spans.get(event));
        let next_columns = next.map(|next| (indent(self.lines, next.start.0), indent(self.printed, line)));
        let is_gone = first.before.is_some_and(|event| self.after(event).is_none());
        let stays =
            |comment: &Comment<'_>| !is_gone || next_columns.is_none_or(|(before, _)| comment.at.1 <= before);
        let gap = gap.get(gap.iter().take_while(|comment| !stays(comment)).count()..);
        let Some((gap, first)) = gap.and_then(|gap| Some((gap, gap.first()?))) else {
            return;
        };
        let placed = woven.before.entry(line).or_default();
        let mut column = 0;
        for (index, comment) in gap.iter().enumerate() {
            let row = comment.at.0;
            let begins = index == 0 || !self.is_comment(gap, index, row);
            if begins {
                if index > 0 || (next.is_none() && self.is_blank_before(row)) {
                    placed.push(String::new());
                }
                column = self.column(comment, next_columns);
            }
            placed.push(" ".repeat(column) + comment.text);
        }
        let last = gap.last().map_or(0, |comment| comment.at.0);
        let is_foot =
            !self.is_head(first) && !self.is_blank_before(first.at.0) && last - first.at.0 + 1 == gap.len();
        let stands_apart = self.is_blank(last + 1) && (is_foot || first.before.is_none());
        if stands_apart && next_columns.is_some_and(|(_, after)| after == column) {
            placed.push(String::new());
        }
    }

    /// Returns true if a comment is on the line right above.
    fn is_comment(&self, gap: &[Comment<'_>], index: usize, row: usize) -> bool {
        let above = index.checked_sub(1).and_then(|above| gap.get(above));
        above.is_some_and(|above| above.at.0 + 1 == row)
    }

    fn is_blank(&self, row: usize) -> bool {
        self.lines.get(row).is_some_and(|line| line.trim().is_empty())
    }

    fn is_blank_before(&self, row: usize) -> bool {
        row.checked_sub(1).is_some_and(|above| self.is_blank(above))
    }

    /// Returns the column of a comment: the column of the next node, unless the comment is indented deeper and so belongs to
    /// the node before.
    fn column(&self, comment: &Comment<'_>, next: Option<(usize, usize)>) -> usize {
        let own = comment.at.1;
        if let Some((before, after)) = next
            && own <= before
        {
            return after;
        }
        let mut chosen = None;
        let mut event = comment.before;
        while let Some(index) = event {
            if let Some((before, after)) = self.columns(index)
                && (chosen.is_none() || before >= own)
            {
                chosen = Some(after);
            }
            event = self.parents.get(index).copied().flatten();
        }
        chosen.or(next.map(|(_, after)| after)).unwrap_or_default()
    }

    /// Returns the columns of a list or map in block style, before and after.
    fn columns(&self, event: usize) -> Option<(usize, usize)> {
        let span = self.spans.get(event)?;
        // With an anchor or a tag, a map starts on the line of its key.
        let event = match span.kind {
            SpanKind::Map => event + 1,
            SpanKind::Seq => event,
            _ => return None,
        };
        let before = self.spans.get(event)?;
        let after = self.spans_after.get(self.moved.get(event).copied().flatten()?)?;
        Some((before.start.1, after.start.1))
    }

    /// Returns the extent of an event of the source in the printed document.
    fn after(&self, event: usize) -> Option<&Span> {
        self.spans_after.get(self.moved.get(event).copied().flatten()?)
    }

    /// Returns true if a comment is between a key, or the end of a flow collection, and the next node, to which it belongs.
    fn is_head(&self, comment: &Comment<'_>) -> bool {
        let (Some(before), Some(behind)) = (comment.before, comment.behind) else {
            return false;
        };
        let opens = behind == before + 1 && self.keys.get(before).copied().unwrap_or_default();
        let last = behind.checked_sub(1).and_then(|last| self.spans.get(last));
        opens || last.is_some_and(|last| last.kind == SpanKind::End && last.start != last.end)
    }
}

fn indent(lines: &[&str], row: usize) -> usize {
    let line = lines.get(row).copied().unwrap_or_default();
    line.len() - line.trim_start_matches(' ').len()
}

/// Finds the collection of each event.
fn parents(spans: &[Span]) -> Vec<Option<usize>> {
    let mut open = Vec::new();
    let mut parents = Vec::with_capacity(spans.len());
    for (index, span) in spans.iter().enumerate() {
        if span.kind == SpanKind::End {
            open.pop();
        }
        parents.push(open.last().copied());
        if matches!(span.kind, SpanKind::Map | SpanKind::Seq | SpanKind::Flow) {
            open.push(index);
        }
    }
    parents
}

/// Finds the events that are keys of maps: every other child is one.
fn keys(spans: &[Span]) -> Vec<bool> {
    let mut open: Vec<Option<bool>> = Vec::new();
    let mut keys = Vec::with_capacity(spans.len());
    for span in spans {
        if span.kind == SpanKind::End {
            open.pop();
            keys.push(false);
            continue;
        }
        let is_key = match open.last_mut() {
            Some(Some(next)) => std::mem::replace(next, !*next),
            _ => false,
        };
        keys.push(is_key);
        match span.kind {
            SpanKind::Map => open.push(Some(true)),
            SpanKind::Seq | SpanKind::Flow => open.push(None),
            _ => {}
        }
    }
    keys
}

/// Maps each event of the source to its event in the printed document.
fn moved(count: usize, origins: &[Option<usize>]) -> Vec<Option<usize>> {
    let mut moved = vec![None; count];
    for (after, origin) in origins.iter().enumerate() {
        if let Some(slot) = origin.and_then(|origin| moved.get_mut(origin)) {
            *slot = Some(after);
        }
    }
    moved
}

/// Lists the comments of a document with their positions.
pub(super) fn list(text: &str, spans: &[Span]) -> Vec<written::Comment> {
    // The parser counts Unicode's line ends, too.
    let joined = text.replace("\r\n", "\n");
    let lines: Vec<&str> = joined
        .split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
        .collect();
    let number = |n: usize| u32::try_from(n + 1).unwrap_or(u32::MAX);
    let found = find(&lines, spans).into_iter();
    found
        .map(|comment| written::Comment {
            position: Position {
                line: number(comment.at.0),
                column: number(comment.at.1),
            },
            text: comment.text.get(1..).unwrap_or_default().to_owned(),
            alone: comment.alone,
        })
        .collect()
}

/// Finds the comments of a document, in order.
fn find<'t>(lines: &[&'t str], spans: &[Span]) -> Vec<Comment<'t>> {
    let starts: Vec<usize> = (0..spans.len())
        .filter(|index| spans.get(*index).is_some_and(|span| span.kind != SpanKind::End))
        .collect();
    let mut comments = Vec::new();
    let (mut passed, mut dash): (usize, Option<LineColumn>) = (0, None);
    for (row, line) in lines.iter().enumerate() {
        let mut blank_before = true;
        for (column, (offset, c)) in line.char_indices().enumerate() {
            let at = (row, column);
            let span = |place: usize| starts.get(place).and_then(|index| spans.get(*index));
            while span(passed).is_some_and(|span| span.start <= at) {
                passed += 1;
            }
            let before = passed.checked_sub(1);
            let is_inside = before
                .and_then(span)
                .is_some_and(|span| at < span.end && span.start != span.end);
            if is_inside
                && !before
                    .and_then(span)
                    .is_some_and(|span| span.kind == SpanKind::Seq)
            {
                blank_before = false;
                continue;
            }
            match c {
                '#' if blank_before => {
                    let event = before.and_then(|before| starts.get(before).copied());
                    comments.push(Comment {
                        at,
                        text: line.get(offset..).unwrap_or_default().trim_end(),
                        alone: line.get(..offset).is_some_and(|lead| lead.trim().is_empty()),
                        in_item: dash >= before.and_then(span).map(|span| span.start)
                            && before.is_some()
                            && dash.is_some(),
                        before: event,
                        behind: starts.get(passed).copied(),
                    });
                    break;
                }
                '-' => dash = Some(at),
                _ => {}
            }
            blank_before = c.is_whitespace();
        }
    }
    comments
}
