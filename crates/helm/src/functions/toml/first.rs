//! Finds the parts of valid TOML 1.1 that TOML 1.0 doesn't have: line breaks and final commas in inline tables, two escapes, and times
//! without seconds.

/// Returns the message of the first part that is not TOML 1.0.
pub(super) fn check(text: &str) -> Result<(), String> {
    let mut scan = Scan {
        text,
        line: 1,
        open: Vec::new(),
        after_comma: false,
    };
    while !scan.text.is_empty() {
        let line = scan.line;
        if let Err(why) = scan.token() {
            return Err(format!("toml: line {line}: {why}"));
        }
    }
    Ok(())
}

struct Scan<'t> {
    text: &'t str,
    line: usize,
    /// The open brackets and braces.
    open: Vec<char>,
    after_comma: bool,
}

impl<'t> Scan<'t> {
    fn token(&mut self) -> Result<(), String> {
        let is_final = std::mem::take(&mut self.after_comma);
        let Some(next) = self.text.chars().next() else {
            return Ok(());
        };
        match next {
            '"' | '\'' => return self.string(next),
            '#' => drop(self.take(|c| c != '\n')),
            '{' | '[' => self.open.push(next),
            '}' if is_final => return Err("trailing comma not allowed in inline tables".to_owned()),
            '}' | ']' => drop(self.open.pop()),
            '\n' if self.open.last() == Some(&'{') => {
                return Err("newlines not allowed within inline tables".to_owned());
            }
            '\n' => self.line += 1,
            ',' => self.after_comma = true,
            c if is_bare(c) => return check_time(self.take(is_bare)),
            c => self.after_comma = is_final && c.is_whitespace(),
        }
        if next != '#' {
            self.skip(next.len_utf8());
        }
        Ok(())
    }

    fn skip(&mut self, bytes: usize) {
        self.text = self.text.get(bytes..).unwrap_or_default();
    }

    fn take(&mut self, while_true: impl Fn(char) -> bool) -> &'t str {
        let end = self.text.find(|c| !while_true(c)).unwrap_or(self.text.len());
        let (taken, rest) = self.text.split_at_checked(end).unwrap_or((self.text, ""));
        self.text = rest;
        taken
    }

    fn string(&mut self, quote: char) -> Result<(), String> {
        let three = if quote == '"' { "\"\"\"" } else { "\'\'\'" };
        let is_long = self.text.starts_with(three);
        self.skip(if is_long { 3 } else { 1 });
        while let Some(next) = self.text.chars().next() {
            if next == quote && (!is_long || self.text.starts_with(three)) {
                // Up to two quotes before the end belong to the string.
                match is_long {
                    true => drop(self.take(|c| c == quote)),
                    false => self.skip(1),
                }
                return Ok(());
            }
            self.line += usize::from(next == '\n');
            self.skip(next.len_utf8());
            if next == '\\' && quote == '"' {
                match self.text.chars().next() {
                    Some(escaped @ ('e' | 'x')) => {
                        return Err(format!("invalid escape in string '\\{escaped}'"));
                    }
                    Some(escaped) => {
                        self.line += usize::from(escaped == '\n');
                        self.skip(escaped.len_utf8());
                    }
                    None => {}
                }
            }
        }
        Ok(())
    }
}

fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.' | ':')
}

/// Refuses a time without seconds. A date may stand before it.
fn check_time(word: &str) -> Result<(), String> {
    let time = word.rsplit(['T', 't']).next().unwrap_or_default();
    let has_seconds = time.get(5..6) == Some(":");
    match time.contains(':') && !has_seconds {
        true => Err(format!("invalid datetime: \"{word}\"")),
        false => Ok(()),
    }
}
