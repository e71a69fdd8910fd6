//! Rules for the wording of comments. Pure.

use super::lexer::{Kind, Token};

/// Words that make an opening headless: `/// Whether it runs.` instead of `/// Returns true if it runs.`
const HEADLESS: &[&str] = &[
    "what", "who", "whom", "whose", "whether", "where", "how", "which", "when", "why",
];

/// A phrase that readers trip over.
struct Phrase {
    words: &'static [&'static str],
    /// Words after it that make it plain English.
    unless_next: &'static [&'static [&'static str]],
    /// Words before it that make it plain English.
    unless_previous: &'static [&'static str],
    advice: &'static str,
}

const PHRASES: &[Phrase] = &[
    Phrase {
        words: &["that", "of"],
        unless_next: &[],
        unless_previous: &[],
        advice: "repeat the noun",
    },
    Phrase {
        words: &["those", "of"],
        unless_next: &[],
        unless_previous: &[],
        advice: "repeat the noun",
    },
    Phrase {
        words: &["what"],
        unless_next: &[&["to"]],
        unless_previous: &[],
        advice: "say the noun",
    },
    Phrase {
        words: &["a", "text"],
        unless_next: &[&["node"], &["nodes"], &["file"], &["files"]],
        unless_previous: &[],
        advice: "say string, document, source or template",
    },
    Phrase {
        words: &["texts"],
        unless_next: &[],
        unless_previous: &[],
        advice: "say strings, documents, sources or templates",
    },
    Phrase {
        words: &["is", "no"],
        unless_next: &[&["longer"], &["."]],
        unless_previous: &["there"],
        advice: "say `is not a` or `has no`",
    },
    Phrase {
        words: &["so", "many"],
        unless_next: &[],
        unless_previous: &[],
        advice: "name the unit",
    },
];

/// Lists the refused phrases of all comments, and doc comments that open headless. Quoted code is not read.
pub(crate) fn check(path: &str, tokens: &[Token<'_>]) -> Vec<String> {
    let mut findings = Vec::new();
    for comment in comments(tokens) {
        findings.extend(comment.headless().map(|(line, word)| {
            format!("{path}:{line}: the doc comment opens with `{word}`: begin with a verb (`Returns ...`) or a noun phrase")
        }));
        for (line, phrase) in comment.phrases() {
            let words = phrase.words.join(" ");
            findings.push(format!(
                "{path}:{line}: `{words}` in a comment: {}",
                phrase.advice
            ));
        }
    }
    findings
}

struct Comment<'a> {
    marker: &'static str,
    last_line: usize,
    /// The words with their lines, punctuation included.
    words: Vec<(usize, &'a str)>,
    /// A fence of a code block is open.
    in_code: bool,
    /// Code in backticks goes on in the next line.
    in_quote: bool,
}

impl<'a> Comment<'a> {
    fn add(&mut self, line: usize, text: &'a str) {
        self.last_line = line + text.matches('\n').count();
        for (index, text) in text.lines().enumerate() {
            let text = text.trim().trim_start_matches(['/', '*', '!']);
            if text.trim().starts_with("```") {
                self.in_code = !self.in_code;
            } else if !self.in_code {
                self.add_words(line + index, text);
            }
        }
    }

    fn add_words(&mut self, line: usize, text: &'a str) {
        for (index, part) in text.split('`').enumerate() {
            if index > 0 {
                self.in_quote = !self.in_quote;
                // Stands for the code, so that the words around it are not neighbours.
                self.words.push((line, "`"));
            }
            if !self.in_quote {
                self.words
                    .extend(part.split_whitespace().map(|word| (line, word)));
            }
        }
    }

    fn headless(&self) -> Option<(usize, &'a str)> {
        let (line, first) = self.words.first()?;
        let opening = first.split('\'').next().unwrap_or_default();
        let opening = opening.trim_end_matches(|c: char| !c.is_alphanumeric());
        let found = self.marker != "//" && HEADLESS.contains(&opening.to_lowercase().as_str());
        (found && opening.starts_with(char::is_uppercase)).then_some((*line, opening))
    }

    fn phrases(&self) -> Vec<(usize, &'static Phrase)> {
        let parts = self
            .words
            .iter()
            .flat_map(|(line, word)| plain(word).map(|part| (*line, part)));
        let (lines, parts): (Vec<usize>, Vec<String>) = parts.unzip();
        let mut found = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            let (before, from) = parts.split_at(index);
            let matching = PHRASES.iter().filter(|phrase| phrase.matches(before, from));
            found.extend(matching.map(|phrase| (*line, phrase)));
        }
        found
    }
}

