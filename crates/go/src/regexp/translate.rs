//! Translates Go's syntax of regular expressions to the syntax of crate regex. Both have the same power and the same order
//! of alternatives; they differ in ASCII-only classes, in nested classes, in braces that don't repeat, in flags, and in errors.

mod classes;

use std::collections::HashMap;

use super::RegexpError;

fn error(problem: &'static str, text: &str) -> RegexpError {
    RegexpError::Syntax {
        problem,
        at: text.to_owned(),
    }
}

/// Translates an expression. Without `captures`, its groups capture nothing.
pub(super) fn translate(expression: &str, captures: bool) -> Result<String, RegexpError> {
    let mut translator = Translator {
        whole: expression,
        captures,
        at: 0,
        out: String::new(),
        groups: Vec::new(),
        names: Vec::new(),
        repeated: None,
        atom: None,
        repeats: 0,
        properties: HashMap::new(),
    };
    while let Some(c) = translator.peek() {
        translator.step(c)?;
    }
    if !translator.groups.is_empty() {
        return Err(error("missing closing )", expression));
    }
    Ok(translator.out)
}

/// The part before, which an operator repeats: its range in the output.
struct Atom {
    start: usize,
    end: usize,
    /// The highest product of nested repetition counts in it.
    repeats: u32,
}

/// An open group.
struct Group {
    start: usize,
    /// The highest product of nested repetition counts before it in the group around it.
    repeats: u32,
}

struct Translator<'t> {
    whole: &'t str,
    captures: bool,
    at: usize,
    out: String,
    groups: Vec<Group>,
    names: Vec<&'t str>,
    /// Position of the repetition operator directly before.
    repeated: Option<usize>,
    atom: Option<Atom>,
    /// The highest product of nested repetition counts in the innermost group.
    repeats: u32,
    /// The names of properties so far, as crate regex has them.
    properties: HashMap<String, Option<String>>,
}

