//! Evaluates a path.

use super::{Literal, Path, Test};
use crate::{
    eval::{context::Cx, slice},
    exc::{Exc, R, raise},
    rt::{ENTRY, Rt},
    value::{Value, compare},
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
        let below = |child: Value| {
            let mut found = datum.clone();
            found.push(child);
            found
        };
        Ok(match path {
            Path::Root => vec![vec![self.root.clone()]],
            Path::This => vec![datum.clone()],
            Path::Parent => {
                let mut parent = datum.clone();
                parent.pop();
                if parent.is_empty() {
                    Vec::new()
                } else {
                    vec![parent]
                }
            }
            Path::Fields(names) => self.all_below(datum, fields(rt, &value, names)?)?,
            Path::Indexes(indexes) => self.all_below(datum, self.indexes(&value, indexes)?)?,
            Path::Slice(start, stop, step) => {
                self.all_below(datum, self.slice(&value, [*start, *stop, *step])?)?
            }
            Path::Filter(tests) => self.all_below(datum, self.filter(&value, tests)?)?,
            Path::Len => match rt.length(&value) {
                Ok(len) => vec![below(Value::int(len))],
                Err(error) if matches!(*error, Exc::Limit(_)) => return Err(error),
                Err(_) => Vec::new(),
            },
            Path::Keys => match &value {
                Value::Dict(dict) => vec![below(Value::list(dict.keys()))],
                _ => Vec::new(),
            },
            Path::Child(left, right) => self.each(left, datum, |found| self.find(right, found))?,
            Path::Where(left, right) => self.each(left, datum, |found| {
                Ok(if self.find(right, found)?.is_empty() {
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
        })
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
        let Value::List(_) = value else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for index in indexes {
            let item = crate::eval::attr::item(self.cx.rt, value, &Value::Int(*index))?;
            if !item.is_undefined() {
                found.push(item);
            }
        }
        Ok(found)
    }

    fn slice(&self, value: &Value, parts: [Option<i64>; 3]) -> R<Vec<Value>> {
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
        let Some(value) = found.first().and_then(|found| found.last()) else {
            return Ok(false);
        };
        let rt = self.cx.rt;
        if op == "=~" {
            let (Literal::Text(pattern), Some(text)) = (&test.value, value.as_str()) else {
                return Ok(false);
            };
            return match rt.pattern(&pattern.as_str().into())? {
                Ok(pattern) => pattern.search(text, |visits| rt.visits(visits)).is_match(),
                Err(_) => Ok(false),
            };
        }
        let other = match &test.value {
            Literal::None => Value::None,
            Literal::Bool(flag) => Value::Bool(*flag),
            Literal::Number(number) => Value::Float(*number),
            Literal::Text(text) => Value::str(text.as_str()),
        };
        let op = match op {
            "!=" => crate::value::operator::Comparison::Ne,
            "<" => crate::value::operator::Comparison::Lt,
            "<=" => crate::value::operator::Comparison::Le,
            ">" => crate::value::operator::Comparison::Gt,
            ">=" => crate::value::operator::Comparison::Ge,
            _ => crate::value::operator::Comparison::Eq,
        };
        // Values of different types are never in order.
        match compare::compare(rt, op, value, &other) {
            Err(error) if matches!(*error, Exc::Limit(_)) => Err(error),
            compared => Ok(compared.unwrap_or(false)),
        }
    }
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
