//! `strftime` of Python on Linux, in the C locale: flags, widths and the forms with `E` and `O` follow glibc.

use std::fmt::Write as _;

use jiff::civil::DateTime;

const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Formats a time with its offset in seconds, if it has one. Unknown directives are copied. The result is empty if it is
/// much longer than the pattern: Python gives up after 256 bytes for each byte of the pattern.
pub(super) fn format(clock: DateTime, offset: Option<i32>, pattern: &str) -> String {
    let least = pattern.len().saturating_mul(256).max(1024);
    let mut writer = Writer {
        clock,
        out: String::new(),
        limit: least.checked_next_power_of_two().unwrap_or(usize::MAX),
    };
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('%') {
        writer.out.push_str(before);
        rest = match after.chars().next() {
            // Python replaces these before it calls the C library.
            Some('f') => {
                let _ = write!(writer.out, "{:06}", clock.subsec_nanosecond() / 1000);
                after.get(1..).unwrap_or_default()
            }
            Some('z') => {
                writer.out.push_str(&offset.map(digits).unwrap_or_default());
                after.get(1..).unwrap_or_default()
            }
            Some('Z') => {
                writer.out.push_str(&offset.map(zone_name).unwrap_or_default());
                after.get(1..).unwrap_or_default()
            }
            _ => {
                let (directive, rest) = Directive::read(after);
                writer.directive(&directive);
                rest
            }
        };
        if writer.is_over() {
            return String::new();
        }
    }
    writer.out.push_str(rest);
    if writer.is_over() {
        String::new()
    } else {
        writer.out
    }
}

/// Returns the name of a fixed offset: `UTC` or `UTC+02:00`.
pub(super) fn zone_name(offset: i32) -> String {
    let (sign, minutes) = parts(offset);
    match minutes {
        0 => "UTC".to_owned(),
        _ => format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60),
    }
}

fn digits(offset: i32) -> String {
    let (sign, minutes) = parts(offset);
    format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
}

fn parts(offset: i32) -> (char, u32) {
    (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs() / 60)
}

/// A directive: flags, a width, a modifier and a letter.
#[derive(Debug)]
struct Directive<'p> {
    /// As it is written, without the percent sign.
    text: &'p str,
    upper: bool,
    swaps_case: bool,
    pad: Option<char>,
    width: usize,
    /// `None` at the end of the pattern, and after a modifier that the letter doesn't have.
    letter: Option<char>,
}

impl<'p> Directive<'p> {
    /// Reads a directive after its percent sign; returns the rest of the pattern, too.
    fn read(text: &'p str) -> (Self, &'p str) {
        let mut found = Self {
            text,
            upper: false,
            swaps_case: false,
            pad: None,
            width: 0,
            letter: None,
        };
        let flags = text.find(|c| !matches!(c, '_' | '-' | '0' | '^' | '#'));
        let (flags, rest) = text.split_at(flags.unwrap_or(text.len()));
        for flag in flags.chars() {
            match flag {
                '^' => found.upper = true,
                '#' => found.swaps_case = true,
                pad => found.pad = Some(pad),
            }
        }
        let width = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (width, rest) = rest.split_at(width);
        if !width.is_empty() {
            found.width = width.parse().unwrap_or(usize::MAX);
        }
        let mut letters = rest.chars();
        found.letter = letters.next();
        let allowed = match found.letter {
            Some('E') => "cnprstuxyzCPRTXYZ%",
            Some('O') => "bdeghjklmnprstuwyzBCGHIMPRSTUVWZ%",
            _ => "",
        };
        if !allowed.is_empty() {
            let modified = letters.clone().next();
            if modified.is_some() {
                letters.next();
            }
            found.letter = modified.filter(|letter| allowed.contains(*letter));
        }
        let rest = letters.as_str();
        found.text = text.strip_suffix(rest).unwrap_or(text);
        (found, rest)
    }
}

struct Writer {
    clock: DateTime,
    out: String,
    /// The length in bytes that the text must not reach.
    limit: usize,
}

impl Writer {
    fn is_over(&self) -> bool {
        self.out.len() >= self.limit
    }

