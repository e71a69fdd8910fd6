//! The characters of `\N{NAME}`.
//!
//! `names.zlib` has the names and aliases of Unicode 17 (UnicodeData.txt and NameAliases.txt, © Unicode, Inc., Unicode License
//! v3), one a line. A code in hexadecimal digits and `;` stand before names that don't follow the character before them. The
//! table has 155 KB; it is unpacked at its first use, and takes 1.5 MB then. Names by rule are not in it.

use std::{io::Read as _, sync::OnceLock};

use flate2::read::ZlibDecoder;

/// The first Hangul syllable, whose names consist of the names of their parts.
const HANGUL: u32 = 0xac00;
const INITIALS: [&str; 19] = [
    "G", "GG", "N", "D", "DD", "R", "M", "B", "BB", "S", "SS", "", "J", "JJ", "C", "K", "T", "P", "H",
];
const VOWELS: [&str; 21] = [
    "A", "AE", "YA", "YAE", "EO", "E", "YEO", "YE", "O", "WA", "WAE", "OE", "YO", "U", "WEO", "WE", "WI",
    "YU", "EU", "YI", "I",
];
const FINALS: [&str; 28] = [
    "", "G", "GG", "GS", "N", "NJ", "NH", "D", "L", "LG", "LM", "LB", "LS", "LT", "LP", "LH", "M", "B", "BS",
    "S", "SS", "NG", "J", "C", "K", "T", "P", "H",
];

/// Names that end with the code: their start, and the first and last code.
const BY_CODE: [(&str, u32, u32); 15] = [
    ("CJK UNIFIED IDEOGRAPH-", 0x3400, 0x4dbf),
    ("CJK UNIFIED IDEOGRAPH-", 0x4e00, 0x9fff),
    ("CJK UNIFIED IDEOGRAPH-", 0x20000, 0x2a6df),
    ("CJK UNIFIED IDEOGRAPH-", 0x2a700, 0x2b73f),
    ("CJK UNIFIED IDEOGRAPH-", 0x2b740, 0x2b81d),
    ("CJK UNIFIED IDEOGRAPH-", 0x2b820, 0x2cead),
    ("CJK UNIFIED IDEOGRAPH-", 0x2ceb0, 0x2ebe0),
    ("CJK UNIFIED IDEOGRAPH-", 0x2ebf0, 0x2ee5d),
    ("CJK UNIFIED IDEOGRAPH-", 0x30000, 0x3134a),
    ("CJK UNIFIED IDEOGRAPH-", 0x31350, 0x33479),
    ("CJK COMPATIBILITY IDEOGRAPH-", 0xf900, 0xfa6d),
    ("CJK COMPATIBILITY IDEOGRAPH-", 0xfa70, 0xfad9),
    ("CJK COMPATIBILITY IDEOGRAPH-", 0x2f800, 0x2fa1d),
    ("TANGUT IDEOGRAPH-", 0x17000, 0x187ff),
    ("TANGUT IDEOGRAPH-", 0x18d00, 0x18d1e),
];

/// Returns the character with a name in any case.
pub(super) fn character(name: &str) -> Option<char> {
    let name = name.to_ascii_uppercase();
    let code = match name.strip_prefix("HANGUL SYLLABLE ") {
        Some(syllable) => hangul(syllable),
        None => by_code(&name),
    };
    char::from_u32(code.or_else(|| listed(&name))?)
}

fn hangul(syllable: &str) -> Option<u32> {
    let longest = |parts: &[&str], text: &str| {
        let fits = parts
            .iter()
            .enumerate()
            .filter(|(_, part)| text.starts_with(**part));
        let (number, part) = fits.max_by_key(|(_, part)| part.len())?;
        Some((u32::try_from(number).ok()?, part.len()))
    };
    let (initial, length) = longest(&INITIALS, syllable)?;
    let rest = syllable.get(length..)?;
    let (vowel, length) = longest(&VOWELS, rest)?;
    let rest = rest.get(length..)?;
    let last = FINALS.iter().position(|part| *part == rest)?;
    Some(HANGUL + (initial * 21 + vowel) * 28 + u32::try_from(last).ok()?)
}

fn by_code(name: &str) -> Option<u32> {
    let (start, digits) = name.split_at_checked(name.rfind('-')? + 1)?;
    let code = u32::from_str_radix(digits, 16).ok()?;
    let exact = format!("{code:04X}") == digits;
    let found = BY_CODE
        .iter()
        .any(|(known, first, last)| *known == start && (*first..=*last).contains(&code));
    (exact && found).then_some(code)
}

struct Table {
    text: String,
    /// Start, end and code of each name, in the order of the names.
    names: Vec<(u32, u32, u32)>,
}

impl Table {
    fn name(&self, (start, end, _): (u32, u32, u32)) -> &str {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }
}

fn listed(name: &str) -> Option<u32> {
    static TABLE: OnceLock<Table> = OnceLock::new();
    let table = TABLE.get_or_init(read);
    let found = table
        .names
        .binary_search_by(|row| table.name(*row).cmp(name))
        .ok()?;
    table.names.get(found).map(|(_, _, code)| *code)
}

fn read() -> Table {
    let mut text = String::new();
    let mut decoder = ZlibDecoder::new(&include_bytes!("names.zlib")[..]);
    // The table is part of the program.
    drop(decoder.read_to_string(&mut text));
    let mut names = Vec::new();
    let (mut start, mut code) = (0, 0);
    for line in text.split('\n') {
        let prefix = line.find(';').map_or(0, |at| at + 1);
        if let Some(digits) = line
            .get(..prefix.saturating_sub(1))
            .filter(|digits| !digits.is_empty())
        {
            code = u32::from_str_radix(digits, 16).unwrap_or_default();
        }
        let at = |offset: usize| u32::try_from(start + offset).unwrap_or(u32::MAX);
        names.push((at(prefix), at(line.len()), code));
        start += line.len() + 1;
        code += 1;
    }
    let mut table = Table {
        text,
        names: Vec::new(),
    };
    names.sort_unstable_by(|a, b| table.name(*a).cmp(table.name(*b)));
    table.names = names;
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_found_by_name() {
        for (name, expected) in [
            ("BULLET", '•'),
            ("bullet", '•'),
            ("SPACE", ' '),
            ("LATIN SMALL LETTER E WITH ACUTE", 'é'),
            ("LINE FEED", '\n'),
            ("NBSP", '\u{a0}'),
            ("NULL", '\0'),
            ("GRINNING FACE", '😀'),
            ("HANGUL SYLLABLE GAG", '각'),
            ("HANGUL SYLLABLE A", '아'),
            ("HANGUL SYLLABLE HIH", '힣'),
            ("CJK UNIFIED IDEOGRAPH-4E00", '一'),
            ("CJK COMPATIBILITY IDEOGRAPH-F900", '\u{f900}'),
            ("TAG LATIN SMALL LETTER A", '\u{e0061}'),
        ] {
            assert_eq!(character(name), Some(expected), "{name}");
        }
        for name in [
            "",
            "BULLETS",
            "CJK UNIFIED IDEOGRAPH-4E",
            "CJK UNIFIED IDEOGRAPH-04E00",
            "HANGUL SYLLABLE X",
            "<control>",
            "BULLET ",
        ] {
            assert_eq!(character(name), None, "{name}");
        }
        assert_eq!(read().names.len(), 39_937);
    }
}
