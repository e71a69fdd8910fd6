//! Folded blocks, as go-yaml's version 3 writes them. The emitter writes them as literal blocks first.

use super::span::Span;

/// Folds the literal blocks of the events with these indices and contents.
pub(super) fn fold(printed: &str, spans: &[Span], folded: &[(usize, String)]) -> String {
    let lines: Vec<&str> = printed.lines().collect();
    let mut out: Vec<String> = Vec::with_capacity(lines.len());
    let mut next = 0;
    for (place, text) in folded {
        let Some(span) = spans.get(*place) else {
            continue;
        };
        let (header, end) = (span.start.0, span.end.0.min(lines.len()));
        let Some(bar) = lines.get(header).and_then(|line| line.rfind('|')) else {
            continue;
        };
        out.extend(
            lines
                .iter()
                .take(header)
                .skip(next)
                .map(|line| (*line).to_owned()),
        );
        let header_line = lines.get(header).copied().unwrap_or_default();
        let (before, after) = header_line.split_at(bar);
        out.push(format!("{before}>{}", after.get(1..).unwrap_or_default()));
        let body = lines.get(header + 1..end).unwrap_or_default();
        out.extend(folded_lines(text, &" ".repeat(indent(body, text))));
        next = end.max(header + 1);
    }
    out.extend(lines.iter().skip(next).map(|line| (*line).to_owned()));
    out.join("\n") + "\n"
}

/// Returns the indentation of the block beyond its content's own.
fn indent(body: &[&str], text: &str) -> usize {
    let blanks = |line: &&str| line.len() - line.trim_start_matches(' ').len();
    let of_body = body.iter().find(|line| !line.is_empty()).map_or(0, blanks);
    let of_text = text.split('\n').find(|line| !line.is_empty());
    of_body.saturating_sub(of_text.as_ref().map_or(0, blanks))
}

/// Returns the lines of a folded block.
///
/// quirk: the start of the whole string decides if breaks are doubled, so that a string that ends with a break is followed
/// by an empty line.
fn folded_lines(text: &str, indent: &str) -> Vec<String> {
    let begins = text.trim_start_matches('\n').chars().next();
    let doubles = begins.is_some_and(|c| !matches!(c, ' ' | '\t'));
    let mut lines = Vec::new();
    for line in text.split_inclusive('\n') {
        let content = line.strip_suffix('\n');
        let ended = content.is_some();
        let content = content.unwrap_or(line);
        if content.is_empty() {
            lines.push(String::new());
            continue;
        }
        lines.push(format!("{indent}{content}"));
        if ended && doubles && !content.starts_with([' ', '\t']) {
            lines.push(String::new());
        }
    }
    lines
}
