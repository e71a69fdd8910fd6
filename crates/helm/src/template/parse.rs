//! Parses tokens to templates.

mod buffers;
mod command;

use std::{borrow::Cow, collections::BTreeMap, rc::Rc};

use foldhash::HashMap;
use go::strconv::{quote, unquote};
use tree::{Budget, Exceeded};

use super::{
    Error, Functions,
    index::{List, NodeIndex, short},
    lex::Lexer,
    node::{Branch, Call, Node, NodeKind, Pipe, is_empty},
    source::{Template, TemplateText},
    token::{Keyword, Token, TokenKind},
};

pub use buffers::ParseBuffers;

/// The memory of a node with its lists in bytes, also while it is parsed, without operands.
const NODE: u64 = 256;

/// The memory of an operand in bytes, likewise.
const OPERAND: u64 = 256;

const BLOCK: &str = "block clause";

/// The maximum depth of nested parentheses and blocks.
const MAX_NESTING: usize = 10_000;

/// Parses a string: returns the templates that it defines and itself, ordered by name. Fails with Go's message.
pub(super) fn parse<'t>(
    name: &str,
    text: Cow<'t, str>,
    functions: &dyn Functions,
    buffers: &mut ParseBuffers,
    budget: &Budget,
) -> Result<Vec<Template<'t>>, Error> {
    buffers.clear();
    let before = buffers.trees();
    let name: Rc<str> = name.into();
    let mut parser = Parser {
        lexer: Lexer::new(&text),
        name: Rc::clone(&name),
        text: &text,
        functions,
        buffers,
        budget,
        pending: [None; 2],
        latest: 0,
        nesting: 0,
        scope: Scope::default(),
        bodies: BTreeMap::new(),
    };
    parser.whole()?;
    let bodies = parser.bodies;
    let source = Rc::new(TemplateText {
        name,
        text,
        parts: buffers.parts.take(),
    });
    buffers.set_trees(before.saturating_add(source.memory()), budget)?;
    let template = |(name, body)| Template {
        name,
        source: Rc::clone(&source),
        body,
    };
    Ok(bodies.into_iter().map(template).collect())
}

#[derive(Default)]
struct Scope<'t> {
    variables: Variables<'t>,
    ranges: usize,
    action: Option<u32>,
}

/// The declared variables; `$` always is one.
#[derive(Default)]
struct Variables<'t> {
    declared: Vec<&'t str>,
    /// The number of declarations of a name.
    counts: HashMap<&'t str, u32>,
}

impl<'t> Variables<'t> {
    fn declare(&mut self, name: &'t str) {
        self.declared.push(name);
        *self.counts.entry(name).or_default() += 1;
    }

    fn contains(&self, name: &str) -> bool {
        name == "$" || self.counts.contains_key(name)
    }

    /// Ends the scope of all but the first declarations.
    fn truncate(&mut self, declared: usize) {
        for name in self.declared.drain(declared.min(self.declared.len())..) {
            match self.counts.get_mut(name) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(self.counts.remove(name)),
            }
        }
    }
}

enum Item {
    Node(Node),
    End,
    Else,
}

impl Item {
    fn display(&self) -> &'static str {
        match self {
            Self::Else => "{{else}}",
            _ => "{{end}}",
        }
    }
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    name: Rc<str>,
    text: &'t str,
    functions: &'t dyn Functions,
    buffers: &'t mut ParseBuffers,
    budget: &'t Budget,
    /// Tokens that were given back, the next one first.
    pending: [Option<Token>; 2],
    /// Start of the last read token; errors name its line.
    latest: u32,
    nesting: usize,
    scope: Scope<'t>,
    bodies: BTreeMap<Rc<str>, List<Node>>,
}

impl<'t> Parser<'t> {
    fn next(&mut self) -> Token {
        let [first, second] = &mut self.pending;
        if let Some(token) = first.take() {
            *first = second.take();
            return token;
        }
        self.read()
    }

    fn read(&mut self) -> Token {
        let token = self.lexer.token();
        self.latest = token.at;
        token
    }

    /// At most two tokens can be given back, the last one first.
    fn give_back(&mut self, token: Token) {
        let [first, second] = &mut self.pending;
        *second = first.replace(token);
    }

    /// Returns the next token without consuming it.
    fn peek(&mut self) -> Token {
        if let [Some(token), _] = self.pending {
            return token;
        }
        let token = self.read();
        self.pending = [Some(token), None];
        token
    }

    /// Counts a step, and the memory of a part of the syntax tree.
    fn count(&mut self, bytes: u64) -> Result<(), Exceeded> {
        self.budget.step(1)?;
        self.buffers.count(bytes, self.budget)
    }

