//! Assigns slots to the names of statements.

use std::rc::Rc;

use super::{
    Frame, Resolved, Resolver, is_parameter,
    search::{children_mut, names_loop, scoped_block, sets_loop, target_names},
};
use crate::{
    ast::{
        Block, BlockUse, Expr, ExprKind, For, Macro, Name, Piece, Scope, SetBlock, Stmt, StmtKind, Target,
        Track, TrackKind, Visible,
    },
    format::repr::quoted,
    lexer::SyntaxError,
    value::Str,
};

impl Resolver<'_> {
    pub(super) fn statements(&mut self, body: &mut [Stmt], frame: Frame) -> Resolved<()> {
        body.iter_mut().try_for_each(|stmt| self.statement(stmt, frame))
    }

    fn statement(&mut self, stmt: &mut Stmt, frame: Frame) -> Resolved<()> {
        self.meter.step(self.lookup(frame.scope))?;
        let line = stmt.line;
        match &mut stmt.kind {
            StmtKind::Output(pieces) => {
                for piece in pieces {
                    if let Piece::Expr(expr) = piece {
                        self.expr(expr, frame)?;
                    }
                }
            }
            StmtKind::If(branches, otherwise) => {
                let soft = Frame { soft: true, ..frame };
                for (test, body) in branches {
                    self.expr(test, soft)?;
                    self.statements(body, soft)?;
                }
                self.statements(otherwise, soft)?;
            }
            StmtKind::For(node) => {
                if let Some(node) = Rc::get_mut(node) {
                    self.for_loop(node, frame, line)?;
                }
            }
            StmtKind::Macro(node, target, track) => {
                if let Some(node) = Rc::get_mut(node) {
                    self.make_macro(node, frame)?;
                }
                self.name(target, frame);
                if frame.toplevel {
                    *track = Track {
                        kind: TrackKind::Context,
                        names: vec![target.clone()],
                    };
                }
            }
            StmtKind::CallBlock(node, call) => {
                if let Some(node) = Rc::get_mut(node) {
                    self.make_macro(node, frame)?;
                }
                self.expr(call, frame)?;
            }
            StmtKind::FilterBlock(..) => self.filter_block(stmt, frame)?,
            StmtKind::With(..) => self.with(stmt, frame)?,
            StmtKind::Set(target, value, track) => {
                self.expr(value, frame)?;
                self.target(target, frame);
                *track = tracked(target, frame);
            }
            StmtKind::SetBlock(node) => self.set_block(node, frame)?,
            StmtKind::AutoEscape(..) => self.autoescape(stmt, frame)?,
            StmtKind::Scoped(..) => {}
            StmtKind::Block(node) => self.block(node, frame, line)?,
            StmtKind::Extends(expr) => {
                if !frame.toplevel {
                    return Err(
                        SyntaxError::new(line, "cannot use extend from a non top-level scope").into(),
                    );
                }
                self.extends = true;
                self.expr(expr, frame)?;
            }
            StmtKind::Include(_) | StmtKind::Import(_) | StmtKind::FromImport(_) => {
                self.import(stmt, frame)?;
            }
            StmtKind::Break | StmtKind::Continue => {
                if !frame.can_break {
                    let word = if matches!(stmt.kind, StmtKind::Break) {
                        "'break' outside loop"
                    } else {
                        "'continue' not properly in loop"
                    };
                    return Err(SyntaxError::new(line, word).into());
                }
            }
        }
        Ok(())
    }

    fn filter_block(&mut self, stmt: &mut Stmt, frame: Frame) -> Resolved<()> {
        if let StmtKind::FilterBlock(filter, body, scope) = &mut stmt.kind {
            let inner = self.inner(frame)?;
            self.analyze(inner.scope, body)?;
            self.loads_of(inner.scope, filter)?;
            self.statements(body, inner)?;
            self.expr(filter, inner)?;
            *scope = self.scope(inner.scope);
        }
        Ok(())
    }

    fn with(&mut self, stmt: &mut Stmt, frame: Frame) -> Resolved<()> {
        if let StmtKind::With(pairs, body, scope) = &mut stmt.kind {
            let inner = self.inner(frame)?;
            for (target, _) in pairs.iter() {
                self.declare_target(inner.scope, target);
            }
            self.analyze(inner.scope, body)?;
            for (target, value) in pairs {
                self.expr(value, frame)?;
                self.target(target, inner);
            }
            self.statements(body, inner)?;
            *scope = self.scope(inner.scope);
        }
        Ok(())
    }

    fn import(&mut self, stmt: &mut Stmt, frame: Frame) -> Resolved<()> {
        let (with_context, visible) = match &mut stmt.kind {
            StmtKind::Include(node) => {
                self.expr(&mut node.template, frame)?;
                (node.with_context, &mut node.visible)
            }
            StmtKind::Import(node) => {
                self.expr(&mut node.template, frame)?;
                self.name(&mut node.target, frame);
                node.toplevel = frame.toplevel;
                (node.with_context, &mut node.visible)
            }
            StmtKind::FromImport(node) => {
                self.expr(&mut node.template, frame)?;
                for (_, alias) in &mut node.names {
                    self.name(alias, frame);
                }
                node.toplevel = frame.toplevel;
                (node.with_context, &mut node.visible)
            }
            _ => return Ok(()),
        };
        if with_context {
            *visible = self.visible(frame)?;
        }
        Ok(())
    }

    /// Opens a scope within the same function.
    fn inner(&mut self, frame: Frame) -> Resolved<Frame> {
        Ok(Frame {
            scope: self.open_scope(Some(frame.scope), frame.func, 0)?,
            toplevel: false,
            in_loop: false,
            in_block: false,
            soft: false,
            ..frame
        })
    }

    fn visible(&mut self, frame: Frame) -> Resolved<Visible> {
        Ok(Visible {
            scope: self.table.visible(frame.scope, self.meter)?,
            depth: self.table.depth(frame.func),
        })
    }

    fn name(&mut self, name: &mut Name, frame: Frame) {
        if self.table.find(frame.scope, &name.id).is_none() {
            self.table.load(frame.scope, &name.id);
        }
        if let Some(id) = self.table.find(frame.scope, &name.id) {
            name.slot = self.table.seen_from(frame.func, id);
            name.parameter = is_parameter(&self.table, frame.scope, id);
        }
    }

    fn target(&mut self, target: &mut Target, frame: Frame) {
        match target {
            Target::Name(name) | Target::Attr(name, _) => self.name(name, frame),
            Target::Tuple(items) => items.iter_mut().for_each(|item| self.target(item, frame)),
        }
    }

    fn expr(&mut self, expr: &mut Expr, frame: Frame) -> Resolved<()> {
        let lookup = self.lookup(frame.scope);
        let mut left = vec![(expr, frame.soft)];
        while let Some((node, mut soft)) = left.pop() {
            self.meter.step(lookup)?;
            match &mut node.kind {
                ExprKind::Name(name) => self.name(name, frame),
                ExprKind::Filter(filter) if !soft && !self.vocabulary.has_filter(&filter.name) => {
                    return Err(missing(node.line, "filter", &filter.name).into());
                }
                ExprKind::Test(test) if !soft && !self.vocabulary.has_test(&test.name) => {
                    return Err(missing(node.line, "test", &test.name).into());
                }
                ExprKind::Cond(_) => soft = true,
                ExprKind::Call(call) => {
                    call.in_loop = frame.in_loop;
                    call.in_block = frame.in_block;
                }
                _ => {}
            }
            left.extend(children_mut(node).into_iter().map(|child| (child, soft)));
        }
        Ok(())
    }

    fn for_loop(&mut self, node: &mut For, frame: Frame, line: u32) -> Resolved<()> {
        if names_loop(&node.target) || sets_loop(&node.body) {
            let message = "Can't assign to special loop variable in for-loop";
            return Err(SyntaxError::new(line, message).into());
        }
        self.expr(&mut node.iter, frame)?;
        let func = if node.recursive {
            self.function(Some(frame.func))?
        } else {
            frame.func
        };
        let outer = Frame { func, ..frame };
        let mut body = self.inner(outer)?;
        body.in_loop = true;
        body.can_break = true;
        let mut uses_loop =
            node.recursive || !self.undeclared(&node.body, &["loop"])?.is_empty() || scoped_block(&node.body);
        if let Some(test) = &node.test {
            super::walk(test, &mut |part| {
                uses_loop |= matches!(&part.kind, ExprKind::Name(name) if &*name.id == "loop");
            });
        }
        if uses_loop {
            node.loop_slot = Some(self.table.declare(body.scope, &"loop".into()).slot);
        }
        self.declare_target(body.scope, &node.target);
        self.analyze(body.scope, &node.body)?;
        self.target(&mut node.target, body);
        self.statements(&mut node.body, body)?;
        if let (Some(test), Some(target)) = (&mut node.test, &mut node.test_target) {
            let kind = self.table.kind();
            let scope = self.open_scope(Some(frame.scope), func, kind)?;
            let inner = Frame {
                scope,
                toplevel: false,
                in_loop: false,
                in_block: false,
                soft: false,
                ..outer
            };
            self.declare_target(scope, target);
            self.loads_of(scope, test)?;
            self.target(target, inner);
            self.expr(test, inner)?;
            node.test_scope = self.scope(scope);
        }
        let mut last = self.inner(outer)?;
        last.can_break = frame.can_break && !node.recursive;
        self.analyze(last.scope, &node.otherwise)?;
        self.statements(&mut node.otherwise, last)?;
        node.else_scope = self.scope(last.scope);
        node.scope = self.scope(body.scope);
        node.slots = self.table.slots(func);
        Ok(())
    }

    fn make_macro(&mut self, made: &mut Macro, frame: Frame) -> Resolved<()> {
        let func = self.function(Some(frame.func))?;
        let scope = self.open_scope(Some(frame.scope), func, 0)?;
        let inner = Frame {
            scope,
            func,
            toplevel: false,
            in_loop: false,
            in_block: false,
            soft: false,
            can_break: false,
        };
        for param in &made.params {
            self.table.declare(scope, &param.id);
        }
        for default in &made.defaults {
            self.loads_of(scope, default)?;
        }
        let used = self.undeclared(&made.body, &["caller", "kwargs", "varargs"])?;
        let position = |name: &str| made.params.iter().position(|param| &*param.id == name);
        let special = |resolver: &mut Self, name: &'static str| {
            let wanted = used.contains(&name) && position(name).is_none();
            wanted.then(|| resolver.table.declare(scope, &name.into()).slot)
        };
        made.caller = special(self, "caller");
        made.kwargs = special(self, "kwargs");
        made.varargs = special(self, "varargs");
        if let Some(at) = position("caller").filter(|_| used.contains(&"caller")) {
            if at < made.params.len() - made.defaults.len() {
                let message = "When defining macros or call blocks the special \"caller\" argument must be omitted or be \
                               given a default.";
                return Err(SyntaxError::new(made.line, message).into());
            }
            made.explicit_caller = true;
        }
        made.uses_caller = used.contains(&"caller");
        self.analyze(scope, &made.body)?;
        for param in &mut made.params {
            self.name(param, inner);
        }
        for default in &mut made.defaults {
            self.expr(default, inner)?;
        }
        self.statements(&mut made.body, inner)?;
        made.scope = self.scope(scope);
        made.slots = self.table.slots(func);
        Ok(())
    }

    fn set_block(&mut self, node: &mut SetBlock, frame: Frame) -> Resolved<()> {
        let inner = self.inner(frame)?;
        self.analyze(inner.scope, &node.body)?;
        if let Some(filter) = &node.filter {
            self.loads_of(inner.scope, filter)?;
        }
        self.statements(&mut node.body, inner)?;
        self.target(&mut node.target, frame);
        if let Some(filter) = &mut node.filter {
            self.expr(filter, inner)?;
        }
        node.track = tracked(&node.target, frame);
        node.scope = self.scope(inner.scope);
        Ok(())
    }

    /// The flag and the body are in a scope of their own.
    fn autoescape(&mut self, stmt: &mut Stmt, frame: Frame) -> Resolved<()> {
        let inner = self.inner(frame)?;
        if let StmtKind::AutoEscape(flag, body) = &mut stmt.kind {
            self.loads_of(inner.scope, flag)?;
            self.analyze(inner.scope, body)?;
            self.expr(flag, inner)?;
            self.statements(body, inner)?;
        }
        let escaping = Stmt {
            line: stmt.line,
            kind: std::mem::replace(&mut stmt.kind, StmtKind::Break),
        };
        stmt.kind = StmtKind::Scoped(vec![escaping], self.scope(inner.scope));
        Ok(())
    }

    fn block(&mut self, node: &mut BlockUse, frame: Frame, line: u32) -> Resolved<()> {
        node.toplevel = frame.toplevel;
        if node.scoped {
            node.visible = self.visible(frame)?;
        }
        if !self.block_names.insert(node.name.clone()) {
            let message = format!("block {} defined twice", quoted(&node.name));
            let error = SyntaxError {
                assertion: true,
                ..SyntaxError::new(line, message)
            };
            return Err(error.into());
        }
        let mut body = std::mem::take(&mut node.body);
        let func = self.function(None)?;
        let scope = self.open_scope(None, func, 0)?;
        let used = self.undeclared(&body, &["self", "super"])?;
        let own = used
            .contains(&"self")
            .then(|| self.table.declare(scope, &"self".into()).slot);
        let parent = used
            .contains(&"super")
            .then(|| self.table.declare(scope, &"super".into()).slot);
        self.analyze(scope, &body)?;
        let index = self.blocks.len();
        self.blocks.push(Rc::new(Block {
            name: node.name.clone(),
            body: Vec::new(),
            scope: Scope::default(),
            slots: 0,
            own,
            parent,
        }));
        let inner = Frame {
            scope,
            func,
            toplevel: false,
            in_loop: false,
            in_block: true,
            soft: false,
            can_break: false,
        };
        self.statements(&mut body, inner)?;
        let block = Block {
            name: node.name.clone(),
            body,
            scope: self.scope(scope),
            slots: self.table.slots(func),
            own,
            parent,
        };
        if let Some(known) = self.blocks.get_mut(index) {
            *known = Rc::new(block);
        }
        Ok(())
    }
}

fn missing(line: u32, kind: &str, name: &Str) -> SyntaxError {
    let mut error = SyntaxError::new(line, format!("No {kind} named {}.", quoted(name)));
    error.assertion = true;
    error
}

fn tracked(target: &Target, frame: Frame) -> Track {
    let kind = if frame.in_loop {
        TrackKind::Loop
    } else if frame.in_block {
        TrackKind::Block
    } else if frame.toplevel {
        TrackKind::Context
    } else {
        return Track::default();
    };
    let mut names = Vec::new();
    target_names(target, &mut names);
    Track { kind, names }
}
