//! Statements: text, prints and tags.

use std::rc::Rc;

use super::{Body, Parsed, Parser, name, quoted};
use crate::{
    ast::{
        BlockUse, Expr, ExprKind, For, Macro, Name, Piece, Scope, SetBlock, Stmt, StmtKind, Target, Track,
        Visible,
    },
    lexer::{SyntaxError, TokenKind},
    value::{Str, Value},
};

impl Parser<'_> {
    /// Parses statements up to a closing tag, which is not consumed.
    pub(super) fn subparse(&mut self, ends: &'static [&'static str]) -> Parsed<Body> {
        if !ends.is_empty() {
            self.ends.push(ends);
        }
        let body = self.deeper(|parser| parser.statements_until(ends))?;
        if !ends.is_empty() {
            self.ends.pop();
        }
        Ok(body)
    }

    fn statements_until(&mut self, ends: &[&str]) -> Parsed<Body> {
        let mut body = Vec::new();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut first = self.line();
        loop {
            let line = self.line();
            if pieces.is_empty() {
                first = line;
            }
            match self.current().clone() {
                TokenKind::Data(text) => {
                    self.next();
                    pieces.push(Piece::Data(text));
                }
                TokenKind::VariableBegin => {
                    self.next();
                    pieces.push(Piece::Expr(self.tuple(true, false, &[])?));
                    self.expect_kind(&TokenKind::VariableEnd)?;
                }
                TokenKind::BlockBegin => {
                    flush(&mut body, &mut pieces, first);
                    self.next();
                    if ends.iter().any(|word| self.is_word(word)) {
                        return Ok(body);
                    }
                    body.push(self.statement()?);
                    self.expect_kind(&TokenKind::BlockEnd)?;
                }
                TokenKind::Bad(error) => return Err(error.into()),
                _ => {
                    flush(&mut body, &mut pieces, first);
                    return Ok(body);
                }
            }
        }
    }

    /// Parses the body of a tag, and returns its closing word.
    fn body(&mut self, ends: &'static [&'static str]) -> Parsed<(Body, Str)> {
        self.skip_op(":");
        self.expect_kind(&TokenKind::BlockEnd)?;
        let body = self.subparse(ends)?;
        match self.next() {
            TokenKind::Name(word) => Ok((body, word)),
            _ => {
                self.ends.push(ends);
                Err(self.unknown(None, self.line()).into())
            }
        }
    }

    fn statement(&mut self) -> Parsed<Stmt> {
        self.meter.step(1)?;
        let line = self.line();
        let TokenKind::Name(tag) = self.current().clone() else {
            return self.fail("tag name expected");
        };
        self.tags.push(tag.to_string());
        self.next();
        let kind = match &*tag {
            "for" => self.for_tag(),
            "if" => self.if_tag(),
            "block" => self.block_tag(),
            "extends" => self.expression().map(StmtKind::Extends),
            "print" => self.print_tag(),
            "macro" => self.macro_tag(line),
            "include" => self.include_tag(),
            "from" => self.import_names_tag(),
            "import" => self.import_tag(),
            "set" => self.set_tag(),
            "with" => self.with_tag(),
            "autoescape" => self.autoescape_tag(),
            "call" => self.call_tag(line),
            "filter" => self.filter_tag(),
            "break" => Ok(StmtKind::Break),
            "continue" => Ok(StmtKind::Continue),
            _ => {
                self.tags.pop();
                return Err(self.unknown(Some(&tag), line).into());
            }
        }?;
        self.tags.pop();
        Ok(Stmt { line, kind })
    }

    fn unknown(&self, tag: Option<&str>, line: u32) -> SyntaxError {
        // The original reads the rest of an unknown tag only later.
        if let (TokenKind::Bad(error), None) = (self.current(), tag) {
            return error.clone();
        }
        let mut message = match tag {
            Some(tag) => format!("Encountered unknown tag {}.", quoted(tag)),
            None => "Unexpected end of template.".to_owned(),
        };
        if let Some(ends) = self.ends.last() {
            let looking: Vec<String> = ends.iter().map(|end| quoted(end)).collect();
            let looking = looking.join(" or ");
            let nested = tag.is_some_and(|tag| self.ends.iter().any(|ends| ends.contains(&tag)));
            message.push_str(&if nested {
                format!(
                    " You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for {looking}."
                )
            } else {
                format!(" Jinja was looking for the following tags: {looking}.")
            });
        }
        if let Some(open) = self.tags.last() {
            message.push_str(&format!(
                " The innermost block that needs to be closed is {}.",
                quoted(open)
            ));
        }
        SyntaxError::new(line, message)
    }

    fn target(&mut self, ends: &[&str], with_namespace: bool) -> Parsed<Target> {
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            if !items.is_empty() {
                self.expect_op(",")?;
            }
            if self.is_tuple_end(ends) || (with_namespace && self.is_op("=")) {
                break;
            }
            items.push(self.deeper(|parser| parser.single_target(with_namespace))?);
            if !self.is_op(",") {
                break;
            }
            is_tuple = true;
        }
        match items.pop() {
            Some(only) if !is_tuple => Ok(only),
            None => self.fail(format!(
                "Expected an expression, got {}",
                quoted(&self.current().describe())
            )),
            last => {
                items.extend(last);
                Ok(Target::Tuple(items))
            }
        }
    }

    fn single_target(&mut self, with_namespace: bool) -> Parsed<Target> {
        if self.skip_op("(") {
            let inner = self.target(&[], with_namespace)?;
            self.expect_op(")")?;
            return Ok(inner);
        }
        if let (true, TokenKind::Name(space), TokenKind::Op(".")) =
            (with_namespace, self.current().clone(), self.ahead())
        {
            self.next();
            self.next();
            return Ok(Target::Attr(name(space), self.expect_name()?));
        }
        let line = self.line();
        match self.primary()?.kind {
            ExprKind::Name(target) => Ok(Target::Name(target)),
            other => self.fail_at(line, format!("can't assign to '{}'", kind_name(&other))),
        }
    }

    pub(super) fn target_name(&mut self) -> Parsed<Name> {
        let id = self.expect_name()?;
        if matches!(&*id, "true" | "false" | "none" | "True" | "False" | "None") {
            return self.fail("can't assign to 'name'");
        }
        Ok(name(id))
    }

    fn for_tag(&mut self) -> Parsed<StmtKind> {
        let target = self.target(&["in"], false)?;
        self.expect_word("in")?;
        let iter = self.tuple(false, false, &["recursive"])?;
        let test = if self.skip_word("if") {
            Some(self.expression()?)
        } else {
            None
        };
        let recursive = self.skip_word("recursive");
        let (body, end) = self.body(&["endfor", "else"])?;
        let otherwise = if &*end == "else" {
            self.body(&["endfor"])?.0
        } else {
            Vec::new()
        };
        Ok(StmtKind::For(Rc::new(For {
            test_target: test.as_ref().map(|_| target.clone()),
            target,
            iter,
            body,
            otherwise,
            test,
            recursive,
            loop_slot: None,
            scope: Scope::default(),
            test_scope: Scope::default(),
            else_scope: Scope::default(),
            slots: 0,
        })))
    }

    fn if_tag(&mut self) -> Parsed<StmtKind> {
        let mut branches = Vec::new();
        loop {
            let test = self.tuple(false, false, &[])?;
            let (body, end) = self.body(&["elif", "else", "endif"])?;
            branches.push((test, body));
            match &*end {
                "elif" => {}
                "else" => return Ok(StmtKind::If(branches, self.body(&["endif"])?.0)),
                _ => return Ok(StmtKind::If(branches, Vec::new())),
            }
        }
    }

    fn with_tag(&mut self) -> Parsed<StmtKind> {
        let mut pairs = Vec::new();
        while *self.current() != TokenKind::BlockEnd {
            if !pairs.is_empty() {
                self.expect_op(",")?;
            }
            let target = self.target(&[], false)?;
            self.expect_op("=")?;
            pairs.push((target, self.expression()?));
        }
        let body = self.body(&["endwith"])?.0;
        Ok(StmtKind::With(pairs, body, Scope::default()))
    }

    fn autoescape_tag(&mut self) -> Parsed<StmtKind> {
        let flag = self.expression()?;
        Ok(StmtKind::AutoEscape(flag, self.body(&["endautoescape"])?.0))
    }

    fn print_tag(&mut self) -> Parsed<StmtKind> {
        let mut pieces = Vec::new();
        while *self.current() != TokenKind::BlockEnd {
            if !pieces.is_empty() {
                self.expect_op(",")?;
            }
            pieces.push(Piece::Expr(self.expression()?));
        }
        Ok(StmtKind::Output(pieces))
    }

    fn block_tag(&mut self) -> Parsed<StmtKind> {
        let name = self.expect_name()?;
        let scoped = self.skip_word("scoped");
        let required = self.skip_word("required");
        if self.is_op("-") {
            return self.fail(
                "Block names in Jinja have to be valid Python identifiers and may not contain hyphens, use an \
                 underscore instead.",
            );
        }
        let body = self.body(&["endblock"])?.0;
        let blank = |piece: &Piece| matches!(piece, Piece::Data(text) if text.trim().is_empty());
        let empty = |stmt: &Stmt| matches!(&stmt.kind, StmtKind::Output(pieces) if pieces.iter().all(blank));
        if required && !body.iter().all(empty) {
            return self.fail("Required blocks can only contain comments or whitespace");
        }
        self.skip_word(&name);
        Ok(StmtKind::Block(Box::new(BlockUse {
            name,
            scoped,
            required,
            toplevel: false,
            body,
            visible: Visible::default(),
        })))
    }

    fn signature(&mut self) -> Parsed<(Vec<Name>, Vec<Expr>)> {
        let (mut params, mut defaults): (Vec<Name>, _) = (Vec::new(), Vec::new());
        self.expect_op("(")?;
        while !self.is_op(")") {
            if !params.is_empty() {
                self.expect_op(",")?;
            }
            let param = self.target_name()?;
            self.meter.step(params.len() as u64 / 16)?;
            if params.iter().any(|known| known.id == param.id) {
                return self.fail(format!(
                    "duplicate argument '{}' in function definition",
                    param.id
                ));
            }
            if self.skip_op("=") {
                defaults.push(self.expression()?);
            } else if !defaults.is_empty() {
                return self.fail("non-default argument follows default argument");
            }
            params.push(param);
        }
        self.expect_op(")")?;
        Ok((params, defaults))
    }

    fn macro_tag(&mut self, line: u32) -> Parsed<StmtKind> {
        let target = self.target_name()?;
        let (params, defaults) = self.signature()?;
        let body = self.body(&["endmacro"])?.0;
        let made = new_macro(target.id.clone(), params, defaults, body, line);
        Ok(StmtKind::Macro(Rc::new(made), target, Track::default()))
    }

    fn call_tag(&mut self, line: u32) -> Parsed<StmtKind> {
        let (params, defaults) = if self.is_op("(") {
            self.signature()?
        } else {
            (Vec::new(), Vec::new())
        };
        let call = self.expression()?;
        if !matches!(call.kind, ExprKind::Call(_)) {
            return self.fail_at(line, "expected call");
        }
        let body = self.body(&["endcall"])?.0;
        let mut made = new_macro("caller".into(), params, defaults, body, line);
        made.is_caller = true;
        Ok(StmtKind::CallBlock(Rc::new(made), call))
    }

    fn filter_tag(&mut self) -> Parsed<StmtKind> {
        let filter = self.filter_chain(None)?;
        let body = self.body(&["endfilter"])?.0;
        let filter = filter.unwrap_or(Expr {
            line: self.line(),
            kind: ExprKind::Const(Value::None),
        });
        Ok(StmtKind::FilterBlock(filter, body, Scope::default()))
    }

    /// Parses filters without a target.
    fn filter_chain(&mut self, mut chain: Option<Expr>) -> Parsed<Option<Expr>> {
        let mut length = 0;
        loop {
            length += 10;
            self.check_chain(length)?;
            chain = Some(self.filter(chain)?);
            if !self.skip_op("|") {
                return Ok(chain);
            }
        }
    }

    fn set_tag(&mut self) -> Parsed<StmtKind> {
        let target = self.target(&[], true)?;
        if self.skip_op("=") {
            let value = self.tuple(true, false, &[])?;
            return Ok(StmtKind::Set(target, value, Track::default()));
        }
        let filter = if self.skip_op("|") {
            self.filter_chain(None)?
        } else {
            None
        };
        let body = self.body(&["endset"])?.0;
        Ok(StmtKind::SetBlock(Box::new(SetBlock {
            target,
            filter,
            body,
            scope: Scope::default(),
            track: Track::default(),
        })))
    }
}

fn new_macro(name: Str, params: Vec<Name>, defaults: Vec<Expr>, body: Body, line: u32) -> Macro {
    Macro {
        name,
        params,
        defaults,
        body,
        line,
        scope: Scope::default(),
        slots: 0,
        caller: None,
        kwargs: None,
        varargs: None,
        uses_caller: false,
        explicit_caller: false,
        is_caller: false,
    }
}

fn flush(body: &mut Body, pieces: &mut Vec<Piece>, line: u32) {
    if !pieces.is_empty() {
        body.push(Stmt {
            line,
            kind: StmtKind::Output(std::mem::take(pieces)),
        });
    }
}

fn kind_name(kind: &ExprKind) -> &'static str {
    match kind {
        ExprKind::Const(_) => "const",
        ExprKind::List(_) => "list",
        ExprKind::Dict(_) => "dict",
        ExprKind::Call(_) => "call",
        _ => "expression",
    }
}
