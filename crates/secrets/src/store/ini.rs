//! Sections of keys, read and printed as Go's ini.v1 does.

mod lines;

use lines::{DEFAULT, FORMAT, Section, sections};

use super::{
    flat,
    loaded::{Loaded, utf8},
};
use crate::{
    Error,
    document::{Branch, Item, Value},
};

const METADATA: &str = "sops";

pub(super) fn load(bytes: &[u8]) -> Result<Option<Loaded>, Error> {
    let text = utf8(FORMAT, bytes)?;
    let sections = sections(text.strip_prefix('\u{feff}').unwrap_or(text))?;
    let mut branch = Branch::new();
    let mut metadata = None;
    for section in sections {
        if section.name != METADATA {
            branch.push(Item::Entry(section.name.clone(), Value::Map(items(section))));
        } else if metadata.replace(section).is_some() {
            return Err(Error::Metadata("the section `sops` is there twice".to_owned()));
        }
    }
    let Some(metadata) = metadata else {
        return Ok(None);
    };
    let entries = metadata
        .keys
        .iter()
        .map(|key| (key.name.as_str(), key.value.as_str()));
    Ok(Some(Loaded {
        metadata: flat::unflatten(entries)?,
        documents: vec![branch],
    }))
}

/// Comments of a section come before its keys, comments of a key after the key.
fn items(section: Section) -> Branch {
    let comment = |text: &str| (!text.is_empty()).then(|| Item::Comment(uncommented(text)));
    let mut items: Branch = comment(&section.comment).into_iter().collect();
    for key in section.keys {
        items.push(Item::Entry(key.name, Value::Text(key.value)));
        items.extend(comment(&key.comment));
    }
    items
}

fn uncommented(text: &str) -> String {
    let text = match text.as_bytes().first() {
        Some(b';') => text.trim_start_matches([';', ' ']),
        Some(b'#') => text.trim_start_matches(['#', ' ']),
        _ => text,
    };
    text.to_owned()
}

struct Line<'b> {
    name: &'b str,
    value: Vec<u8>,
    comment: Option<&'b str>,
}

pub(super) fn print(branch: &Branch) -> Result<Vec<u8>, Error> {
    let sections: Vec<(&String, &Value)> = branch
        .iter()
        .filter_map(|item| match item {
            Item::Entry(name, value) => Some((name, value)),
            Item::Comment(_) => None,
        })
        .collect();
    let mut out = Vec::new();
    for (index, (name, value)) in sections.iter().enumerate() {
        let Value::Map(items) = value else {
            return Err(Error::Print {
                format: FORMAT,
                why: "it has values outside of sections",
            });
        };
        let (comment, lines) = lines_of(items)?;
        if let Some(comment) = comment {
            for line in comment.split('\n') {
                out.extend_from_slice(commented(line, false).as_bytes());
            }
        }
        if index > 0 || !name.eq_ignore_ascii_case(DEFAULT) {
            out.extend_from_slice(format!("[{name}]\n").as_bytes());
        } else if lines.is_empty() {
            continue;
        }
        print_lines(&lines, &mut out);
        if index + 1 < sections.len() {
            out.push(b'\n');
        }
    }
    Ok(out)
}

fn lines_of(items: &Branch) -> Result<(Option<&str>, Vec<Line<'_>>), Error> {
    let mut section = None;
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match item {
            Item::Comment(text) if index == 0 => section = Some(text.as_str()),
            Item::Comment(text) => {
                if let Some(line) = lines.last_mut() {
                    line.comment = Some(text.as_str());
                }
            }
            Item::Entry(name, value) => lines.push(Line {
                name,
                value: flat::text(value).ok_or(Error::Print {
                    format: FORMAT,
                    why: "its sections have lists or maps",
                })?,
                comment: None,
            }),
        }
    }
    Ok((section.filter(|text| !text.is_empty()), lines))
}

fn print_lines(lines: &[Line<'_>], out: &mut Vec<u8>) {
    let names: Vec<String> = lines.iter().map(|line| quoted_name(line.name)).collect();
    let width = names.iter().map(String::len).max().unwrap_or_default();
    for (line, name) in lines.iter().zip(names) {
        for comment in line.comment.iter().flat_map(|text| text.split('\n')) {
            out.extend_from_slice(commented(comment, true).as_bytes());
        }
        out.extend_from_slice(name.as_bytes());
        out.extend(std::iter::repeat_n(b' ', width.saturating_sub(name.len())));
        out.extend_from_slice(b" = ");
        let (quote, unquote) = quotes(&line.value);
        out.extend_from_slice(quote.as_bytes());
        out.extend_from_slice(&line.value);
        out.extend_from_slice(unquote.as_bytes());
        out.push(b'\n');
    }
}

fn commented(line: &str, trimmed: bool) -> String {
    match line.split_at_checked(1) {
        Some((mark @ ("#" | ";"), rest)) => format!("{mark} {}\n", rest.trim()),
        _ if trimmed => format!("; {}\n", line.trim()),
        _ => format!("; {line}\n"),
    }
}

fn quoted_name(name: &str) -> String {
    if name.contains(['"', '=', ':']) {
        format!("`{name}`")
    } else if name.contains('`') {
        format!("\"\"\"{name}\"\"\"")
    } else {
        name.to_owned()
    }
}

/// Returns the opening and closing quotes that a value needs to be read back unchanged.
fn quotes(value: &[u8]) -> (&'static str, &'static str) {
    let has = |bytes: &[u8]| value.iter().any(|byte| bytes.contains(byte));
    let text = String::from_utf8_lossy(value);
    if has(b"\n`") {
        ("\"\"\"", "\"\"\"")
    } else if has(b"#;") {
        ("`", "`")
    } else if text.trim().len() != text.len() {
        ("\"", "\"")
    } else {
        ("", "")
    }
}
