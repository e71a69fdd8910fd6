//! Shell patterns for one path component, as Go's `filepath.Match` reads them.

/// A pattern for a name.
#[derive(Debug, Clone)]
pub(super) enum Pattern {
    /// The name itself.
    Literal(String),
    /// A star, followed by the end of the name.
    Suffix(String),
    /// Anything else.
    Glob(Vec<Token>),
    /// A pattern with an unclosed class, an empty range end, or a trailing backslash; it matches nothing.
    Malformed,
}

/// The error of a malformed pattern.
#[derive(Debug, PartialEq, Eq)]
struct Malformed;

#[derive(Debug, Clone)]
pub(super) enum Token {
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

impl Pattern {
    pub(super) fn parse(pattern: &str) -> Self {
        let Ok(tokens) = parse(pattern) else {
            return Self::Malformed;
        };
        let literal = |tokens: &[Token]| -> Option<String> {
            let chars = tokens.iter().map(|token| match token {
                Token::Char(c) => Some(*c),
                _ => None,
            });
            chars.collect()
        };
        if let Some(name) = literal(&tokens) {
            return Self::Literal(name);
        }
        if let Some((Token::Star, rest)) = tokens.split_first()
            && let Some(suffix) = literal(rest)
        {
            return Self::Suffix(suffix);
        }
        Self::Glob(tokens)
    }

    /// Returns true if the pattern matches the whole of `name`. Adds the number of comparisons to `work`, at most the length of
    /// the pattern times that of the name.
    pub(super) fn matches(&self, name: &str, work: &mut u64) -> bool {
        *work += 1;
        match self {
            Self::Literal(own) => own == name,
            Self::Suffix(suffix) => name.ends_with(suffix.as_str()),
            Self::Glob(tokens) => glob(tokens, name, work),
            Self::Malformed => false,
        }
    }
}

fn glob(tokens: &[Token], name: &str, work: &mut u64) -> bool {
    // Only the last star needs another try: an earlier one could not do better.
    let (mut rest, mut token, mut star) = (name.chars(), 0, None);
    loop {
        *work += 1;
        let mut after = rest.clone();
        match (tokens.get(token), after.next()) {
            (Some(Token::Star), _) => {
                star = Some((token, rest.clone()));
                token += 1;
            }
            (Some(wanted), Some(c)) if wanted.accepts(c) => {
                rest = after;
                token += 1;
            }
            (None, None) => return true,
            _ => {
                let Some((star_token, mut from)) = star.take() else {
                    return false;
                };
                if from.next().is_none() {
                    return false;
                }
                rest = from.clone();
                token = star_token + 1;
                star = Some((star_token, from));
            }
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
