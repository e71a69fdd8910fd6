//! Verbs of integers.

use super::Formatter;
use crate::{
    bytes::of_utf8,
    strconv::{is_print, quote_with},
};

impl Formatter {
    /// Writes an integer. Returns false, and writes nothing, if the verb is not one for integers. `%#v` prints unsigned
    /// types in hexadecimal.
    pub fn integer(&mut self, number: i128, signed: bool, verb: char) -> bool {
        match verb {
            'v' if self.flags.sharp_v && !signed => {
                let sharp = std::mem::replace(&mut self.flags.sharp, true);
                digits(self, number, 'x');
                self.flags.sharp = sharp;
            }
            'v' | 'd' => digits(self, number, 'd'),
            'b' | 'o' | 'O' | 'x' | 'X' => digits(self, number, verb),
            'c' => self.pad(&of_utf8(&character(number).to_string())),
            'q' => {
                let text = quote_with(&of_utf8(&character(number).to_string()), '\'', self.flags.plus);
                self.pad(&text);
            }
            'U' => unicode(self, number),
            _ => return false,
        }
        true
    }
}

fn character(number: i128) -> char {
    u32::try_from(number)
        .ok()
        .and_then(char::from_u32)
        .unwrap_or('\u{fffd}')
}

fn digits(out: &mut Formatter, number: i128, verb: char) {
    let flags = out.flags;
    let negative = number < 0;
    let signed = negative || flags.plus || flags.space;
    let size = number.unsigned_abs();
    let mut text = match verb {
        'b' => format!("{size:b}"),
        'o' | 'O' => format!("{size:o}"),
        'x' => format!("{size:x}"),
        'X' => format!("{size:X}"),
        _ => size.to_string(),
    };
    let wanted = match (flags.precision, flags.width) {
        (Some(0), _) if size == 0 => {
            let width = " ".repeat(flags.width.unwrap_or_default());
            return out.write(&width);
        }
        (Some(precision), _) => precision,
        (None, Some(width)) if flags.zero && !flags.minus => width - usize::from(signed && width > 0),
        _ => 0,
    };
    if text.len() < wanted {
        text.insert_str(0, &"0".repeat(wanted - text.len()));
    }
    let prefix = match verb {
        'O' if flags.sharp && !text.starts_with('0') => "0o0",
        'O' => "0o",
        'b' if flags.sharp => "0b",
        'o' if flags.sharp && !text.starts_with('0') => "0",
        'x' if flags.sharp => "0x",
        'X' if flags.sharp => "0X",
        _ => "",
    };
    text.insert_str(0, prefix);
    let sign = match (negative, flags.plus, flags.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    };
    text.insert_str(0, sign);
    out.pad_with_spaces(&text);
}

fn unicode(out: &mut Formatter, number: i128) {
    let flags = out.flags;
    // A negative number is printed as its bits.
    let bits = if number < 0 {
        number as i64 as u64
    } else {
        number as u64
    };
    let width = flags.precision.unwrap_or(4).max(4);
    let mut text = format!("{bits:X}");
    if text.len() < width {
        text.insert_str(0, &"0".repeat(width - text.len()));
    }
    text.insert_str(0, "U+");
    let printed = u32::try_from(bits)
        .ok()
        .and_then(char::from_u32)
        .filter(|c| is_print(*c));
    if let (true, Some(c)) = (flags.sharp, printed) {
        text.push_str(&format!(" '{c}'"));
    }
    out.pad_with_spaces(&text);
}