    fn line(&self, at: u32) -> usize {
        let before = self.text.get(..at as usize).unwrap_or(self.text);
        1 + before.bytes().filter(|byte| *byte == b'\n').count()
    }

    /// Moves the nodes collected after `mark` to a list.
    fn collected(&mut self, mark: usize) -> List<Node> {
        List::collected(&mut self.buffers.parts.nodes, &mut self.buffers.nodes, mark)
    }

    #[cold]
    fn error<T>(&self, what: &str) -> Result<T, Error> {
        let line = self.line(self.latest);
        Err(Error::Parse(format!("template: {}:{line}: {what}", self.name)))
    }

    #[cold]
    fn unexpected<T>(&self, token: Token, context: &str) -> Result<T, Error> {
        let mut what = self.lexer.display(token);
        if token.kind != TokenKind::Error {
            return self.error(&format!("unexpected {what} in {context}"));
        }
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
            what = format!("{what}{words} started at {}:{action}", self.name);
        }
        self.error(&what)
    }

    fn expect(&mut self, kind: TokenKind, context: &str) -> Result<Token, Error> {
        let token = self.next();
        if token.kind == kind {
            Ok(token)
        } else {
            self.unexpected(token, context)
        }
    }

    fn whole(&mut self) -> Result<(), Error> {
        loop {
            let token = self.next();
            match token.kind {
                TokenKind::End => break,
                TokenKind::LeftDelimiter => {
                    let after = self.next();
                    if after.kind == TokenKind::Keyword(Keyword::Define) {
                        self.definition()?;
                        continue;
                    }
                    self.give_back(after);
                }
                _ => {}
            }
            self.give_back(token);
            match self.text_or_action()? {
                Item::Node(node) => self.buffers.nodes.push(node),
                end => return self.error(&format!("unexpected {}", end.display())),
            }
        }
        let body = self.collected(0);
        self.add(Rc::clone(&self.name), body)
    }

    fn add(&mut self, name: Rc<str>, body: List<Node>) -> Result<(), Error> {
        let is_empty = |body: List<Node>| is_empty(self.buffers.parts.all(body), self.text);
        if self.bodies.get(&name).is_some_and(|body| !is_empty(*body)) {
            if is_empty(body) {
                return Ok(());
            }
            return self.error(&format!(
                "template: multiple definition of template {}",
                quote(&name)
            ));
        }
        self.bodies.insert(name, body);
        Ok(())
    }

    fn definition(&mut self) -> Result<(), Error> {
        let context = "define clause";
        let outer = std::mem::take(&mut self.scope);
        let token = self.next();
        let name = self.template_name(token, context)?;
        self.expect(TokenKind::RightDelimiter, context)?;
        let body = self.body_to_end(context)?;
        self.add(name, body)?;
        self.scope = outer;
        Ok(())
    }

    fn template_name(&mut self, token: Token, context: &str) -> Result<Rc<str>, Error> {
        if !matches!(token.kind, TokenKind::String | TokenKind::RawString) {
            return self.unexpected(token, context);
        }
        match unquote(self.lexer.text(token)) {
            Some(name) => Ok(name.into()),
            None => self.error("invalid syntax"),
        }
    }

    fn body_to_end(&mut self, context: &str) -> Result<List<Node>, Error> {
        let header = self.latest;
        match self.items()? {
            (body, Item::End) => Ok(body),
            (_, end) => {
                if context == BLOCK {
                    // Go parses the body of a block with another parser, while the outer one remains at the header.
                    self.latest = header;
                }
                self.error(&format!("unexpected {} in {context}", end.display()))
            }
        }
    }

    fn items(&mut self) -> Result<(List<Node>, Item), Error> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return self.error("max nesting depth exceeded");
        }
        let mark = self.buffers.nodes.len();
        while self.peek().kind != TokenKind::End {
            match self.text_or_action()? {
                Item::Node(node) => self.buffers.nodes.push(node),
                end => {
                    self.nesting -= 1;
                    return Ok((self.collected(mark), end));
                }
            }
        }
        self.error("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Result<Item, Error> {
        self.count(NODE)?;
        let token = self.next();
        match token.kind {
            TokenKind::Text => Ok(Item::Node(Node {
                at: token.at,
                kind: NodeKind::Text(token.span()),
            })),
            TokenKind::LeftDelimiter => {
                self.scope.action = Some(token.at);
                let item = self.action()?;
                self.scope.action = None;
                Ok(item)
            }
            _ => self.unexpected(token, "input"),
        }
    }

    fn action(&mut self) -> Result<Item, Error> {
        let token = self.next();
        let at = token.at;
        let node = match token.kind {
            TokenKind::Keyword(Keyword::Block) => self.block()?,
            TokenKind::Keyword(Keyword::Break) => self.jump(at, "{{break}}", NodeKind::Break)?,
            TokenKind::Keyword(Keyword::Continue) => self.jump(at, "{{continue}}", NodeKind::Continue)?,
            TokenKind::Keyword(Keyword::Else) => return self.otherwise(),
            TokenKind::Keyword(Keyword::End) => {
                self.expect(TokenKind::RightDelimiter, "end")?;
                return Ok(Item::End);
            }
            TokenKind::Keyword(Keyword::If) => self.control("if")?,
            TokenKind::Keyword(Keyword::Range) => self.control("range")?,
            TokenKind::Keyword(Keyword::With) => self.control("with")?,
            TokenKind::Keyword(Keyword::Template) => self.template()?,
            _ => {
                self.give_back(token);
                let pipe = self.pipeline("command", TokenKind::RightDelimiter)?;
                let kind = NodeKind::Action(NodeIndex::push(&mut self.buffers.parts.pipes, pipe));
                Node { at, kind }
            }
        };
        Ok(Item::Node(node))
    }

    fn jump(&mut self, at: u32, context: &str, kind: NodeKind) -> Result<Node, Error> {
        self.expect(TokenKind::RightDelimiter, context)?;
        if self.scope.ranges == 0 {
            return self.error(&format!("{context} outside {{{{range}}}}"));
        }
        Ok(Node { at, kind })
    }

    /// Parses `{{else}}`, or the start of `{{else if` and `{{else with`, whose keyword is not consumed.
    fn otherwise(&mut self) -> Result<Item, Error> {
        if !matches!(self.peek().kind, TokenKind::Keyword(Keyword::If | Keyword::With)) {
            self.expect(TokenKind::RightDelimiter, "else")?;
        }
        Ok(Item::Else)
    }

    fn control(&mut self, word: &str) -> Result<Node, Error> {
        let variables = self.scope.variables.declared.len();
        let pipe = self.pipeline(word, TokenKind::RightDelimiter)?;
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
        let branch = Branch {
            pipe,
            body,
            otherwise,
        };
        let branch = NodeIndex::push(&mut self.buffers.parts.branches, branch);
        let kind = match word {
            "if" => NodeKind::If(branch),
            "with" => NodeKind::With(branch),
            _ => NodeKind::Range(branch),
        };
        Ok(Node { at, kind })
    }

    /// Parses the part after `{{else`. `else if` nests, and one `{{end}}` closes the whole chain.
    fn alternative(&mut self, word: &str) -> Result<List<Node>, Error> {
        let chained = match self.peek().kind {
            TokenKind::Keyword(Keyword::If) => word == "if",
            TokenKind::Keyword(Keyword::With) => word == "with",
            _ => false,
        };
        if chained {
            self.next();
            self.nesting += 1;
            let node = self.control(word)?;
            self.nesting -= 1;
            let start = self.buffers.parts.nodes.len();
            self.buffers.parts.nodes.push(node);
            return Ok(List::behind(&self.buffers.parts.nodes, start));
        }
        match self.items()? {
            (body, Item::End) => Ok(body),
            (_, end) => self.error(&format!("expected end; found {}", end.display())),
        }
    }

    /// Parses `{{block "name" pipeline}}`, a definition and its use.
    fn block(&mut self) -> Result<Node, Error> {
        let context = BLOCK;
        let token = self.next();
        let name = self.template_name(token, context)?;
        let pipe = self.pipeline(context, TokenKind::RightDelimiter)?;
        let outer = std::mem::take(&mut self.scope);
        let body = self.body_to_end(context)?;
        self.add(Rc::clone(&name), body)?;
        self.scope = outer;
        Ok(self.call(token, name, Some(pipe)))
    }

    fn template(&mut self) -> Result<Node, Error> {
        let context = "template clause";
        let token = self.next();
        let name = self.template_name(token, context)?;
        let pipe = if self.peek().kind == TokenKind::RightDelimiter {
            self.next();
            None
        } else {
            Some(self.pipeline(context, TokenKind::RightDelimiter)?)
        };
        Ok(self.call(token, name, pipe))
    }

    fn call(&mut self, token: Token, name: Rc<str>, pipe: Option<Pipe>) -> Node {
        let parts = &mut self.buffers.parts;
        let call = Call {
            name: short(parts.names.len()),
            pipe,
        };
        parts.names.push(name);
        Node {
            at: token.at,
            kind: NodeKind::Template(NodeIndex::push(&mut parts.calls, call)),
        }
    }
}
