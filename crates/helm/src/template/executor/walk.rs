//! Executes the bodies of templates.

use std::{collections::BTreeMap, fmt::Display, rc::Rc};

use go::strconv::quote;

use crate::{
    Dict, IntKind, Value,
    template::{
        Error,
        executor::{Executor, NO_VALUE},
        format::write_value,
        index::List,
        node::{Branch, Node, NodeKind, Operand, Pipe},
        notation::{At, NodeDisplay},
        slot::Slot,
        source::{Template, TemplateText},
        types::truth,
    },
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// The state of a running template.
pub(super) struct State<'s, 'e> {
    pub(super) executor: &'s mut Executor<'e>,
    template: &'s Template<'e>,
    pub(super) source: &'s TemplateText<'e>,
    /// The current node, which errors name.
    pub(super) at: Option<At<'s>>,
    pub(super) variables: Vec<(&'s str, Slot)>,
    out: &'s mut String,
}

impl<'s, 'e> State<'s, 'e> {
    pub(super) fn new(
        executor: &'s mut Executor<'e>,
        template: &'s Template<'e>,
        out: &'s mut String,
    ) -> Self {
        Self {
            executor,
            template,
            source: &template.source,
            at: None,
            variables: Vec::new(),
            out,
        }
    }

    pub(super) fn run(mut self, data: Value) -> Result<(), Error> {
        let dot = Slot::bare(data);
        self.variables.push(("$", dot.clone()));
        let before = self.executor.live;
        let done = self.body(&dot, self.template.body).map(|_| ());
        self.executor.live.end_template(before);
        done
    }

    pub(super) fn display(&self, operand: &'s Operand) -> NodeDisplay<'s> {
        self.source.display(At::Operand(operand))
    }

    #[cold]
    pub(super) fn error<T>(&self, what: impl Display) -> Result<T, Error> {
        let name = &self.template.name;
        Err(Error::Execute(match self.at {
            None => format!("template: {name}: {what}"),
            Some(at) => {
                let (position, display) = (self.source.position(at), self.source.display(at));
                format!(
                    "template: {position}: executing {} at <{display}>: {what}",
                    quote(name)
                )
            }
        }))
    }

    /// Wraps an error in the position of the current node.
    pub(super) fn check<T, E: Display>(&self, result: Result<T, E>) -> Result<T, Error> {
        result.or_else(|error| self.error(error))
    }

    fn write(&mut self, text: &str) -> Result<(), Error> {
        let counted = self.executor.budget.output(text.len() as u64);
        self.check(counted)?;
        self.out.push_str(text);
        Ok(())
    }

    fn body(&mut self, dot: &Slot, body: List<Node>) -> Result<Flow, Error> {
        let nodes = self.source.all(body);
        if self.at.is_none() {
            self.at = nodes.first().map(At::Node);
        }
        let deeper = self.executor.deeper();
        let depth = self.check(deeper)?;
        for node in nodes {
            self.at = Some(At::Node(node));
            let counted = self.executor.step();
            self.check(counted)?;
            let before = self.executor.live.passing();
            let flow = self.node(dot, node)?;
            self.executor.live.end_action(before);
            if flow != Flow::Next {
                self.executor.depth = depth;
                return Ok(flow);
            }
        }
        self.executor.depth = depth;
        Ok(Flow::Next)
    }

    fn node(&mut self, dot: &Slot, node: &'s Node) -> Result<Flow, Error> {
        match &node.kind {
            NodeKind::Text(text) => self.write(self.source.text(*text))?,
            NodeKind::Action(pipe) => {
                let pipe = self.source.at(*pipe);
                let slot = self.pipeline(dot, pipe)?;
                if pipe.variables.is_empty() {
                    self.at = Some(At::Node(node));
                    self.print(&slot.value)?;
                }
            }
            NodeKind::If(branch) => return self.choice(dot, self.source.at(*branch), false),
            NodeKind::With(branch) => return self.choice(dot, self.source.at(*branch), true),
            NodeKind::Range(branch) => return self.range(dot, self.source.at(*branch)),
            NodeKind::Template(call) => {
                let call = self.source.at(*call);
                self.call_template(dot, self.source.name(call.name), call.pipe.as_ref())?;
            }
            NodeKind::Break => return Ok(Flow::Break),
            NodeKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn print(&mut self, value: &Value) -> Result<(), Error> {
        match value {
            Value::Nil | Value::Missing => self.write(NO_VALUE),
            Value::String(text) => self.write(text),
            _ => {
                let mut text = String::new();
                let written = write_value(&mut text, value, self.executor.budget);
                self.check(written)?;
                self.write(&text)
            }
        }
    }

    fn choice(&mut self, dot: &Slot, branch: &'s Branch, with: bool) -> Result<Flow, Error> {
        let mark = self.variables.len();
        let slot = self.pipeline(dot, &branch.pipe)?;
        let flow = if truth(&slot.value) {
            self.body(if with { &slot } else { dot }, branch.body)
        } else {
            match branch.otherwise {
                Some(body) => self.body(dot, body),
                None => Ok(Flow::Next),
            }
        };
        self.variables.truncate(mark);
        flow
    }

    fn range(&mut self, dot: &Slot, branch: &'s Branch) -> Result<Flow, Error> {
        let mark = self.variables.len();
        let slot = self.pipeline(dot, &branch.pipe)?;
        let ran = self.iterate(&slot.value, branch)?;
        let flow = match branch.otherwise {
            Some(body) if !ran => self.body(dot, body)?,
            _ => Flow::Next,
        };
        self.variables.truncate(mark);
        // Go ends this loop at a break in its `else`, not the enclosing one; a continue applies to the enclosing loop.
        Ok(if flow == Flow::Break { Flow::Next } else { flow })
    }

    /// Runs the body of a loop for each element; returns false if there was none.
    fn iterate(&mut self, value: &Value, branch: &'s Branch) -> Result<bool, Error> {
        match value {
            Value::Nil | Value::Missing => Ok(false),
            Value::Int(count, kind) => self.count(*count, |number| Value::Int(number, *kind), branch),
            Value::List(items) => {
                let items = Rc::clone(items);
                self.elements(items.iter().map(|item| Slot::boxed(item.clone())), branch)
            }
            Value::Strings(items) | Value::Ints(items) => {
                let items = Rc::clone(items);
                self.elements(
                    items.iter().map(|item| Slot::element(item.clone(), false)),
                    branch,
                )
            }
            Value::Bytes(bytes) => {
                let bytes = Rc::clone(bytes);
                let slots = bytes
                    .iter()
                    .map(|byte| Slot::bare(Value::Int((*byte).into(), IntKind::Uint8)));
                self.elements(slots, branch)
            }
            Value::Dict(map) => self.entries(entries(map), true, branch),
            Value::Object(object) => {
                if let Some(map) = object.as_dict() {
                    let boxed = object.has_any_values();
                    self.entries(entries(&map), boxed, branch)
                } else if let Some(items) = object.as_list() {
                    self.iterate(&Value::Strings(items), branch)
                } else if let Some(count) = object.integer() {
                    let element = |number| object.with_integer(i64::try_from(number).unwrap_or(count));
                    self.count(count.into(), element, branch)
                } else {
                    self.not_iterable(value)
                }
            }
            Value::Bool(_) | Value::Float(_) | Value::String(_) => self.not_iterable(value),
        }
    }

    fn not_iterable<T>(&self, value: &Value) -> Result<T, Error> {
        let mut text = String::new();
        self.check(write_value(&mut text, value, self.executor.budget))?;
        self.error(format_args!("range can't iterate over {text}"))
    }

    fn count(
        &mut self,
        count: i128,
        element: impl Fn(i128) -> Value,
        branch: &'s Branch,
    ) -> Result<bool, Error> {
        if branch.pipe.variables.len() > 1 {
            let mut text = String::new();
            self.check(write_value(&mut text, &element(count), self.executor.budget))?;
            return self.error(format_args!(
                "can't use {text} to iterate over more than one variable"
            ));
        }
        for number in 0..count {
            if self.iteration(None, &Slot::bare(element(number)), branch)? == Flow::Break {
                break;
            }
        }
        Ok(count > 0)
    }

    fn elements(&mut self, slots: impl Iterator<Item = Slot>, branch: &'s Branch) -> Result<bool, Error> {
        let mut ran = false;
        for (index, slot) in slots.enumerate() {
            ran = true;
            let index = Slot::bare(Value::Int(index as i128, IntKind::Int));
            if self.iteration(Some(index), &slot, branch)? == Flow::Break {
                break;
            }
        }
        Ok(ran)
    }

    fn entries(
        &mut self,
        entries: Vec<(Rc<str>, Value)>,
        boxed: bool,
        branch: &'s Branch,
    ) -> Result<bool, Error> {
        let ran = !entries.is_empty();
        for (key, value) in entries {
            let key = Slot::bare(Value::String(key));
            if self.iteration(Some(key), &Slot::element(value, boxed), branch)? == Flow::Break {
                break;
            }
        }
        Ok(ran)
    }

    fn iteration(&mut self, index: Option<Slot>, element: &Slot, branch: &'s Branch) -> Result<Flow, Error> {
        let counted = self.executor.step();
        self.check(counted)?;
        let mark = self.variables.len();
        self.bind(index.unwrap_or_default(), element, &branch.pipe)?;
        let flow = self.body(element, branch.body);
        self.variables.truncate(mark);
        flow
    }

    /// Assigns the variables of a loop: a single one gets the element.
    fn bind(&mut self, index: Slot, element: &Slot, pipe: &'s Pipe) -> Result<(), Error> {
        let (first, second) = match self.source.all(pipe.variables) {
            [] => return Ok(()),
            [only] => (None, *only),
            [first, second, ..] => (Some(*first), *second),
        };
        if pipe.assigns {
            if let Some(first) = first {
                self.assign(self.source.text(first), index)?;
            }
            return self.assign(self.source.text(second), element.clone());
        }
        let mut top = self.variables.iter_mut().rev();
        if let Some((_, slot)) = top.next() {
            *slot = element.clone();
        }
        if let (Some(_), Some((_, slot))) = (first, top.next()) {
            *slot = index;
        }
        Ok(())
    }

    fn call_template(&mut self, dot: &Slot, name: &str, pipe: Option<&'s Pipe>) -> Result<(), Error> {
        let Some(template) = self.executor.set.lookup(name).map(Rc::clone) else {
            return self.error(format_args!("template {} not defined", quote(name)));
        };
        let data = match pipe {
            Some(pipe) => self.pipeline(dot, pipe)?,
            None => Slot::default(),
        };
        State::new(self.executor, &template, self.out).run(data.value)
    }
}

/// Returns a snapshot of the entries.
fn entries(map: &Dict) -> Vec<(Rc<str>, Value)> {
    let entries = |map: &BTreeMap<Rc<str>, Value>| {
        map.iter()
            .map(|(key, value)| (Rc::clone(key), value.clone()))
            .collect()
    };
    map.try_borrow().map(|map| entries(&map)).unwrap_or_default()
}
