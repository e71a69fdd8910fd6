//! Evaluation with a budget.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use regex_automata::meta::Regex;

use super::{
    Value, functions,
    parser::{Arithmetic, Comparison, Fold, FoldKind, Node, Op},
    value::Key,
};

/// Steps of an evaluation: parts of expressions, items and sixteenths of a KiB of text. It is less than 0.2 s.
const STEPS: usize = 500_000;
/// Bytes of text that a step counts for.
const STEP_BYTES: usize = 64;
/// Steps of compiling a regular expression, also of one that turns out to be invalid or too large.
const COMPILATION: usize = 25_000;
/// Regular expressions that an evaluation keeps compiled.
const KEPT: usize = 8;

/// The reason why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EvalError {
    /// The expression takes too long for these values.
    #[error("the expression takes more than {STEPS} steps")]
    Budget,
    /// An operation has no result. Operators that don't need it go on without.
    #[error("{0}")]
    Failed(String),
}

impl EvalError {
    pub(super) fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into())
    }
}

type Evaluated = Result<Value, EvalError>;

/// A running evaluation.
pub(super) struct Run {
    variables: Vec<Value>,
    steps: usize,
    expressions: HashMap<Arc<str>, Regex>,
}

/// Evaluates a tree with the values of its variables.
pub(super) fn evaluate(root: &Node, variables: &[Value]) -> Evaluated {
    let mut run = Run {
        variables: variables.to_vec(),
        steps: STEPS,
        expressions: HashMap::new(),
    };
    run.eval(root)
}

