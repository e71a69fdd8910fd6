//! Translates Go's syntax of regular expressions to the syntax of crate regex. Both have the same power and the same order
//! of alternatives; they differ in ASCII-only classes, in nested classes, in braces that don't repeat, and in errors.

use super::RegexpError;

fn error(problem: &'static str, text: &str) -> RegexpError {
    RegexpError::Syntax {
        problem,
        at: text.to_owned(),
    }
}

pub(super) fn translate(expression: &str) -> Result<String, RegexpError> {
    let mut translator = Translator {
        whole: expression,
        at: 0,
        out: String::new(),
        groups: 0,
        repeated: None,
        atom: false,
    };
    while let Some(c) = translator.peek() {
        translator.step(c)?;
    }
    if translator.groups > 0 {
        return Err(error("missing closing )", expression));
    }
    Ok(translator.out)
}

struct Translator<'t> {
    whole: &'t str,
    at: usize,
    out: String,
    groups: usize,
    /// Position of the repetition operator directly before.
    repeated: Option<usize>,
    /// True if the part before can be repeated.
    atom: bool,
}

/// The names of classes between `[:` and `:]`.
const CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// Go's highest repetition count.
const REPEATS: u32 = 1000;

impl<'t> Translator<'t> {
    fn rest(&self) -> &'t str {
        self.whole.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn from(&self, start: usize) -> &'t str {
        self.whole.get(start..self.at).unwrap_or_default()
    }

    /// Writes a part that can be repeated.
    fn atom(&mut self, text: &str) {
        self.out.push_str(text);
        self.atom = true;
        self.repeated = None;
    }

    fn step(&mut self, c: char) -> Result<(), RegexpError> {
        match c {
            '(' => self.group()?,
            ')' => {
                if self.groups == 0 {
                    return Err(error("unexpected )", self.whole));
                }
                self.groups -= 1;
                self.at += 1;
                self.atom(")");
            }
            '|' => {
                self.at += 1;
                self.out.push('|');
                self.atom = false;
                self.repeated = None;
            }
            '*' | '+' | '?' => self.repeat(1)?,
            '{' => match counts(self.rest()) {
                None => {
                    self.at += 1;
                    self.atom(r"\{");
                }
                Some((length, low, high)) => {
                    let high = high.unwrap_or(low);
                    if low > REPEATS || high > REPEATS || low > high {
                        return Err(error(
                            "invalid repeat count",
                            self.rest().get(..length).unwrap_or_default(),
                        ));
                    }
                    self.repeat(length)?;
                }
            },
            '[' => self.class()?,
            '\\' => self.escape()?,
            '^' | '$' | '.' => {
                self.at += 1;
                self.atom(c.encode_utf8(&mut [0; 4]));
            }
            c => {
                self.at += c.len_utf8();
                let mut text = String::new();
                literal(&mut text, c);
                self.atom(&text);
            }
        }
        Ok(())
    }

    /// Translates a repetition operator of `length` bytes and the `?` after it.
    fn repeat(&mut self, length: usize) -> Result<(), RegexpError> {
        let start = self.at;
        self.at += length;
        if !self.atom {
            return Err(error("missing argument to repetition operator", self.from(start)));
        }
        if self.peek() == Some('?') {
            self.at += 1;
        }
        if let Some(before) = self.repeated {
            return Err(error("invalid nested repetition operator", self.from(before)));
        }
        self.repeated = Some(start);
        let operator = self.from(start);
        self.out.push_str(operator);
        Ok(())
    }

    fn group(&mut self) -> Result<(), RegexpError> {
        let start = self.at;
        self.groups += 1;
        self.atom = false;
        self.repeated = None;
        let Some(inside) = self.rest().strip_prefix("(?") else {
            self.at += 1;
            self.out.push('(');
            return Ok(());
        };
        if let Some(named) = inside.strip_prefix("P<").or_else(|| inside.strip_prefix('<')) {
            let Some((name, _)) = named.split_once('>') else {
                return Err(error("invalid named capture", self.rest()));
            };
            self.at += self.rest().find('>').unwrap_or(0) + 1;
            if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_alphanumeric()) {
                return Err(error("invalid named capture", self.from(start)));
            }
            // Crate regex wants names that begin with a letter; groups are found by their index as well.
            let digit = name.starts_with(|c: char| c.is_numeric());
            self.out
                .push_str(&format!("(?P<{}{name}>", if digit { "_" } else { "" }));
            return Ok(());
        }
        self.at += 2;
        loop {
            let c = self
                .peek()
                .ok_or_else(|| error("missing closing )", self.whole))?;
            self.at += c.len_utf8();
            match c {
                'i' | 'm' | 's' | 'U' | '-' => {}
                ':' => break,
                ')' => {
                    self.groups -= 1;
                    break;
                }
                _ => return Err(error("invalid or unsupported Perl syntax", self.from(start))),
            }
        }
        let flags = self.from(start);
        if flags == "(?)" {
            // Flags without an effect; crate regex has no syntax for them.
            return Ok(());
        }
        if flags.ends_with("-:") || flags.ends_with("-)") {
            return Err(error("invalid or unsupported Perl syntax", flags));
        }
        self.out.push_str(flags);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), RegexpError> {
        if let Some(quoted) = self.rest().strip_prefix(r"\Q") {
            let (inner, length) = match quoted.split_once(r"\E") {
                Some((inner, _)) => (inner, inner.len() + 4),
                None => (quoted, quoted.len() + 2),
            };
            self.at += length;
            for c in inner.chars() {
                let mut text = String::new();
                literal(&mut text, c);
                self.atom(&text);
            }
            return Ok(());
        }
        let special = match self.rest().as_bytes().get(1) {
            Some(b'A') => r"\A",
            Some(b'z') => r"\z",
            Some(b'b') => r"(?-u:\b)",
            Some(b'B') => r"\B",
            _ => "",
        };
        if !special.is_empty() {
            self.at += 2;
            self.atom(special);
            return Ok(());
        }
        let mut text = String::new();
        match self.class_escape(&mut text)? {
            None => {
                self.atom(&format!("[{text}]"));
            }
            Some(c) => {
                literal(&mut text, c);
                self.atom(&text);
            }
        }
        Ok(())
    }

    /// Translates the escape of a class to the inner part of a class, or returns the character of any other escape.
    fn class_escape(&mut self, out: &mut String) -> Result<Option<char>, RegexpError> {
        let start = self.at;
        self.at += 1;
        let c = self
            .peek()
            .ok_or_else(|| error("trailing backslash at end of expression", ""))?;
        self.at += c.len_utf8();
        let class = match c {
            'd' => "0-9",
            'D' => "[^0-9]",
            's' => r"\t\n\f\r\x20",
            'S' => r"[^\t\n\f\r\x20]",
            'w' => "0-9A-Za-z_",
            'W' => "[^0-9A-Za-z_]",
            'p' | 'P' => return self.property(start, c, out).map(|()| None),
            'a' => return Ok(Some('\u{7}')),
            'f' => return Ok(Some('\u{c}')),
            'n' => return Ok(Some('\n')),
            'r' => return Ok(Some('\r')),
            't' => return Ok(Some('\t')),
            'v' => return Ok(Some('\u{b}')),
            'x' | '0'..='7' => return self.number(start, c).map(Some),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => return Ok(Some(c)),
            _ => return Err(error("invalid escape sequence", self.from(start))),
        };
        out.push_str(class);
        Ok(None)
    }

    /// Translates `\p{Greek}`, `\pL` and `\P{^Greek}`.
    fn property(&mut self, start: usize, c: char, out: &mut String) -> Result<(), RegexpError> {
        let rest = self.rest();
        let name = if let Some(braced) = rest.strip_prefix('{') {
            let end = braced
                .find('}')
                .ok_or_else(|| error("invalid character class range", rest))?;
            self.at += end + 2;
            braced.get(..end).unwrap_or_default()
        } else {
            let length = rest.chars().next().map_or(0, char::len_utf8);
            self.at += length;
            rest.get(..length).unwrap_or_default()
        };
        let (negated, name) = name
            .strip_prefix('^')
            .map_or((c == 'P', name), |name| (c != 'P', name));
        let letter = if negated { 'P' } else { 'p' };
        let written = if name == "Any" { "any" } else { name };
        let known = regex::Regex::new(&format!(r"\p{{{written}}}")).is_ok();
        if !known || name.contains(['=', ':', '!']) {
            return Err(error("invalid character class range", self.from(start)));
        }
        out.push_str(&format!(r"\{letter}{{{written}}}"));
        Ok(())
    }

    /// Parses `\012`, `\x7f` and `\x{10ffff}`.
    fn number(&mut self, start: usize, c: char) -> Result<char, RegexpError> {
        let rest = self.rest();
        let octal = |c: char| ('0'..='7').contains(&c);
        let (digits, base, length) = if c == 'x' {
            match rest.strip_prefix('{') {
                Some(braced) => {
                    let end = braced.find('}').unwrap_or(braced.len());
                    (braced.get(..end).unwrap_or_default().to_owned(), 16, end + 2)
                }
                None => (rest.chars().take(2).collect(), 16, 2),
            }
        } else {
            let more: String = rest.chars().take_while(|c| octal(*c)).take(2).collect();
            if c != '0' && more.is_empty() {
                return Err(error("invalid escape sequence", self.from(start)));
            }
            let length = more.len();
            (format!("{c}{more}"), 8, length)
        };
        let found = u32::from_str_radix(&digits, base).ok().and_then(char::from_u32);
        let end = (self.at + length).min(self.whole.len());
        match found.filter(|_| base == 8 || digits.len() == 2 || length > 2) {
            Some(found) => {
                self.at = end;
                Ok(found)
            }
            None => Err(error(
                "invalid escape sequence",
                self.whole.get(start..end).unwrap_or_default(),
            )),
        }
    }

    fn class(&mut self) -> Result<(), RegexpError> {
        let start = self.at;
        let missing = || error("missing closing ]", self.whole.get(start..).unwrap_or_default());
        let mut out = String::from("[");
        let mut at = self.at + 1;
        if self.whole.get(at..).is_some_and(|rest| rest.starts_with('^')) {
            out.push('^');
            at += 1;
        }
        let missing = missing();
        self.at = at;
        let mut first = true;
        loop {
            let c = self.peek().ok_or_else(|| missing.clone())?;
            if c == ']' && !first {
                self.at += 1;
                break;
            }
            first = false;
            if self.rest().starts_with("[:")
                && let Some(end) = self.rest().find(":]")
            {
                let name = self.rest().get(..end + 2).unwrap_or_default();
                if !CLASSES.contains(&name.trim_matches(['[', ':', '^', ']'])) {
                    return Err(error("invalid character class range", name));
                }
                out.push_str(name);
                self.at += end + 2;
                continue;
            }
            self.range(&mut out, &missing)?;
        }
        out.push(']');
        self.atom(&out);
        Ok(())
    }

    fn range(&mut self, out: &mut String, missing: &RegexpError) -> Result<(), RegexpError> {
        let start = self.at;
        let mut class = String::new();
        let Some(low) = self.character(&mut class, missing)? else {
            out.push_str(&class);
            return Ok(());
        };
        let mut after = self.rest().chars();
        if after.next() == Some('-') && after.next().is_some_and(|c| c != ']') {
            self.at += 1;
            let high = self.character(&mut class, missing)?;
            let Some(high) = high.filter(|high| low <= *high) else {
                return Err(error("invalid character class range", self.from(start)));
            };
            literal(out, low);
            out.push('-');
            literal(out, high);
        } else {
            literal(out, low);
        }
        Ok(())
    }

    fn character(&mut self, class: &mut String, missing: &RegexpError) -> Result<Option<char>, RegexpError> {
        match self.peek().ok_or_else(|| missing.clone())? {
            '\\' => self.class_escape(class),
            c => {
                self.at += c.len_utf8();
                Ok(Some(c))
            }
        }
    }
}

fn literal(out: &mut String, c: char) {
    if r"\.+*?()|[]{}^$-&~#".contains(c) {
        out.push('\\');
    }
    out.push(c);
}

/// Parses `{2}`, `{2,}` or `{2,3}`: returns its length, the lower and the upper count.
fn counts(text: &str) -> Option<(usize, u32, Option<u32>)> {
    let (inner, _) = text.strip_prefix('{')?.split_once('}')?;
    let number = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let leading = digits.len() > 1 && digits.starts_with('0');
        (plain && !leading).then(|| digits.parse::<u32>().unwrap_or(u32::MAX))
    };
    let (low, high) = match inner.split_once(',') {
        None => (number(inner)?, None),
        Some((low, "")) => (number(low)?, None),
        Some((low, high)) => (number(low)?, Some(number(high)?)),
    };
    Some((inner.len() + 2, low, high))
}
