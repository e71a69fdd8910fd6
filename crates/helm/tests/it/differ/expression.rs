//! Random expressions: operands, calls and pipelines.

use testkit::fuzz::Random;

use super::{
    table::{FUNCTIONS, Function, PLAIN, Sort},
    template,
    words::{literal, path, quoted},
};

/// How the values are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// They are in the dot.
    Dot,
    /// They are in `$`, and the dot is something else.
    Dollar,
    /// They are out of reach.
    Nowhere,
}

/// What an expression sees.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub(super) root: Root,
    pub(super) variables: Vec<String>,
    /// How many of the templates that are defined may be called: each calls only those before it.
    pub(super) templates: usize,
    pub(super) in_loop: bool,
}

/// The names of the templates that are defined.
pub(super) const TEMPLATES: &[&str] = &["t0", "t 1", "t2"];

const VERBS: &[&str] = &[
    "%v", "%s", "%d", "%q", "%x", "%5.2f", "%-6s|", "%06d", "%t", "%+v", "%#v", "%T", "%e", "%g", "%8v|",
    "%c", "%U", "%b", "%o", "%X", "%.3s", "%+d", "% d", "%%", "%*d", "%[1]v", "%!", "%z", "%.2v", "%#x",
    "%+q", "%#q", "% x", "%G", "%010.3f", "%-5d|", "%.0f", "%[2]s", "%w", "%O", "%6.3v", "%#o", "%x %X",
    "é%vé",
];

impl Scope {
    fn reach(&self, path: &str) -> Option<String> {
        match self.root {
            Root::Dot => Some(format!(".Values.{path}")),
            Root::Dollar => Some(format!("$.Values.{path}")),
            Root::Nowhere => None,
        }
    }
}

/// What stands as an argument.
pub(super) fn operand(random: &mut Random, scope: &Scope, sort: Sort, depth: usize) -> String {
    // A wrong sort now and then, where it can't make something endless.
    let sort = match sort {
        Sort::Small | Sort::Fresh | Sort::Scalar | Sort::Name | Sort::Time | Sort::Toml => sort,
        Sort::Any => *random.pick(PLAIN),
        sort if random.one_in(24) => {
            *random.pick(&[sort, Sort::Any, Sort::Text, Sort::Dict, Sort::Int, Sort::List])
        }
        sort => sort,
    };
    match (sort, random.below(20)) {
        (Sort::Name, _) => quoted(name(random, scope)),
        // The words about texts that are no TOML are not those of the original.
        (Sort::Toml, _) => literal(random, sort),
        (Sort::Template, _) => quoted(&template::inner(random, scope)),
        (Sort::Fresh, 13..) if depth > 0 => {
            format!(
                "(merge dict (deepCopy {}))",
                operand(random, scope, Sort::Dict, depth - 1)
            )
        }
        (Sort::Small | Sort::Fresh | Sort::Scalar | Sort::Time, 0..18) => literal(random, sort),
        (_, 0..6) => literal(random, sort),
        (_, 6..11) => place(random, scope, sort),
        (_, 11..13) => variable(random, scope).unwrap_or_else(|| literal(random, sort)),
        _ if depth == 0 => literal(random, sort),
        // What counts is not computed, lest it be large.
        (Sort::Small, _) => place(random, scope, sort),
        _ => {
            let call = format!("({})", pipeline(random, scope, sort, depth - 1));
            if random.one_in(20) {
                format!("{call}.{}", *random.pick(&["a", "b.c", "none"]))
            } else {
                call
            }
        }
    }
}

fn name(random: &mut Random, scope: &Scope) -> &'static str {
    match TEMPLATES.get(..scope.templates) {
        Some(known) if !known.is_empty() && !random.one_in(12) => random.pick::<&str>(known),
        _ => "none",
    }
}

