//! Prints values of all types with a verb.

use go::{bytes::to_string, fmt::Formatter};
use tree::Budget;

use super::FormatError;
use crate::{Dict, IntKind, Object, Value, template::types::type_name};

const MAX_DEPTH: usize = 2000;

pub(super) struct Printer<'b> {
    budget: &'b Budget,
    failure: Option<FormatError>,
    pub(super) out: Formatter,
}

impl<'b> Printer<'b> {
    pub(super) fn new(budget: &'b Budget) -> Self {
        Self {
            budget,
            failure: None,
            out: Formatter::new(usize::try_from(budget.limits().bytes).unwrap_or(usize::MAX)),
        }
    }

    pub(super) fn finish(self) -> Result<String, FormatError> {
        let steps = 1 + self.out.len() / 256;
        self.budget.step(steps as u64)?;
        match self.failure {
            Some(failure) => Err(failure),
            None => self.out.finish().ok_or(FormatError::TooLong),
        }
    }

    fn fail(&mut self, failure: FormatError) {
        self.failure.get_or_insert(failure);
    }

    pub(super) fn write(&mut self, text: &str) {
        self.out.write(text);
    }

    fn write_char(&mut self, c: char) {
        self.out.write_char(c);
    }

    fn pad(&mut self, text: &str) {
        self.out.pad(text);
    }

    /// Writes a string truncated to the precision and padded to the width.
    fn text(&mut self, text: &str) {
        self.out.truncated(text);
    }

    fn string(&mut self, text: &str, verb: char) -> bool {
        self.out.string(text, verb)
    }

    /// Prints a value with a verb; `depth` is its nesting in the argument.
    pub(super) fn value(&mut self, value: &Value, verb: char, depth: usize) {
        if depth > MAX_DEPTH {
            return self.fail(FormatError::TooDeep);
        }
        if self.failure.is_some() || self.out.overflowed() {
            return;
        }
        // Also strings of which the precision leaves nothing are read.
        let size = match value {
            Value::String(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        let width = self.out.flags.width.unwrap_or_default() + self.out.flags.precision.unwrap_or_default();
        if let Err(error) = self.budget.step((size / 64 + width / 64) as u64 + 1) {
            return self.fail(error.into());
        }
        if depth == 0 && verb == 'T' {
            return self.text(type_name(value));
        }
        match value {
            Value::Nil | Value::Missing => self.nothing(verb, depth),
            _ if depth == 0 && verb == 'p' => self.address(value),
            Value::Bool(flag) if matches!(verb, 't' | 'v') => self.pad(if *flag { "true" } else { "false" }),
            Value::Int(number, kind) => {
                let signed = matches!(kind, IntKind::Int | IntKind::Int64 | IntKind::Int32);
                if !self.out.integer(*number, signed, verb) {
                    self.bad_verb(value, verb);
                }
            }
            Value::Float(number) => {
                if !self.out.float(*number, verb) {
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
                if value.is_nil_list() && self.out.flags.sharp_v =>
            {
                self.write(type_name(value));
                self.write("(nil)");
            }
            Value::List(items) => self.list(items, "[]interface {}", verb, depth),
            Value::Strings(items) => self.list(items, "[]string", verb, depth),
            Value::Ints(items) => self.list(items, "[]int", verb, depth),
            Value::Dict(map) => self.map(map, verb, depth),
            Value::Object(object) => match object.integer() {
                Some(number) if self.out.flags.sharp_v || !matches!(verb, 'v' | 's' | 'q' | 'x' | 'X') => {
                    if !self.out.integer(number.into(), true, verb) {
                        self.bad_verb(value, verb);
                    }
                }
                _ => self.object(object.as_ref(), verb, depth),
            },
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
            _ if self.out.flags.sharp_v => self.write("interface {}(nil)"),
            _ => self.write("<nil>"),
        }
    }

    /// Prints an address, which differs in each run of the original and is constant here.
    fn address(&mut self, value: &Value) {
        match value {
            Value::Bytes(_) | Value::List(_) | Value::Strings(_) | Value::Ints(_) | Value::Dict(_) => {
                self.out.integer(0xc0_0000_0000, false, 'v');
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
        match value.as_integer() {
            // Methods such as `String` are not called here.
            Some(number) if matches!(value, Value::Object(_)) => {
                self.out.integer(number, true, 'v');
            }
            _ => self.value(value, 'v', 0),
        }
        self.write(")");
    }

    fn bytes(&mut self, bytes: &[u8], verb: char, depth: usize) {
        match verb {
            's' => self.text(&to_string(bytes)),
            'q' => self.out.quoted(&to_string(bytes)),
            'x' | 'X' => self.out.hex(bytes, verb),
            _ => {
                let items: Vec<_> = bytes
                    .iter()
                    .map(|byte| Value::Int((*byte).into(), IntKind::Uint8))
                    .collect();
                self.list(&items, if depth == 0 { "[]byte" } else { "[]uint8" }, verb, depth);
            }
        }
    }

    fn list(&mut self, items: &[Value], name: &str, verb: char, depth: usize) {
        let (open, between, close) = if self.out.flags.sharp_v {
            ("{", ", ", "}")
        } else {
            ("[", " ", "]")
        };
        if self.out.flags.sharp_v {
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
            return self.fail(FormatError::Borrowed);
        };
        let (open, between, close) = if self.out.flags.sharp_v {
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
        if !self.out.flags.sharp_v
            && !object.has_any_values()
            && let Some(map) = object.as_dict()
        {
            return self.map(&map, verb, depth);
        }
        let printed = object.print_as_argument(self.budget);
        let text = match printed {
            Ok(text) => text,
            Err(failure) => return self.fail(failure),
        };
        if verb == 'v' {
            return self.text(&text);
        }
        if !self.string(&text, verb) {
            let name = object.type_name();
            self.write(&format!("%!{verb}({name}={text})"));
        }
    }
}
