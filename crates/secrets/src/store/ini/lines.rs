//! Parses lines to sections.

use std::collections::HashMap;

use crate::Error;

pub(super) const FORMAT: &str = "INI file";
pub(super) const DEFAULT: &str = "DEFAULT";

/// A section; several may have one name.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) comment: String,
    pub(super) keys: Vec<Key>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) comment: String,
}

/// Returns all sections, the nameless one first.
pub(super) fn sections(text: &str) -> Result<Vec<Section>, Error> {
    let mut reader = Reader {
        rest: text,
        line: 0,
        comment: String::new(),
        counted: 1,
        positions: HashMap::new(),
    };
    let mut sections = Vec::new();
    let mut section = Section {
        name: DEFAULT.to_owned(),
        ..Section::default()
    };
    while let Some(line) = reader.next() {
        let line = line.trim_start();
        if line.starts_with(['#', ';']) {
            reader.comment.push_str(line);
        } else if let Some(header) = line.strip_prefix('[') {
            let (name, behind) = header
                .rsplit_once(']')
                .ok_or_else(|| reader.wrong("a section has no `]`"))?;
            if name.is_empty() {
                return Err(reader.wrong("a section has no name"));
            }
            if let Some(comment) = behind.find(['#', ';']).and_then(|at| behind.get(at..)) {
                reader.comment.push_str(comment);
            }
            let next = Section {
                name: name.to_owned(),
                comment: reader.heard(),
                keys: Vec::new(),
            };
            reader.counted = 1;
            reader.positions.clear();
            sections.push(std::mem::replace(&mut section, next));
        } else if !line.is_empty() {
            reader.key(line, &mut section)?;
        }
    }
    sections.push(section);
    Ok(sections)
}

struct Reader<'t> {
    rest: &'t str,
    line: usize,
    comment: String,
    /// Number of the next key that is called `-`.
    counted: usize,
    positions: HashMap<String, usize>,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Option<&'t str> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.find('\n').map_or(self.rest.len(), |at| at + 1);
        let (line, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        self.line += 1;
        Some(line)
    }

    fn wrong(&self, why: &str) -> Error {
        Error::syntax(FORMAT, format!("line {}: {why}", self.line))
    }

    fn heard(&mut self) -> String {
        std::mem::take(&mut self.comment).trim().to_owned()
    }

    fn key(&mut self, line: &str, section: &mut Section) -> Result<(), Error> {
        let (name, value) = split(line).map_err(|why| self.wrong(why))?;
        let name = match name {
            "-" => {
                self.counted += 1;
                format!("#{}", self.counted - 1)
            }
            name => name.to_owned(),
        };
        if name.is_empty() {
            return Err(self.wrong("a key has no name"));
        }
        let value = self.value(value)?;
        let comment = self.heard();
        let known = self
            .positions
            .get(&name)
            .and_then(|position| section.keys.get_mut(*position));
        match known {
            Some(key) => {
                key.value = value;
                key.comment = comment;
            }
            None => {
                self.positions.insert(name.clone(), section.keys.len());
                section.keys.push(Key { name, value, comment });
            }
        }
        Ok(())
    }

    fn value(&mut self, text: &str) -> Result<String, Error> {
        let line = text.trim_start();
        for quote in ["\"\"\"", "`"] {
            // Three quotes alone start nothing.
            if let Some(inner) = line.strip_prefix(quote)
                && !(inner.is_empty() && quote.len() == 3)
            {
                return match inner.rfind(quote).and_then(|end| inner.get(..end)) {
                    Some(value) => Ok(value.to_owned()),
                    None => self.lines_until(quote, inner),
                };
            }
        }
        let line = line.trim_end();
        if let Some(first) = line.strip_suffix('\\') {
            return Ok(self.continued(first));
        }
        let (value, comment) = match line.find(['#', ';']).and_then(|at| line.split_at_checked(at)) {
            Some((value, comment)) => (value.trim(), comment),
            None => (line, ""),
        };
        self.comment.push_str(comment);
        Ok(unquoted(value).to_owned())
    }

    fn lines_until(&mut self, quote: &str, first: &str) -> Result<String, Error> {
        let mut value = first.to_owned();
        while let Some(line) = self.next() {
            if let Some((last, behind)) = line.rsplit_once(quote) {
                value.push_str(last);
                if let Some(comment) = behind.find(['#', ';']).and_then(|at| behind.get(at..)) {
                    self.comment.push_str(comment.trim());
                }
                return Ok(value);
            }
            value.push_str(line);
        }
        Err(self.wrong("a value has no closing quote"))
    }

    fn continued(&mut self, first: &str) -> String {
        let mut value = first.to_owned();
        while let Some(line) = self.next() {
            let line = line.trim();
            if line.is_empty() {
                break;
            }
            match line.strip_suffix('\\') {
                Some(more) => value.push_str(more),
                None => {
                    value.push_str(line);
                    break;
                }
            }
        }
        value
    }
}

/// Splits a line into the key and the value after `=` or `:`.
fn split(line: &str) -> Result<(&str, &str), &'static str> {
    for quote in ["\"\"\"", "\"", "`"] {
        if let Some(inner) = line.strip_prefix(quote) {
            let (name, behind) = inner.split_once(quote).ok_or("a key has no closing quote")?;
            let (_, value) = behind.split_once(['=', ':']).ok_or("a key has no `=`")?;
            return Ok((name.trim(), value));
        }
    }
    let (name, value) = line.split_once(['=', ':']).ok_or("a key has no `=`")?;
    Ok((name.trim(), value))
}

fn unquoted(value: &str) -> &str {
    for quote in ['\'', '"'] {
        let inner = value
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = inner.filter(|inner| !inner.contains(quote)) {
            return inner;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_keys_and_comments() {
        let text = "root = 1\n; one\n# two\n[sec] ; three\nk: 'v' # four\nq = \"a;\"\n\
                    m = \"\"\"a\nb\"\"\"\nc = a\\\n  b\nc = `#x`\n[sec]\n- = 1\n";
        let found = sections(text).unwrap();
        let key = |name: &str, value: &str, comment: &str| Key {
            name: name.to_owned(),
            value: value.to_owned(),
            comment: comment.to_owned(),
        };
        let section = |name: &str, comment: &str, keys| Section {
            name: name.to_owned(),
            comment: comment.to_owned(),
            keys,
        };
        let keys = vec![
            key("k", "v", "# four"),
            key("q", "\"a", ";\""),
            key("m", "a\nb", ""),
            key("c", "#x", ""),
        ];
        assert_eq!(
            found,
            [
                section("DEFAULT", "", vec![key("root", "1", "")]),
                section("sec", "; one\n# two\n; three", keys),
                section("sec", "", vec![key("#1", "1", "")]),
            ]
        );
    }

    #[test]
    fn invalid_ini_files_are_refused_with_the_line() {
        for (text, why) in [
            ("\nx\n", "line 2: a key has no `=`"),
            ("[x\n", "line 1: a section has no `]`"),
            ("[]\n", "line 1: a section has no name"),
            ("=x\n", "line 1: a key has no name"),
            ("\"x=1\n", "line 1: a key has no closing quote"),
            ("x=`1\n2\n", "line 2: a value has no closing quote"),
        ] {
            let error = sections(text).unwrap_err().to_string();
            assert!(error.ends_with(why), "{error}");
        }
    }
}
