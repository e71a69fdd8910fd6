//! A JSON reader with the errors of Go's encoding/json. Every number is a float.

use go::{bytes, strconv::quote};

use crate::Value;
use crate::template::FunctionError;

use crate::{
    functions::context::{ENTRY, ITEM, Meter},
    template::weight::STRING,
};

const NESTED: u32 = 1000;

pub(in super::super) fn read(meter: &Meter<'_>, text: &str) -> Result<Value, FunctionError> {
    let mut reader = Reader { text, at: 0, meter };
    meter.budget.step(text.len() as u64)?;
    reader.space();
    let value = reader.value(0)?;
    reader.space();
    match reader.peek() {
        None => Ok(value),
        Some(c) => Err(invalid(c, "after top-level value")),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    meter: &'t Meter<'t>,
}

fn invalid(c: char, context: &str) -> FunctionError {
    let printed_char = match c {
        '\'' => r"'\''".to_owned(),
        '"' => "'\"'".to_owned(),
        c => {
            // Go looks at bytes, and prints each as the character of that number.
            let first = c.encode_utf8(&mut [0; 4]).bytes().next().unwrap_or_default();
            let first = bytes::invalid_byte(c).unwrap_or(first);
            let quoted = quote(char::from(first).encode_utf8(&mut [0; 4]));
            format!("'{}'", quoted.trim_matches('"'))
        }
    };
    format!("invalid character {printed_char} {context}").into()
}

const END: &str = "unexpected end of JSON input";

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    fn next(&mut self) -> Result<char, FunctionError> {
        let c = self.peek().ok_or(END)?;
        self.at += c.len_utf8();
        Ok(c)
    }

    /// Returns the next character, or a space at the end: callers reject both.
    fn within(&mut self) -> char {
        self.next().unwrap_or(' ')
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\r' | '\n')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: u32) -> Result<Value, FunctionError> {
        if depth > NESTED {
            return Err("exceeded max depth".into());
        }
        self.meter.items(1)?;
        // A growing list is copied.
        self.meter.memory(ITEM)?;
        match self.peek().ok_or(END)? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            '"' => self.string().map(|text| Value::utf8(&text)),
            't' => self.word("true", Value::Bool(true)),
            'f' => self.word("false", Value::Bool(false)),
            'n' => self.word("null", Value::Nil),
            '-' | '0'..='9' => self.number(),
            c => Err(invalid(c, "looking for beginning of value")),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, FunctionError> {
        for expected in word.chars() {
            let c = self.within();
            if c != expected {
                return Err(invalid(c, &format!("in literal {word} (expecting '{expected}')")));
            }
        }
        Ok(value)
    }

    fn object(&mut self, depth: u32) -> Result<Value, FunctionError> {
        self.at += 1;
        self.space();
        let mut entries = Vec::new();
        if self.peek() == Some('}') {
            self.at += 1;
            return Ok(Value::dict::<String>([]));
        }
        loop {
            self.space();
            match self.peek().ok_or(END)? {
                '"' => {}
                c => return Err(invalid(c, "looking for beginning of object key string")),
            }
            let key = self.string()?;
            self.space();
            match self.next()? {
                ':' => {}
                c => return Err(invalid(c, "after object key")),
            }
            self.space();
            let value = self.value(depth + 1)?;
            self.meter.memory(ENTRY)?;
            entries.push((bytes::of_utf8(&key).into_owned(), value));
            self.space();
            match self.next()? {
                ',' => {}
                '}' => return Ok(Value::dict(entries)),
                c => return Err(invalid(c, "after object key:value pair")),
            }
        }
    }

    fn array(&mut self, depth: u32) -> Result<Value, FunctionError> {
        self.at += 1;
        self.space();
        let mut items = Vec::new();
        if self.peek() == Some(']') {
            self.at += 1;
            return Ok(Value::list(items));
        }
        loop {
            self.space();
            items.push(self.value(depth + 1)?);
            self.space();
            match self.next()? {
                ',' => {}
                ']' => return Ok(Value::list(items)),
                c => return Err(invalid(c, "after array element")),
            }
        }
    }

    fn string(&mut self) -> Result<String, FunctionError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            match self.next()? {
                '"' => {
                    self.meter.memory(out.len().saturating_add(STRING))?;
                    return Ok(bytes::to_valid_utf8(&out).into_owned());
                }
                '\\' => out.push_str(&bytes::of_utf8(self.escape()?.encode_utf8(&mut [0; 4]))),
                c if c < ' ' => return Err(invalid(c, "in string literal")),
                c => out.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, FunctionError> {
        Ok(match self.within() {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            c @ ('"' | '\\' | '/') => c,
            'u' => {
                let high = self.unit()?;
                let rest = self.text.get(self.at..).unwrap_or_default();
                if (0xD800..0xDC00).contains(&high) && rest.starts_with("\\u") {
                    let before = self.at;
                    self.at += 2;
                    let low = self.unit()?;
                    if let Some(Ok(c)) = char::decode_utf16([high, low]).next() {
                        return Ok(c);
                    }
                    self.at = before;
                }
                char::from_u32(high.into()).unwrap_or('\u{FFFD}')
            }
            c => return Err(invalid(c, "in string escape code")),
        })
    }

    fn unit(&mut self) -> Result<u16, FunctionError> {
        let mut unit = 0u16;
        for _ in 0..4 {
            let c = self.within();
            let digit = c
                .to_digit(16)
                .ok_or_else(|| invalid(c, "in \\u hexadecimal character escape"))?;
            unit = unit << 4 | digit as u16;
        }
        Ok(unit)
    }

    fn digits(&mut self, context: &str) -> Result<(), FunctionError> {
        match self.within() {
            '0'..='9' => {}
            c => return Err(invalid(c, context)),
        }
        while matches!(self.peek(), Some('0'..='9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, FunctionError> {
        let start = self.at;
        if self.peek() == Some('-') {
            self.at += 1;
        }
        if self.peek() == Some('0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some('.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            self.at += 1;
            if matches!(self.peek(), Some('+' | '-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Value::Float(number)),
            _ => Err(format!("json: cannot unmarshal number {text} into Go value of type float64").into()),
        }
    }
}
