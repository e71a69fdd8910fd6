//! Rules for doc comments: how they open, and how short they may be. Pure.

/// Words that make an opening headless: `/// Whether it runs.` instead of `/// Returns true if it runs.`
const HEADLESS: &[&str] = &[
    "What", "Who", "Whom", "Whose", "Whether", "Where", "How", "Which", "When", "Why",
];

/// A doc comment of a file.
struct DocComment<'a> {
    /// The line number of its first line, from 1.
    line: usize,
    /// Its lines without `///` or `//!`.
    text: Vec<&'a str>,
    /// The first line of the documented item; `None` for a module's own comment (`//!`).
    item: Option<&'a str>,
}

/// Lists the doc comments of a Rust file that open headless, and those of public items that say too little.
pub(crate) fn check(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for comment in doc_comments(text) {
        let place = format!("{path}:{}", comment.line);
        let mut words = comment.text.iter().flat_map(|line| line.split_whitespace());
        let first = words.clone().next().unwrap_or_default();
        let opening = first.trim_end_matches(|c: char| !c.is_alphanumeric());
        if HEADLESS.contains(&opening.split('\'').next().unwrap_or_default()) {
            findings.push(format!(
                "{place}: the doc comment opens with `{opening}`: begin with a verb (`Returns ...`) or a noun phrase"
            ));
        }
    }
    findings
}

/// Finds the doc comments of a formatted file.
fn doc_comments(text: &str) -> Vec<DocComment<'_>> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    let mut rest = lines.iter().copied().enumerate().peekable();
    while let Some((index, line)) = rest.next() {
        let Some(marker) = ["///", "//!"].into_iter().find(|marker| line.starts_with(marker)) else {
            continue;
        };
        let mut comment = DocComment {
            line: index + 1,
            text: vec![line.trim_start_matches(marker)],
            item: None,
        };
        while let Some((_, line)) = rest.next_if(|(_, line)| line.starts_with(marker)) {
            comment.text.push(line.trim_start_matches(marker));
        }
        if marker == "///" {
            // Attributes stand between a comment and its item.
            while rest.next_if(|(_, line)| line.starts_with("#[")).is_some() {}
            comment.item = rest.peek().map(|(_, line)| *line);
        }
        found.push(comment);
    }
    found
}
