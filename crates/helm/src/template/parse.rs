//! Makes templates of tokens.

mod command;

use std::{collections::BTreeMap, rc::Rc};

use super::{
    Error, Functions,
    lex::{Keyword, Kind, Lexer, Token},
    node::{Branch, Node, NodeKind, Operand, Pipe, Template, is_empty},
    quote::{quote, unquote},
    source::{Excerpt, Source},
};

const BLOCK: &str = "block clause";

/// How deep parentheses and blocks may nest.
const MAX_NESTING: usize = 10_000;

/// Parses a text: the templates that it defines and itself, by name.
///
/// # Errors
/// When it is no template, in the words of Go.
pub(super) fn parse(
    name: &str,
    text: &str,
    functions: &dyn Functions,
) -> Result<BTreeMap<Rc<str>, Template>, Error> {
    let source = Rc::new(Source {
        name: name.into(),
        text: text.into(),
    });
    let mut parser = Parser {
        lexer: Lexer::new(text),
        source: Rc::clone(&source),
        functions,
        pending: Vec::new(),
        operands: Vec::new(),
        latest: 0,
        nesting: 0,
        scope: Scope::default(),
        templates: BTreeMap::new(),
    };
    parser.whole()?;
    Ok(parser.templates)
}

/// What belongs to one template of a text.
struct Scope<'t> {
    variables: Vec<&'t str>,
    ranges: usize,
    /// Where the action began that is being read.
    action: Option<usize>,
}

impl Default for Scope<'_> {
    fn default() -> Self {
        Self {
            variables: vec!["$"],
            ranges: 0,
            action: None,
        }
    }
}

/// A part of a body, or what ends it.
enum Item {
    Node(Node),
    End,
    Else,
}

impl Item {
    fn shown(&self) -> &'static str {
        match self {
            Self::Else => "{{else}}",
            _ => "{{end}}",
        }
    }
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    source: Rc<Source>,
    functions: &'t dyn Functions,
    /// Tokens that were given back, the next one last.
    pending: Vec<Token<'t>>,
    /// The arguments of the commands that are being read, the innermost last.
    operands: Vec<Operand>,
    /// Where the token begins that was read last: errors name its line.
    latest: usize,
    nesting: usize,
    scope: Scope<'t>,
    templates: BTreeMap<Rc<str>, Template>,
}

