//! Shell patterns for one path component, as Go's `filepath.Match` reads them.

/// The pattern has an unclosed class, an empty range end, or a lone backslash at its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

#[derive(Debug)]
enum Token {
    Star,
    Any,
    Char(char),
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Token {
    fn accepts(&self, c: char) -> bool {
        match self {
            Self::Star => false,
            Self::Any => true,
            Self::Char(own) => *own == c,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

/// Whether `pattern` matches the whole of `name`, in time linear in pattern times name.
pub(crate) fn matches(pattern: &str, name: &str) -> Result<bool, Malformed> {
    let tokens = parse(pattern)?;
    let name: Vec<char> = name.chars().collect();
    // Only the last star needs another try: an earlier one could not do better.
    let (mut at, mut token, mut star) = (0, 0, None);
    loop {
        match (tokens.get(token), name.get(at)) {
            (Some(Token::Star), _) => {
                star = Some((token, at));
                token += 1;
            }
            (Some(wanted), Some(c)) if wanted.accepts(*c) => {
                at += 1;
                token += 1;
            }
            (None, None) => return Ok(true),
            _ => match star {
                Some((star_token, from)) if from < name.len() => {
                    star = Some((star_token, from + 1));
                    at = from + 1;
                    token = star_token + 1;
                }
                _ => return Ok(false),
            },
        }
    }
}

fn parse(pattern: &str) -> Result<Vec<Token>, Malformed> {
    let mut chars = pattern.chars().peekable();
    let mut tokens = Vec::new();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '*' => Token::Star,
            '?' => Token::Any,
            '\\' => Token::Char(chars.next().ok_or(Malformed)?),
            '[' => parse_class(&mut chars)?,
            other => Token::Char(other),
        });
    }
    Ok(tokens)
}

fn parse_class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Token, Malformed> {
    let negated = chars.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    while chars.peek() != Some(&']') || ranges.is_empty() {
        let low = class_char(chars)?;
        let high = if chars.next_if_eq(&'-').is_some() {
            class_char(chars)?
        } else {
            low
        };
        ranges.push((low, high));
    }
    chars.next();
    Ok(Token::Class { negated, ranges })
}

fn class_char(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<char, Malformed> {
    match chars.next() {
        None | Some('-' | ']') => Err(Malformed),
        Some('\\') => chars.next().ok_or(Malformed),
        Some(c) => Ok(c),
    }
}
