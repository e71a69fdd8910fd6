//! Anchors, tags and directives.

use libyaml_safer::Mark;

use super::{
    Scanner,
    cursor::{is_blank, is_blankz, is_break, is_breakz, is_word},
    token::{Kind, failure},
};
use crate::Error;

const DIRECTIVE: &str = "while scanning a directive";
const YAML_DIRECTIVE: &str = "while scanning a %YAML directive";
const TAG_DIRECTIVE: &str = "while scanning a %TAG directive";
const TAG: &str = "while scanning a tag";
/// The characters of a tag, apart from the ones of names.
const URI: &str = ";/?:@&=+$,.!~*'()[]%";
/// Longest version number in digits.
const NUMBER_LENGTH: usize = 9;

impl Scanner<'_> {
    pub(super) fn anchor(&mut self, is_alias: bool) -> Result<(), Error> {
        let start = self.cursor.mark();
        self.cursor.bump();
        let name = self.read_word();
        let end = self.cursor.mark();
        let next = self.cursor.peek();
        if name.is_empty() || !(is_blankz(next) || "?:,]}%@`".contains(next)) {
            let context = if is_alias {
                "while scanning an alias"
            } else {
                "while scanning an anchor"
            };
            let problem = "did not find expected alphabetic or numeric character";
            return Err(failure(problem, end, (context, start)));
        }
        let kind = if is_alias {
            Kind::Alias(name)
        } else {
            Kind::Anchor(name)
        };
        self.push(kind, start, end);
        Ok(())
    }

    fn read_word(&mut self) -> String {
        let mut word = String::new();
        while is_word(self.cursor.peek()) {
            word.push(self.cursor.bump());
        }
        word
    }

    fn skip_blanks(&mut self) {
        while is_blank(self.cursor.peek()) {
            self.cursor.bump();
        }
    }

    pub(super) fn tag(&mut self) -> Result<(), Error> {
        let start = self.cursor.mark();
        let (handle, suffix) = if self.cursor.peek_at(1) == '<' {
            self.cursor.skip(2);
            let suffix = self.tag_uri(String::new(), false, TAG, start)?;
            if self.cursor.peek() != '>' {
                return Err(failure(
                    "did not find the expected '>'",
                    self.cursor.mark(),
                    (TAG, start),
                ));
            }
            self.cursor.bump();
            (String::new(), suffix)
        } else {
            self.short_tag(start)?
        };
        let next = self.cursor.peek();
        if !is_blankz(next) || self.is_python() && next == '\t' {
            return Err(failure(
                "did not find expected whitespace or line break",
                self.cursor.mark(),
                (TAG, start),
            ));
        }
        self.push(Kind::Tag { handle, suffix }, start, self.cursor.mark());
        Ok(())
    }

    /// Reads the handle and the suffix of a tag like `!a`, `!!a` and `!a!b`. The tag `!` has no handle.
    fn short_tag(&mut self, start: Mark) -> Result<(String, String), Error> {
        if self.is_python() && self.has_no_handle() {
            self.cursor.bump();
            if is_blankz(self.cursor.peek()) {
                return Ok((String::new(), "!".to_owned()));
            }
            return Ok(("!".to_owned(), self.tag_uri(String::new(), false, TAG, start)?));
        }
        let handle = self.tag_handle(self.is_python(), TAG, start)?;
        if handle.len() > 1 && handle.ends_with('!') {
            let suffix = self.tag_uri(String::new(), false, TAG, start)?;
            return Ok((handle, suffix));
        }
        let head = handle.get(1..).unwrap_or_default().to_owned();
        let suffix = self.tag_uri(head, true, TAG, start)?;
        Ok(if suffix.is_empty() {
            (String::new(), "!".to_owned())
        } else {
            ("!".to_owned(), suffix)
        })
    }

    /// Returns true if no second `!` is in the word.
    fn has_no_handle(&self) -> bool {
        let mut n = 1;
        loop {
            match self.cursor.peek_at(n) {
                '!' => return false,
                ' ' => return true,
                c if is_breakz(c) => return true,
                _ => n += 1,
            }
        }
    }

    fn tag_handle(&mut self, closed: bool, context: &str, start: Mark) -> Result<String, Error> {
        let missing = |at| failure("did not find expected '!'", at, (context, start));
        if self.cursor.peek() != '!' {
            return Err(missing(self.cursor.mark()));
        }
        let mut handle = String::from(self.cursor.bump());
        handle.push_str(&self.read_word());
        if self.cursor.peek() == '!' {
            handle.push(self.cursor.bump());
        } else if closed && handle != "!" {
            return Err(missing(self.cursor.mark()));
        }
        Ok(handle)
    }

    /// Reads the rest of a tag that starts with `head`; `optional` if it may be empty.
    fn tag_uri(&mut self, head: String, optional: bool, context: &str, start: Mark) -> Result<String, Error> {
        let mut uri = head.into_bytes();
        let mut found = optional;
        loop {
            let c = self.cursor.peek();
            if !(is_word(c) || URI.contains(c)) {
                break;
            }
            found = true;
            if c == '%' {
                self.uri_escape(&mut uri, context, start)?;
            } else {
                uri.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
                self.cursor.bump();
            }
        }
        if !found {
            return Err(failure(
                "did not find expected tag URI",
                self.cursor.mark(),
                (context, start),
            ));
        }
        Ok(String::from_utf8_lossy(&uri).into_owned())
    }

    /// Reads the octets of one character, such as `%C3%A9`.
    fn uri_escape(&mut self, uri: &mut Vec<u8>, context: &str, start: Mark) -> Result<(), Error> {
        let mut left = None;
        while left != Some(0) {
            let at = self.cursor.mark();
            let digits = [1, 2].map(|n| self.cursor.peek_at(n).to_digit(16));
            let (true, [Some(high), Some(low)]) = (self.cursor.peek() == '%', digits) else {
                return Err(failure("did not find URI escaped octet", at, (context, start)));
            };
            let octet = u8::try_from(high << 4 | low).unwrap_or_default();
            let width = match (left, octet.leading_ones()) {
                (None, 0) => Some(1),
                (None, ones @ 2..=4) => Some(ones),
                (None, _) => None,
                (Some(_), 1) => left,
                (Some(_), _) => None,
            };
            let Some(width) = width else {
                let problem = if left.is_none() {
                    "found an incorrect leading UTF-8 octet"
                } else {
                    "found an incorrect trailing UTF-8 octet"
                };
                return Err(failure(problem, at, (context, start)));
            };
            uri.push(octet);
            self.cursor.skip(3);
            left = Some(width - 1);
        }
        Ok(())
    }

    pub(super) fn directive(&mut self) -> Result<(), Error> {
        let start = self.cursor.mark();
        self.cursor.bump();
        let name = self.read_word();
        let problem = if name.is_empty() {
            Some("could not find expected directive name")
        } else if !is_blankz(self.cursor.peek()) {
            Some("found unexpected non-alphabetical character")
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(failure(problem, self.cursor.mark(), (DIRECTIVE, start)));
        }
        let kind = match name.as_str() {
            "YAML" => self.version(start)?,
            "TAG" => self.tag_directive(start)?,
            _ if self.is_python() => {
                self.cursor.skip_line();
                Kind::UnknownDirective
            }
            _ => {
                let at = self.cursor.mark();
                return Err(failure("found unknown directive name", at, (DIRECTIVE, start)));
            }
        };
        let end = self.cursor.mark();
        self.skip_blanks();
        if self.cursor.peek() == '#' {
            self.cursor.skip_line();
        }
        if !is_breakz(self.cursor.peek()) {
            return Err(failure(
                "did not find expected comment or line break",
                self.cursor.mark(),
                (DIRECTIVE, start),
            ));
        }
        if is_break(self.cursor.peek()) {
            self.cursor.skip_break();
        }
        self.push(kind, start, end);
        Ok(())
    }

    fn version(&mut self, start: Mark) -> Result<Kind, Error> {
        self.skip_blanks();
        let major = self.version_number(start)?;
        if self.cursor.peek() != '.' {
            return Err(failure(
                "did not find expected digit or '.' character",
                self.cursor.mark(),
                (YAML_DIRECTIVE, start),
            ));
        }
        self.cursor.bump();
        let minor = self.version_number(start)?;
        Ok(Kind::Version { major, minor })
    }

    fn version_number(&mut self, start: Mark) -> Result<i32, Error> {
        let mut digits = String::new();
        while self.cursor.peek().is_ascii_digit() && digits.len() <= NUMBER_LENGTH {
            digits.push(self.cursor.bump());
        }
        let problem = if digits.is_empty() {
            "did not find expected version number"
        } else {
            "found extremely long version number"
        };
        let number = Some(digits).filter(|digits| digits.len() <= NUMBER_LENGTH);
        number
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| failure(problem, self.cursor.mark(), (YAML_DIRECTIVE, start)))
    }

    fn tag_directive(&mut self, start: Mark) -> Result<Kind, Error> {
        self.skip_blanks();
        let handle = self.tag_handle(true, "while scanning a tag directive", start)?;
        if !is_blank(self.cursor.peek()) {
            return Err(failure(
                "did not find expected whitespace",
                self.cursor.mark(),
                (TAG_DIRECTIVE, start),
            ));
        }
        self.skip_blanks();
        let prefix = self.tag_uri(String::new(), false, "while parsing a %TAG directive", start)?;
        if !is_blankz(self.cursor.peek()) {
            return Err(failure(
                "did not find expected whitespace or line break",
                self.cursor.mark(),
                (TAG_DIRECTIVE, start),
            ));
        }
        Ok(Kind::TagDirective { handle, prefix })
    }
}
