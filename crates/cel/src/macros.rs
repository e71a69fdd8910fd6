//! Macros over lists, maps and optional values.

use std::sync::Arc;

use crate::{
    Value,
    eval::{Evaluated, Evaluation, no_overload},
    tree::{Fold, FoldKind, Node},
    value::Key,
};

impl Evaluation {
    pub(crate) fn fold(&mut self, fold: &Fold) -> Evaluated {
        let items: Vec<Value> = match self.eval(&fold.range)? {
            Value::List(items) => {
                self.budget.spend(items.len())?;
                items.to_vec()
            }
            Value::Map(fields) => {
                self.budget.spend(fields.len())?;
                fields.keys().map(Key::value).collect()
            }
            other => return no_overload("a macro", &[other]),
        };
        let locals = self.locals.len();
        let (mut made, mut count, mut failure) = (Vec::new(), 0_usize, None);
        for item in items {
            self.locals.truncate(locals);
            self.locals.push(item.clone());
            let holds = match &fold.predicate {
                Some(predicate) => self.truth(predicate)?,
                None => Ok(true),
            };
            match (fold.kind, holds) {
                (FoldKind::All, Ok(false)) => return self.leave(locals, Value::Bool(false)),
                (FoldKind::Exists, Ok(true)) => return self.leave(locals, Value::Bool(true)),
                (FoldKind::All | FoldKind::Exists, Err(error)) => failure = Some(error),
                (_, Err(error)) => return Err(error),
                (_, Ok(false)) => {}
                (FoldKind::Filter, Ok(true)) => {
                    self.budget.allocate_items(1)?;
                    made.push(item);
                }
                (FoldKind::Map, Ok(true)) => {
                    self.budget.allocate_items(1)?;
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
        self.leave(locals, result)
    }

    fn leave(&mut self, locals: usize, value: Value) -> Evaluated {
        self.locals.truncate(locals);
        Ok(value)
    }

    pub(crate) fn optional_map(&mut self, of: &Node, result: &Node, flat: bool) -> Evaluated {
        let value = match self.eval(of)? {
            Value::Optional(Some(value)) => Value::clone(&value),
            Value::Optional(None) => return Ok(Value::Optional(None)),
            other => return no_overload("optMap", &[other]),
        };
        let locals = self.locals.len();
        self.locals.push(value);
        let made = self.eval(result);
        self.locals.truncate(locals);
        match (flat, made?) {
            (false, value) => Ok(Value::some(value)),
            (true, value @ Value::Optional(_)) => Ok(value),
            (true, other) => no_overload("optFlatMap", &[other]),
        }
    }
}