    fn directive(&mut self, directive: &Directive<'_>) {
        let Some(letter) = directive.letter else {
            return self.padded(directive, &format!("%{}", directive.text));
        };
        if let Some((number, pad, digits)) = self.number_of(letter) {
            return self.number(directive, number, pad, digits);
        }
        let noon = if self.clock.hour() < 12 { "AM" } else { "PM" };
        match letter {
            'a' => self.word(directive, short(self.day_name())),
            'A' => self.word(directive, self.day_name()),
            'b' | 'h' => self.word(directive, short(self.month_name())),
            'B' => self.word(directive, self.month_name()),
            'p' if !directive.swaps_case => self.padded(directive, noon),
            'p' | 'P' => self.padded(directive, &noon.to_lowercase()),
            'c' => self.nested(directive, "%a %b %e %H:%M:%S %Y"),
            'D' | 'x' => self.nested(directive, "%m/%d/%y"),
            'F' => self.nested(directive, "%Y-%m-%d"),
            'r' => self.nested(directive, "%I:%M:%S %p"),
            'R' => self.nested(directive, "%H:%M"),
            'T' | 'X' => self.nested(directive, "%H:%M:%S"),
            'n' => self.padded(directive, "\n"),
            't' => self.padded(directive, "\t"),
            '%' => self.padded(directive, "%"),
            // Python gives the C library no zone.
            'z' | 'Z' => {}
            _ => self.padded(directive, &format!("%{}", directive.text)),
        }
    }

    /// Returns the number of a directive, the flag that pads it, and its least number of digits.
    fn number_of(&self, letter: char) -> Option<(i64, char, usize)> {
        let clock = self.clock;
        let (year, hour) = (i64::from(clock.year()), i64::from(clock.hour()));
        let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
        let week = clock.date().iso_week_date();
        let days = i64::from(clock.date().day_of_year());
        let monday = i64::from(clock.weekday().to_monday_zero_offset());
        let sunday = i64::from(clock.weekday().to_sunday_zero_offset());
        Some(match letter {
            'C' => (year / 100, '0', 1),
            'd' => (clock.day().into(), '0', 2),
            'e' => (clock.day().into(), '_', 2),
            'g' => (i64::from(week.year()) % 100, '0', 2),
            'G' => (week.year().into(), '0', 1),
            'H' => (hour, '0', 2),
            'I' => (hour12, '0', 2),
            'j' => (days, '0', 3),
            'k' => (hour, '_', 2),
            'l' => (hour12, '_', 2),
            'm' => (clock.month().into(), '0', 2),
            'M' => (clock.minute().into(), '0', 2),
            's' => (seconds(clock), '0', 1),
            'S' => (clock.second().into(), '0', 2),
            'u' => (monday + 1, '0', 1),
            'U' => ((days + 6 - sunday) / 7, '0', 2),
            'V' => (week.week().into(), '0', 2),
            'w' => (sunday, '0', 1),
            'W' => ((days + 6 - monday) / 7, '0', 2),
            'y' => (year % 100, '0', 2),
            'Y' => (year, '0', 1),
            _ => return None,
        })
    }

    fn day_name(&self) -> &'static str {
        name(&DAYS, self.clock.weekday().to_monday_zero_offset())
    }

    fn month_name(&self) -> &'static str {
        name(&MONTHS, self.clock.month() - 1)
    }

    fn word(&mut self, directive: &Directive<'_>, word: &str) {
        if directive.upper || directive.swaps_case {
            self.padded(directive, &word.to_uppercase());
        } else {
            self.padded(directive, word);
        }
    }

    fn number(&mut self, directive: &Directive<'_>, number: i64, pad: char, digits: usize) {
        let number = number.to_string();
        let (pad, width) = match directive.pad.unwrap_or(pad) {
            '-' => (' ', directive.width),
            '_' => (' ', directive.width.max(digits)),
            _ => ('0', directive.width.max(digits)),
        };
        self.fill(pad, width, &number);
    }

    fn nested(&mut self, directive: &Directive<'_>, pattern: &str) {
        let made = format(self.clock, None, pattern);
        let made = if directive.upper {
            made.to_uppercase()
        } else {
            made
        };
        self.padded(directive, &made);
    }

    fn padded(&mut self, directive: &Directive<'_>, text: &str) {
        let pad = if directive.pad == Some('0') { '0' } else { ' ' };
        self.fill(pad, directive.width, text);
    }

    fn fill(&mut self, pad: char, width: usize, text: &str) {
        let missing = width.min(self.limit).saturating_sub(text.chars().count());
        self.out.extend(std::iter::repeat_n(pad, missing));
        self.out.push_str(text);
    }
}

fn name(names: &[&'static str], at: i8) -> &'static str {
    let at = usize::try_from(at).unwrap_or_default();
    names.get(at).copied().unwrap_or_default()
}

fn short(name: &'static str) -> &'static str {
    name.get(..3).unwrap_or(name)
}

/// Returns the seconds since 1970 of a time in UTC.
fn seconds(clock: DateTime) -> i64 {
    clock
        .duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0))
        .as_secs()
}

#[cfg(test)]
mod tests;
