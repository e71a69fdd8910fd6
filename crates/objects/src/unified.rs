//! Unified diffs of strings.

use std::fmt::Write as _;

use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

/// Number of unchanged lines around a change.
const CONTEXT: usize = 3;
/// Maximum number of lines that are compared, without the lines of the equal ends. With more, all of them are replaced as a whole.
const MOST_LINES: usize = 20_000;

/// Returns the output of `diff -u` without the names of files.
#[must_use]
pub(crate) fn unified_diff(old: &str, new: &str) -> String {
    let mut text = String::new();
    if old != new {
        let (old, new) = (lines(old), lines(new));
        for hunk in group_diff_ops(operations(&old, &new), CONTEXT) {
            write_hunk(&hunk, &old, &new, &mut text);
        }
    }
    text
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn operations(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let ends = old.iter().skip(start).rev().zip(new.iter().skip(start).rev());
    let end = ends.take_while(|(a, b)| a == b).count();
    let (old_len, new_len) = (old.len() - start - end, new.len() - start - end);
    if old_len + new_len <= MOST_LINES {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    let equal = |old_index, new_index, len| DiffOp::Equal {
        old_index,
        new_index,
        len,
    };
    let replaced = DiffOp::Replace {
        old_index: start,
        old_len,
        new_index: start,
        new_len,
    };
    let all = [
        equal(0, 0, start),
        replaced,
        equal(start + old_len, start + new_len, end),
    ];
    let is_empty = |operation: &DiffOp| operation.old_range().is_empty() && operation.new_range().is_empty();
    all.into_iter().filter(|operation| !is_empty(operation)).collect()
}

fn write_hunk(hunk: &[DiffOp], old: &[&str], new: &[&str], text: &mut String) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
        return;
    };
    let range = |start: usize, end: usize| match end - start {
        0 | 1 => format!("{}", start + 1),
        count => format!("{},{count}", start + 1),
    };
    let olds = range(first.old_range().start, last.old_range().end);
    let news = range(first.new_range().start, last.new_range().end);
    let _ = writeln!(text, "@@ -{olds} +{news} @@");
    for operation in hunk {
        let (deleted, inserted) = (operation.old_range(), operation.new_range());
        if matches!(operation, DiffOp::Equal { .. }) {
            write_lines(' ', old.get(deleted), text);
        } else {
            write_lines('-', old.get(deleted), text);
            write_lines('+', new.get(inserted), text);
        }
    }
}

fn write_lines(sign: char, lines: Option<&[&str]>, text: &mut String) {
    for line in lines.unwrap_or_default() {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies a diff of strings whose lines all end with a newline, and counts its deleted and inserted lines.
    fn applied(old: &str, diff: &str) -> (String, usize) {
        let (old, mut position, mut count, mut new) = (lines(old), 0, 0, String::new());
        for line in lines(diff) {
            if let Some(header) = line.strip_prefix("@@ -") {
                let number: String = header.chars().take_while(char::is_ascii_digit).collect();
                let start = number.parse::<usize>().unwrap() - 1;
                new.extend(old[position..start].iter().copied());
                position = start;
                continue;
            }
            let (sign, line) = line.split_at(1);
            match sign {
                "+" => new.push_str(line),
                _ => {
                    assert_eq!(old[position], line);
                    position += 1;
                    new.push_str(if sign == " " { line } else { "" });
                }
            }
            count += usize::from(sign != " ");
        }
        new.extend(old[position..].iter().copied());
        (new, count)
    }

    fn each_on_a_line(text: &str) -> String {
        text.chars().flat_map(|one| [one, '\n']).collect()
    }

    #[test]
    fn diffs_are_short_and_lead_to_the_new_string() {
        for (old, new, count) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abcabba", "cbabac", 5),
            ("ab", "ba", 2),
            ("xaybz", "abz", 2),
            ("hello world", "help the world", 7),
        ] {
            let (old, new) = (each_on_a_line(old), each_on_a_line(new));
            assert_eq!(applied(&old, &unified_diff(&old, &new)), (new, count));
        }
    }

    #[test]
    fn lines_over_the_limit_are_replaced_as_a_whole() {
        let text = |line: &str, count: usize| {
            let changed = format!("{line}\n").repeat(count);
            format!("a\n{changed}equal\n{changed}z\n")
        };
        for (count, changes) in [(4_999, 4 * 4_999), (5_000, 4 * 5_000 + 2)] {
            let (old, new) = (text("old", count), text("new", count));
            let (result, edits) = applied(&old, &unified_diff(&old, &new));
            assert!(result == new, "{count}");
            assert_eq!(edits, changes);
        }
    }

    #[test]
    fn hunks_have_context() {
        assert_eq!(
            unified_diff("l1\nl2\nl3\n", "l1\nCHANGED\nl3\n"),
            "@@ -1,3 +1,3 @@\n l1\n-l2\n+CHANGED\n l3\n"
        );
        assert_eq!(
            unified_diff("a\nb", "a\nb\nc"),
            "@@ -1,2 +1,3 @@\n a\n-b\n\\ No newline at end of file\n+b\n+c\n\\ No newline at end of file\n"
        );
        let old: String = (1..=20).map(|i| format!("{i}\n")).collect();
        let new = old.replace("\n5\n", "\n").replace("\n18\n", "\n18\nx\n");
        assert_eq!(
            unified_diff(&old, &new),
            "@@ -2,7 +2,6 @@\n 2\n 3\n 4\n-5\n 6\n 7\n 8\n@@ -16,5 +15,6 @@\n 16\n 17\n 18\n+x\n 19\n 20\n"
        );
        let near = old.replace("\n5\n", "\n").replace("\n12\n", "\n");
        assert_eq!(unified_diff(&old, &near).matches("@@ -").count(), 1);
        assert_eq!(unified_diff("a\n", "b\n"), "@@ -1 +1 @@\n-a\n+b\n");
    }
}
