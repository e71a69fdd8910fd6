//! The JSON paths of `get_var`.

mod find;
mod lex;
mod parse;
#[cfg(test)]
mod tests;
mod word;

use crate::{
    eval::context::Cx,
    exc::{R, raise},
    format::repr,
    value::{Value, iter, operator::Operator},
};
use word::Word;

/// A step of a path, applied to the values found so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Path {
    Root,
    This,
    /// Names, which may contain stars.
    Fields(Vec<String>),
    Indexes(Vec<i64>),
    Slice(Option<i64>, Option<i64>, Option<i64>),
    Filter(Vec<Test>),
    /// A list in the order of some values of its items.
    Sorted(Vec<SortKey>),
    Word(Word),
    /// In sequence.
    Child(Box<Path>, Box<Path>),
    /// At any depth.
    Descendants(Box<Path>, Box<Path>),
    /// The values of the first path for which the second one finds something, or, with false, finds nothing.
    Where(Box<Path>, Box<Path>, bool),
    Union(Box<Path>, Box<Path>),
    Intersect(Box<Path>, Box<Path>),
    Operation(Box<Operand>, Operator, Box<Operand>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand {
    Path(Path),
    Literal(Literal),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SortKey {
    path: Path,
    descending: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Test {
    target: Path,
    op: Option<&'static str>,
    value: Literal,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

impl Literal {
    fn value(&self) -> Value {
        match self {
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Int(number) => Value::Int(*number),
            Self::Float(number) => Value::Float(*number),
            Self::Text(text) => Value::str(text.as_str()),
        }
    }
}

/// Returns a variable. The first path of a list that matches counts; a tuple is one path of names and numbers.
pub(crate) fn get_var(cx: &Cx<'_>, path: &Value, default: Value) -> R<Value> {
    let paths = match path.defined()? {
        Value::List(_) => iter::collect(cx.rt, path)?,
        _ => vec![path.clone()],
    };
    for path in paths {
        let parsed = read(cx, &path)?;
        let mut matches = find::find(cx, &parsed)?;
        match matches.len() {
            0 => {}
            1 => return Ok(matches.remove(0)),
            _ => return raise("Exception", "Only simple jsonpath supported in get_dict_value"),
        }
    }
    Ok(default)
}

/// Parses a path from a string, or from a list of names and numbers.
fn read(cx: &Cx<'_>, path: &Value) -> R<Path> {
    if let Some(text) = path.defined()?.as_str() {
        cx.rt.step(text.len() as u64)?;
        return match parse::parse(text) {
            Ok(path) => Ok(path),
            Err(why) => raise("Exception", format!("Invalid json path '{text}'. Error={why}")),
        };
    }
    let mut whole = Path::Root;
    let mut count = 0;
    for part in iter::collect(cx.rt, path)? {
        count += 1;
        if count > parse::MAX_PARTS {
            return raise("Exception", "the path is too long");
        }
        let part = match &part {
            Value::Int(index) => Path::Indexes(vec![*index]),
            Value::Str(name) => Path::Fields(vec![name.to_string()]),
            other => Path::Fields(vec![repr::text(cx.rt, other)?]),
        };
        whole = Path::Child(Box::new(whole), Box::new(part));
    }
    Ok(whole)
}
