//! Evaluation of trees.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use regex_automata::meta::Regex;

use crate::{
    Allowance, EvalError, Limits, Value,
    budget::Budget,
    functions, pattern,
    tree::{Node, Op},
    value::Key,
};

/// Steps of compiling a regular expression, even if it is invalid or too large.
const COMPILATION: usize = 25_000;
/// Further steps for each byte of its source.
const COMPILATION_BYTE: usize = 16;
/// Maximum number of cached regular expressions.
const MAX_REGEXES: usize = 8;

pub(crate) type Evaluated = Result<Value, EvalError>;

pub(crate) struct Evaluation {
    pub(crate) budget: Budget,
    /// The variables of the expression; missing ones have an error.
    globals: Vec<Evaluated>,
    /// The variables of macros, from the outermost one.
    pub(crate) locals: Vec<Value>,
    regexes: HashMap<Arc<str>, Regex>,
}

pub(crate) fn evaluate(
    root: &Node,
    globals: Vec<Evaluated>,
    limits: Limits,
    allowance: &mut Allowance,
) -> Evaluated {
    let mut evaluation = Evaluation {
        budget: Budget::new(limits, allowance),
        globals,
        locals: Vec::new(),
        regexes: HashMap::new(),
    };
    let value = evaluation.eval(root);
    evaluation.budget.charge(allowance);
    value
}

impl Evaluation {
    pub(crate) fn regex(&mut self, pattern: &Arc<str>) -> Result<Regex, EvalError> {
        if let Some(known) = self.regexes.get(pattern) {
            return Ok(known.clone());
        }
        pattern::check_length(pattern)?;
        self.budget
            .spend(COMPILATION + pattern.len().saturating_mul(COMPILATION_BYTE))?;
        let made = pattern::compile(pattern)?;
        self.budget.spend(made.memory_usage() / 16)?;
        if self.regexes.len() >= MAX_REGEXES {
            self.regexes.clear();
        }
        self.regexes.insert(Arc::clone(pattern), made.clone());
        Ok(made)
    }

    pub(crate) fn eval(&mut self, node: &Node) -> Evaluated {
        self.budget.spend(1)?;
        match &node.op {
            Op::Literal(value) => Ok(value.clone()),
            Op::Global(at) => self.globals.get(*at).cloned().unwrap_or_else(missing),
            Op::Local(at) => self.locals.get(*at).cloned().map_or_else(missing, Ok),
            Op::Field(of, name, optional) => {
                let of = self.parent(of, name)?;
                self.field(&of, &name.as_str().into(), *optional)
            }
            Op::Index(of, index, optional) => {
                let of = self.eval(of)?;
                let index = self.eval(index)?;
                self.field(&of, &index, *optional)
            }
            Op::Has(of, name) => self.has(of, name),
            Op::Not(of) => match self.eval(of)? {
                Value::Bool(value) => Ok(Value::Bool(!value)),
                other => no_overload("!", &[other]),
            },
            Op::Negate(of) => match self.eval(of)? {
                Value::Int(value) => value.checked_neg().map(Value::Int).ok_or_else(overflow),
                Value::Duration(value) => value.checked_neg().map(Value::Duration).ok_or_else(overflow),
                Value::Double(value) => Ok(Value::Double(-value)),
                other => no_overload("-", &[other]),
            },
            Op::And(a, b) => self.decide(a, b, false),
            Op::Or(a, b) => self.decide(a, b, true),
            Op::Compare(comparison, a, b) => {
                let (a, b) = (self.eval(a)?, self.eval(b)?);
                self.compare(*comparison, &a, &b).map(Value::Bool)
            }
            Op::In(item, of) => {
                let (item, of) = (self.eval(item)?, self.eval(of)?);
                self.contains(&of, &item).map(Value::Bool)
            }
            Op::Arithmetic(operation, a, b) => {
                let (a, b) = (self.eval(a)?, self.eval(b)?);
                self.arithmetic(*operation, a, b)
            }
            Op::Conditional(condition, yes, no) => match self.eval(condition)? {
                Value::Bool(true) => self.eval(yes),
                Value::Bool(false) => self.eval(no),
                other => no_overload("? :", &[other]),
            },
            Op::List(items) => self.list(items),
            Op::Map(entries) => self.map(entries),
            Op::Call(function, args) => {
                let args = args
                    .iter()
                    .map(|arg| self.eval(arg))
                    .collect::<Result<Vec<_>, _>>()?;
                functions::call(self, *function, &args)
            }
            Op::Fold(fold) => self.fold(fold),
            Op::OptionalMap(of, result, flat) => self.optional_map(of, result, *flat),
        }
    }

    /// Evaluates the parent of a field. An error for a variable without a value names the field, too.
    fn parent(&mut self, of: &Node, field: &str) -> Evaluated {
        let is_path = matches!(of.op, Op::Global(_) | Op::Field(..));
        let parent = self.eval(of);
        parent.map_err(|error| if is_path { error.below(field) } else { error })
    }

