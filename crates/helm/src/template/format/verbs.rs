//! Parses formats: flags, width, precision, argument numbers and verbs.

use go::fmt::Flags;

use super::printer::Printer;
use crate::{Value, template::types::type_name};

/// Larger widths and precisions are ignored.
const TOO_LARGE: i128 = 1_000_000;

struct Reader<'f> {
    rest: &'f str,
    values: &'f [Value],
    next: usize,
    /// True if arguments were selected by number.
    reordered: bool,
    /// True if the argument numbers of the current verb are valid.
    good: bool,
}

pub(super) fn run(printer: &mut Printer<'_>, format: &str, values: &[Value]) {
    let mut reader = Reader {
        rest: format,
        values,
        next: 0,
        reordered: false,
        good: true,
    };
    while let Some((text, after)) = reader.rest.split_once('%') {
        printer.write(text);
        reader.rest = after;
        if !reader.verb(printer) {
            break;
        }
    }
    printer.write(reader.rest);
    printer.out.flags = Flags::default();
    let extra = values.get(reader.next..).unwrap_or_default();
    if !reader.reordered && !extra.is_empty() {
        write_extra(printer, extra);
    }
}

fn write_extra(printer: &mut Printer<'_>, extra: &[Value]) {
    printer.write("%!(EXTRA ");
    for (index, value) in extra.iter().enumerate() {
        if index > 0 {
            printer.write(", ");
        }
        printer.write(type_name(value));
        if !matches!(value, Value::Nil | Value::Missing) {
            printer.write("=");
            printer.value(value, 'v', 0);
        }
    }
    printer.write(")");
}

impl Reader<'_> {
    /// Prints the argument of a verb; returns false if the format ended before it.
    fn verb(&mut self, printer: &mut Printer<'_>) -> bool {
        self.good = true;
        printer.out.flags = self.flags();
        let mut numbered = self.argument_number();
        self.width(printer, &mut numbered);
        self.precision(printer, &mut numbered);
        if !numbered {
            self.argument_number();
        }
        let Some(verb) = self.rest.chars().next() else {
            printer.write("%!(NOVERB)");
            return false;
        };
        self.rest = self.rest.get(verb.len_utf8()..).unwrap_or_default();
        if verb == '%' {
            printer.write("%");
        } else if !self.good {
            printer.write(&format!("%!{verb}(BADINDEX)"));
        } else if let Some(value) = self.values.get(self.next) {
            self.next += 1;
            if matches!(verb, 'v' | 'w') {
                let flags = &mut printer.out.flags;
                flags.sharp_v = std::mem::take(&mut flags.sharp);
                flags.plus_v = std::mem::take(&mut flags.plus);
            }
            printer.value(value, verb, 0);
        } else {
            printer.write(&format!("%!{verb}(MISSING)"));
        }
        true
    }

    fn flags(&mut self) -> Flags {
        let mut flags = Flags::default();
        while let Some(c) = self.rest.chars().next() {
            match c {
                '#' => flags.sharp = true,
                '0' => flags.zero = true,
                '+' => flags.plus = true,
                '-' => flags.minus = true,
                ' ' => flags.space = true,
                _ => break,
            }
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        flags
    }

    fn take(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn width(&mut self, printer: &mut Printer<'_>, numbered: &mut bool) {
        if self.take('*') {
            let width = self.int();
            if width.is_none() {
                printer.write("%!(BADWIDTH)");
            }
            if width.is_some_and(|width| width < 0) {
                printer.out.flags.minus = true;
                printer.out.flags.zero = false;
            }
            printer.out.flags.width = width.map(|width| width.unsigned_abs() as usize);
            *numbered = false;
            return;
        }
        printer.out.flags.width = self.number();
        if *numbered && printer.out.flags.width.is_some() {
            self.good = false;
        }
    }

    fn precision(&mut self, printer: &mut Printer<'_>, numbered: &mut bool) {
        // A point at the end of the format is a verb.
        if self.rest.len() < 2 || !self.take('.') {
            return;
        }
        if *numbered {
            self.good = false;
        }
        *numbered = self.argument_number();
        if self.take('*') {
            let precision = self.int().filter(|precision| *precision >= 0);
            if precision.is_none() {
                printer.write("%!(BADPREC)");
            }
            printer.out.flags.precision = precision.map(|precision| precision as usize);
            *numbered = false;
            return;
        }
        printer.out.flags.precision = Some(self.number().unwrap_or_default());
    }

    /// Reads digits; too large a number is ignored and ends the format.
    fn number(&mut self) -> Option<usize> {
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        let number = read_number(digits);
        self.rest = if number.is_none() && !digits.is_empty() {
            ""
        } else {
            rest
        };
        number
    }

    fn int(&mut self) -> Option<i128> {
        let value = self.values.get(self.next)?;
        self.next += 1;
        match value {
            Value::Int(number, _) if number.abs() <= TOO_LARGE => Some(*number),
            _ => None,
        }
    }

    /// Reads `[n]`, which selects the next argument; returns true if there was a number.
    fn argument_number(&mut self) -> bool {
        if !self.rest.starts_with('[') {
            return false;
        }
        self.reordered = true;
        let Some(end) = self.rest.find(']').filter(|_| self.rest.len() > 2) else {
            self.good = false;
            self.rest = self.rest.get(1..).unwrap_or_default();
            return false;
        };
        let number = self.rest.get(1..end).and_then(read_number);
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        match number {
            Some(number) if (1..=self.values.len()).contains(&number) => {
                self.next = number - 1;
                true
            }
            other => {
                self.good = false;
                other.is_some()
            }
        }
    }
}

fn read_number(digits: &str) -> Option<usize> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: usize = digits.parse().ok()?;
    (number <= TOO_LARGE as usize * 10 + 9).then_some(number)
}
