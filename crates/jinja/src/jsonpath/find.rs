//! Evaluates a path.

use super::{Literal, Operand, Path, SortKey, Test, Word, word};
use crate::{
    eval::{context::Cx, ops, slice},
    exc::{Exc, R, raise, type_error},
    rt::{ENTRY, Rt},
    value::{
        Value, compare,
        operator::{Comparison, Operator},
        sort,
    },
};

/// A value that was found, with its parents.
type Found = Vec<Value>;

const MAX_DEPTH: usize = 300;

struct Finder<'a> {
    cx: &'a Cx<'a>,
    root: Value,
}

/// Returns all values of a path from all variables.
pub(super) fn find(cx: &Cx<'_>, path: &Path) -> R<Vec<Value>> {
    let all = cx.ctx.all(cx.rt);
    cx.rt.step(all.len() as u64)?;
    let finder = Finder {
        cx,
        root: Value::dict(all),
    };
    let found = finder.find(path, &vec![finder.root.clone()])?;
    Ok(found.into_iter().filter_map(|mut found| found.pop()).collect())
}

impl Finder<'_> {
    fn find(&self, path: &Path, datum: &Found) -> R<Vec<Found>> {
        let rt = self.cx.rt;
        rt.step(1)?;
        rt.alloc(datum.len().saturating_mul(ENTRY))?;
        let value = datum.last().cloned().unwrap_or(Value::None);
        Ok(match path {
            Path::Root => vec![vec![self.root.clone()]],
            Path::This => vec![datum.clone()],
            Path::Fields(names) => self.all_below(datum, fields(rt, &value, names)?)?,
            Path::Indexes(indexes) => self.all_below(datum, self.indexes(&value, indexes)?)?,
            Path::Slice(start, stop, step) => {
                self.all_below(datum, self.slice(&value, [*start, *stop, *step])?)?
            }
            Path::Filter(tests) => self.all_below(datum, self.filter(&value, tests)?)?,
            Path::Sorted(keys) => vec![vec![self.sorted(&value, keys)?]],
            Path::Word(word) => self.word(word, datum, &value)?,
            Path::Child(left, right) => self.each(left, datum, |found| self.find(right, found))?,
            Path::Where(left, right, wanted) => self.each(left, datum, |found| {
                Ok(if self.find(right, found)?.is_empty() == *wanted {
                    Vec::new()
                } else {
                    vec![found.clone()]
                })
            })?,
            Path::Descendants(left, right) => self.each(left, datum, |found| {
                let mut all = Vec::new();
                self.descend(right, found, &mut all)?;
                Ok(all)
            })?,
            Path::Union(left, right) => {
                let mut all = self.find(left, datum)?;
                all.extend(self.find(right, datum)?);
                all
            }
            Path::Intersect(..) => return raise("NotImplementedError", ""),
            Path::Operation(left, op, right) => {
                let results = self.operation(left, *op, right, datum)?;
                results.into_iter().map(|result| vec![result]).collect()
            }
        })
    }

    fn word(&self, word: &Word, datum: &Found, value: &Value) -> R<Vec<Found>> {
        let rt = self.cx.rt;
        let made = match word {
            Word::This => return Ok(vec![datum.clone()]),
            Word::Parent => {
                let mut parent = datum.clone();
                parent.pop();
                return Ok(if parent.is_empty() {
                    Vec::new()
                } else {
                    vec![parent]
                });
            }
            Word::Len => match rt.length(value) {
                Ok(len) => vec![Value::int(len)],
                Err(error) if matches!(*error, Exc::Limit(_)) => return Err(error),
                Err(_) => Vec::new(),
            },
            Word::Keys => match value {
                Value::Dict(dict) => dict.keys(),
                _ => Vec::new(),
            },
            other => word::apply(rt, other, value)?.into_iter().collect(),
        };
        rt.alloc(made.len().saturating_mul(2 * ENTRY))?;
        Ok(made.into_iter().map(|value| vec![value]).collect())
    }

    /// Calculates with values in pairs. Nothing is found if there are not as many on both sides, or if their types don't fit.
    fn operation(&self, left: &Operand, op: Operator, right: &Operand, datum: &Found) -> R<Vec<Value>> {
        let values = |operand: &Operand| -> R<Vec<Value>> {
            Ok(match operand {
                Operand::Literal(literal) => vec![literal.value()],
                Operand::Path(path) => {
                    let found = self.find(path, datum)?;
                    found.into_iter().filter_map(|mut found| found.pop()).collect()
                }
            })
        };
        let literal = |operand: &Operand| match operand {
            Operand::Literal(literal) => literal.value(),
            Operand::Path(_) => Value::None,
        };
        let is_path = |operand: &Operand| matches!(operand, Operand::Path(_));
        let (mut lefts, mut rights) = (values(left)?, values(right)?);
        match (is_path(left), is_path(right)) {
            (true, true) if lefts.len() != rights.len() => return Ok(Vec::new()),
            (true, false) => rights.resize(lefts.len(), literal(right)),
            (false, true) => lefts.resize(rights.len(), literal(left)),
            _ => {}
        }
        self.cx.rt.alloc(lefts.len().saturating_mul(2 * ENTRY))?;
        let mut results = Vec::new();
        for (left, right) in lefts.iter().zip(&rights) {
            match ops::binary(self.cx.rt, op, left, right) {
                Ok(result) => results.push(result),
                Err(error) if is_type_error(&error) => return Ok(Vec::new()),
                Err(error) => return Err(error),
            }
        }
        Ok(results)
    }

    /// Returns a list in the order of the first value of its items that differs.
    fn sorted(&self, value: &Value, keys: &[SortKey]) -> R<Value> {
        let rt = self.cx.rt;
        let Value::List(list) = value else {
            return type_error("'DatumInContext' object is not iterable");
        };
        let mut keyed = Vec::new();
        for item in list.to_vec() {
            let mut values = Vec::new();
            for key in keys {
                let mut found = self.find(&key.path, &vec![item.clone()])?;
                let value = if found.len() == 1 { found.pop() } else { None };
                values.push(value.and_then(|mut found| found.pop()));
            }
            rt.alloc(values.len().saturating_mul(ENTRY))?;
            keyed.push((values, item));
        }
        let sorted = sort::sort_by(rt, keyed, |rt, (left, _), (right, _)| {
            for ((key, left), right) in keys.iter().zip(left).zip(right) {
                let (Some(left), Some(right)) = (left, right) else {
                    continue;
                };
                if !compare::equal(rt, left, right)? {
                    return Ok(compare::compare(rt, Comparison::Lt, left, right)? != key.descending);
                }
            }
            Ok(false)
        })?;
        rt.list(sorted.into_iter().map(|(_, item)| item).collect())
    }

    /// Returns values with their parents.
    fn all_below(&self, datum: &Found, children: Vec<Value>) -> R<Vec<Found>> {
        let each = datum.len().saturating_add(2).saturating_mul(ENTRY);
        self.cx.rt.alloc(children.len().saturating_mul(each))?;
        self.cx.rt.product(children.len(), datum.len() + 1)?;
        let below = |child| datum.iter().cloned().chain([child]).collect();
        Ok(children.into_iter().map(below).collect())
    }

    fn each(&self, left: &Path, datum: &Found, next: impl Fn(&Found) -> R<Vec<Found>>) -> R<Vec<Found>> {
        let mut all = Vec::new();
        for found in self.find(left, datum)? {
            all.extend(next(&found)?);
        }
        Ok(all)
    }

    fn descend(&self, path: &Path, datum: &Found, all: &mut Vec<Found>) -> R<()> {
        if datum.len() > MAX_DEPTH {
            return raise("RecursionError", "maximum recursion depth exceeded");
        }
        self.cx.rt.alloc(datum.len().saturating_mul(ENTRY))?;
        all.extend(self.find(path, datum)?);
        let children = match datum.last() {
            Some(Value::Dict(dict)) => dict.pairs().into_iter().map(|(_, value)| value).collect(),
            Some(Value::List(list)) => list.to_vec(),
            _ => Vec::new(),
        };
        for child in children {
            self.cx.rt.step(1)?;
            let mut below = datum.clone();
            below.push(child);
            self.descend(path, &below, all)?;
        }
        Ok(())
    }

    fn indexes(&self, value: &Value, indexes: &[i64]) -> R<Vec<Value>> {
        let mut found = Vec::new();
        if !value.truth()? {
            return Ok(found);
        }
        let length = i64::try_from(self.cx.rt.length(value)?).unwrap_or(i64::MAX);
        for index in indexes.iter().filter(|index| length > **index) {
            if let Value::Dict(_) = value {
                return raise("KeyError", index.to_string());
            }
            if *index < -length {
                return raise("IndexError", format!("{} index out of range", value.type_name()));
            }
            found.push(crate::eval::attr::item(self.cx.rt, value, &Value::Int(*index))?);
        }
        Ok(found)
    }

    fn slice(&self, value: &Value, parts: [Option<i64>; 3]) -> R<Vec<Value>> {
        if !value.truth()? {
            return Ok(Vec::new());
        }
        let Value::List(list) = value else {
            // Other values count as a list of one.
            return Ok(vec![value.clone()]);
        };
        let parts = parts.map(|part| part.map_or(Value::None, Value::Int));
        let items = list.to_vec();
        self.cx.rt.alloc(items.len().saturating_mul(ENTRY))?;
        let indices = slice::indices(&parts, items.len())?;
        Ok(indices.each().filter_map(|at| items.get(at).cloned()).collect())
    }

    fn filter(&self, value: &Value, tests: &[Test]) -> R<Vec<Value>> {
        let items = match value {
            Value::List(list) => list.to_vec(),
            Value::Dict(dict) => dict.pairs().into_iter().map(|(_, value)| value).collect(),
            _ => Vec::new(),
        };
        let mut matching = Vec::new();
        for item in items {
            let mut holds = true;
            for test in tests {
                holds = holds && self.holds(test, &item)?;
            }
            if holds {
                matching.push(item);
            }
        }
        Ok(matching)
    }

    fn holds(&self, test: &Test, item: &Value) -> R<bool> {
        let found = self.find(&test.target, &vec![item.clone()])?;
        let Some(op) = test.op else {
            return Ok(!found.is_empty());
        };
        for value in found.iter().filter_map(|found| found.last()) {
            if self.passes(value, op, &test.value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn passes(&self, value: &Value, op: &str, literal: &Literal) -> R<bool> {
        let rt = self.cx.rt;
        if op == "=~" {
            let (Literal::Text(pattern), Some(text)) = (literal, value.as_str()) else {
                return Ok(false);
            };
            return match rt.pattern(&pattern.as_str().into())? {
                Ok(pattern) => pattern.search(text, |visits| rt.visits(visits)).is_match(),
                Err(_) => Ok(false),
            };
        }
        let value = match literal {
            Literal::Int(_) => match whole(value)? {
                Some(number) => number,
                None => return Ok(false),
            },
            _ => value.clone(),
        };
        let op = match op {
            "!=" => Comparison::Ne,
            "<" => Comparison::Lt,
            "<=" => Comparison::Le,
            ">" => Comparison::Gt,
            ">=" => Comparison::Ge,
            _ => Comparison::Eq,
        };
        compare::compare(rt, op, &value, &literal.value())
    }
}

fn is_type_error(error: &Exc) -> bool {
    matches!(
        error,
        Exc::Raised {
            class: "TypeError",
            ..
        }
    )
}

/// Converts a value as Python's `int` does; `None` for a string that isn't a number.
fn whole(value: &Value) -> R<Option<Value>> {
    Ok(match value {
        Value::Int(_) | Value::Big(_) => Some(value.clone()),
        Value::Bool(flag) => Some(Value::Int(i64::from(*flag))),
        Value::Float(number) if number.is_finite() => Some(Value::Float(number.trunc())),
        other => match other.as_str() {
            Some(text) => text.trim().parse().ok().map(Value::Int),
            None => {
                return type_error(format!(
                    "int() argument must be a string, a bytes-like object or a real number, not '{}'",
                    other.type_name()
                ));
            }
        },
    })
}

fn fields(rt: &Rt, value: &Value, names: &[String]) -> R<Vec<Value>> {
    let Value::Dict(dict) = value else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for name in names {
        rt.step(1 + name.len() as u64 / 64)?;
        if name.contains('*') {
            rt.step(dict.len() as u64 / 8)?;
            for (key, value) in dict.pairs() {
                let bytes = name.len() + key.as_str().map_or(0, |key| key.len());
                rt.step(1 + bytes as u64 / 64)?;
                if key.as_str().is_some_and(|key| matches(name, key)) {
                    found.push(value);
                }
            }
        } else {
            found.extend(dict.get_str(name));
        }
    }
    Ok(found)
}

/// Returns true if a name matches a pattern with stars.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}
