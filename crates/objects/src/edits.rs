//! The shortest edit script between two sequences, and unified diffs of strings.

use std::fmt::Write as _;

/// Number of unchanged lines around a change.
const EDGE: usize = 3;
/// Maximum number of edits that are searched; with more, everything between the equal ends is replaced as a whole.
const MOST_EDITS: usize = 1500;
/// Maximum number of compared items: lists that repeat a few items would take the product of edits and length.
const MOST_STEPS: usize = 20_000_000;

/// One step from the old sequence to the new one, with its number of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    Keep(usize),
    Delete(usize),
    Insert(usize),
}

/// Returns the edits from `old` to `new`: as few as possible, unless there are too many of them.
#[must_use]
pub fn between<T: PartialEq>(old: &[T], new: &[T]) -> Vec<Edit> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (
        old.get(start..).unwrap_or_default(),
        new.get(start..).unwrap_or_default(),
    );
    let mut edits = Vec::new();
    push(&mut edits, Edit::Keep(start));
    match shortest(old_rest, new_rest, MOST_STEPS) {
        Some(trace) => walk(&trace, old_rest.len(), new_rest.len(), &mut edits),
        None => {
            let ends = old_rest.iter().rev().zip(new_rest.iter().rev());
            let end = ends.take_while(|(a, b)| a == b).count();
            push(&mut edits, Edit::Delete(old_rest.len() - end));
            push(&mut edits, Edit::Insert(new_rest.len() - end));
            push(&mut edits, Edit::Keep(end));
        }
    }
    edits
}

/// Returns the furthest position on each diagonal after each number of edits (Myers); `None` if there are too many
/// edits, or they take too many steps.
fn shortest<T: PartialEq>(old: &[T], new: &[T], mut steps: usize) -> Option<Vec<Vec<usize>>> {
    let mut trace: Vec<Vec<usize>> = Vec::new();
    for d in 0..=(old.len() + new.len()).min(MOST_EDITS) {
        // The diagonals -d, -d+2 .. d, at the indexes 0, 1 .. d.
        let mut reached = Vec::with_capacity(d + 1);
        for index in 0..=d {
            let mut x = match trace.last() {
                Some(last) if down(last, index, d) => reach(last, index),
                Some(last) => reach(last, index.saturating_sub(1)) + 1,
                None => 0,
            };
            let mut y = (x + d).wrapping_sub(2 * index);
            while let (Some(a), Some(b)) = (old.get(x), new.get(y))
                && a == b
            {
                x += 1;
                y = y.wrapping_add(1);
                steps = steps.checked_sub(1)?;
            }
            reached.push(x);
            if x >= old.len() && y == new.len() {
                trace.push(reached);
                return Some(trace);
            }
        }
        trace.push(reached);
    }
    None
}

fn reach(reached: &[usize], index: usize) -> usize {
    reached.get(index).copied().unwrap_or_default()
}

/// Returns true if a diagonal is reached by an insertion; deletions come first where both lead equally far.
fn down(last: &[usize], index: usize, d: usize) -> bool {
    index == 0 || index != d && reach(last, index - 1) < reach(last, index)
}

/// Walks back from the end.
fn walk(trace: &[Vec<usize>], old: usize, new: usize, edits: &mut Vec<Edit>) {
    let (mut x, mut y) = (old, new);
    let mut backwards = Vec::new();
    for (d, _) in trace.iter().enumerate().rev() {
        if d == 0 {
            backwards.push(Edit::Keep(x));
            break;
        }
        let last = trace.get(d - 1).map(Vec::as_slice).unwrap_or_default();
        let index = (x + d).saturating_sub(y) / 2;
        let is_down = down(last, index, d);
        let before_x = reach(last, if is_down { index } else { index.saturating_sub(1) });
        let start_x = if is_down { before_x } else { before_x + 1 };
        backwards.push(Edit::Keep(x.saturating_sub(start_x)));
        let start_y = y.saturating_sub(x.saturating_sub(start_x));
        backwards.push(if is_down { Edit::Insert(1) } else { Edit::Delete(1) });
        (x, y) = (
            before_x,
            if is_down {
                start_y.saturating_sub(1)
            } else {
                start_y
            },
        );
    }
    for edit in backwards.into_iter().rev() {
        push(edits, edit);
    }
}

fn push(edits: &mut Vec<Edit>, edit: Edit) {
    match (edits.last_mut(), edit) {
        (_, Edit::Keep(0) | Edit::Delete(0) | Edit::Insert(0)) => {}
        (Some(Edit::Keep(n)), Edit::Keep(more))
        | (Some(Edit::Delete(n)), Edit::Delete(more))
        | (Some(Edit::Insert(n)), Edit::Insert(more)) => *n += more,
        _ => edits.push(edit),
    }
}

#[derive(Default)]
struct Hunk {
    old_line: usize,
    new_line: usize,
    old_count: usize,
    new_count: usize,
    text: String,
}

impl Hunk {
    fn line(&mut self, sign: char, line: &str) {
        self.old_count += usize::from(sign != '+');
        self.new_count += usize::from(sign != '-');
        self.text.push(sign);
        self.text.push_str(line);
        if !line.ends_with('\n') {
            self.text.push_str("\n\\ No newline at end of file\n");
        }
    }

