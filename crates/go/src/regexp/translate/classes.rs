//! Character classes and escapes.

use super::{NOTHING, Translator, error, literal};
use crate::regexp::RegexpError;

/// The names of classes between `[:` and `:]`.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// Names of scripts that are as short as the codes of scripts, which Go doesn't know.
const SHORT_SCRIPTS: [&str; 8] = ["ahom", "cham", "kawi", "lisu", "modi", "newa", "thai", "toto"];

/// Highest code of a character.
const LAST: u32 = 0x10_ffff;

impl Translator<'_> {
    /// Translates the escape of a class to the inner part of a class, or returns the code of any other escape.
    pub(super) fn class_escape(&mut self, out: &mut String) -> Result<Option<u32>, RegexpError> {
        let start = self.at;
        let class = match self.rest().as_bytes().get(1) {
            Some(b'd') => "0-9",
            Some(b'D') => "[^0-9]",
            Some(b's') => r"\t\n\f\r\x20",
            Some(b'S') => r"[^\t\n\f\r\x20]",
            Some(b'w') => "0-9A-Za-z_",
            Some(b'W') => "[^0-9A-Za-z_]",
            Some(b'p' | b'P') => {
                self.at += 2;
                return self.property(start, out).map(|()| None);
            }
            _ => return self.code().map(Some),
        };
        self.at += 2;
        out.push_str(class);
        Ok(None)
    }

    /// Returns the code of an escaped character.
    fn code(&mut self) -> Result<u32, RegexpError> {
        let start = self.at;
        self.at += 1;
        let c = self
            .peek()
            .ok_or_else(|| error("trailing backslash at end of expression", ""))?;
        self.at += c.len_utf8();
        Ok(match c {
            'a' => 7,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'v' => 11,
            'x' => return self.hexadecimal(start),
            '0'..='7' => return self.octal(start, c),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => u32::from(c),
            _ => return Err(error("invalid escape sequence", self.from(start))),
        })
    }

    /// Parses the rest of `\012`.
    fn octal(&mut self, start: usize, first: char) -> Result<u32, RegexpError> {
        let mut code = first.to_digit(8).unwrap_or_default();
        let mut more = 0;
        while more < 2
            && let Some(digit) = self.peek().and_then(|c| c.to_digit(8))
        {
            code = code * 8 + digit;
            self.at += 1;
            more += 1;
        }
        if first != '0' && more == 0 {
            return Err(error("invalid escape sequence", self.from(start)));
        }
        Ok(code)
    }

    /// Parses the rest of `\x7f` or `\x{10ffff}`.
    fn hexadecimal(&mut self, start: usize) -> Result<u32, RegexpError> {
        if self.peek() != Some('{') {
            let two: String = self.rest().chars().take(2).collect();
            self.at += two.len();
            let is_valid = two.len() == 2 && two.bytes().all(|byte| byte.is_ascii_hexdigit());
            return u32::from_str_radix(&two, 16)
                .ok()
                .filter(|_| is_valid)
                .ok_or_else(|| error("invalid escape sequence", self.from(start)));
        }
        self.at += 1;
        let (mut code, mut digits) = (0_u32, 0);
        loop {
            let Some(c) = self.peek() else {
                return Err(error("invalid escape sequence", self.from(start)));
            };
            self.at += c.len_utf8();
            if c == '}' && digits > 0 {
                return Ok(code);
            }
            let digit = c.to_digit(16);
            code = code.saturating_mul(16).saturating_add(digit.unwrap_or_default());
            if digit.is_none() || code > LAST {
                return Err(error("invalid escape sequence", self.from(start)));
            }
            digits += 1;
        }
    }

    /// Translates `\p{Greek}`, `\pL` and `\P{^Greek}`.
    fn property(&mut self, start: usize, out: &mut String) -> Result<(), RegexpError> {
        let (letter, rest) = (self.from(start).ends_with('P'), self.rest());
        let name = if let Some(braced) = rest.strip_prefix('{') {
            let Some(end) = braced.find('}') else {
                let all = self.whole.get(start..).unwrap_or_default();
                return Err(error("invalid character class range", all));
            };
            self.at += end + 2;
            braced.get(..end).unwrap_or_default()
        } else {
            let length = rest.chars().next().map_or(0, char::len_utf8);
            self.at += length;
            rest.get(..length).unwrap_or_default()
        };
        let (negated, name) = name
            .strip_prefix('^')
            .map_or((letter, name), |name| (!letter, name));
        let canonical = name.to_lowercase().replace([' ', '_', '-'], "");
        let known = self.properties.entry(canonical);
        let Some(found) = known.or_insert_with_key(|name| property(name)).clone() else {
            return Err(error("invalid character class range", self.from(start)));
        };
        match found.as_str() {
            "" if negated => out.push_str(r"\x00-\x{10FFFF}"),
            "" => out.push_str(NOTHING),
            found => out.push_str(&format!(r"\{}{{{found}}}", if negated { 'P' } else { 'p' })),
        }
        Ok(())
    }

    pub(super) fn class(&mut self) -> Result<(), RegexpError> {
        let missing = error("missing closing ]", self.rest());
        let mut out = String::from("[");
        self.at += 1;
        if self.peek() == Some('^') {
            out.push('^');
            self.at += 1;
        }
        let mut first = true;
        loop {
            let c = self.peek().ok_or_else(|| missing.clone())?;
            if c == ']' && !first {
                self.at += 1;
                break;
            }
            first = false;
            if let Some(inside) = self.rest().strip_prefix("[:")
                && let Some(end) = inside.find(":]")
            {
                let name = inside.get(..end).unwrap_or_default();
                let whole = self.rest().get(..end + 4).unwrap_or_default();
                if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
                    return Err(error("invalid character class range", whole));
                }
                out.push_str(whole);
                self.at += whole.len();
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
        let low = match self.peek() {
            Some('\\') => self.class_escape(&mut class)?,
            _ => Some(self.character(missing)?),
        };
        let Some(low) = low else {
            out.push_str(&class);
            return Ok(());
        };
        let mut after = self.rest().chars();
        let mut high = low;
        if after.next() == Some('-') && after.next().is_some_and(|c| c != ']') {
            self.at += 1;
            high = self.character(missing)?;
            if low > high {
                return Err(error("invalid character class range", self.from(start)));
            }
        }
        codes(out, low, high);
        Ok(())
    }

    fn character(&mut self, missing: &RegexpError) -> Result<u32, RegexpError> {
        match self.peek().ok_or_else(|| missing.clone())? {
            '\\' => self.code(),
            c => {
                self.at += c.len_utf8();
                Ok(u32::from(c))
            }
        }
    }
}

