//! Tags that use other templates.

use super::{Parsed, Parser, is_word};
use crate::{
    ast::{FromImport, Import, Include, Name, StmtKind, Visible},
    lexer::SyntaxError,
    value::Str,
};

impl Parser<'_> {
    pub(super) fn import_context(&mut self, default: bool) -> bool {
        let with = self.is_word("with");
        if (with || self.is_word("without")) && is_word(self.ahead(), "context") {
            self.next();
            self.next();
            return with;
        }
        default
    }

    pub(super) fn include_tag(&mut self) -> Parsed<StmtKind> {
        let template = self.expression()?;
        let ignore_missing = self.is_word("ignore") && is_word(self.ahead(), "missing");
        if ignore_missing {
            self.next();
            self.next();
        }
        Ok(StmtKind::Include(Box::new(Include {
            template,
            with_context: self.import_context(true),
            ignore_missing,
            visible: Visible::default(),
        })))
    }

    pub(super) fn import_tag(&mut self) -> Parsed<StmtKind> {
        let template = self.expression()?;
        self.expect_word("as")?;
        let target = self.target_name()?;
        Ok(StmtKind::Import(Box::new(Import {
            template,
            target,
            with_context: self.import_context(false),
            toplevel: false,
            visible: Visible::default(),
        })))
    }

    pub(super) fn import_names_tag(&mut self) -> Parsed<StmtKind> {
        let template = self.expression()?;
        self.expect_word("import")?;
        let mut names: Vec<(Str, Name)> = Vec::new();
        let mut with_context = false;
        let has_context = |parser: &Self| {
            (parser.is_word("with") || parser.is_word("without")) && is_word(parser.ahead(), "context")
        };
        loop {
            if !names.is_empty() {
                self.expect_op(",")?;
            }
            if has_context(self) {
                with_context = self.import_context(false);
                break;
            }
            let target = self.target_name()?;
            if target.id.starts_with('_') {
                let mut error = SyntaxError::new(
                    self.line(),
                    "names starting with an underline can not be imported",
                );
                error.assertion = true;
                return Err(error.into());
            }
            let alias = if self.skip_word("as") {
                self.target_name()?
            } else {
                target.clone()
            };
            names.push((target.id, alias));
            if has_context(self) {
                with_context = self.import_context(false);
                break;
            }
            if !self.is_op(",") {
                break;
            }
        }
        Ok(StmtKind::FromImport(Box::new(FromImport {
            template,
            names,
            with_context,
            toplevel: false,
            visible: Visible::default(),
        })))
    }
}