impl Run {
    /// Takes steps from the budget.
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), EvalError> {
        match self.steps.checked_sub(steps) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => {
                self.steps = 0;
                Err(EvalError::Budget)
            }
        }
    }

    /// Takes the steps for looking at, or copying, so many bytes.
    pub(super) fn spend_bytes(&mut self, bytes: usize) -> Result<(), EvalError> {
        self.spend(1 + bytes / STEP_BYTES)
    }

    /// Returns a compiled regular expression.
    pub(super) fn regex(&mut self, text: &Arc<str>) -> Result<Regex, EvalError> {
        if let Some(known) = self.expressions.get(text) {
            return Ok(known.clone());
        }
        self.spend(COMPILATION)?;
        let made = crate::alerts::expressions::compile(&[text])
            .map_err(|error| EvalError::failed(format!("invalid regular expression: {error}")))?;
        self.spend(made.memory_usage() / 16)?;
        if self.expressions.len() >= KEPT {
            self.expressions.clear();
        }
        self.expressions.insert(Arc::clone(text), made.clone());
        Ok(made)
    }

    fn eval(&mut self, node: &Node) -> Evaluated {
        self.spend(1)?;
        match &node.op {
            Op::Literal(value) => Ok(value.clone()),
            Op::Variable(at) => {
                (self.variables.get(*at).cloned()).ok_or_else(|| EvalError::failed("a variable has no value"))
            }
            Op::Field(of, name, optional) => {
                let of = self.eval(of)?;
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

    fn field(&mut self, of: &Value, key: &Value, optional: bool) -> Evaluated {
        if let Value::Optional(inner) = of {
            return match inner {
                Some(inner) => self.field(&Value::clone(inner), key, true),
                None => Ok(Value::Optional(None)),
            };
        }
        let found = match of {
            Value::Map(fields) => key.key().and_then(|key| fields.get(&key)),
            Value::List(items) => match key.key() {
                Some(Key::Number(at)) => usize::try_from(at).ok().and_then(|at| items.get(at)),
                _ => None,
            },
            _ => return no_overload("field", std::slice::from_ref(of)),
        };
        match (found, optional) {
            (Some(value), true) => Ok(Value::Optional(Some(Arc::new(value.clone())))),
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
        match self.eval(of)? {
            Value::Map(fields) => Ok(Value::Bool(fields.contains_key(&Key::String(name.into())))),
            Value::Optional(None) => Ok(Value::Bool(false)),
            Value::Optional(Some(inner)) => match &*inner {
                Value::Map(fields) => Ok(Value::Bool(fields.contains_key(&Key::String(name.into())))),
                other => no_overload("has", std::slice::from_ref(other)),
            },
            other => no_overload("has", &[other]),
        }
    }

    /// Evaluates `&&` (which false decides) or `||` (which true decides): an error counts only if the other side does not decide.
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

    /// Returns the truth of a part, or why it has none; only the end of the budget is an error for the whole.
    fn truth(&mut self, node: &Node) -> Result<Result<bool, EvalError>, EvalError> {
        let place = self.variables.len();
        let value = self.eval(node);
        // What failed within macros leaves their variables.
        self.variables.truncate(place);
        match value {
            Ok(Value::Bool(value)) => Ok(Ok(value)),
            Ok(other) => Ok(no_overload("a condition", &[other]).and(Ok(false))),
            Err(EvalError::Budget) => Err(EvalError::Budget),
            Err(error) => Ok(Err(error)),
        }
    }

    fn compare(&mut self, comparison: Comparison, a: &Value, b: &Value) -> Result<bool, EvalError> {
        match comparison {
            Comparison::Equal => return self.equal(a, b),
            Comparison::NotEqual => return Ok(!self.equal(a, b)?),
            _ => {}
        }
        if let (Value::String(a), Value::String(b)) = (a, b) {
            self.spend_bytes(a.len().min(b.len()))?;
        }
        let nan = |value: &Value| matches!(value, Value::Double(value) if value.is_nan());
        let Some(order) = a.order(b) else {
            if nan(a) || nan(b) {
                return Ok(false);
            }
            return no_overload("<", &[a.clone(), b.clone()]).map(|_| false);
        };
        Ok(match comparison {
            Comparison::Less => order == Ordering::Less,
            Comparison::LessEqual => order != Ordering::Greater,
            Comparison::Greater => order == Ordering::Greater,
            _ => order != Ordering::Less,
        })
    }

    /// Returns true if two values are equal; values of different types are not, besides numbers.
    pub(super) fn equal(&mut self, a: &Value, b: &Value) -> Result<bool, EvalError> {
        self.spend(1)?;
        Ok(match (a, b) {
            (Value::Null, Value::Null) => true,
            (Value::Type(a), Value::Type(b)) => a == b,
            (Value::String(a), Value::String(b)) => {
                self.spend_bytes(a.len().min(b.len()))?;
                a == b
            }
            (Value::Bytes(a), Value::Bytes(b)) => {
                self.spend_bytes(a.len().min(b.len()))?;
                a == b
            }
            (Value::List(a), Value::List(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (a, b) in a.iter().zip(b.iter()) {
                    if !self.equal(a, b)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Map(a), Value::Map(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for ((key, a), (other, b)) in a.iter().zip(b.iter()) {
                    if let Key::String(text) = key {
                        self.spend_bytes(text.len())?;
                    }
                    if key != other || !self.equal(a, b)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Optional(Some(a)), Value::Optional(Some(b))) => self.equal(a, b)?,
            (Value::Optional(None), Value::Optional(None)) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Bool(_), _) | (_, Value::Bool(_)) => false,
            _ => a.order(b) == Some(Ordering::Equal),
        })
    }

    /// Returns true if a list has the item, or a map the key.
    pub(super) fn contains(&mut self, of: &Value, item: &Value) -> Result<bool, EvalError> {
        match of {
            Value::Map(fields) => Ok(item.key().is_some_and(|key| fields.contains_key(&key))),
            Value::List(items) => {
                for each in items.iter() {
                    if self.equal(each, item)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            other => no_overload("in", std::slice::from_ref(other)).map(|_| false),
        }
    }

    fn arithmetic(&mut self, operation: Arithmetic, a: Value, b: Value) -> Evaluated {
        use Arithmetic::{Add, Divide, Multiply, Remainder, Subtract};
        let zero = || EvalError::failed("division by zero");
        match (operation, &a, &b) {
            (_, Value::Int(a), Value::Int(b)) => {
                let result = match operation {
                    Add => a.checked_add(*b),
                    Subtract => a.checked_sub(*b),
                    Multiply => a.checked_mul(*b),
                    Divide | Remainder if *b == 0 => return Err(zero()),
                    Divide => a.checked_div(*b),
                    Remainder => a.checked_rem(*b),
                };
                result.map(Value::Int).ok_or_else(overflow)
            }
            (_, Value::Uint(a), Value::Uint(b)) => {
                let result = match operation {
                    Add => a.checked_add(*b),
                    Subtract => a.checked_sub(*b),
                    Multiply => a.checked_mul(*b),
                    Divide | Remainder if *b == 0 => return Err(zero()),
                    Divide => a.checked_div(*b),
                    Remainder => a.checked_rem(*b),
                };
                result.map(Value::Uint).ok_or_else(overflow)
            }
            (Add, Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
            (Subtract, Value::Double(a), Value::Double(b)) => Ok(Value::Double(a - b)),
            (Multiply, Value::Double(a), Value::Double(b)) => Ok(Value::Double(a * b)),
            (Divide, Value::Double(a), Value::Double(b)) => Ok(Value::Double(a / b)),
            (Add, Value::String(a), Value::String(b)) => {
                self.spend_bytes(a.len() + b.len())?;
                Ok(format!("{a}{b}").into())
            }
            (Add, Value::Bytes(a), Value::Bytes(b)) => {
                self.spend_bytes(a.len() + b.len())?;
                Ok(Value::Bytes([&a[..], &b[..]].concat().into()))
            }
            (Add, Value::List(a), Value::List(b)) => {
                self.spend(a.len() + b.len())?;
                Ok(Value::List(Arc::new(a.iter().chain(b.iter()).cloned().collect())))
            }
            _ => no_overload("arithmetic", &[a, b]),
        }
    }

    fn list(&mut self, items: &[(bool, Node)]) -> Evaluated {
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
            if made.insert(key, value).is_some() {
                return Err(EvalError::failed("a map has a key twice"));
            }
        }
        Ok(Value::Map(Arc::new(made)))
    }

    fn fold(&mut self, fold: &Fold) -> Evaluated {
        let items: Vec<Value> = match self.eval(&fold.range)? {
            Value::List(items) => {
                self.spend(items.len())?;
                items.to_vec()
            }
            Value::Map(fields) => {
                self.spend(fields.len())?;
                fields.keys().map(Key::value).collect()
            }
            other => return no_overload("a macro", &[other]),
        };
        let place = self.variables.len();
        let (mut made, mut count, mut failure) = (Vec::new(), 0_usize, None);
        for item in items {
            self.variables.truncate(place);
            self.variables.push(item.clone());
            let holds = match &fold.predicate {
                Some(predicate) => self.truth(predicate)?,
                None => Ok(true),
            };
            match (fold.kind, holds) {
                (FoldKind::All, Ok(false)) => return self.leave(place, Value::Bool(false)),
                (FoldKind::Exists, Ok(true)) => return self.leave(place, Value::Bool(true)),
                (FoldKind::All | FoldKind::Exists, Err(error)) => failure = Some(error),
                (_, Err(error)) => return Err(error),
                (_, Ok(false)) => {}
                (FoldKind::Filter, Ok(true)) => made.push(item),
                (FoldKind::Map, Ok(true)) => {
                    let result = fold.result.as_ref().map(|result| self.eval(result));
                    made.extend(result.transpose()?);
                }
                (_, Ok(true)) => count += 1,
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
        let result = match fold.kind {
            FoldKind::All => Value::Bool(true),
            FoldKind::Exists => Value::Bool(false),
            FoldKind::ExistsOne => Value::Bool(count == 1),
            FoldKind::Filter | FoldKind::Map => Value::List(Arc::new(made)),
        };
        self.leave(place, result)
    }

    fn leave(&mut self, place: usize, value: Value) -> Evaluated {
        self.variables.truncate(place);
        Ok(value)
    }

    fn optional_map(&mut self, of: &Node, result: &Node, flat: bool) -> Evaluated {
        let value = match self.eval(of)? {
            Value::Optional(Some(value)) => Value::clone(&value),
            Value::Optional(None) => return Ok(Value::Optional(None)),
            other => return no_overload("optMap", &[other]),
        };
        let place = self.variables.len();
        self.variables.push(value);
        let made = self.eval(result);
        self.variables.truncate(place);
        match (flat, made?) {
            (false, value) => Ok(Value::Optional(Some(Arc::new(value)))),
            (true, value @ Value::Optional(_)) => Ok(value),
            (true, other) => no_overload("optFlatMap", &[other]),
        }
    }
}

pub(super) fn no_overload(what: &str, values: &[Value]) -> Evaluated {
    let types: Vec<_> = values.iter().map(Value::type_name).collect();
    Err(EvalError::failed(format!(
        "{what} is not defined for {}",
        types.join(", ")
    )))
}

pub(super) fn overflow() -> EvalError {
    EvalError::failed("a number is too large")
}
