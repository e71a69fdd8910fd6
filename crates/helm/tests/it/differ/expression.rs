//! Random expressions: operands, calls and pipelines.

use testkit::fuzz::Random;

use super::{
    table::{FUNCTIONS, Function, PLAIN, Sort},
    template,
    words::{literal, path, quoted},
};

/// The access to the values in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    Dot,
    /// The values are in `$`, the dot is something else.
    Dollar,
    /// The values are out of reach.
    Nowhere,
}

/// The context of an expression.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub(super) root: Root,
    /// Names with the sort of their declaration.
    pub(super) variables: Vec<(String, Sort)>,
    /// Number of the defined templates that may be called; each calls only the ones before it.
    pub(super) templates: usize,
    pub(super) in_loop: bool,
}

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

/// Generates an argument of the given sort, now and then of another.
pub(super) fn operand(random: &mut Random, scope: &Scope, sort: Sort, depth: usize) -> String {
    // A wrong sort now and then, unless it could make an endless loop.
    let sort = match sort {
        Sort::Small
        | Sort::Index
        | Sort::Password
        | Sort::Encrypted
        | Sort::Fresh
        | Sort::Scalar
        | Sort::Name
        | Sort::Time
        | Sort::Moment
        | Sort::Toml => sort,
        Sort::Any => *random.pick(PLAIN),
        sort if random.one_in(80) => {
            *random.pick(&[sort, Sort::Any, Sort::Text, Sort::Dict, Sort::Int, Sort::List])
        }
        sort => sort,
    };
    match (sort, random.below(20)) {
        (Sort::Name, _) => quoted(name(random, scope)),
        // Line ends of YAML 1.1 are documented differences.
        (Sort::Yaml, 0..6) if depth > 0 => {
            format!("(toYaml {})", operand(random, scope, Sort::Any, depth - 1))
        }
        // So is parsing null.
        (Sort::Json, 0..6) if depth > 0 => {
            let holder = *random.pick(&["list", "dict \"a\""]);
            format!(
                "(toJson ({holder} {}))",
                operand(random, scope, Sort::Any, depth - 1)
            )
        }
        (Sort::Yaml | Sort::Json, _) => literal(random, sort),
        // Errors of invalid TOML differ from the original's.
        (Sort::Toml, _) => literal(random, sort),
        (Sort::Template, _) => quoted(&template::inner(random, scope)),
        (Sort::Fresh, 14..) if depth > 0 => {
            format!(
                "(merge dict (deepCopy {}))",
                operand(random, scope, Sort::Dict, depth - 1)
            )
        }
        (Sort::Index | Sort::Password | Sort::Encrypted, _) => literal(random, sort),
        (Sort::Small | Sort::Fresh | Sort::Scalar | Sort::Time | Sort::Moment, 0..18) => {
            literal(random, sort)
        }
        (_, 0..6) => literal(random, sort),
        (_, 6..11) => given_value(random, scope, sort),
        (_, 11..14) => variable(random, scope, sort).unwrap_or_else(|| literal(random, sort)),
        _ if depth == 0 => literal(random, sort),
        // Counts are not computed, as they could be large.
        (Sort::Small, _) => given_value(random, scope, sort),
        _ => computed(random, scope, sort, depth - 1),
    }
}

/// Generates a pipeline in parentheses, or a value of a map.
fn computed(random: &mut Random, scope: &Scope, sort: Sort, depth: usize) -> String {
    let call = format!("({})", pipeline(random, scope, sort, depth));
    match sort {
        // For other types, this is a mistake.
        Sort::Any if random.one_in(80) => format!("{call}.{}", *random.pick(&["a", "b.c", "none"])),
        Sort::Any if random.one_in(12) => {
            let map = operand(random, scope, Sort::Fresh, 0);
            format!("{map}.{}", *random.pick(&["a", "b", "none"]))
        }
        _ => call,
    }
}

fn name(random: &mut Random, scope: &Scope) -> &'static str {
    match TEMPLATES.get(..scope.templates) {
        Some(known) if !known.is_empty() && !random.one_in(12) => random.pick::<&str>(known),
        _ => "none",
    }
}

/// Generates a reference to a given value.
fn given_value(random: &mut Random, scope: &Scope, sort: Sort) -> String {
    // The dot is unknown, and may be large.
    let dot = if sort == Sort::Any { 3 } else { 60 };
    if scope.root != Root::Dot && sort != Sort::Small && random.one_in(dot) {
        return if random.one_in(8) {
            *random.pick(&[".a", ".b.c"])
        } else {
            "."
        }
        .to_owned();
    }
    let path = path(random, sort);
    let Some(given_value) = scope.reach(path) else {
        return literal(random, sort);
    };
    match sort {
        _ if random.one_in(20) => given_value,
        // Numbers in values are floats.
        Sort::Small | Sort::Int => format!("({given_value} | int)"),
        Sort::Any | Sort::Scalar | Sort::Dict => given_value,
        _ if path.contains('.') => format!("({given_value} | toString)"),
        _ => given_value,
    }
}

fn variable(random: &mut Random, scope: &Scope, sort: Sort) -> Option<String> {
    if random.one_in(2000) {
        return Some("$nobody".to_owned());
    }
    let anyone = sort == Sort::Any || random.one_in(30);
    let fit = |(name, declared): &(String, Sort)| {
        let hidden = scope.variables.iter().rfind(|(other, _)| other == name);
        (anyone || *declared == sort) && hidden.is_some_and(|(_, last)| last == declared)
    };
    let fitting: Vec<&(String, Sort)> = scope.variables.iter().filter(|variable| fit(variable)).collect();
    if fitting.is_empty() {
        return None;
    }
    let (name, declared) = random.pick::<&(String, Sort)>(&fitting);
    let fields = if random.one_in(if *declared == Sort::Dict { 6 } else { 60 }) {
        *random.pick(&[".a", ".b.c", ".none"])
    } else {
        ""
    };
    Some(format!("{name}{fields}"))
}

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
            let function = function(random, scope, sort);
            call(random, scope, function, depth)
        }
    }
}

fn function(random: &mut Random, scope: &Scope, sort: Sort) -> &'static Function {
    let gives = |function: &&Function| match sort {
        Sort::Any | Sort::Scalar => true,
        Sort::Small | Sort::Index | Sort::Int | Sort::Float | Sort::Number => {
            matches!(
                function.gives,
                Sort::Small | Sort::Int | Sort::Float | Sort::Number
            )
        }
        Sort::Bool | Sort::List | Sort::Dict | Sort::Moment => function.gives == sort,
        Sort::Time => function.gives == Sort::Moment,
        _ => function.gives == Sort::Text,
    };
    let can = |function: &&Function| function.name != "include" || scope.templates > 0;
    let fitting: Vec<&Function> = FUNCTIONS.iter().filter(gives).filter(can).collect();
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
    match random.below(400) {
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

/// Generates a call, whose last argument may come through a pipe.
fn command(random: &mut Random, name: &str, mut arguments: Vec<String>) -> String {
    let piped = !arguments.is_empty() && random.one_in(3);
    let last = if piped { arguments.pop() } else { None };
    let mut command = name.to_owned();
    for argument in arguments {
        command.push(' ');
        command.push_str(&argument);
    }
    match last {
        // A pipeline in parentheses needs no further ones at the start of another.
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
