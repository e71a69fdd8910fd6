//! Reads the imports and paths of one file. Pure.

use std::{collections::BTreeSet, iter::Peekable};

use crate::tidy::{
    lexer::{Kind, Token},
    names,
};

/// A path that the root module of the crate resolves if it is absolute, else the file's own module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path<'a> {
    pub(super) absolute: bool,
    pub(super) segments: Vec<&'a str>,
}

#[derive(Debug)]
pub(super) struct Import<'a> {
    pub(super) path: Path<'a>,
    /// The name in the file; `None` for a glob.
    pub(super) name: Option<&'a str>,
    pub(super) public: bool,
}

#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    pub(super) defined: BTreeSet<&'a str>,
    pub(super) imports: Vec<Import<'a>>,
    /// Paths of two segments or more outside of `use`.
    pub(super) paths: Vec<Path<'a>>,
    pub(super) words: BTreeSet<&'a str>,
}

/// Reads a file with the module path `module`. Comments and test code are left out of `tokens`.
pub(super) fn read<'a>(module: &[&'a str], tokens: &[Token<'a>]) -> Names<'a> {
    let mut names = Names {
        defined: names::definitions(tokens).map(|(_, _, name)| name).collect(),
        ..Names::default()
    };
    // The modules in braces around the current token, with the depth of their braces.
    let mut inline: Vec<(usize, &str)> = Vec::new();
    let mut depth = 0;
    let mut public = false;
    let mut rest = tokens.iter().map(|token| token.kind).peekable();
    while let Some(kind) = rest.next() {
        let here = || {
            module
                .iter()
                .copied()
                .chain(inline.iter().map(|(_, name)| *name))
                .collect::<Vec<_>>()
        };
        match kind {
            Kind::Mark('{') => depth += 1,
            Kind::Mark('}') => {
                depth -= 1_usize.min(depth);
                inline.retain(|(outer, _)| *outer <= depth);
            }
            Kind::Word("mod") => {
                if let Some(Kind::Word(name)) = rest.next()
                    && rest.peek() == Some(&Kind::Mark('{'))
                {
                    inline.push((depth + 1, name));
                }
            }
            Kind::Word("use") if rest.peek() != Some(&Kind::Mark('<')) => {
                let mut leaves = Vec::new();
                tree(&mut rest, &[], &mut leaves);
                let here = here();
                names
                    .imports
                    .extend(leaves.into_iter().map(|(segments, name)| Import {
                        path: absolute(segments, &here, module),
                        name,
                        public,
                    }));
            }
            Kind::Word(first) => {
                names.words.insert(first);
                let segments = path(first, &mut rest);
                names.words.extend(&segments);
                if segments.len() > 1 {
                    names.paths.push(absolute(segments, &here(), module));
                }
            }
            _ => {}
        }
        public = match kind {
            Kind::Word("pub") => true,
            Kind::Mark('(' | ')') | Kind::Word("crate" | "super" | "self" | "in") => public,
            _ => false,
        };
    }
    names
}

type Kinds<'t, I> = &'t mut Peekable<I>;

/// Reads the segments of a path after its first. A path goes on after `::`, not after generic arguments.
fn path<'a, I: Iterator<Item = Kind<'a>>>(first: &'a str, rest: Kinds<'_, I>) -> Vec<&'a str> {
    let mut segments = vec![first];
    while colons(rest) {
        match rest.next_if(|kind| matches!(kind, Kind::Word(_))) {
            Some(Kind::Word(word)) => segments.push(word),
            _ => break,
        }
    }
    segments
}

fn colons<'a, I: Iterator<Item = Kind<'a>>>(rest: Kinds<'_, I>) -> bool {
    rest.peek() == Some(&Kind::Mark(':')) && {
        rest.next();
        rest.next_if_eq(&Kind::Mark(':')).is_some()
    }
}

/// Reads a tree of imports up to its `,`, `}` or `;`, which stays.
fn tree<'a, I: Iterator<Item = Kind<'a>>>(
    rest: Kinds<'_, I>,
    prefix: &[&'a str],
    leaves: &mut Vec<(Vec<&'a str>, Option<&'a str>)>,
) {
    let mut segments = prefix.to_vec();
    loop {
        match rest.peek().copied() {
            Some(Kind::Word("as")) => {
                rest.next();
                if let Some(Kind::Word(name)) = rest.next() {
                    leaves.push((segments, Some(name)));
                }
                return;
            }
            Some(Kind::Word(word)) => {
                rest.next();
                // `a::{self}` is `a`.
                if word != "self" || segments.is_empty() {
                    segments.push(word);
                }
            }
            Some(Kind::Mark('*')) => {
                rest.next();
                leaves.push((segments, None));
                return;
            }
            Some(Kind::Mark('{')) => {
                rest.next();
                while !matches!(rest.peek(), None | Some(Kind::Mark('}'))) {
                    tree(rest, &segments, leaves);
                    rest.next_if_eq(&Kind::Mark(','));
                }
                rest.next();
                return;
            }
            Some(Kind::Mark(':')) => {
                rest.next();
            }
            _ => {
                let name = segments.last().copied();
                leaves.push((segments, name));
                return;
            }
        }
    }
}

/// Resolves `crate`, `self` and `super` in a path in the module `here` of a file with the module path `module`.
fn absolute<'a>(segments: Vec<&'a str>, here: &[&'a str], module: &[&'a str]) -> Path<'a> {
    let mut base = match segments.first() {
        Some(&"crate") => Vec::new(),
        Some(&("self" | "super")) => here.to_vec(),
        _ => {
            return Path {
                absolute: false,
                segments,
            };
        }
    };
    for segment in segments {
        match segment {
            "crate" | "self" => {}
            "super" => {
                base.pop();
            }
            segment => base.push(segment),
        }
    }
    // A name of a module in braces is one of its file.
    if here.len() > module.len() && base.starts_with(here) {
        base.drain(module.len()..here.len());
    }
    Path {
        absolute: true,
        segments: base,
    }
}