impl Phrase {
    fn matches(&self, before: &[String], from: &[String]) -> bool {
        let previous = before.last().map_or("", String::as_str);
        let next = from.get(self.words.len()..).unwrap_or_default();
        starts(from, self.words)
            && !self.unless_previous.contains(&previous)
            && !self.unless_next.iter().any(|words| starts(next, words))
    }
}

fn starts(text: &[String], words: &[&str]) -> bool {
    text.len() >= words.len() && text.iter().zip(words).all(|(found, word)| found == word)
}

/// Returns a word in lower case, without punctuation around it, and a dot if punctuation ends it.
fn plain(word: &str) -> impl Iterator<Item = String> {
    let part = word.split('\'').next().unwrap_or_default();
    let bare = part.trim_matches(|c: char| !c.is_alphanumeric() && c != '`');
    let ends = word.ends_with(['.', ',', ';', ':', '!', '?']);
    [bare.to_lowercase()]
        .into_iter()
        .chain(ends.then(|| ".".to_owned()))
}

fn comments<'a>(tokens: &[Token<'a>]) -> Vec<Comment<'a>> {
    let mut found: Vec<Comment<'a>> = Vec::new();
    let mut after_code_on = 0;
    let mut open = false;
    for token in tokens {
        let Kind::Comment(text) = token.kind else {
            (after_code_on, open) = (token.line, false);
            continue;
        };
        let marker = ["//!", "///", "//", "/*"]
            .into_iter()
            .find(|marker| text.starts_with(marker));
        let marker = marker.unwrap_or("//");
        match found.last_mut() {
            Some(last)
                if open
                    && last.marker == marker
                    && token.line == last.last_line + 1
                    && after_code_on != last.last_line =>
            {
                last.add(token.line, text);
            }
            _ => {
                let mut comment = Comment {
                    marker,
                    last_line: token.line,
                    words: Vec::new(),
                    in_code: false,
                    in_quote: false,
                };
                comment.add(token.line, text);
                found.push(comment);
            }
        }
        open = true;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{super::lexer, *};

    #[track_caller]
    fn assert_finds(text: &str, expected: &[&str]) {
        let found = check("a.rs", &lexer::tokens(text));
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (finding, part) in found.iter().zip(expected) {
            assert!(finding.contains(part), "{finding} does not contain {part}");
        }
    }

    #[test]
    fn headless_openings_of_doc_comments_are_found() {
        let text = "//! Whether it works.\n\n/// How long it takes,\n/// in seconds.\nfn f() {}\n/// Who's left.\n#[test]\nfn g() {}\n\
                    /// Returns it.\n///\n/// # Errors\n/// When it fails.\nfn h() {}\n/// Whatever comes.\nfn i() {}\n// When it ends, go.\n";
        assert_finds(text, &["a.rs:1: ", "a.rs:3: ", "a.rs:6: "]);
    }

    #[test]
    fn phrases_are_found_across_lines() {
        let text = "/// The name is that\n/// of the file.\nfn f() {} // so many bytes\n// Returns Texts, a text\n// and what it has.\n";
        let expected = [
            "a.rs:1: `that of`",
            "a.rs:3: `so many`",
            "a.rs:4: `texts`",
            "a.rs:4: `a text`",
            "a.rs:5: `what`",
        ];
        assert_finds(text, &expected);
        assert_finds("// It is no value.\n// Before that, of course.\n", &["`is no`"]);
        assert_finds("/* those\n of us */", &["a.rs:1: `those of`"]);
    }

    #[test]
    fn plain_uses_of_the_words_are_accepted() {
        let text = "// Says what to do and what to try. A text node; a text file. It is no longer so. There is no file. The answer is no.\n// Whatever that offers.\n";
        assert_finds(text, &[]);
        assert_finds("// The field `what` of `a text` is `no` that `x` of.\n", &[]);
        assert_finds(
            "/// Returns it:\n/// ```\n/// what(that of)\n/// ```\nfn f() {}\n",
            &[],
        );
        assert_finds("let x = \"what\"; // that\n// of\n", &[]);
    }
}
