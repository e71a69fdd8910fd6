//! Package `fmt`: verbs with flags, width and precision, for the basic types. The caller prints lists, maps and structs,
//! whose types it knows.

mod float;
mod integer;
mod text;

/// Flags, width and precision between `%` and the verb.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// `+`: always a sign; for `%q`, ASCII only.
    pub plus: bool,
    /// `-`: pads on the right.
    pub minus: bool,
    /// `#`: the alternate format.
    pub sharp: bool,
    /// A space in place of a plus sign; between bytes in hexadecimal.
    pub space: bool,
    /// `0`: pads with zeros.
    pub zero: bool,
    /// True for the verb `%+v`.
    pub plus_v: bool,
    /// True for the verb `%#v`, Go syntax.
    pub sharp_v: bool,
    pub width: Option<usize>,
    pub precision: Option<usize>,
}

/// The output of verbs, up to a limit of bytes.
///
/// ```
/// let mut out = go::fmt::Formatter::new(1024);
/// out.flags.width = Some(6);
/// assert!(out.float(1.5, 'g'));
/// assert_eq!(out.finish().as_deref(), Some("   1.5"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Formatter {
    out: String,
    limit: usize,
    overflow: bool,
    /// Flags of the verb that is being printed.
    pub flags: Flags,
}

impl Formatter {
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Returns true if the limit was exceeded: all output from then on is lost.
    #[must_use]
    pub fn overflowed(&self) -> bool {
        self.overflow
    }

    #[must_use]
    pub fn finish(self) -> Option<String> {
        (!self.overflow).then_some(self.out)
    }

    fn fits(&mut self, more: usize) -> bool {
        self.overflow |= self.out.len().saturating_add(more) > self.limit;
        !self.overflow
    }

    pub fn write(&mut self, text: &str) {
        if self.fits(text.len()) {
            self.out.push_str(text);
        }
    }

    pub fn write_char(&mut self, c: char) {
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

    pub fn pad(&mut self, text: &str) {
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

    /// Pads to the width, never with zeros.
    fn pad_with_spaces(&mut self, text: &str) {
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(text);
        self.flags.zero = zero;
    }

    /// Pads with zeros between sign and digits.
    fn pad_number(&mut self, sign: char, digits: &str) {
        let width = self.flags.width.unwrap_or_default();
        self.write_char(sign);
        self.fill(width.saturating_sub(digits.len() + 1));
        self.write(digits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(flags: Flags, write: impl FnOnce(&mut Formatter) -> bool) -> Option<String> {
        let mut out = Formatter::new(64);
        out.flags = flags;
        let known = write(&mut out);
        out.finish().filter(|_| known)
    }

    #[test]
    fn verbs_obey_width_precision_and_flags() {
        let flags = Flags {
            width: Some(8),
            ..Flags::default()
        };
        let zero = Flags { zero: true, ..flags };
        let left = Flags { minus: true, ..flags };
        let sharp = Flags {
            sharp: true,
            ..Flags::default()
        };
        for (found, expected) in [
            (formatted(zero, |out| out.integer(-42, true, 'd')), "-0000042"),
            (formatted(left, |out| out.integer(42, true, 'x')), "2a      "),
            (formatted(sharp, |out| out.integer(8, true, 'o')), "010"),
            (
                formatted(sharp, |out| out.integer(0x263a, true, 'U')),
                "U+263A '☺'",
            ),
            (formatted(zero, |out| out.float(-1.5, 'f')), "-1.500000"),
            (formatted(sharp, |out| out.float(1.0, 'g')), "1.00000"),
            (formatted(flags, |out| out.string("é", 's')), "       é"),
            (formatted(sharp, |out| out.string("a\n", 'q')), "\"a\\n\""),
            (formatted(sharp, |out| out.string("ab", 'x')), "0x6162"),
        ] {
            assert_eq!(found.as_deref(), Some(expected));
        }
    }

    #[test]
    fn verbs_of_other_types_are_refused() {
        assert_eq!(formatted(Flags::default(), |out| out.integer(1, true, 's')), None);
        assert_eq!(formatted(Flags::default(), |out| out.float(1.0, 'd')), None);
        assert_eq!(formatted(Flags::default(), |out| out.string("", 'd')), None);
    }

    #[test]
    fn strings_over_the_limit_are_lost() {
        let mut out = Formatter::new(3);
        out.write("abc");
        assert!(!out.overflowed());
        out.write("d");
        assert!(out.overflowed());
        assert_eq!(out.finish(), None);
    }
}