impl<'t> Parser<'t> {
    fn next(&mut self) -> Token<'t> {
        if let Some(token) = self.pending.pop() {
            return token;
        }
        let token = self.lexer.token();
        self.latest = token.at;
        token
    }

    fn give_back(&mut self, token: Token<'t>) {
        self.pending.push(token);
    }

    fn next_non_space(&mut self) -> Token<'t> {
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    /// The kind and place of the next token.
    fn peek(&mut self) -> (Kind, usize) {
        let token = match self.pending.last() {
            Some(token) => *token,
            None => {
                let token = self.next();
                self.give_back(token);
                token
            }
        };
        (token.kind, token.at)
    }

    fn peek_non_space(&mut self) -> (Kind, usize) {
        loop {
            let found = self.peek();
            if found.0 != Kind::Space {
                return found;
            }
            self.next();
        }
    }

    /// What a token covers.
    fn excerpt(&self, token: &Token<'_>) -> Excerpt {
        self.source.excerpt(token.at, token.at + token.text.len())
    }

    fn line(&self, at: usize) -> usize {
        let before = self.source.text.get(..at).unwrap_or(&self.source.text);
        1 + before.bytes().filter(|byte| *byte == b'\n').count()
    }

    fn error<T>(&self, what: &str) -> Result<T, Error> {
        let line = self.line(self.latest);
        Err(Error::Parse(format!(
            "template: {}:{line}: {what}",
            self.source.name
        )))
    }

    fn unexpected<T>(&self, token: &Token<'_>, context: &str) -> Result<T, Error> {
        if token.kind != Kind::Error {
            return self.error(&format!(
                "unexpected {} in {context}",
                token.shown(&self.lexer.problem)
            ));
        }
        let mut what = token.shown(&self.lexer.problem);
        if let Some(action) = self
            .scope
            .action
            .map(|at| self.line(at))
            .filter(|line| *line != self.line(token.at))
        {
            let words = if what.ends_with(" action") {
                ""
            } else {
                " in action"
            };
            what = format!("{what}{words} started at {}:{action}", self.source.name);
        }
        self.error(&what)
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Result<Token<'t>, Error> {
        let token = self.next_non_space();
        if token.kind == kind {
            Ok(token)
        } else {
            self.unexpected(&token, context)
        }
    }

    /// The whole text: its body, and the definitions that stand outside of everything else.
    fn whole(&mut self) -> Result<(), Error> {
        let mut body = Vec::new();
        loop {
            let token = self.next();
            match token.kind {
                Kind::End => break,
                Kind::LeftDelimiter => {
                    let after = self.next_non_space();
                    if after.kind == Kind::Keyword(Keyword::Define) {
                        self.definition()?;
                        continue;
                    }
                    self.give_back(after);
                }
                _ => {}
            }
            self.give_back(token);
            match self.text_or_action()? {
                Item::Node(node) => body.push(node),
                end => return self.error(&format!("unexpected {}", end.shown())),
            }
        }
        self.add(Rc::clone(&self.source.name), body)
    }

    fn add(&mut self, name: Rc<str>, body: Vec<Node>) -> Result<(), Error> {
        if self
            .templates
            .get(&name)
            .is_some_and(|template| !is_empty(&template.body))
        {
            if is_empty(&body) {
                return Ok(());
            }
            return self.error(&format!(
                "template: multiple definition of template {}",
                quote(&name)
            ));
        }
        let template = Template {
            name: Rc::clone(&name),
            source: Rc::clone(&self.source),
            body,
        };
        self.templates.insert(name, template);
        Ok(())
    }

    fn definition(&mut self) -> Result<(), Error> {
        let context = "define clause";
        let outer = std::mem::take(&mut self.scope);
        let token = self.next_non_space();
        let name = self.template_name(&token, context)?;
        self.expect(Kind::RightDelimiter, context)?;
        let body = self.body_to_end(context)?;
        self.add(name, body)?;
        self.scope = outer;
        Ok(())
    }

    fn template_name(&mut self, token: &Token<'_>, context: &str) -> Result<Rc<str>, Error> {
        if !matches!(token.kind, Kind::String | Kind::RawString) {
            return self.unexpected(token, context);
        }
        match unquote(token.text) {
            Some(name) => Ok(name.into()),
            None => self.error("invalid syntax"),
        }
    }

    /// A body that must end with `{{end}}`.
    fn body_to_end(&mut self, context: &str) -> Result<Vec<Node>, Error> {
        let header = self.latest;
        match self.items()? {
            (body, Item::End) => Ok(body),
            (_, end) => {
                if context == BLOCK {
                    // The body of a block is read by another parser there, and this one stands at the header still.
                    self.latest = header;
                }
                self.error(&format!("unexpected {} in {context}", end.shown()))
            }
        }
    }

    /// A body up to what ends it.
    fn items(&mut self) -> Result<(Vec<Node>, Item), Error> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return self.error("max nesting depth exceeded");
        }
        let mut body = Vec::new();
        while self.peek_non_space().0 != Kind::End {
            match self.text_or_action()? {
                Item::Node(node) => body.push(node),
                end => {
                    self.nesting -= 1;
                    return Ok((body, end));
                }
            }
        }
        self.error("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Result<Item, Error> {
        let token = self.next_non_space();
        match token.kind {
            Kind::Text => Ok(Item::Node(Node {
                at: token.at,
                kind: NodeKind::Text(self.excerpt(&token)),
            })),
            Kind::LeftDelimiter => {
                self.scope.action = Some(token.at);
                let item = self.action()?;
                self.scope.action = None;
                Ok(item)
            }
            _ => self.unexpected(&token, "input"),
        }
    }

    fn action(&mut self) -> Result<Item, Error> {
        let token = self.next_non_space();
        let at = token.at;
        let node = match token.kind {
            Kind::Keyword(Keyword::Block) => self.block()?,
            Kind::Keyword(Keyword::Break) => self.jump(at, "{{break}}", NodeKind::Break)?,
            Kind::Keyword(Keyword::Continue) => self.jump(at, "{{continue}}", NodeKind::Continue)?,
            Kind::Keyword(Keyword::Else) => return self.otherwise(),
            Kind::Keyword(Keyword::End) => {
                self.expect(Kind::RightDelimiter, "end")?;
                return Ok(Item::End);
            }
            Kind::Keyword(Keyword::If) => self.control("if")?,
            Kind::Keyword(Keyword::Range) => self.control("range")?,
            Kind::Keyword(Keyword::With) => self.control("with")?,
            Kind::Keyword(Keyword::Template) => self.template()?,
            _ => {
                self.give_back(token);
                let pipe = self.pipeline("command", Kind::RightDelimiter)?;
                let kind = NodeKind::Action(pipe);
                Node { at, kind }
            }
        };
        Ok(Item::Node(node))
    }

    fn jump(&mut self, at: usize, context: &str, kind: NodeKind) -> Result<Node, Error> {
        self.expect(Kind::RightDelimiter, context)?;
        if self.scope.ranges == 0 {
            return self.error(&format!("{context} outside {{{{range}}}}"));
        }
        Ok(Node { at, kind })
    }

    /// `{{else}}`, or the beginning of `{{else if` and `{{else with`, which leaves the word for later.
    fn otherwise(&mut self) -> Result<Item, Error> {
        let (next, _) = self.peek_non_space();
        if !matches!(next, Kind::Keyword(Keyword::If | Keyword::With)) {
            self.expect(Kind::RightDelimiter, "else")?;
        }
        Ok(Item::Else)
    }

    /// `if`, `with` or `range`, whose word was read.
    fn control(&mut self, word: &str) -> Result<Node, Error> {
        let variables = self.scope.variables.len();
        let pipe = self.pipeline(word, Kind::RightDelimiter)?;
        let range = word == "range";
        self.scope.ranges += usize::from(range);
        let (body, end) = self.items()?;
        self.scope.ranges -= usize::from(range);
        let otherwise = match end {
            Item::Else => Some(self.alternative(word)?),
            _ => None,
        };
        self.scope.variables.truncate(variables);
        let at = pipe.at;
        let branch = Box::new(Branch {
            pipe,
            body,
            otherwise,
        });
        let kind = match word {
            "if" => NodeKind::If(branch),
            "with" => NodeKind::With(branch),
            _ => NodeKind::Range(branch),
        };
        Ok(Node { at, kind })
    }

    /// What follows `{{else`: a chain of `else if` nests, its one `{{end}}` ends all of it.
    fn alternative(&mut self, word: &str) -> Result<Vec<Node>, Error> {
        let chained = match self.peek().0 {
            Kind::Keyword(Keyword::If) => word == "if",
            Kind::Keyword(Keyword::With) => word == "with",
            _ => false,
        };
        if chained {
            self.next();
            self.nesting += 1;
            let node = self.control(word)?;
            self.nesting -= 1;
            return Ok(vec![node]);
        }
        match self.items()? {
            (body, Item::End) => Ok(body),
            (_, end) => self.error(&format!("expected end; found {}", end.shown())),
        }
    }

    /// `{{block "name" pipeline}}`: a definition and its use.
    fn block(&mut self) -> Result<Node, Error> {
        let context = BLOCK;
        let token = self.next_non_space();
        let name = self.template_name(&token, context)?;
        let pipe = self.pipeline(context, Kind::RightDelimiter)?;
        let outer = std::mem::take(&mut self.scope);
        let body = self.body_to_end(context)?;
        self.add(Rc::clone(&name), body)?;
        self.scope = outer;
        Ok(call(&token, name, Some(pipe)))
    }

    fn template(&mut self) -> Result<Node, Error> {
        let context = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, context)?;
        let after = self.next_non_space();
        let pipe = if after.kind == Kind::RightDelimiter {
            None
        } else {
            self.give_back(after);
            Some(self.pipeline(context, Kind::RightDelimiter)?)
        };
        Ok(call(&token, name, pipe))
    }
}

fn call(token: &Token<'_>, name: Rc<str>, pipe: Option<Pipe>) -> Node {
    Node {
        at: token.at,
        kind: NodeKind::Template(name, pipe),
    }
}
