//! Where operators, keys and assigned values are in the text of a template.

use minijinja::{
    machinery::{Span, Token, ast::Expr, tokenize},
    syntax::SyntaxConfig,
};

use super::Guard;
use crate::{
    comparing::{EQ, GE, GT, HELD, IN, LE, LT, NE, NOT_IN, WHOLE},
    operators::{ADD, JOIN, TIMES},
};

/// Whether a token with the one before it is an operator that compares.
fn compares(before: Option<&Token<'_>>, token: &Token<'_>) -> Option<&'static str> {
    match token {
        Token::Eq => Some(EQ),
        Token::Ne => Some(NE),
        Token::Lt => Some(LT),
        Token::Lte => Some(LE),
        Token::Gt => Some(GT),
        Token::Gte => Some(GE),
        // There is a test of this name, and there can be attributes and arguments.
        Token::Ident("in") => match before {
            Some(Token::Ident("is") | Token::Dot | Token::Pipe) => None,
            _ => Some(IN),
        },
        _ => None,
    }
}

fn opens(token: &Token<'_>) -> bool {
    matches!(token, Token::ParenOpen | Token::BracketOpen | Token::BraceOpen)
}

fn closes(token: &Token<'_>) -> bool {
    matches!(token, Token::ParenClose | Token::BracketClose | Token::BraceClose)
}

/// Where an operator is in a text.
pub(super) struct Place {
    pub(super) at: usize,
    pub(super) length: usize,
    pub(super) filter: &'static str,
}

fn offsets(parts: Vec<(u32, u32)>) -> Vec<(usize, usize)> {
    let parts = parts.into_iter();
    parts.map(|(start, end)| (start as usize, end as usize)).collect()
}

/// Where the name in front of a target begins.
fn first_offset(target: &Expr<'_>) -> Option<u32> {
    match target {
        Expr::GetAttr(node) => first_offset(&node.expr),
        Expr::List(node) => node.items.first().and_then(first_offset),
        other => Some(other.span().start_offset),
    }
}

fn check(namespaces: &[&str]) -> String {
    match namespaces {
        [] => format!("|{WHOLE}"),
        namespaces => format!("|{HELD}({})", namespaces.join(", ")),
    }
}

impl<'a> Guard<'a> {
    pub(super) fn tokens(&mut self) -> &[(Token<'a>, Span)] {
        let text = self.text;
        self.tokens
            .get_or_insert_with(|| tokenize(text, false, SyntaxConfig::default()).flatten().collect())
    }

    pub(super) fn within(&mut self, span: Span) -> &[(Token<'a>, Span)] {
        let tokens = self.tokens();
        let first = tokens.partition_point(|(_, token)| token.start_offset < span.start_offset);
        let end = tokens.partition_point(|(_, token)| token.start_offset < span.end_offset);
        tokens.get(first..end).unwrap_or_default()
    }

    /// The engine lets comparisons begin with the token before them.
    pub(super) fn compared(&mut self, span: Span) -> Span {
        let second = self.within(span).get(1).map(|(_, token)| token.start_offset);
        Span {
            start_offset: second.unwrap_or(span.start_offset),
            ..span
        }
    }

    /// Where the operator of an expression is: operators of one precedence bind to the left, so it is the last one
    /// outside of brackets.
    pub(super) fn operator_place(&mut self, span: Span, filter: &'static str) -> Option<Place> {
        let tokens = self.within(span);
        let mut depth = 0usize;
        for (index, (token, at)) in tokens.iter().enumerate().rev() {
            let before = index.checked_sub(1).and_then(|index| tokens.get(index));
            let found = match token {
                token if closes(token) => {
                    depth += 1;
                    false
                }
                token if opens(token) => {
                    depth = depth.saturating_sub(1);
                    false
                }
                Token::Tilde => filter == JOIN,
                Token::Plus => filter == ADD,
                Token::Mul => filter == TIMES,
                token => compares(before.map(|(token, _)| token), token) == Some(filter),
            };
            if !found || depth > 0 {
                continue;
            }
            let (start, filter) = match before {
                Some((Token::Ident("not"), not)) if filter == IN => {
                    let of_test = index.checked_sub(2).and_then(|index| tokens.get(index));
                    if matches!(of_test, Some((Token::Ident("is"), _))) {
                        continue;
                    }
                    (not.start_offset, NOT_IN)
                }
                _ => (at.start_offset, filter),
            };
            return Some(Place {
                at: start as usize,
                length: (at.end_offset - start) as usize,
                filter,
            });
        }
        None
    }

    /// Where the operands of comparisons in a row begin and end.
    pub(super) fn operands(&mut self, span: Span) -> Vec<(usize, usize)> {
        let tokens = self.within(span);
        let mut parts = Vec::new();
        let mut depth = 0usize;
        let mut part: Option<(u32, u32)> = None;
        for (index, (token, at)) in tokens.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|index| tokens.get(index));
            let negates = matches!(
                (token, tokens.get(index + 1)),
                (Token::Ident("not"), Some((Token::Ident("in"), _)))
            ) && !matches!(before, Some((Token::Ident("is"), _)));
            let of_test = matches!(before, Some((Token::Ident("not"), _)))
                && matches!(
                    index.checked_sub(2).and_then(|index| tokens.get(index)),
                    Some((Token::Ident("is"), _))
                );
            let compared = compares(before.map(|(token, _)| token), token).is_some() && !of_test;
            if depth == 0 && (negates || compared) {
                parts.extend(part.take());
                continue;
            }
            depth = match token {
                token if opens(token) => depth + 1,
                token if closes(token) => depth.saturating_sub(1),
                _ => depth,
            };
            let start = part.map_or(at.start_offset, |(start, _)| start);
            part = Some((start, at.end_offset));
        }
        parts.extend(part);
        offsets(parts)
    }

