//! Verbs of strings and bytes.

use super::{Flags, Formatter};
use crate::{
    bytes,
    strconv::{can_backquote, quote_with},
};

impl Formatter {
    /// Writes a string. Returns false, and writes nothing, if the verb is not one for strings.
    pub fn string(&mut self, text: &str, verb: char) -> bool {
        match verb {
            'v' if self.flags.sharp_v => self.quoted(text),
            'v' | 's' => self.truncated(text),
            'x' | 'X' => self.hex(&bytes::of_str(text), verb),
            'q' => self.quoted(text),
            _ => return false,
        }
        true
    }

    pub fn truncated(&mut self, text: &str) {
        self.pad(self.flags.truncated(text));
    }

    pub fn quoted(&mut self, text: &str) {
        let text = self.flags.truncated(text);
        if self.flags.sharp && can_backquote(text) {
            self.pad(&format!("`{text}`"));
        } else {
            self.pad(&quote_with(text, '"', self.flags.plus));
        }
    }

    /// Writes bytes in hexadecimal, as `%x` and `%X` do.
    pub fn hex(&mut self, bytes: &[u8], verb: char) {
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
                let digit = digits.get(usize::from(nibble)).copied();
                text.push(digit.unwrap_or_default().into());
            }
        }
        self.pad(&text);
    }
}

impl Flags {
    fn truncated(self, text: &str) -> &str {
        let end = self.precision.and_then(|count| text.char_indices().nth(count));
        end.and_then(|(end, _)| text.get(..end)).unwrap_or(text)
    }
}
