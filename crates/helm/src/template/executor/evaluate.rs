//! Evaluates pipelines, variables and fields.

use std::rc::Rc;

use go::strconv::quote;

use super::{call::Callee, walk::State};
use crate::{
    Object, Value,
    template::{
        Error,
        index::{NodeIndex, Span},
        node::{Command, Operand, Pipe, Term, first_field},
        notation::At,
        slot::Slot,
    },
};

impl<'s> State<'s, '_> {
    /// Returns the value of a pipeline, without its interface, and assigns it to the pipeline's variables.
    pub(super) fn pipeline(&mut self, dot: &Slot, pipe: &'s Pipe) -> Result<Slot, Error> {
        self.at = Some(At::Pipe(pipe));
        let deeper = self.executor.deeper();
        let depth = self.check(deeper)?;
        let mut last = None;
        for command in self.source.all(pipe.commands) {
            let counted = self.executor.step();
            self.check(counted)?;
            last = Some(self.command(dot, command, last)?.opened());
        }
        let slot = last.unwrap_or_default();
        if !pipe.variables.is_empty() {
            self.executor.live.hold();
        }
        for variable in self.source.all(pipe.variables) {
            let variable = self.source.text(*variable);
            if pipe.assigns {
                self.assign(variable, slot.clone())?;
            } else {
                self.variables.push((variable, slot.clone()));
            }
        }
        self.executor.depth = depth;
        Ok(slot)
    }

    /// Counts the search for a variable.
    fn count_search(&self) -> Result<(), Error> {
        let steps = self.variables.len() as u64 / 64;
        if steps == 0 {
            return Ok(());
        }
        self.check(self.executor.budget.step(steps))
    }

    pub(super) fn assign(&mut self, name: &str, value: Slot) -> Result<(), Error> {
        self.count_search()?;
        match self.variables.iter_mut().rev().find(|(known, _)| *known == name) {
            Some((_, slot)) => {
                *slot = value;
                Ok(())
            }
            None => self.error(format_args!("undefined variable: {name}")),
        }
    }

    /// Returns the value of a command; `last` is the value of the previous one in the pipeline.
    fn command(&mut self, dot: &Slot, command: &'s Command, last: Option<Slot>) -> Result<Slot, Error> {
        let Some((first, arguments)) = self.source.all(command.operands).split_first() else {
            return Ok(Slot::default());
        };
        match &first.term {
            Term::Field(fields) => {
                self.at = Some(At::Operand(first));
                self.fields(dot, dot.clone(), first, *fields, arguments, last)
            }
            Term::Chain(base, fields) => self.chain(dot, first, *base, *fields, arguments, last),
            Term::Variable(name, end) => self.variable(dot, first, (*name, *end), arguments, last),
            Term::Function(..) | Term::Builtin(_) => {
                self.function(dot, first, At::Command(command), arguments, last)
            }
            Term::Pipe(pipe) => {
                self.no_arguments(first, arguments, last.as_ref())?;
                self.pipeline(dot, self.source.at(*pipe))
            }
            literal => {
                self.at = Some(At::Operand(first));
                self.no_arguments(first, arguments, last.as_ref())?;
                match literal {
                    Term::Bool(value) => Ok(Slot::bare(Value::Bool(*value))),
                    Term::Dot => Ok(dot.clone()),
                    Term::Number(id, written) => self.number(*id, *written).map(Slot::bare),
                    Term::String(id) => Ok(Slot::bare(Value::String(self.source.literal(*id)))),
                    _ => self.error("nil is not a command"),
                }
            }
        }
    }

    fn no_arguments(
        &self,
        first: &'s Operand,
        arguments: &[Operand],
        last: Option<&Slot>,
    ) -> Result<(), Error> {
        if arguments.is_empty() && last.is_none() {
            return Ok(());
        }
        let first = self.display(first);
        self.error(format_args!("can't give argument to non-function {first}"))
    }

    /// Returns a number where any type is accepted.
    pub(super) fn number(&self, id: u32, written: Span) -> Result<Value, Error> {
        let number = self.source.number(id);
        match (number.float, number.int) {
            (Some(float), _) if number.is_float => Ok(Value::Float(float)),
            (_, Some(int)) => Ok(Value::int(int)),
            _ => self.error(format_args!("{} overflows int", self.source.text(written))),
        }
    }

    pub(super) fn variable(
        &mut self,
        dot: &Slot,
        operand: &'s Operand,
        (name, end): (Span, u32),
        arguments: &'s [Operand],
        last: Option<Slot>,
    ) -> Result<Slot, Error> {
        self.at = Some(At::Operand(operand));
        self.count_search()?;
        let fields = name.up_to(end);
        let name = self.source.text(name);
        let found = self.variables.iter().rev().find(|(known, _)| *known == name);
        let Some(slot) = found.map(|(_, slot)| slot.clone()) else {
            return self.error(format_args!("undefined variable: {name}"));
        };
        if fields.is_empty() {
            self.no_arguments(operand, arguments, last.as_ref())?;
            return Ok(slot);
        }
        self.fields(dot, slot, operand, fields, arguments, last)
    }

    pub(super) fn chain(
        &mut self,
        dot: &Slot,
        operand: &'s Operand,
        base: NodeIndex<Operand>,
        fields: Span,
        arguments: &'s [Operand],
        last: Option<Slot>,
    ) -> Result<Slot, Error> {
        self.at = Some(At::Operand(operand));
        let slot = self.operand(dot, self.source.at(base))?;
        self.fields(dot, slot, operand, fields, arguments, last)
    }

    /// Follows fields; the last one may be a method, which gets the arguments.
    pub(super) fn fields(
        &mut self,
        dot: &Slot,
        receiver: Slot,
        operand: &'s Operand,
        fields: Span,
        arguments: &'s [Operand],
        last: Option<Slot>,
    ) -> Result<Slot, Error> {
        let mut receiver = receiver;
        let mut fields = self.source.text(fields);
        loop {
            let field = first_field(fields);
            let name = field.strip_prefix('.').unwrap_or(field);
            fields = fields.get(field.len()..).unwrap_or_default();
            if fields.is_empty() {
                return self.field(dot, &receiver, operand, name, arguments, last);
            }
            receiver = self.field(dot, &receiver, operand, name, &[], None)?;
        }
    }

    fn field(
        &mut self,
        dot: &Slot,
        receiver: &Slot,
        operand: &'s Operand,
        name: &str,
        arguments: &'s [Operand],
        last: Option<Slot>,
    ) -> Result<Slot, Error> {
        let map = match &receiver.value {
            Value::Nil | Value::Missing => return self.field_of_nothing(receiver, name),
            Value::Dict(map) => Some(Rc::clone(map)),
            Value::Object(object) => {
                let object = Rc::clone(object);
                let has_arguments = !arguments.is_empty() || last.is_some();
                if has_arguments || is_exported(name) && object.signature(name).is_some() {
                    return self.method(dot, receiver, &object, operand, name, arguments, last);
                }
                if let Some(slot) = self.field_of_object(&object, operand, name)? {
                    return Ok(slot);
                }
                object.as_dict()
            }
            _ => None,
        };
        let Some(map) = map else {
            return self.no_field(receiver, name);
        };
        if !arguments.is_empty() || last.is_some() {
            return self.error(format_args!("{name} is not a method but has arguments"));
        }
        let found = map.try_borrow().ok().and_then(|map| map.get(name).cloned());
        match found {
            Some(value) => Ok(Slot::boxed(value)),
            None if self.executor.strict => {
                self.error(format_args!("map has no entry for key {}", quote(name)))
            }
            None => Ok(Slot::boxed(Value::Nil)),
        }
    }

    fn field_of_nothing(&self, receiver: &Slot, name: &str) -> Result<Slot, Error> {
        if receiver.boxed {
            return self.error(format_args!("nil pointer evaluating interface {{}}.{name}"));
        }
        if self.executor.strict {
            return self.error(format_args!("nil data; no entry for key {}", quote(name)));
        }
        Ok(Slot::default())
    }

    fn no_field<T>(&self, receiver: &Slot, name: &str) -> Result<T, Error> {
        self.error(format_args!(
            "can't evaluate field {name} in type {}",
            receiver.type_name()
        ))
    }

    /// Returns a field of an object, or the result of a method of that name without arguments.
    fn field_of_object(
        &mut self,
        object: &Rc<dyn Object>,
        operand: &'s Operand,
        name: &str,
    ) -> Result<Option<Slot>, Error> {
        if let Some(value) = object.field(name) {
            let weighed = self.executor.weigh(&value);
            self.check(weighed)?;
            return Ok(Some(Slot::element(value, false)));
        }
        if !is_exported(name) {
            return Ok(None);
        }
        let paid = self.executor.budget.step(object.cost(name, &[]));
        self.check(paid)?;
        let Some(result) = object.call_within(name, &[], self.executor.budget) else {
            return Ok(None);
        };
        match result.and_then(|value| self.executor.weigh(&value).map(|()| value)) {
            Ok(value) => Ok(Some(Slot::bare(value))),
            Err(error) => {
                self.at = Some(At::Operand(operand));
                self.error(format_args!("error calling {name}: {error}"))
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a call is all of this")]
    fn method(
        &mut self,
        dot: &Slot,
        receiver: &Slot,
        object: &Rc<dyn Object>,
        operand: &'s Operand,
        name: &str,
        arguments: &'s [Operand],
        last: Option<Slot>,
    ) -> Result<Slot, Error> {
        let callee = Callee::Method(object, name, object.signature(name));
        if let Some(slot) = self.call(dot, &callee, At::Operand(operand), arguments, last)? {
            return Ok(slot);
        }
        self.at = Some(At::Operand(operand));
        if object.has_any_values() && object.field(name).is_some() {
            return self.error(format_args!(
                "{name} has arguments but cannot be invoked as function"
            ));
        }
        if object.as_dict().is_some() {
            return self.error(format_args!("{name} is not a method but has arguments"));
        }
        self.no_field(receiver, name)
    }
}

/// Returns true if a method may have this name: Go exports names that begin with a capital letter, and ours are all ASCII.
fn is_exported(name: &str) -> bool {
    name.as_bytes().first().is_some_and(u8::is_ascii_uppercase)
}
