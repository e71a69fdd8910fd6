//! Makes long comments short before the parser looks at each of their characters.
//!
//! Files of values are mostly comments. Lines stay where they are, and so do the positions of all else. Where it isn't plain
//! that a line is a comment, rather than a part of a text, all is left as it is from there on.

/// How long a text must be to be worth it.
const WORTH: usize = 2048;

/// The text with what stands behind the `#` of lines that are comments left out; nothing when it stays as it is.
pub(super) fn shortened(text: &str) -> Option<String> {
    // Carriage returns end lines, too.
    if text.len() < WORTH || text.contains('\r') {
        return None;
    }
    let mut short = String::with_capacity(text.len() / 2);
    let mut rest = text;
    let mut block = None;
    while let Some(end) = rest.find('\n') {
        let (line, behind) = rest.split_at_checked(end)?;
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len();
        if content.is_empty() || block.is_some_and(|around| indent > around) {
            short.push_str(line);
        } else if content.starts_with('#') {
            let kept = if content.is_ascii() {
                indent + 1
            } else {
                line.len()
            };
            short.push_str(line.get(..kept)?);
        } else {
            match ends(content)? {
                Ends::Here => block = None,
                Ends::InBlock(at) => block = Some(indent + at),
                Ends::Unknown => break,
            }
            short.push_str(line);
        }
        short.push('\n');
        rest = behind.get(1..)?;
    }
    short.push_str(rest);
    Some(short)
}

/// Where what a line begins ends.
enum Ends {
    Here,
    /// A text follows whose lines have more indentation than what is at this place of the line.
    InBlock(usize),
    Unknown,
}

/// Looks at a line that is no comment, without its indentation.
fn ends(content: &str) -> Option<Ends> {
    let marks = content.starts_with(['%', '?']) || content.starts_with("--") || content.starts_with("..");
    if marks || !content.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Some(Ends::Unknown);
    }
    let (dash, start) = dashes(content);
    let mut said = content;
    let mut from = 0;
    while let Some(found) = content.get(from..)?.find(['"', '\'', '#']) {
        let at = from + found;
        let before = content.get(..at)?;
        let behind = content.get(at + 1..)?;
        if content.as_bytes().get(at) == Some(&b'#') {
            if before.ends_with(' ') {
                said = before;
                break;
            }
            from = at + 1;
        } else if begins(before, start)
            && let Some(length) = quoted(behind, content.get(at..=at)?)
        {
            from = at + 1 + length;
        } else {
            return Some(Ends::Unknown);
        }
    }
    let said = said.trim_end_matches(' ');
    let (before, last) = said.rsplit_once(' ').unwrap_or(("", said));
    if !last.starts_with(['|', '>']) || last.len() > 3 {
        return Some(Ends::Here);
    }
    Some(if before.trim_end_matches(' ').ends_with(':') {
        Ends::InBlock(start)
    } else if start > 0 && said.get(start..) == Some(last) {
        Ends::InBlock(dash)
    } else {
        Ends::Unknown
    })
}

/// Where the last of the dashes is that a line begins with, and where what they stand for is.
fn dashes(content: &str) -> (usize, usize) {
    let (mut dash, mut start) = (0, 0);
    while let Some(rest) = content.get(start..).and_then(|rest| rest.strip_prefix("- ")) {
        dash = start;
        start = content.len() - rest.trim_start_matches(' ').len();
    }
    (dash, start)
}

/// Whether a value or a key begins behind a part of a line, so that a quotation mark is one.
fn begins(before: &str, start: usize) -> bool {
    let value = |text: &str| {
        let trimmed = text.trim_end_matches(' ');
        text.len() == start || (trimmed.len() < text.len() && trimmed.ends_with(':'))
    };
    let in_list = before.trim_end_matches(' ').ends_with(['[', '{', ','])
        && before
            .split_once(['[', '{'])
            .is_some_and(|(before, _)| value(before));
    value(before) || in_list
}

/// The length of a text in quotation marks up to and with the last one, when that is on the same line.
fn quoted(text: &str, mark: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from
            + text
                .get(from..)?
                .find(if mark == "'" { ['\'', '\''] } else { ['"', '\\'] })?;
        let next = text.get(at + 1..)?;
        // An escaped character, or one mark that stands for itself: both take two.
        let escaped = text.get(at..)?.starts_with('\\') || (mark == "'" && next.starts_with('\''));
        if !escaped {
            return Some(at + 1);
        }
        from = at + 2;
    }
}

#[cfg(test)]
mod tests {
    use tree::Budget;

    use super::*;
    use crate::read::{compose::Composer, document, events::decode, goyaml};

    /// Comments behind a line, long enough to be shortened.
    fn commented(line: &str) -> String {
        let filler = format!("# {}\n", "it's \"long\" ".repeat(20));
        format!("{line}\n{}", filler.repeat(12))
    }

    #[test]
    fn comments_become_short_and_nothing_else_changes() {
        let table = [
            ("a: b", true),
            ("a: \"b\" # it's", true),
            ("a: 'it''s' ", true),
            ("- \"a\\\"b\": {c: \"d\", e: 'f'}", true),
            ("a: b#c", true),
            ("a: | # text\n  # inside\n  x\nb: c", true),
            ("a:\n  - >-\n    # inside\n\n    # too\n  #\nb: c", true),
            // These may go on in the next line, or only look as if.
            ("a: \"b", false),
            ("a: b\"c: \"d", false),
            ("a: b 'c", false),
            ("|", false),
            ("--- |", false),
            ("? |", false),
            ("a: \u{85}|", false),
            ("-\"a: \"b", false),
            ("- -- \"a: \"b", false),
            ("a[ \"b: \"c", false),
            ("- &a |\n # inside", false),
            ("- a: |\n   # inside\n  b: \"c", false),
        ];
        for (line, short) in table {
            let text = commented(line);
            let got = shortened(&text).unwrap();
            assert_eq!(got.len() < 1024, short, "{line}");
            assert_eq!(got.lines().count(), text.lines().count(), "{line}");
            assert!(got.starts_with(line), "{line}");
        }
        assert_eq!(shortened("# a\n"), None);
        assert_eq!(shortened(&commented("a: b\r")), None);
    }

    #[test]
    fn what_is_read_stays_the_same() {
        let budget = Budget::default();
        let lines = [
            "a: b",
            "a: |",
            "  # c",
            "# c",
            "a: \"x",
            "y\"",
            "- 'q",
            "  z: >-",
            "    # t",
            "",
            "  x: 'it''s'",
            "a: b # c",
            "  - d",
            "|",
            " x",
            "[",
            "a, \"b\"]",
            "a: &x |2",
            "--- >",
            "k: it's",
        ];
        let filler = format!("# {}\n", "long ".repeat(20)).repeat(25);
        for first in lines {
            for second in lines {
                for third in lines {
                    let text = format!("{first}\n{second}\n{third}\n# e\n  # f\n{filler}");
                    let short = shortened(&text).unwrap();
                    let read = |text: &str| {
                        let text = decode(text.as_bytes(), &budget).unwrap();
                        let mut composer = Composer::new(&text, &goyaml::LENIENT, &budget);
                        document(&mut composer, &goyaml::LENIENT).map_err(|error| error.to_string())
                    };
                    assert_eq!(read(&text), read(&short), "{text}");
                }
            }
        }
    }
}
