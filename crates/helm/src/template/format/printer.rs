//! Prints values of all types with a verb.

use tree::Budget;

use super::{float::format_float, integer::format_integer};
use crate::{
    Dict, Kind, Object, Value,
    functions::bytes::{of_text, to_text},
    template::{
        quote::{can_backquote, quote_with},
        types::type_name,
    },
};

/// How deep values may nest that are printed.
const MAX_DEPTH: usize = 2000;

/// What stands between `%` and the verb.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flags {
    pub(super) plus: bool,
    pub(super) minus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// `%+v`
    pub(super) plus_v: bool,
    /// `%#v`
    pub(super) sharp_v: bool,
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
}

/// Text that is being made, within limits.
pub(super) struct Printer<'b> {
    out: String,
    budget: &'b Budget,
    limit: usize,
    failure: Option<String>,
    pub(super) flags: Flags,
}

impl<'b> Printer<'b> {
    pub(super) fn new(budget: &'b Budget) -> Self {
        Self {
            out: String::new(),
            budget,
            limit: usize::try_from(budget.limits().bytes).unwrap_or(usize::MAX),
            failure: None,
            flags: Flags::default(),
        }
    }

    pub(super) fn finish(self) -> Result<String, String> {
        let steps = 1 + self.out.len() / 256;
        self.budget
            .step(steps as u64)
            .map_err(|error| error.to_string())?;
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(self.out),
        }
    }

    fn fail(&mut self, what: &str) {
        self.failure.get_or_insert_with(|| what.to_owned());
    }

    fn fits(&mut self, more: usize) -> bool {
        if self.out.len().saturating_add(more) > self.limit {
            self.fail("the text is too long");
        }
        self.failure.is_none()
    }

    pub(super) fn write(&mut self, text: &str) {
        if self.fits(text.len()) {
            self.out.push_str(text);
        }
    }

    pub(super) fn write_char(&mut self, c: char) {
        self.write(c.encode_utf8(&mut [0; 4]));
    }

    fn fill(&mut self, count: usize) {
        if self.fits(count) {
            let with = if self.flags.zero && !self.flags.minus {
                '0'
            } else {
                ' '
            };
            self.out.extend(std::iter::repeat_n(with, count));
        }
    }

    /// Writes a text as wide as was asked for.
    pub(super) fn pad(&mut self, text: &str) {
        let missing = match self.flags.width {
            None | Some(0) => 0,
            Some(width) => width.saturating_sub(text.chars().count()),
        };
        if self.flags.minus {
            self.write(text);
            self.fill(missing);
        } else {
            self.fill(missing);
            self.write(text);
        }
    }

    /// As [`Printer::pad`], but never with zeros.
    pub(super) fn pad_with_spaces(&mut self, text: &str) {
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(text);
        self.flags.zero = zero;
    }

    /// Fills with zeros between sign and digits.
    pub(super) fn pad_number(&mut self, sign: char, digits: &str) {
        let width = self.flags.width.unwrap_or_default();
        self.write_char(sign);
        self.fill(width.saturating_sub(digits.len() + 1));
        self.write(digits);
    }

    /// Prints a value with a verb; `depth` is how deep it is in what is printed.
    pub(super) fn value(&mut self, value: &Value, verb: char, depth: usize) {
        if depth > MAX_DEPTH {
            return self.fail("the value nests too deep");
        }
        if self.failure.is_some() {
            return;
        }
        if depth == 0 && verb == 'T' {
            return self.text(type_name(value));
        }
        match value {
            Value::Nil | Value::Missing => self.nothing(verb, depth),
            _ if depth == 0 && verb == 'p' => self.address(value),
            Value::Bool(flag) if matches!(verb, 't' | 'v') => self.pad(if *flag { "true" } else { "false" }),
            Value::Int(number, kind) => {
                if !format_integer(self, *number, *kind, verb) {
                    self.bad_verb(value, verb);
                }
            }
            Value::Float(number) => {
                if !format_float(self, *number, verb) {
                    self.bad_verb(value, verb);
                }
            }
            Value::String(text) => {
                if !self.string(text, verb) {
                    self.bad_verb(value, verb);
                }
            }
            Value::List(_) | Value::Strings(_) | Value::Ints(_) | Value::Dict(_) | Value::Object(_)
                if verb == 'w' =>
            {
                self.bad_verb(value, verb);
            }
            Value::Bytes(bytes) => self.bytes(bytes, verb, depth),
            Value::List(_) | Value::Strings(_) | Value::Ints(_)
                if value.is_nil_list() && self.flags.sharp_v =>
            {
                self.write(type_name(value));
                self.write("(nil)");
            }
            Value::List(items) => self.list(items, "[]interface {}", verb, depth),
            Value::Strings(items) => self.list(items, "[]string", verb, depth),
            Value::Ints(items) => self.list(items, "[]int", verb, depth),
            Value::Dict(map) => self.map(map, verb, depth),
            Value::Object(object) => self.object(object.as_ref(), verb, depth),
            Value::Bool(_) => self.bad_verb(value, verb),
        }
    }

    fn nothing(&mut self, verb: char, depth: usize) {
        match verb {
            'v' if depth == 0 => self.pad("<nil>"),
            _ if depth == 0 => {
                self.write("%!");
                self.write_char(verb);
                self.write("(<nil>)");
            }
            _ if self.flags.sharp_v => self.write("interface {}(nil)"),
            _ => self.write("<nil>"),
        }
    }

    /// An address is different in each run, so there is always the same one.
    fn address(&mut self, value: &Value) {
        match value {
            Value::Bytes(_) | Value::List(_) | Value::Strings(_) | Value::Ints(_) | Value::Dict(_) => {
                format_integer(self, 0xc0_0000_0000, Kind::Uint64, 'v');
            }
            _ => self.bad_verb(value, 'p'),
        }
    }

    fn bad_verb(&mut self, value: &Value, verb: char) {
        self.write("%!");
        self.write_char(verb);
        self.write("(");
        self.write(type_name(value));
        self.write("=");
        self.value(value, 'v', 0);
        self.write(")");
    }

    /// A text with nothing but width and precision.
    pub(super) fn text(&mut self, text: &str) {
        self.pad(self.flags.truncated(text));
    }

    /// Prints a string; not when the verb isn't for strings.
    fn string(&mut self, text: &str, verb: char) -> bool {
        match verb {
            'v' if self.flags.sharp_v => self.quoted(text),
            'v' | 's' => self.text(text),
            'x' | 'X' => self.hex(&of_text(text), verb),
            'q' => self.quoted(text),
            _ => return false,
        }
        true
    }

    fn quoted(&mut self, text: &str) {
        let text = self.flags.truncated(text);
        if self.flags.sharp && can_backquote(text) {
            self.pad(&format!("`{text}`"));
        } else {
            self.pad(&quote_with(text, '"', self.flags.plus));
        }
    }

    fn hex(&mut self, bytes: &[u8], verb: char) {
        let count = self.flags.precision.unwrap_or(usize::MAX).min(bytes.len());
        if count == 0 {
            return self.fill(self.flags.width.unwrap_or_default());
        }
        let (prefix, digits) = if verb == 'x' {
            ("0x", b"0123456789abcdef")
        } else {
            ("0X", b"0123456789ABCDEF")
        };
        let mut text = String::with_capacity(count * 2);
        for (index, byte) in bytes.iter().take(count).enumerate() {
            if self.flags.space && index > 0 {
                text.push(' ');
            }
            if self.flags.sharp && (self.flags.space || index == 0) {
                text.push_str(prefix);
            }
            for nibble in [byte >> 4, byte & 0xf] {
                text.push(
                    digits
                        .get(usize::from(nibble))
                        .copied()
                        .unwrap_or_default()
                        .into(),
                );
            }
        }
        self.pad(&text);
    }

    fn bytes(&mut self, bytes: &[u8], verb: char, depth: usize) {
        match verb {
            's' => self.text(&to_text(bytes)),
            'q' => self.quoted(&to_text(bytes)),
            'x' | 'X' => self.hex(bytes, verb),
            _ => {
                let items: Vec<_> = bytes
                    .iter()
                    .map(|byte| Value::Int((*byte).into(), Kind::Uint8))
                    .collect();
                self.list(&items, if depth == 0 { "[]byte" } else { "[]uint8" }, verb, depth);
            }
        }
    }

    fn list(&mut self, items: &[Value], name: &str, verb: char, depth: usize) {
        let (open, between, close) = if self.flags.sharp_v {
            ("{", ", ", "}")
        } else {
            ("[", " ", "]")
        };
        if self.flags.sharp_v {
            self.write(name);
        }
        self.write(open);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.write(between);
            }
            self.value(item, verb, depth + 1);
        }
        self.write(close);
    }

    fn map(&mut self, map: &Dict, verb: char, depth: usize) {
        let Ok(map) = map.try_borrow() else {
            return self.fail("the map is being changed");
        };
        let (open, between, close) = if self.flags.sharp_v {
            ("map[string]interface {}{", ", ", "}")
        } else {
            ("map[", " ", "]")
        };
        self.write(open);
        for (index, (key, value)) in map.iter().enumerate() {
            if index > 0 {
                self.write(between);
            }
            if !self.string(key, verb) {
                self.bad_verb(&Value::String(key.clone()), verb);
            }
            self.write(":");
            self.value(value, verb, depth + 1);
        }
        self.write(close);
    }

    fn object(&mut self, object: &dyn Object, verb: char, depth: usize) {
        if !self.flags.sharp_v
            && !object.has_any_values()
            && let Some(map) = object.as_dict()
        {
            return self.map(&map, verb, depth);
        }
        let text = object.print_as_argument();
        if verb == 'v' {
            return self.text(&text);
        }
        if !self.string(&text, verb) {
            let name = object.type_name();
            self.write(&format!("%!{verb}({name}={text})"));
        }
    }
}

impl Flags {
    /// A text cut to the precision.
    fn truncated(self, text: &str) -> &str {
        let end = self.precision.and_then(|count| text.char_indices().nth(count));
        end.and_then(|(end, _)| text.get(..end)).unwrap_or(text)
    }
}