/// A value that the template was given.
fn place(random: &mut Random, scope: &Scope, sort: Sort) -> String {
    // What the dot is isn't known, and may be large.
    if scope.root != Root::Dot && sort != Sort::Small && random.one_in(3) {
        return (*random.pick(&[".", ".", ".a", ".b.c"])).to_owned();
    }
    let path = path(random, sort);
    scope.reach(path).unwrap_or_else(|| literal(random, sort))
}

fn variable(random: &mut Random, scope: &Scope) -> Option<String> {
    if random.one_in(400) {
        return Some("$nobody".to_owned());
    }
    let name = (!scope.variables.is_empty()).then(|| random.pick(&scope.variables).clone())?;
    let fields = if random.one_in(6) {
        *random.pick(&[".a", ".b.c", ".none"])
    } else {
        ""
    };
    Some(format!("{name}{fields}"))
}

/// What stands in an action.
pub(super) fn pipeline(random: &mut Random, scope: &Scope, sort: Sort, depth: usize) -> String {
    match random.below(10) {
        0 => {
            let operand = operand(random, scope, sort, depth);
            if operand == "nil" {
                "print nil".to_owned()
            } else {
                operand
            }
        }
        1 if matches!(sort, Sort::Any | Sort::Text) => printf(random, scope, depth),
        _ => {
            let function = function(random, sort);
            call(random, scope, function, depth)
        }
    }
}

fn function(random: &mut Random, sort: Sort) -> &'static Function {
    let gives = |function: &&Function| match sort {
        Sort::Any | Sort::Scalar => true,
        Sort::Small | Sort::Int | Sort::Float | Sort::Number => {
            matches!(
                function.gives,
                Sort::Small | Sort::Int | Sort::Float | Sort::Number
            )
        }
        Sort::Bool | Sort::List | Sort::Dict | Sort::Time => function.gives == sort,
        _ => function.gives == Sort::Text,
    };
    let fitting: Vec<&Function> = FUNCTIONS.iter().filter(gives).collect();
    random.pick::<&Function>(&fitting)
}

fn call(random: &mut Random, scope: &Scope, function: &Function, depth: usize) -> String {
    let mut sorts = function.parameters.clone();
    if function.variadic {
        let last = sorts.pop();
        sorts.extend(random.list(0..4, |_| last.unwrap_or(Sort::Any)));
    }
    if function.name == "dict" {
        sorts = random.list(0..3, |_| [Sort::Key, Sort::Any]).concat();
    }
    match random.below(60) {
        59 => sorts.push(Sort::Any),
        58 => {
            sorts.pop();
        }
        _ => {}
    }
    let arguments: Vec<String> = sorts
        .iter()
        .map(|sort| operand(random, scope, *sort, depth))
        .collect();
    format!("{}{}", command(random, function.name, arguments), function.then)
}

/// A call, whose last argument may come through a pipe.
fn command(random: &mut Random, name: &str, mut arguments: Vec<String>) -> String {
    let piped = !arguments.is_empty() && random.one_in(3);
    let last = if piped { arguments.pop() } else { None };
    let mut command = name.to_owned();
    for argument in arguments {
        command.push(' ');
        command.push_str(&argument);
    }
    match last {
        // A pipeline in parentheses needs none at the beginning of another.
        Some(last) if last.starts_with('(') && last.ends_with(')') && last.matches('(').count() == 1 => {
            format!("{} | {command}", last.trim_matches(['(', ')']))
        }
        Some(last) if last == "nil" => format!("{command} nil"),
        Some(last) => format!("{last} | {command}"),
        None => command,
    }
}

fn printf(random: &mut Random, scope: &Scope, depth: usize) -> String {
    let verbs = random.list(0..4, |random| *random.pick(VERBS));
    let count = match random.below(12) {
        10 => verbs.len() + 1,
        11 => verbs.len().saturating_sub(1),
        _ => verbs.len(),
    };
    let mut arguments = vec![quoted(&verbs.join(*random.pick(&["-", " ", ""])))];
    for _ in 0..count {
        let sort = if random.one_in(3) { Sort::Small } else { Sort::Any };
        arguments.push(operand(random, scope, sort, depth));
    }
    command(random, "printf", arguments)
}
