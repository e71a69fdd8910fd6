//! Calls functions and methods, and checks number and types of the arguments.

use std::{fmt::Display, rc::Rc};

use super::{MAX_ERROR, walk::State};
use crate::{
    IntKind, Object, Value,
    template::{
        Error, FunctionError,
        builtin::Builtin,
        node::{Operand, Term},
        notation::At,
        number::Number,
        signature::{DURATION, Signature, Type},
        slot::{Slot, is_nil},
        types::{truth, type_name},
    },
};

pub(super) enum Callee<'c> {
    Function(u16, &'c str, Signature),
    Builtin(Builtin),
    Method(&'c Rc<dyn Object>, &'c str, Option<Signature>),
}

/// Parameters of methods without a signature.
const ANYTHING: Signature = Signature::variadic(&[Type::Any]);

impl Callee<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Function(_, name, _) | Self::Method(_, name, _) => name,
            Self::Builtin(builtin) => builtin.name(),
        }
    }

    fn signature(&self) -> Signature {
        match self {
            Self::Function(_, _, signature) => *signature,
            Self::Method(_, _, signature) => signature.unwrap_or(ANYTHING),
            Self::Builtin(builtin) => builtin.signature(),
        }
    }
}

impl Signature {
    fn parameter(&self, index: usize) -> Type {
        let found = self.parameters.get(index);
        let found = if self.variadic {
            found.or(self.parameters.last())
        } else {
            found
        };
        found.copied().unwrap_or(Type::Any)
    }
}

