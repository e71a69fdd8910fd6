//! Removes comments before the parser reads each of their characters: files of values are mostly comments. Lines and
//! positions stay. From the first line on for which it is unclear if it is a comment or part of a scalar, everything is
//! unchanged.

/// Minimum length in bytes of a document for which removing its comments pays off.
const WORTH: usize = 2048;

/// Returns the document with empty comments; `None` if it is unchanged.
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
            let length = if content.is_ascii() {
                indent + 1
            } else {
                line.len()
            };
            short.push_str(line.get(..length)?);
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

/// The end of the construct that a line starts.
enum Ends {
    Here,
    /// A block scalar follows, whose lines are indented further than this column.
    InBlock(usize),
    Unknown,
}

/// Classifies a line without its indentation that is not a comment.
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

/// Returns the positions of the last dash at the start of a line and of its item.
fn dashes(content: &str) -> (usize, usize) {
    let (mut dash, mut start) = (0, 0);
    while let Some(rest) = content.get(start..).and_then(|rest| rest.strip_prefix("- ")) {
        dash = start;
        start = content.len() - rest.trim_start_matches(' ').len();
    }
    (dash, start)
}

/// Returns true if a value or a key starts at `start`, so that a quotation mark is a quote.
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

/// Returns the length of a quoted string with its quotes, if it ends on its line.
fn quoted(text: &str, mark: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from
            + text
                .get(from..)?
                .find(if mark == "'" { ['\'', '\''] } else { ['"', '\\'] })?;
        let next = text.get(at + 1..)?;
        // An escaped character, or a doubled quotation mark: both take two.
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

    /// Comments after a line, long enough to be shortened.
    fn commented(line: &str) -> String {
        let filler = format!("# {}\n", "it's \"long\" ".repeat(20));
        format!("{line}\n{}", filler.repeat(12))
    }

    #[test]
    fn shortening_changes_only_comments() {
        let table = [
            ("a: b", true),
            ("a: \"b\" # it's", true),
            ("a: 'it''s' ", true),
            ("- \"a\\\"b\": {c: \"d\", e: 'f'}", true),
            ("a: b#c", true),
            ("a: | # text\n  # inside\n  x\nb: c", true),
            ("a:\n  - >-\n    # inside\n\n    # too\n  #\nb: c", true),
            // These may go on in the next line, or only seem to.
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
    fn shortening_keeps_the_value() {
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
