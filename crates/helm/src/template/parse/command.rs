//! Parses pipelines, commands and operands.

use go::strconv::{quote, unquote};

use super::{MAX_NESTING, OPERAND, Parser};
use crate::template::{
    Error,
    builtin::Builtin,
    index::{List, NodeIndex, short},
    node::{Command, Operand, Pipe, Term},
    number::{Number, NumberError},
    source::{Indexed as _, Literal},
    token::{Keyword, Token, TokenKind},
};

impl Parser<'_> {
    /// Parses a pipeline including the token that ends it.
    pub(super) fn pipeline(&mut self, context: &str, end: TokenKind) -> Result<Pipe, Error> {
        let at = self.peek().at;
        let mut pipe = Pipe { at, ..*Pipe::MISSING };
        while self.declaration(&mut pipe, context)? {}
        let mark = self.buffers.commands.len();
        loop {
            let token = self.peek();
            match token.kind {
                kind if kind == end => {
                    self.next();
                    self.check(mark, context)?;
                    let buffers = &mut *self.buffers;
                    pipe.commands = List::collected(&mut buffers.parts.commands, &mut buffers.commands, mark);
                    return Ok(pipe);
                }
                TokenKind::Bool
                | TokenKind::CharConstant
                | TokenKind::Complex
                | TokenKind::Keyword(Keyword::Dot | Keyword::Nil)
                | TokenKind::Field
                | TokenKind::Identifier
                | TokenKind::Number
                | TokenKind::RawString
                | TokenKind::String
                | TokenKind::Variable
                | TokenKind::LeftParen => {
                    let command = self.command()?;
                    self.buffers.commands.push(command);
                }
                _ => return self.unexpected(token, context),
            }
        }
    }

    /// Parses a variable that the pipeline declares or assigns, if there is one; returns true if another one may follow.
    fn declaration(&mut self, pipe: &mut Pipe, context: &str) -> Result<bool, Error> {
        if self.peek().kind != TokenKind::Variable {
            return Ok(false);
        }
        let variable = self.next();
        let next = self.next();
        let comma = next.kind == TokenKind::Char && self.lexer.text(next) == ",";
        if !comma && !matches!(next.kind, TokenKind::Assign | TokenKind::Declare) {
            self.give_back(next);
            self.give_back(variable);
            return Ok(false);
        }
        // The variables of a pipeline are read before any other pipeline.
        let declared = &mut self.buffers.parts.variables;
        let known = declared.len() - pipe.variables.len();
        declared.push(variable.span());
        pipe.variables = List::behind(declared, known);
        self.scope.variables.declare(self.lexer.text(variable));
        if !comma {
            pipe.assigns = next.kind == TokenKind::Assign;
            return Ok(false);
        }
        if context != "range" || pipe.variables.len() > 1 {
            return self.error(&format!("too many declarations in {context}"));
        }
        match self.peek().kind {
            TokenKind::Variable | TokenKind::RightDelimiter | TokenKind::RightParen => Ok(true),
            _ => self.error("range can only initialize variables"),
        }
    }

    fn check(&self, mark: usize, context: &str) -> Result<(), Error> {
        let commands = self.buffers.commands.get(mark..).unwrap_or_default();
        if commands.is_empty() {
            return self.error(&format!("missing value for {context}"));
        }
        for (index, command) in commands.iter().enumerate().skip(1) {
            let first = self.buffers.parts.all(command.operands).first();
            if first.is_some_and(|first| first.term.is_literal()) {
                return self.error(&format!("non executable command in pipeline stage {}", index + 1));
            }
        }
        Ok(())
    }

    /// Parses operands separated by spaces, up to and including `|`, or up to the end of the pipeline.
    fn command(&mut self) -> Result<Command, Error> {
        let at = self.peek().at;
        let mark = self.buffers.operands.len();
        loop {
            let is_term = self.operand()?;
            let token = self.peek();
            match token.kind {
                TokenKind::RightDelimiter | TokenKind::RightParen => break,
                TokenKind::Pipe => {
                    self.next();
                    break;
                }
                _ if is_term && token.spaced => {}
                _ => return self.unexpected(token, "operand"),
            }
        }
        let buffers = &mut *self.buffers;
        let operands = List::collected(&mut buffers.parts.operands, &mut buffers.operands, mark);
        if operands.is_empty() {
            return self.error("empty command");
        }
        Ok(Command { at, operands })
    }

    fn operand(&mut self) -> Result<bool, Error> {
        self.count(OPERAND)?;
        if !self.term()? {
            return Ok(false);
        }
        let fields = self.peek();
        if fields.kind != TokenKind::Field || fields.spaced {
            return Ok(true);
        }
        self.next();
        let Some(mut operand) = self.buffers.operands.pop() else {
            return Ok(true);
        };
        if operand.term.is_literal() {
            let what = quote(&self.written(&operand));
            return self.error(&format!("unexpected . after term {what}"));
        }
        if let Term::Variable(_, end) = &mut operand.term {
            *end = fields.end;
        } else {
            let base = NodeIndex::push(&mut self.buffers.parts.operands, operand);
            operand.term = Term::Chain(base, fields.span());
        }
        operand.at = fields.at;
        self.buffers.operands.push(operand);
        Ok(true)
    }

    fn written(&self, operand: &Operand) -> String {
        match operand.term {
            Term::Bool(value) => value.to_string(),
            Term::Nil => "nil".to_owned(),
            Term::Number(_, span) => span.of(self.text).to_owned(),
            Term::String(id) => {
                let literal = self.buffers.parts.literals.get(id as usize);
                literal
                    .map_or("", |literal| literal.quoted.of(self.text))
                    .to_owned()
            }
            _ => ".".to_owned(),
        }
    }

    /// Adds a term to the operands; returns false if there is none.
    fn term(&mut self) -> Result<bool, Error> {
        let token = self.peek();
        let term = match token.kind {
            TokenKind::Identifier => self.function(token)?,
            TokenKind::Keyword(Keyword::Dot) => Term::Dot,
            TokenKind::Keyword(Keyword::Nil) => Term::Nil,
            TokenKind::Variable => {
                let name = self.lexer.text(token);
                if !self.scope.variables.contains(name) {
                    return self.error(&format!("undefined variable {}", quote(name)));
                }
                Term::Variable(token.span(), token.end)
            }
            TokenKind::Field => Term::Field(token.span()),
            TokenKind::Bool => Term::Bool(self.lexer.text(token) == "true"),
            TokenKind::CharConstant => self.number(token, Number::character)?,
            TokenKind::Number => self.number(token, Number::parse)?,
            TokenKind::Complex => {
                let what = format!(
                    "complex numbers are not supported: {}",
                    quote(self.lexer.text(token))
                );
                return self.error(&what);
            }
            TokenKind::LeftParen => {
                self.next();
                self.nesting += 1;
                if self.nesting > MAX_NESTING {
                    return self.error("max expression depth exceeded");
                }
                let pipe = self.pipeline("parenthesized pipeline", TokenKind::RightParen)?;
                self.nesting -= 1;
                let buffers = &mut *self.buffers;
                buffers.operands.push(Operand {
                    at: pipe.at,
                    term: Term::Pipe(NodeIndex::push(&mut buffers.parts.pipes, pipe)),
                });
                return Ok(true);
            }
            TokenKind::String | TokenKind::RawString => {
                let text = self.lexer.text(token);
                // Only escapes can be invalid.
                if token.kind == TokenKind::String && text.contains('\\') && unquote(text).is_none() {
                    return self.error("invalid syntax");
                }
                let literals = &mut self.buffers.parts.literals;
                let id = short(literals.len());
                literals.push(Literal::new(token.span()));
                Term::String(id)
            }
            _ => return Ok(false),
        };
        self.next();
        self.buffers.operands.push(Operand { at: token.at, term });
        Ok(true)
    }

    fn function(&self, token: Token) -> Result<Term, Error> {
        let name = self.lexer.text(token);
        if let Some(function) = self.functions.find(name) {
            return Ok(Term::Function(function, token.span()));
        }
        match Builtin::of(name) {
            Some(builtin) => Ok(Term::Builtin(builtin)),
            None => self.error(&format!("function {} not defined", quote(name))),
        }
    }

    fn number(&mut self, token: Token, read: fn(&str) -> Result<Number, NumberError>) -> Result<Term, Error> {
        let number = read(self.lexer.text(token)).or_else(|error| self.error(&error.to_string()))?;
        let numbers = &mut self.buffers.parts.numbers;
        let id = short(numbers.len());
        numbers.push(number);
        Ok(Term::Number(id, token.span()))
    }
}

impl Term {
    /// Returns true for literals, which can't be called and have no fields.
    fn is_literal(&self) -> bool {
        matches!(
            self,
            Self::Bool(_) | Self::Dot | Self::Nil | Self::Number(..) | Self::String(_)
        )
    }
}
