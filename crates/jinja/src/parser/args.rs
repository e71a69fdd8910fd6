//! Arguments of calls, filters and tests.

use super::{Parsed, Parser};
use crate::{ast::CallArgs, lexer::TokenKind};

impl Parser<'_> {
    pub(super) fn call_args(&mut self) -> Parsed<CallArgs> {
        let line = self.line();
        self.expect_op("(")?;
        let mut args = CallArgs::default();
        let mut first = true;
        while !self.is_op(")") {
            if !first {
                self.expect_op(",")?;
                if self.is_op(")") {
                    break;
                }
            }
            first = false;
            self.call_arg(&mut args, line)?;
        }
        self.expect_op(")")?;
        Ok(args)
    }

    fn call_arg(&mut self, args: &mut CallArgs, line: u32) -> Parsed<()> {
        let ensure = |parser: &Self, valid: bool| {
            if valid {
                Ok(())
            } else {
                parser.fail_at(line, "invalid syntax for function call expression")
            }
        };
        if self.skip_op("*") {
            ensure(self, args.star.is_none() && args.double_star.is_none())?;
            args.star = Some(self.expression()?);
        } else if self.skip_op("**") {
            ensure(self, args.double_star.is_none())?;
            args.double_star = Some(self.expression()?);
        } else if let (TokenKind::Name(key), TokenKind::Op("=")) = (self.current().clone(), self.ahead()) {
            ensure(self, args.double_star.is_none())?;
            self.meter.step(args.kwargs.len() as u64 / 16)?;
            if args.kwargs.iter().any(|(known, _)| *known == key) {
                return self.fail(format!("keyword argument repeated: {key}"));
            }
            self.next();
            self.next();
            let value = self.expression()?;
            args.kwargs.push((key, value));
        } else {
            let plain = args.star.is_none() && args.double_star.is_none() && args.kwargs.is_empty();
            ensure(self, plain)?;
            args.args.push(self.expression()?);
        }
        Ok(())
    }
}
