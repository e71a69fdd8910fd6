//! Patterns of `.Files.Glob`.

use go::regexp::Regexp;

fn literal(c: char, text: &mut String) {
    text.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
}

fn class(ranges: &[(char, char)], negated: bool, text: &mut String) {
    let real: Vec<_> = ranges.iter().filter(|(low, high)| low <= high).collect();
    if real.is_empty() {
        // Matches no character, or any character.
        text.push_str(if negated { "." } else { "[^\\s\\S]" });
        return;
    }
    text.push_str(if negated { "[^" } else { "[" });
    for (low, high) in real {
        literal_in_class(*low, text);
        text.push('-');
        literal_in_class(*high, text);
    }
    text.push(']');
}

fn literal_in_class(c: char, text: &mut String) {
    if c.is_ascii_punctuation() {
        text.push('\\');
    }
    text.push(c);
}

/// Translates a pattern of `.Files.Glob` to a regular expression: `*` stops at slashes, `**` doesn't, `{a,b}` are alternatives.
/// `None` if the pattern is invalid.
pub(super) fn files_pattern(pattern: &str) -> Option<Regexp> {
    let mut text = String::from("(?s)^");
    let mut rest = pattern.chars().peekable();
    let mut depth = 0_usize;
    while let Some(c) = rest.next() {
        match c {
            '*' if rest.next_if_eq(&'*').is_some() => text.push_str(".*"),
            '*' => text.push_str("[^/]*"),
            '?' => text.push_str("[^/]"),
            '[' => files_class(&mut rest, &mut text)?,
            '{' => {
                depth = depth.checked_add(1)?;
                text.push_str("(?:");
            }
            '}' if depth > 0 => {
                depth = depth.checked_sub(1)?;
                text.push(')');
            }
            ',' if depth > 0 => text.push('|'),
            // At the end, a backslash has no effect.
            '\\' => rest.next().into_iter().for_each(|c| literal(c, &mut text)),
            c => literal(c, &mut text),
        }
    }
    // Alternatives without an end reach to the end.
    text.extend(std::iter::repeat_n(')', depth));
    text.push('$');
    Regexp::compile_unicode(&text).ok()
}

/// A class is either one range or a list of characters; a `!` in front negates it.
fn files_class(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, text: &mut String) -> Option<()> {
    let negated = rest.next_if_eq(&'!').is_some();
    let first = rest.next().filter(|first| *first != ']')?;
    if rest.next_if_eq(&'-').is_some() {
        let last = rest.next()?;
        rest.next_if_eq(&']')?;
        if last < first {
            return None;
        }
        class(&[(first, last)], negated, text);
        return Some(());
    }
    let mut ranges = Vec::new();
    let mut next = Some(first);
    loop {
        match next? {
            ']' => break,
            '\\' => {
                let c = rest.next()?;
                ranges.push((c, c));
            }
            c => ranges.push((c, c)),
        }
        next = rest.next();
    }
    class(&ranges, negated, text);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(pattern: &str) -> Option<Vec<&'static str>> {
        let pattern = files_pattern(pattern)?;
        let names = ["a.txt", "b.txt", "ab", "sub/a.txt", "{a", "a}"];
        let is_match = |name: &&str| pattern.search(name, |_| Ok::<_, ()>(())).is_match().unwrap();
        Some(names.into_iter().filter(is_match).collect())
    }

    #[test]
    fn patterns_without_an_end_match_as_in_the_original() {
        for (pattern, expected) in [
            ("{a,b", Some(&[][..])),
            ("{", Some(&[])),
            ("a{,b", Some(&["ab"])),
            ("{a{,b}", Some(&["ab"])),
            ("{a.txt,", Some(&["a.txt"])),
            ("a.txt\\", Some(&["a.txt"])),
            ("{a,b}.txt", Some(&["a.txt", "b.txt"])),
            ("[", None),
            ("[]", None),
            ("[]a]", None),
            ("[!]a]", None),
        ] {
            assert_eq!(matched(pattern).as_deref(), expected, "{pattern}");
        }
    }
}
