//! The selectors of labels, in Kubernetes' notation: `a=b,c!=d,e in (x,y),!f,g`.

use std::collections::{BTreeMap, BTreeSet};

/// The problem of a label selector, in the words of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSelector(String);

/// Requirements on a set of labels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    Missing,
    In(BTreeSet<String>),
    /// Also true if the label is missing.
    NotIn(BTreeSet<String>),
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    /// Parses a selector; an empty one selects everything.
    ///
    /// # Errors
    /// If it is invalid.
    pub fn parse(text: &str) -> Result<Self, InvalidSelector> {
        let mut parser = Parser {
            tokens: tokens(text)?,
            at: 0,
        };
        let requirements = parser.requirements()?;
        Ok(Self { requirements })
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    #[must_use]
    pub fn fits(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.test.fits(labels.get(&requirement.key)))
    }
}

impl Test {
    fn fits(&self, value: Option<&String>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::Missing => value.is_none(),
            Self::In(values) => value.is_some_and(|value| values.contains(value)),
            Self::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Self::Greater(limit) => number().is_some_and(|number| number > *limit),
            Self::Less(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Sign(&'static str),
    End,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Sign(sign) => sign,
            Self::End => "",
        }
    }
}

/// Longer operators come before their prefixes.
const SIGNS: [&str; 8] = ["==", "!=", "=", "!", "(", ")", ",", ">"];
const LESS: &str = "<";

fn tokens(text: &str) -> Result<Vec<Token>, InvalidSelector> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let sign = SIGNS.iter().chain([&LESS]).find(|sign| rest.starts_with(**sign));
        if let Some(sign) = sign {
            tokens.push(Token::Sign(sign));
            rest = rest.strip_prefix(sign).unwrap_or_default();
        } else {
            let end = rest
                .find(|c| is_space(c) || "=!(),><".contains(c))
                .unwrap_or(rest.len());
            let (word, after) = rest
                .split_at_checked(end)
                .ok_or_else(|| InvalidSelector("not a selector".to_owned()))?;
            tokens.push(Token::Word(word.to_owned()));
            rest = after;
        }
        rest = rest.trim_start_matches(is_space);
    }
    Ok(tokens)
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn requirements(&mut self) -> Result<Vec<Requirement>, InvalidSelector> {
        let mut requirements = Vec::new();
        match self.peek() {
            Token::End => return Ok(requirements),
            Token::Word(_) | Token::Sign("!") => {}
            Token::Sign(sign) => {
                return Err(InvalidSelector(format!(
                    "found '{sign}', expected: !, identifier, or 'end of string'"
                )));
            }
        }
        loop {
            let requirement = self.requirement();
            requirements.push(
                requirement
                    .map_err(|error| InvalidSelector(format!("unable to parse requirement: {error}")))?,
            );
            match self.next() {
                Token::End => return Ok(requirements),
                Token::Sign(",") => {}
                other => {
                    let found = other.text();
                    return Err(InvalidSelector(format!(
                        "found '{found}', expected: ',' or 'end of string'"
                    )));
                }
            }
            if !matches!(self.peek(), Token::Word(_) | Token::Sign("!")) {
                let found = self.peek().text();
                return Err(InvalidSelector(format!(
                    "found '{found}', expected: identifier after ','"
                )));
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, InvalidSelector> {
        let negated = *self.peek() == Token::Sign("!");
        if negated {
            self.next();
        }
        let key = match self.next() {
            Token::Word(word) => word,
            other => {
                return Err(InvalidSelector(format!(
                    "found '{}', expected: identifier",
                    other.text()
                )));
            }
        };
        check_key(&key)?;
        if matches!(self.peek(), Token::End | Token::Sign(",")) {
            let test = if negated { Test::Missing } else { Test::Exists };
            return Ok(Requirement { key, test });
        }
        // quirk: a negated key is no longer negated when an operator follows it.
        let test = self.test(&key)?;
        Ok(Requirement { key, test })
    }

    fn test(&mut self, key: &str) -> Result<Test, InvalidSelector> {
        let operator = self.next();
        let values = match &operator {
            Token::Word(word) if word == "in" || word == "notin" => self.values()?,
            Token::Sign("=" | "==" | "!=" | ">" | "<") => BTreeSet::from([self.value()?]),
            other => {
                let found = other.text();
                return Err(InvalidSelector(format!(
                    "found '{found}', expected: '=', '!=', '==', 'in', notin'"
                )));
            }
        };
        let number = || {
            let number = values.first().and_then(|value| value.parse::<i64>().ok());
            let problem = "for 'Gt', 'Lt' operators, the value must be an integer";
            number.ok_or_else(|| InvalidSelector(problem.to_owned()))
        };
        let test = match operator.text() {
            ">" => Test::Greater(number()?),
            "<" => Test::Less(number()?),
            "!=" | "notin" => Test::NotIn(values.clone()),
            _ => Test::In(values.clone()),
        };
        values.iter().try_for_each(|value| check_value(key, value))?;
        Ok(test)
    }

    /// Parses the value after an operator; a missing one is empty.
    fn value(&mut self) -> Result<String, InvalidSelector> {
        if matches!(self.peek(), Token::End | Token::Sign(",")) {
            return Ok(String::new());
        }
        match self.next() {
            Token::Word(word) => Ok(word),
            other => Err(InvalidSelector(format!(
                "found '{}', expected: identifier",
                other.text()
            ))),
        }
    }

    /// Parses the values in parentheses; nothing between commas is an empty value.
    fn values(&mut self) -> Result<BTreeSet<String>, InvalidSelector> {
        let open = self.next();
        if open != Token::Sign("(") {
            return Err(InvalidSelector(format!("found '{}' expected: '('", open.text())));
        }
        let mut values = BTreeSet::new();
        loop {
            let value = match self.peek() {
                Token::Word(word) => word.clone(),
                _ => String::new(),
            };
            if !value.is_empty() {
                self.next();
            }
            values.insert(value);
            match self.next() {
                Token::Sign(")") => return Ok(values),
                Token::Sign(",") => {}
                other => {
                    return Err(InvalidSelector(format!(
                        "found '{}', expected: ',' or ')'",
                        other.text()
                    )));
                }
            }
        }
    }
}

const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character";

fn check_key(key: &str) -> Result<(), InvalidSelector> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let problem = if prefix.is_some_and(|prefix| !is_subdomain(prefix)) {
        "prefix part must be a lowercase RFC 1123 subdomain".to_owned()
    } else if name.is_empty() {
        "name part must be non-empty".to_owned()
    } else if name.len() > 63 {
        "name part must be no more than 63 characters".to_owned()
    } else if !is_name(name) {
        format!("name part {QUALIFIED}")
    } else {
        return Ok(());
    };
    Err(InvalidSelector(format!("invalid label key {key:?}: {problem}")))
}

fn check_value(key: &str, value: &str) -> Result<(), InvalidSelector> {
    let problem = if value.len() > 63 {
        "must be no more than 63 characters".to_owned()
    } else if !value.is_empty() && !is_name(value) {
        format!(
            "a valid label must be an empty string or {}",
            QUALIFIED.replacen("must ", "", 1)
        )
    } else {
        return Ok(());
    };
    Err(InvalidSelector(format!(
        "invalid label value: {value:?}: at key: {key:?}: {problem}"
    )))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

fn is_subdomain(text: &str) -> bool {
    let is_label = |label: &str| {
        is_name(label)
            && label
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}
