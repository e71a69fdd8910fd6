//! Pipelines and what they are made of.

use super::{MAX_NESTING, Parser};
use crate::template::{
    Error,
    builtin::Builtin,
    lex::{Keyword, Kind, Token},
    node::{Command, Operand, Pipe, Term},
    number::Number,
    quote::{quote, unquote},
    source::Literal,
};

impl<'t> Parser<'t> {
    /// A pipeline up to and with the token that ends it.
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Result<Pipe, Error> {
        let (_, at) = self.peek_non_space();
        let mut pipe = Pipe {
            at,
            assigns: false,
            variables: Vec::new(),
            commands: Vec::with_capacity(1),
        };
        while self.declaration(&mut pipe, context)? {}
        loop {
            let token = self.next_non_space();
            match token.kind {
                kind if kind == end => {
                    self.check(&pipe, context)?;
                    return Ok(pipe);
                }
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Keyword(Keyword::Dot | Keyword::Nil)
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::RawString
                | Kind::String
                | Kind::Variable
                | Kind::LeftParen => {
                    self.give_back(token);
                    let command = self.command()?;
                    pipe.commands.push(command);
                }
                _ => return self.unexpected(&token, context),
            }
        }
    }

    /// A variable that the pipeline declares or assigns, if one comes next; whether another one may follow.
    fn declaration(&mut self, pipe: &mut Pipe, context: &str) -> Result<bool, Error> {
        if self.peek_non_space().0 != Kind::Variable {
            return Ok(false);
        }
        let variable = self.next();
        let after = self.next();
        let spaced = after.kind == Kind::Space;
        self.give_back(after);
        let next = self.next_non_space();
        let comma = next.kind == Kind::Char && next.text == ",";
        if !comma && !matches!(next.kind, Kind::Assign | Kind::Declare) {
            // It is an argument; the space behind it counts.
            self.give_back(next);
            if spaced {
                self.give_back(after);
            }
            self.give_back(variable);
            return Ok(false);
        }
        pipe.variables.push(self.excerpt(&variable));
        self.scope.variables.push(variable.text);
        if !comma {
            pipe.assigns = next.kind == Kind::Assign;
            return Ok(false);
        }
        if context != "range" || pipe.variables.len() > 1 {
            return self.error(&format!("too many declarations in {context}"));
        }
        match self.peek_non_space().0 {
            Kind::Variable | Kind::RightDelimiter | Kind::RightParen => Ok(true),
            _ => self.error("range can only initialize variables"),
        }
    }

    fn check(&self, pipe: &Pipe, context: &str) -> Result<(), Error> {
        if pipe.commands.is_empty() {
            return self.error(&format!("missing value for {context}"));
        }
        for (index, command) in pipe.commands.iter().enumerate().skip(1) {
            if command.first.term.is_literal() {
                return self.error(&format!("non executable command in pipeline stage {}", index + 1));
            }
        }
        Ok(())
    }

    /// Operands with spaces between them, up to and with `|`, or up to what ends the pipeline.
    fn command(&mut self) -> Result<Command, Error> {
        let (_, at) = self.peek_non_space();
        let mark = self.operands.len();
        loop {
            self.peek_non_space();
            self.operand()?;
            let token = self.next();
            match token.kind {
                Kind::Space => {}
                Kind::RightDelimiter | Kind::RightParen => {
                    self.give_back(token);
                    break;
                }
                Kind::Pipe => break,
                _ => return self.unexpected(&token, "operand"),
            }
        }
        let mut operands = self.operands.drain(mark..);
        if let Some(first) = operands.next() {
            return Ok(Command {
                at,
                first,
                arguments: operands.collect(),
            });
        }
        drop(operands);
        self.error("empty command")
    }

    /// Adds a term and the fields behind it to the operands; nothing when no term comes next.
    fn operand(&mut self) -> Result<(), Error> {
        if !self.term()? {
            return Ok(());
        }
        let (kind, at) = self.peek();
        if kind != Kind::Field {
            return Ok(());
        }
        let mut end = at;
        while self.peek().0 == Kind::Field {
            let token = self.next();
            end = token.at + token.text.len();
        }
        let Some(mut operand) = self.operands.pop() else {
            return Ok(());
        };
        if operand.term.is_literal() {
            let what = quote(&operand.to_string());
            return self.error(&format!("unexpected . after term {what}"));
        }
        // Fields stand one behind the other, without space.
        match &mut operand.term {
            Term::Field(names) | Term::Variable(_, names) => names.extend_to(end),
            _ => {
                operand = Operand {
                    at,
                    term: Term::Chain(Box::new(operand), self.source.excerpt(at, end)),
                }
            }
        }
        operand.at = at;
        self.operands.push(operand);
        Ok(())
    }

    /// Adds a term to the operands; whether one comes next.
    fn term(&mut self) -> Result<bool, Error> {
        let token = self.next_non_space();
        let term = match token.kind {
            Kind::Identifier => self.function(&token)?,
            Kind::Keyword(Keyword::Dot) => Term::Dot,
            Kind::Keyword(Keyword::Nil) => Term::Nil,
            Kind::Variable => {
                if !self.scope.variables.contains(&token.text) {
                    return self.error(&format!("undefined variable {}", quote(token.text)));
                }
                let end = token.at + token.text.len();
                Term::Variable(self.excerpt(&token), self.source.excerpt(end, end))
            }
            Kind::Field => Term::Field(self.excerpt(&token)),
            Kind::Bool => Term::Bool(token.text == "true"),
            Kind::CharConstant => Term::Number(Box::new(self.literal(Number::character(token.text))?)),
            Kind::Number => Term::Number(Box::new(self.literal(Number::parse(token.text))?)),
            Kind::Complex => {
                let what = format!("complex numbers are not supported: {}", quote(token.text));
                return self.error(&what);
            }
            Kind::LeftParen => {
                self.nesting += 1;
                if self.nesting > MAX_NESTING {
                    return self.error("max expression depth exceeded");
                }
                let pipe = self.pipeline("parenthesized pipeline", Kind::RightParen)?;
                self.nesting -= 1;
                self.operands.push(Operand {
                    at: pipe.at,
                    term: Term::Pipe(Box::new(pipe)),
                });
                return Ok(true);
            }
            Kind::String | Kind::RawString => {
                if unquote(token.text).is_none() {
                    return self.error("invalid syntax");
                }
                Term::String(Literal::new(self.excerpt(&token)))
            }
            _ => {
                self.give_back(token);
                return Ok(false);
            }
        };
        self.operands.push(Operand { at: token.at, term });
        Ok(true)
    }

    fn function(&self, token: &Token<'_>) -> Result<Term, Error> {
        if self.functions.has(token.text) {
            return Ok(Term::Function(self.excerpt(token)));
        }
        match Builtin::of(token.text) {
            Some(builtin) => Ok(Term::Builtin(builtin)),
            None => self.error(&format!("function {} not defined", quote(token.text))),
        }
    }

    fn literal<T>(&self, read: Result<T, String>) -> Result<T, Error> {
        read.or_else(|what| self.error(&what))
    }
}

impl Term {
    /// Whether it stands for itself: nothing can be called or looked up in it.
    fn is_literal(&self) -> bool {
        matches!(
            self,
            Self::Bool(_) | Self::Dot | Self::Nil | Self::Number(_) | Self::String(..)
        )
    }
}