    fn write(&self, into: &mut String) {
        let range = |line: usize, count: usize| match count {
            0 | 1 => line.to_string(),
            _ => format!("{line},{count}"),
        };
        let (old, new) = (
            range(self.old_line, self.old_count),
            range(self.new_line, self.new_count),
        );
        let _ = writeln!(into, "@@ -{old} +{new} @@");
        into.push_str(&self.text);
    }
}

/// Returns the output of `diff -u` without the names of files.
#[must_use]
pub fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (
        old.split_inclusive('\n').collect(),
        new.split_inclusive('\n').collect(),
    );
    let lines = |list: &[&'_ str], from: usize, count: usize| -> Vec<String> {
        list.iter()
            .skip(from)
            .take(count)
            .map(|line| (*line).to_owned())
            .collect()
    };
    let edits = between(&old, &new);
    let (mut x, mut y) = (0, 0);
    let mut hunk: Option<Hunk> = None;
    let mut text = String::new();
    for (index, edit) in edits.iter().enumerate() {
        match *edit {
            Edit::Keep(count) => {
                let is_last = index + 1 == edits.len();
                if let Some(mut open) = hunk.take() {
                    let joins = !is_last && count <= 2 * EDGE;
                    for line in lines(&old, x, if joins { count } else { count.min(EDGE) }) {
                        open.line(' ', &line);
                    }
                    if joins {
                        hunk = Some(open);
                    } else {
                        open.write(&mut text);
                    }
                }
                x += count;
                y += count;
            }
            Edit::Delete(count) => {
                let open = hunk.get_or_insert_with(|| opened(&old, x, y));
                for line in lines(&old, x, count) {
                    open.line('-', &line);
                }
                x += count;
            }
            Edit::Insert(count) => {
                let open = hunk.get_or_insert_with(|| opened(&old, x, y));
                for line in lines(&new, y, count) {
                    open.line('+', &line);
                }
                y += count;
            }
        }
    }
    if let Some(open) = hunk {
        open.write(&mut text);
    }
    text
}

fn opened(old: &[&str], x: usize, y: usize) -> Hunk {
    let edge = x.min(EDGE);
    let mut hunk = Hunk {
        old_line: x - edge + 1,
        new_line: y - edge.min(y) + 1,
        ..Hunk::default()
    };
    for line in old.iter().skip(x - edge).take(edge) {
        hunk.line(' ', line);
    }
    hunk
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(old: &[u8], new: &[u8]) -> (Vec<u8>, usize) {
        let (mut x, mut y, mut count, mut result) = (0, 0, 0, Vec::new());
        for edit in between(old, new) {
            match edit {
                Edit::Keep(n) => {
                    assert_eq!(old[x..x + n], new[y..y + n]);
                    result.extend_from_slice(&old[x..x + n]);
                    (x, y) = (x + n, y + n);
                }
                Edit::Delete(n) => {
                    x += n;
                    count += n;
                }
                Edit::Insert(n) => {
                    result.extend_from_slice(&new[y..y + n]);
                    y += n;
                    count += n;
                }
            }
        }
        assert_eq!((x, y), (old.len(), new.len()));
        (result, count)
    }

    #[test]
    fn edits_are_few_and_lead_to_the_new_sequence() {
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
            let (result, edits) = applied(old.as_bytes(), new.as_bytes());
            assert_eq!((result.as_slice(), edits), (new.as_bytes(), count), "{old} {new}");
        }
        let (old, new): (Vec<u8>, Vec<u8>) = (
            (0..9000_u32).map(|i| (i % 251) as u8).collect(),
            (0..9000_u32).map(|i| (i * 7 % 253) as u8).collect(),
        );
        assert_eq!(applied(&old, &new).0, new, "too many edits are one");
    }

    #[test]
    fn compared_items_are_bounded() {
        let old = [b'a'; 4000];
        let new: Vec<u8> = (0..4000).map(|i| if i % 9 == 0 { b'b' } else { b'a' }).collect();
        assert!(shortest(&old, &new, MOST_STEPS).is_some());
        assert!(shortest(&old, &new, 1000).is_none());
        assert_eq!(applied(&old, &new).0, new);
    }

    #[test]
    fn unified_shows_hunks_with_context() {
        assert_eq!(
            unified("l1\nl2\nl3\n", "l1\nCHANGED\nl3\n"),
            "@@ -1,3 +1,3 @@\n l1\n-l2\n+CHANGED\n l3\n"
        );
        assert_eq!(
            unified("a\nb", "a\nb\nc"),
            "@@ -1,2 +1,3 @@\n a\n-b\n\\ No newline at end of file\n+b\n+c\n\\ No newline at end of file\n"
        );
        let old: String = (1..=20).map(|i| format!("{i}\n")).collect();
        let new = old.replace("\n5\n", "\n").replace("\n18\n", "\n18\nx\n");
        assert_eq!(
            unified(&old, &new),
            "@@ -2,7 +2,6 @@\n 2\n 3\n 4\n-5\n 6\n 7\n 8\n@@ -16,5 +15,6 @@\n 16\n 17\n 18\n+x\n 19\n 20\n"
        );
        let near = old.replace("\n5\n", "\n").replace("\n12\n", "\n");
        assert_eq!(unified(&old, &near).matches("@@ -").count(), 1);
        assert_eq!(unified("a\n", "b\n"), "@@ -1 +1 @@\n-a\n+b\n");
    }
}