    fn field(&mut self, of: &Value, key: &Value, optional: bool) -> Evaluated {
        if let Value::Optional(inner) = of {
            return match inner {
                Some(inner) => self.field(&Value::clone(inner), key, true),
                None => Ok(Value::Optional(None)),
            };
        }
        let found = match of {
            Value::Map(fields) => match key.key() {
                Some(key) => {
                    self.budget.spend_search(fields.len(), &key)?;
                    fields.get(&key)
                }
                None => None,
            },
            Value::List(items) => match key.key() {
                Some(Key::Number(at)) => usize::try_from(at).ok().and_then(|at| items.get(at)),
                _ => None,
            },
            _ => return no_overload("field", std::slice::from_ref(of)),
        };
        match (found, optional) {
            (Some(value), true) => Ok(Value::some(value.clone())),
            (None, true) => Ok(Value::Optional(None)),
            (Some(value), false) => Ok(value.clone()),
            (None, false) => Err(EvalError::failed(match key {
                Value::String(name) => format!(
                    "no such key: {}",
                    name.get(..name.floor_char_boundary(100)).unwrap_or_default()
                ),
                _ => "index out of range".to_owned(),
            })),
        }
    }

    fn has(&mut self, of: &Node, name: &str) -> Evaluated {
        let key = Key::String(name.into());
        match self.parent(of, name)? {
            Value::Map(fields) => self.has_key(&fields, &key),
            Value::Optional(None) => Ok(Value::Bool(false)),
            Value::Optional(Some(inner)) => match &*inner {
                Value::Map(fields) => self.has_key(fields, &key),
                other => no_overload("has", std::slice::from_ref(other)),
            },
            other => no_overload("has", &[other]),
        }
    }

    fn has_key(&mut self, fields: &BTreeMap<Key, Value>, key: &Key) -> Evaluated {
        self.budget.spend_search(fields.len(), key)?;
        Ok(Value::Bool(fields.contains_key(key)))
    }

    /// Evaluates `&&` (decided by false) or `||` (decided by true): an error counts only if the other side does not decide.
    fn decide(&mut self, a: &Node, b: &Node, decisive: bool) -> Evaluated {
        let a = self.truth(a)?;
        if a == Ok(decisive) {
            return Ok(Value::Bool(decisive));
        }
        let b = self.truth(b)?;
        if b == Ok(decisive) {
            return Ok(Value::Bool(decisive));
        }
        a.and(b).map(Value::Bool)
    }

    /// Returns the truth of a part, or the reason why it has none; only an exhausted budget is an error of the whole.
    pub(crate) fn truth(&mut self, node: &Node) -> Result<Result<bool, EvalError>, EvalError> {
        let locals = self.locals.len();
        let value = self.eval(node);
        // Failed macros leave their variables.
        self.locals.truncate(locals);
        match value {
            Ok(Value::Bool(value)) => Ok(Ok(value)),
            Ok(other) => Ok(no_overload("a condition", &[other]).and(Ok(false))),
            Err(error) if error.is_final() => Err(error),
            Err(error) => Ok(Err(error)),
        }
    }

    fn list(&mut self, items: &[(bool, Node)]) -> Evaluated {
        self.budget.allocate_items(items.len())?;
        let mut made = Vec::new();
        for (optional, item) in items {
            match (optional, self.eval(item)?) {
                (true, Value::Optional(value)) => made.extend(value.map(|value| Value::clone(&value))),
                (true, other) => return no_overload("[?]", &[other]),
                (false, value) => made.push(value),
            }
        }
        Ok(Value::List(Arc::new(made)))
    }

    fn map(&mut self, entries: &[(bool, Node, Node)]) -> Evaluated {
        self.budget.allocate_items(entries.len().saturating_mul(2))?;
        let mut made = BTreeMap::new();
        for (optional, key, value) in entries {
            let key = self.eval(key)?;
            let Some(key) = key.key() else {
                return no_overload("{}", &[key]);
            };
            let value = match (optional, self.eval(value)?) {
                (true, Value::Optional(None)) => continue,
                (true, Value::Optional(Some(value))) => Value::clone(&value),
                (true, other) => return no_overload("{?}", &[other]),
                (false, value) => value,
            };
            self.budget.spend_search(made.len(), &key)?;
            if made.insert(key, value).is_some() {
                return Err(EvalError::failed("a map has a key twice"));
            }
        }
        Ok(Value::Map(Arc::new(made)))
    }
}

fn missing() -> Evaluated {
    Err(EvalError::failed("a variable has no value"))
}

pub(crate) fn no_overload(operation: &str, values: &[Value]) -> Evaluated {
    let types: Vec<_> = values.iter().map(Value::type_name).collect();
    Err(EvalError::failed(format!(
        "{operation} is not defined for {}",
        types.join(", ")
    )))
}

pub(crate) fn overflow() -> EvalError {
    EvalError::failed("a number is too large")
}
