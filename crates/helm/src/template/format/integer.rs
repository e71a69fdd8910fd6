//! Integers as text.

use super::printer::Printer;
use crate::{
    Kind,
    template::quote::{is_print, quote_with},
};

/// Prints an integer; not when the verb isn't for integers.
pub(super) fn format_integer(printer: &mut Printer<'_>, number: i128, kind: Kind, verb: char) -> bool {
    let signed = matches!(kind, Kind::Int | Kind::Int64 | Kind::Int32);
    match verb {
        'v' if printer.flags.sharp_v && !signed => {
            let sharp = std::mem::replace(&mut printer.flags.sharp, true);
            digits(printer, number, 'x');
            printer.flags.sharp = sharp;
        }
        'v' | 'd' => digits(printer, number, 'd'),
        'b' | 'o' | 'O' | 'x' | 'X' => digits(printer, number, verb),
        'c' => printer.pad(&character(number).to_string()),
        'q' => {
            let text = quote_with(&character(number).to_string(), '\'', printer.flags.plus);
            printer.pad(&text);
        }
        'U' => unicode(printer, number),
        _ => return false,
    }
    true
}

fn character(number: i128) -> char {
    u32::try_from(number)
        .ok()
        .and_then(char::from_u32)
        .unwrap_or('\u{fffd}')
}

fn digits(printer: &mut Printer<'_>, number: i128, verb: char) {
    let flags = printer.flags;
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
            return printer.write(&width);
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
    printer.pad_with_spaces(&text);
}

fn unicode(printer: &mut Printer<'_>, number: i128) {
    let flags = printer.flags;
    // A negative number is shown as the bits that it has.
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
    let shown = u32::try_from(bits)
        .ok()
        .and_then(char::from_u32)
        .filter(|c| is_print(*c));
    if let (true, Some(c)) = (flags.sharp, shown) {
        text.push_str(&format!(" '{c}'"));
    }
    printer.pad_with_spaces(&text);
}