impl<'s> State<'s, '_> {
    /// Calls the function of an operand; errors name the position of `node`.
    pub(super) fn function(
        &mut self,
        dot: &Slot,
        operand: &'s Operand,
        node: At<'s>,
        arguments: &'s [Operand],
        last: Option<Slot>,
    ) -> Result<Slot, Error> {
        self.at = Some(At::Operand(operand));
        let callee = match &operand.term {
            Term::Builtin(builtin) => Callee::Builtin(*builtin),
            Term::Function(function, name) => {
                let signature = self.executor.functions.signature(*function);
                Callee::Function(*function, self.source.text(*name), signature)
            }
            _ => {
                let operand = self.display(operand);
                return self.error(format_args!("can't evaluate command \"{operand}\""));
            }
        };
        let slot = self.call(dot, &callee, node, arguments, last)?;
        Ok(slot.unwrap_or_default())
    }

    /// Calls a function or method; returns `None` if an object has no such method.
    pub(super) fn call(
        &mut self,
        dot: &Slot,
        callee: &Callee<'_>,
        node: At<'s>,
        arguments: &'s [Operand],
        last: Option<Slot>,
    ) -> Result<Option<Slot>, Error> {
        let signature = callee.signature();
        self.check_count(callee.name(), &signature, arguments.len(), last.is_some())?;
        if let Callee::Builtin(builtin @ (Builtin::And | Builtin::Or)) = callee {
            return self
                .logic(dot, *builtin == Builtin::Or, arguments, last)
                .map(Some);
        }
        let mut slots = Vec::with_capacity(arguments.len() + 1);
        for (index, argument) in arguments.iter().enumerate() {
            slots.push(self.argument(dot, signature.parameter(index), argument)?);
        }
        if let Some(last) = last {
            slots.push(self.fit(last, signature.parameter(arguments.len()))?);
        }
        let result = match callee {
            Callee::Builtin(builtin) => {
                let first = arguments.first().map(|first| self.display(first));
                let first = first.as_ref().map(|first| first as &dyn Display);
                Some(builtin.call(&slots, first, self.executor.budget))
            }
            Callee::Function(function, ..) => {
                let functions = self.executor.functions;
                let result = functions.call(*function, values(slots), self.executor);
                Some(result.map(|value| Slot::element(value, false)))
            }
            Callee::Method(object, name, _) => {
                let values = values(slots);
                let paid = self.executor.budget.step(object.cost(name, &values));
                let called = paid.map(|()| object.call_within(name, &values, self.executor.budget));
                called.map_or_else(
                    |error| Some(Err(error.into())),
                    |result| result.map(|result| result.map(Slot::bare)),
                )
            }
        };
        let Some(result) = result else {
            return Ok(None);
        };
        let result = result.map(|slot| Slot {
            value: slot.value.joined(),
            ..slot
        });
        let weighed = result.and_then(|slot| self.executor.weigh(&slot.value).map(|()| slot));
        match weighed {
            Ok(slot) => Ok(Some(slot)),
            Err(FunctionError::Failed(error)) if error.len() > MAX_ERROR => Err(Error::Execute(error)),
            Err(FunctionError::Uncallable(problem)) => self.error(problem),
            Err(error) => {
                self.at = Some(node);
                self.error(format_args!("error calling {}: {error}", callee.name()))
            }
        }
    }

    fn check_count(&self, name: &str, signature: &Signature, count: usize, last: bool) -> Result<(), Error> {
        let got = count + usize::from(last);
        if signature.variadic {
            let want = signature.parameters.len().saturating_sub(1);
            if got < want {
                return self.error(format_args!(
                    "wrong number of args for {name}: want at least {want} got {count}"
                ));
            }
            return Ok(());
        }
        let want = signature.parameters.len();
        if got == want {
            return Ok(());
        }
        self.error(format_args!(
            "wrong number of args for {name}: want {want} got {got}"
        ))
    }

    /// Evaluates `and` and `or`: the result is the first argument that decides, or the last one. Later ones are not evaluated.
    fn logic(
        &mut self,
        dot: &Slot,
        or: bool,
        arguments: &'s [Operand],
        last: Option<Slot>,
    ) -> Result<Slot, Error> {
        let mut slot = Slot::default();
        for argument in arguments {
            slot = self.argument(dot, Type::Reflect, argument)?;
            if truth(&slot.value) == or {
                return Ok(slot);
            }
        }
        Ok(last.unwrap_or(slot))
    }

    /// Evaluates an operand of any type, as the base of fields.
    pub(super) fn operand(&mut self, dot: &Slot, operand: &'s Operand) -> Result<Slot, Error> {
        self.at = Some(At::Operand(operand));
        match &operand.term {
            Term::Dot => Ok(dot.clone()),
            Term::Field(fields) => self.fields(dot, dot.clone(), operand, *fields, &[], None),
            Term::Variable(name, end) => self.variable(dot, operand, (*name, *end), &[], None),
            Term::Chain(base, fields) => self.chain(dot, operand, *base, *fields, &[], None),
            Term::Pipe(pipe) => self.pipeline(dot, self.source.at(*pipe)),
            Term::Function(..) | Term::Builtin(_) => {
                self.function(dot, operand, At::Operand(operand), &[], None)
            }
            Term::Nil => {
                let operand = self.display(operand);
                self.error(format_args!("indirection through explicit nil in {operand}"))
            }
            Term::Bool(value) => Ok(Slot::bare(Value::Bool(*value))),
            Term::Number(id, written) => self.number(*id, *written).map(Slot::bare),
            Term::String(id) => Ok(Slot::bare(Value::String(self.source.literal(*id)))),
        }
    }

    fn argument(&mut self, dot: &Slot, wanted: Type, operand: &'s Operand) -> Result<Slot, Error> {
        self.at = Some(At::Operand(operand));
        match &operand.term {
            Term::Nil if wanted.takes_nil() => Ok(zero(wanted)),
            Term::Nil => self.error(format_args!("cannot assign nil to {}", wanted.name())),
            Term::Bool(_) | Term::Number(..) | Term::String(_) => {
                self.literal(wanted, operand).map(Slot::bare)
            }
            _ => {
                let slot = self.operand(dot, operand)?;
                self.fit(slot, wanted)
            }
        }
    }

    /// Returns a literal as an argument; a number gets the wanted type if possible.
    fn literal(&self, wanted: Type, operand: &'s Operand) -> Result<Value, Error> {
        let expected = match (wanted, &operand.term) {
            (Type::Any | Type::Reflect, Term::Number(id, written)) => {
                return self.number(*id, *written);
            }
            (Type::Any | Type::Reflect | Type::Bool, Term::Bool(value)) => return Ok(Value::Bool(*value)),
            (Type::Any | Type::Reflect | Type::String, Term::String(id)) => {
                return Ok(Value::String(self.source.literal(*id)));
            }
            (Type::Bool, _) => "bool",
            (Type::String, _) => "string",
            (Type::Int | Type::Int64 | Type::Duration, term) => {
                let kind = if wanted == Type::Int {
                    IntKind::Int
                } else {
                    IntKind::Int64
                };
                match self.number_of(term).int {
                    Some(int) => return Ok(Value::Int(int.into(), kind)),
                    None => "integer",
                }
            }
            (Type::Float, term) => match self.number_of(term).float {
                Some(float) => return Ok(Value::Float(float)),
                None => "float",
            },
            _ => {
                let (name, operand) = (wanted.name(), self.display(operand));
                return self.error(format_args!("can't handle {operand} for arg of type {name}"));
            }
        };
        let operand = self.display(operand);
        self.error(format_args!("expected {expected}; found {operand}"))
    }

    /// Returns the number of a term, or an empty one for other terms.
    fn number_of(&self, term: &Term) -> Number {
        match term {
            Term::Number(id, _) => self.source.number(*id),
            _ => Number::default(),
        }
    }

    fn fit(&self, slot: Slot, wanted: Type) -> Result<Slot, Error> {
        if wanted == Type::Reflect {
            return Ok(slot);
        }
        if slot.is_invalid() {
            if wanted.takes_nil() {
                return Ok(zero(wanted));
            }
            return self.error(format_args!("invalid value; expected {}", wanted.name()));
        }
        if let Some(value) = wanted.accept(&slot.value) {
            return Ok(Slot::bare(value));
        }
        let got = if slot.is_nil() {
            slot.type_name()
        } else {
            type_name(&slot.value)
        };
        self.error(format_args!(
            "wrong type for value; expected {}; got {got}",
            wanted.name()
        ))
    }
}

