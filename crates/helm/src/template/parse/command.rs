//! Pipelines and what they are made of.

use super::{MAX_NESTING, Parser};
use crate::template::{
    Error,
    builtin::Builtin,
    node::{Command, Operand, Pipe, Term},
    number::Number,
    quote::{quote, unquote},
    source::{List, Literal, Span, short},
    token::{Keyword, Kind, Token},
};

impl Parser<'_> {
    /// A pipeline up to and with the token that ends it.
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Result<Pipe, Error> {
        let (_, at) = self.peek_non_space();
        let mut pipe = Pipe {
            at,
            assigns: false,
            variables: List::behind(&self.parts.variables, self.parts.variables.len()),
            commands: List::behind(&self.parts.commands, self.parts.commands.len()),
        };
        while self.declaration(&mut pipe, context)? {}
        let mark = self.commands.len();
        loop {
            let token = self.next_non_space();
            match token.kind {
                kind if kind == end => {
                    self.check(mark, context)?;
                    pipe.commands = List::collected(&mut self.parts.commands, &mut self.commands, mark);
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
                    self.commands.push(command);
                }
                _ => return self.unexpected(token, context),
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
        let comma = next.kind == Kind::Char && self.lexer.text(next) == ",";
        if !comma && !matches!(next.kind, Kind::Assign | Kind::Declare) {
            // It is an argument; the space behind it counts.
            self.give_back(next);
            if spaced {
                self.give_back(after);
            }
            self.give_back(variable);
            return Ok(false);
        }
        // Nothing of another pipeline is read before its variables are.
        let known = self.parts.variables.len() - pipe.variables.len();
        self.parts.variables.push(variable.span());
        pipe.variables = List::behind(&self.parts.variables, known);
        self.scope.variables.push(self.lexer.text(variable));
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

    fn check(&self, mark: usize, context: &str) -> Result<(), Error> {
        let commands = self.commands.get(mark..).unwrap_or_default();
        if commands.is_empty() {
            return self.error(&format!("missing value for {context}"));
        }
        for (index, command) in commands.iter().enumerate().skip(1) {
            let first = self.parts.operands(command.operands).first();
            if first.is_some_and(|first| first.term.is_literal()) {
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
                _ => return self.unexpected(token, "operand"),
            }
        }
        let operands = List::collected(&mut self.parts.operands, &mut self.operands, mark);
        if operands.is_empty() {
            return self.error("empty command");
        }
        Ok(Command { at, operands })
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
            end = self.next().end;
        }
        let Some(mut operand) = self.operands.pop() else {
            return Ok(());
        };
        if operand.term.is_literal() {
            let what = quote(&self.written(&operand));
            return self.error(&format!("unexpected . after term {what}"));
        }
        // Fields stand one behind the other, without space.
        match &mut operand.term {
            Term::Field(names) | Term::Variable(_, names) => names.end = end,
            _ => {
                let start = self.parts.operands.len();
                self.parts.operands.push(operand);
                let base = List::behind(&self.parts.operands, start);
                operand.term = Term::Chain(base, Span { start: at, end });
            }
        }
        operand.at = at;
        self.operands.push(operand);
        Ok(())
    }

    /// A literal as it is written.
    fn written(&self, operand: &Operand) -> String {
        match operand.term {
            Term::Bool(value) => value.to_string(),
            Term::Nil => "nil".to_owned(),
            Term::Number(_, span) => span.of(self.text).to_owned(),
            Term::String(place) => {
                let literal = self.parts.literals.get(place as usize);
                literal
                    .map_or("", |literal| literal.quoted.of(self.text))
                    .to_owned()
            }
            _ => ".".to_owned(),
        }
    }

    /// Adds a term to the operands; whether one comes next.
    fn term(&mut self) -> Result<bool, Error> {
        let token = self.next_non_space();
        let term = match token.kind {
            Kind::Identifier => self.function(token)?,
            Kind::Keyword(Keyword::Dot) => Term::Dot,
            Kind::Keyword(Keyword::Nil) => Term::Nil,
            Kind::Variable => {
                let name = self.lexer.text(token);
                if !self.scope.variables.contains(&name) {
                    return self.error(&format!("undefined variable {}", quote(name)));
                }
                let behind = Span {
                    start: token.end,
                    end: token.end,
                };
                Term::Variable(token.span(), behind)
            }
            Kind::Field => Term::Field(token.span()),
            Kind::Bool => Term::Bool(self.lexer.text(token) == "true"),
            Kind::CharConstant => self.number(token, Number::character)?,
            Kind::Number => self.number(token, Number::parse)?,
            Kind::Complex => {
                let what = format!(
                    "complex numbers are not supported: {}",
                    quote(self.lexer.text(token))
                );
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
                    term: Term::Pipe(pipe),
                });
                return Ok(true);
            }
            Kind::String | Kind::RawString => {
                let text = self.lexer.text(token);
                // Only what is escaped can be wrong.
                if token.kind == Kind::String && text.contains('\\') && unquote(text).is_none() {
                    return self.error("invalid syntax");
                }
                let place = short(self.parts.literals.len());
                self.parts.literals.push(Literal::new(token.span()));
                Term::String(place)
            }
            _ => {
                self.give_back(token);
                return Ok(false);
            }
        };
        self.operands.push(Operand { at: token.at, term });
        Ok(true)
    }

    fn function(&self, token: Token) -> Result<Term, Error> {
        let name = self.lexer.text(token);
        if self.functions.has(name) {
            return Ok(Term::Function(token.span()));
        }
        match Builtin::of(name) {
            Some(builtin) => Ok(Term::Builtin(builtin)),
            None => self.error(&format!("function {} not defined", quote(name))),
        }
    }

    fn number(&mut self, token: Token, read: fn(&str) -> Result<Number, String>) -> Result<Term, Error> {
        let number = read(self.lexer.text(token)).or_else(|what| self.error(&what))?;
        let place = short(self.parts.numbers.len());
        self.parts.numbers.push(number);
        Ok(Term::Number(place, token.span()))
    }
}

impl Term {
    /// Whether it stands for itself: nothing can be called or looked up in it.
    fn is_literal(&self) -> bool {
        matches!(
            self,
            Self::Bool(_) | Self::Dot | Self::Nil | Self::Number(..) | Self::String(_)
        )
    }
}