    /// What is between the bracket that closes at `end` and its opening one, without its commas; only the `keys` of a
    /// map.
    pub(super) fn bracketed(&mut self, end: usize, keys: bool) -> Vec<(usize, usize)> {
        let tokens = self.tokens();
        let last = tokens.partition_point(|(_, token)| (token.end_offset as usize) < end);
        let mut depth = 0usize;
        let mut first = last;
        for (index, (token, _)) in tokens.get(..=last).unwrap_or_default().iter().enumerate().rev() {
            if closes(token) {
                depth += 1;
            } else if opens(token) {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    first = index + 1;
                    break;
                }
            }
        }
        let mut parts = Vec::new();
        let mut part: Option<(u32, u32)> = None;
        let mut in_value = false;
        for (token, at) in tokens.get(first..last).unwrap_or_default() {
            match token {
                Token::Comma if depth == 0 => {
                    parts.extend(part.take());
                    in_value = false;
                    continue;
                }
                Token::Colon if depth == 0 && keys => {
                    parts.extend(part.take());
                    in_value = true;
                    continue;
                }
                // The name of an argument, and the stars of several.
                Token::Assign if depth == 0 => {
                    part = None;
                    continue;
                }
                Token::Mul | Token::Pow if part.is_none() => continue,
                token if opens(token) => depth += 1,
                token if closes(token) => depth = depth.saturating_sub(1),
                _ => {}
            }
            if !in_value {
                let start = part.map_or(at.start_offset, |(start, _)| start);
                part = Some((start, at.end_offset));
            }
        }
        parts.extend(part);
        offsets(parts)
    }

    pub(super) fn wrap(&mut self, parts: &[(usize, usize)]) {
        for (start, _) in parts {
            self.insert(*start, "(");
        }
    }

    pub(super) fn wrap_end(&mut self, parts: &[(usize, usize)], filter: &str) {
        for (_, end) in parts {
            self.close(*end, format!(")|{filter}"));
        }
    }

    /// Where a value that is assigned begins and ends, and the filter that checks it.
    pub(super) fn assigned(&mut self, target: &Expr<'a>, value: &Expr<'a>) -> Option<(usize, usize, String)> {
        let namespaces = self.namespaces(target);
        let known = matches!(
            value,
            Expr::Var(_)
                | Expr::Const(_)
                | Expr::GetAttr(_)
                | Expr::GetItem(_)
                | Expr::Compare(_)
                | Expr::Test(_)
        );
        if matches!(value, Expr::Const(_)) || known && namespaces.is_empty() {
            return None;
        }
        let start = first_offset(target)?;
        let tokens = self.tokens();
        let first = tokens.partition_point(|(_, token)| token.start_offset < start);
        let mut tokens = tokens.get(first..)?.iter();
        tokens.find(|(token, _)| matches!(token, Token::Assign))?;
        let mut value: Option<(u32, u32)> = None;
        for (_, at) in tokens.take_while(|(token, _)| !matches!(token, Token::BlockEnd)) {
            value = Some((value.map_or(at.start_offset, |(start, _)| start), at.end_offset));
        }
        let (start, end) = value?;
        Some((start as usize, end as usize, check(&namespaces)))
    }

    /// Checks what the filter of a block gives.
    pub(super) fn filtered(&mut self, target: &Expr<'a>) {
        let namespaces = self.namespaces(target);
        let Some(start) = first_offset(target) else { return };
        let tokens = self.tokens();
        let first = tokens.partition_point(|(_, token)| token.start_offset < start);
        let tokens = tokens.get(first..).unwrap_or_default().iter();
        let last = tokens
            .take_while(|(token, _)| !matches!(token, Token::BlockEnd))
            .last();
        if let Some(end) = last.map(|(_, at)| at.end_offset as usize) {
            self.close(end, check(&namespaces));
        }
    }

    /// The namespaces that get a value, as they are written.
    pub(super) fn namespaces(&self, target: &Expr<'a>) -> Vec<&'a str> {
        match target {
            Expr::List(node) => node.items.iter().flat_map(|item| self.namespaces(item)).collect(),
            Expr::GetAttr(node) => {
                let start = first_offset(&node.expr).unwrap_or_default() as usize;
                let end = node.expr.span().end_offset as usize;
                self.text.get(start..end).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }
}