impl Type {
    fn accept(self, value: &Value) -> Option<Value> {
        let fits = match (self, value) {
            (Self::Any | Self::Reflect, _) => true,
            (Self::Bool, Value::Bool(_))
            | (Self::String, Value::String(_))
            | (Self::Float, Value::Float(_))
            | (Self::Int, Value::Int(_, IntKind::Int))
            | (Self::Int64, Value::Int(_, IntKind::Int64))
            | (Self::List, Value::List(_))
            | (Self::Strings, Value::Strings(_))
            | (Self::Bytes, Value::Bytes(_))
            | (Self::Dict, Value::Dict(_)) => true,
            (Self::Object(name), Value::Object(object)) => object.type_name() == name,
            (Self::Duration, Value::Object(object)) => object.type_name() == DURATION,
            // A map of strings has another type.
            (Self::Dict, Value::Object(object)) if !object.has_any_values() => false,
            (Self::Dict, Value::Object(object)) => return object.as_dict().map(Value::Dict),
            (Self::Strings, Value::Object(object)) => return object.as_list().map(Value::Strings),
            _ => false,
        };
        fits.then(|| value.clone())
    }
}

/// Returns `nil` as a value of the type.
fn zero(wanted: Type) -> Slot {
    Slot::bare(match wanted {
        Type::List => Value::nil_list(),
        Type::Strings => Value::nil_strings(),
        Type::Dict => Value::dict::<Rc<str>>([]),
        Type::Bytes => Value::Bytes(Rc::default()),
        _ => Value::Nil,
    })
}

fn values(slots: Vec<Slot>) -> Vec<Value> {
    let value = |slot: Slot| {
        if is_nil(&slot.value) {
            Value::Nil
        } else {
            slot.value
        }
    };
    slots.into_iter().map(value).collect()
}