/// Go's highest repetition count, also of the product of nested ones.
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
        let start = self.out.len();
        self.out.push_str(text);
        self.end_atom(start, 1);
    }

    fn end_atom(&mut self, start: usize, repeats: u32) {
        let end = self.out.len();
        self.atom = Some(Atom { start, end, repeats });
        self.repeats = self.repeats.max(repeats);
        self.repeated = None;
    }

    fn step(&mut self, c: char) -> Result<(), RegexpError> {
        match c {
            '(' => self.group()?,
            ')' => {
                let Some(group) = self.groups.pop() else {
                    return Err(error("unexpected )", self.whole));
                };
                self.at += 1;
                self.out.push(')');
                let inner = std::mem::replace(&mut self.repeats, group.repeats);
                self.end_atom(group.start, inner);
            }
            '|' => {
                self.at += 1;
                self.out.push('|');
                self.atom = None;
                self.repeated = None;
            }
            '*' | '+' | '?' => self.repeat(1, None)?,
            '{' => match counts(self.rest()) {
                None => {
                    self.at += 1;
                    self.atom(r"\{");
                }
                Some((length, low, high)) => {
                    let at_most = high.unwrap_or(low);
                    if low > REPEATS || at_most > REPEATS || low > at_most {
                        return Err(error(
                            "invalid repeat count",
                            self.rest().get(..length).unwrap_or_default(),
                        ));
                    }
                    self.repeat(length, Some((low, at_most)))?;
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
                self.literal(c);
            }
        }
        Ok(())
    }

    fn literal(&mut self, c: char) {
        let mut text = String::new();
        literal(&mut text, c);
        self.atom(&text);
    }

    /// Translates a repetition operator of `length` bytes and the `?` after it. `counts` are the lowest and the highest count in braces.
    fn repeat(&mut self, length: usize, counts: Option<(u32, u32)>) -> Result<(), RegexpError> {
        let start = self.at;
        self.at += length;
        if self.peek() == Some('?') {
            self.at += 1;
        }
        if let Some(before) = self.repeated {
            return Err(error("invalid nested repetition operator", self.from(before)));
        }
        let operator = self.from(start);
        let Some(atom) = self.atom.take() else {
            return Err(error("missing argument to repetition operator", operator));
        };
        let mut repeats = atom.repeats;
        if let Some((_, high)) = counts {
            repeats = match high {
                0 => 1,
                high => repeats.saturating_mul(high),
            };
            if high >= 2 && repeats > REPEATS {
                return Err(error("invalid repeat count", operator));
            }
        }
        // Flags and empty quotes may be between the part and its operator.
        let between = self.out.split_off(atom.end.min(self.out.len()));
        if between.is_empty() {
            self.out.push_str(operator);
        } else {
            let part = self.out.split_off(atom.start.min(self.out.len()));
            self.out.push_str(&format!("(?:{part}){operator}{between}"));
        }
        self.end_atom(atom.start, repeats);
        if let Some(last) = &mut self.atom {
            last.end -= between.len();
        }
        self.repeated = Some(start);
        Ok(())
    }

    fn open(&mut self, text: &str) {
        self.groups.push(Group {
            start: self.out.len(),
            repeats: std::mem::replace(&mut self.repeats, 1),
        });
        self.out.push_str(text);
        self.atom = None;
        self.repeated = None;
    }

    fn group(&mut self) -> Result<(), RegexpError> {
        let start = self.at;
        let Some(inside) = self.rest().strip_prefix("(?") else {
            self.at += 1;
            self.capture("(");
            return Ok(());
        };
        let Some(named) = inside.strip_prefix("P<").or_else(|| inside.strip_prefix('<')) else {
            return self.flags(start);
        };
        let Some((name, _)) = named.split_once('>') else {
            return Err(error("invalid named capture", self.rest()));
        };
        self.at += self.rest().find('>').unwrap_or(0) + 1;
        if name.is_empty() || !name.bytes().all(|c| c == b'_' || c.is_ascii_alphanumeric()) {
            return Err(error("invalid named capture", self.from(start)));
        }
        if self.names.contains(&name) {
            // The first of several groups with a name has it.
            self.capture("(");
            return Ok(());
        }
        self.names.push(name);
        // Crate regex wants names that begin with a letter; groups are found by their index as well.
        let digit = name.starts_with(|c: char| c.is_numeric());
        self.capture(&format!("(?P<{}{name}>", if digit { "_" } else { "" }));
        Ok(())
    }

    /// Opens a group that captures.
    fn capture(&mut self, text: &str) {
        self.open(if self.captures { text } else { "(?:" });
    }

    /// Translates flags, such as `(?i)` and `(?i-s:`. Crate regex wants each flag once.
    fn flags(&mut self, start: usize) -> Result<(), RegexpError> {
        self.at += 2;
        let mut flags: [(char, Option<bool>); 4] = ['i', 'm', 's', 'U'].map(|flag| (flag, None));
        let (mut on, mut is_set) = (true, true);
        let is_group = loop {
            let invalid = |at: &Self| Err(error("invalid or unsupported Perl syntax", at.from(start)));
            let Some(c) = self.peek() else {
                return invalid(self);
            };
            self.at += c.len_utf8();
            match c {
                '-' if on => (on, is_set) = (false, false),
                ':' | ')' if is_set => break c == ':',
                c => match flags.iter_mut().find(|(flag, _)| *flag == c) {
                    Some((_, state)) => {
                        // After the sign, a flag is off in any case.
                        *state = Some(on);
                        is_set = true;
                    }
                    None => return invalid(self),
                },
            }
        };
        let list = |wanted: bool| -> String {
            let chosen = flags.iter().filter(|(_, state)| *state == Some(wanted));
            chosen.map(|(flag, _)| *flag).collect()
        };
        let (set, cleared) = (list(true), list(false));
        let minus = if cleared.is_empty() { "" } else { "-" };
        let text = format!("(?{set}{minus}{cleared}");
        if is_group {
            self.open(&format!("{text}:"));
        } else {
            self.repeated = None;
            if text != "(?" {
                self.out.push_str(&format!("{text})"));
            }
        }
        Ok(())
    }

    fn escape(&mut self) -> Result<(), RegexpError> {
        if let Some(quoted) = self.rest().strip_prefix(r"\Q") {
            let (inner, length) = match quoted.split_once(r"\E") {
                Some((inner, _)) => (inner, inner.len() + 4),
                None => (quoted, quoted.len() + 2),
            };
            self.at += length;
            self.repeated = None;
            inner.chars().for_each(|c| self.literal(c));
            return Ok(());
        }
        let special = match self.rest().as_bytes().get(1) {
            Some(b'A') => r"\A",
            Some(b'z') => r"\z",
            Some(b'b') => r"(?-u:\b)",
            Some(b'B') => r"(?-u:\B)",
            _ => "",
        };
        if !special.is_empty() {
            self.at += 2;
            self.atom(special);
            return Ok(());
        }
        let mut class = String::new();
        match self.class_escape(&mut class)? {
            None => self.atom(&format!("[{class}]")),
            Some(code) => match char::from_u32(code) {
                Some(c) => self.literal(c),
                None => self.atom(NOTHING),
            },
        }
        Ok(())
    }
}

/// Matches nothing, as half of a surrogate pair does.
const NOTHING: &str = r"[^\x00-\x{10FFFF}]";

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