/// Writes a range of codes. Strings have no surrogates.
fn codes(out: &mut String, low: u32, high: u32) {
    let low = char::from_u32(low).unwrap_or('\u{e000}');
    let high = char::from_u32(high).unwrap_or('\u{d7ff}');
    if low > high {
        out.push_str(NOTHING);
        return;
    }
    literal(out, low);
    if low != high {
        out.push('-');
        literal(out, high);
    }
}

/// Returns the name of a class of Unicode as crate regex has it, empty for the class of surrogates. Go knows the categories and scripts, by
/// their names in any case, and no other properties. `canonical` is in lower case and has no separators.
fn property(canonical: &str) -> Option<String> {
    let known = |class: &str| regex_automata::util::syntax::parse(&format!(r"\p{{{class}}}")).is_ok();
    if !canonical.bytes().all(|byte| byte.is_ascii_alphabetic()) || canonical.starts_with("is") {
        return None;
    }
    match canonical {
        "cs" | "surrogate" => return Some(String::new()),
        "any" | "ascii" | "assigned" => return Some(canonical.to_owned()),
        _ => {}
    }
    let category = format!("gc={canonical}");
    if known(&category) {
        return Some(category);
    }
    let is_code = canonical.len() == 4 && !SHORT_SCRIPTS.contains(&canonical);
    let script = format!("sc={canonical}");
    (!is_code && known(&script)).then_some(script)
}
