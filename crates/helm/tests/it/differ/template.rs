//! Random templates: text, actions, blocks.

use testkit::fuzz::Random;

use super::{
    expression::{Root, Scope, TEMPLATES, operand, pipeline},
    table::Sort,
    words,
};

const SPACE: &[&str] = &[
    "", "x", " ", "\n", "\n  y: ", "z\n", " é ", "\t", "}", "\n\n", "- ",
];

/// Generates a template with its definitions.
pub(super) fn whole(random: &mut Random) -> String {
    let mut text = String::new();
    let defined = random.below(TEMPLATES.len() + 1);
    for (index, name) in TEMPLATES.iter().enumerate().take(defined) {
        let scope = &mut scope(Root::Nowhere, index);
        let body = body(random, scope, 1);
        text.push_str(&format!(
            "{{{{ define {} }}}}{body}{{{{ end }}}}",
            words::quoted(name)
        ));
    }
    text.push_str(&body(random, &mut scope(Root::Dot, defined), 2));
    if random.one_in(40) {
        let damage = *random.pick(&[
            "{{",
            "}}",
            "(",
            ")",
            "|",
            "\"",
            "end",
            ".q",
            "$q",
            "{{ end }}",
            "{{ else }}",
            "1",
            "`",
            " ",
            "\\",
            "{{-",
            "/*",
        ]);
        let at = text.floor_char_boundary(random.below(text.len() + 1));
        text.insert_str(at, damage);
    }
    text
}

/// Generates the template of a `tpl` call; its data is unknown.
pub(super) fn inner(random: &mut Random, scope: &Scope) -> String {
    let mut scope = Scope {
        root: Root::Nowhere,
        variables: Vec::new(),
        in_loop: false,
        ..scope.clone()
    };
    if random.one_in(10) {
        return "{{ define \"t2\" }}new{{ end }}{{ include \"t2\" . }}".to_owned();
    }
    body(random, &mut scope, 0)
}

fn scope(root: Root, templates: usize) -> Scope {
    Scope {
        root,
        variables: Vec::new(),
        templates,
        in_loop: false,
    }
}

fn body(random: &mut Random, scope: &mut Scope, depth: usize) -> String {
    let variables = scope.variables.len();
    let mut text = String::new();
    for _ in 0..random.within(1..4) {
        text.push_str(random.pick::<&str>(SPACE));
        text.push_str(&node(random, scope, depth));
    }
    scope.variables.truncate(variables);
    text
}

fn action(random: &mut Random, what: &str) -> String {
    let (left, right) = match random.below(10) {
        7 => ("{{- ", " -}}"),
        8 => ("{{- ", " }}"),
        9 => ("{{ ", " -}}"),
        5 | 6 => ("{{", "}}"),
        _ => ("{{ ", " }}"),
    };
    format!("{left}{what}{right}")
}

fn node(random: &mut Random, scope: &mut Scope, depth: usize) -> String {
    let levels = 2;
    match random.below(if depth == 0 { 10 } else { 16 }) {
        0..6 => {
            let what = pipeline(random, scope, Sort::Any, levels);
            action(random, &what)
        }
        6 | 7 => declaration(random, scope),
        8 => {
            let mark = *random.pick(&["x", "", " é\n"]);
            let (left, right) =
                *random.pick(&[("{{", "}}"), ("{{- ", " -}}"), ("{{- ", "}}"), ("{{", " -}}")]);
            format!("{left}/*{mark}*/{right}")
        }
        9 => {
            let name = TEMPLATES.get(..scope.templates).filter(|known| !known.is_empty());
            let name = name.map_or("none", |known| *random.pick(known));
            if name == "none" && !random.one_in(40) {
                return String::new();
            }
            let what = format!(
                "template {} {}",
                words::quoted(name),
                pipeline(random, scope, Sort::Any, 1)
            );
            action(random, &what)
        }
        10..12 => branches(random, scope, depth),
        12 => with(random, scope, depth),
        13 if scope.in_loop => {
            let leaves = *random.pick(&["break", "continue"]);
            let condition = pipeline(random, scope, Sort::Bool, 1);
            format!("{{{{ if {condition} }}}}{{{{ {leaves} }}}}{{{{ end }}}}")
        }
        13 => {
            let number = random.below(10_000);
            let dot = operand(random, scope, Sort::Dict, 1);
            let inside = body(random, &mut self::scope(Root::Nowhere, 0), depth - 1);
            format!("{{{{ block \"own {number}\" {dot} }}}}{inside}{{{{ end }}}}")
        }
        _ => range(random, scope, depth),
    }
}

fn declaration(random: &mut Random, scope: &mut Scope) -> String {
    let name = (*random.pick(&["$x", "$y", "$é"])).to_owned();
    let known = scope.variables.iter().rfind(|(known, _)| *known == name);
    let reassigned = known.map(|(_, sort)| *sort).filter(|_| random.flag());
    let assign = if reassigned.is_some() { "=" } else { ":=" };
    let sort = reassigned.unwrap_or_else(|| *random.pick(&[Sort::Any, Sort::Dict, Sort::List, Sort::Text]));
    let what = format!("{name} {assign} {}", pipeline(random, scope, sort, 2));
    scope.variables.push((name, sort));
    action(random, &what)
}

fn branches(random: &mut Random, scope: &mut Scope, depth: usize) -> String {
    let condition = |random: &mut Random, scope: &Scope| {
        let sort = *random.pick(&[Sort::Bool, Sort::Any]);
        pipeline(random, scope, sort, 1)
    };
    let first = format!("if {}", condition(random, scope));
    let mut text = action(random, &first) + &body(random, scope, depth - 1);
    for _ in 0..random.below(2) {
        let next = format!("else if {}", condition(random, scope));
        text += &(action(random, &next) + &body(random, scope, depth - 1));
    }
    finish(random, scope, depth, text)
}

fn finish(random: &mut Random, scope: &mut Scope, depth: usize, mut text: String) -> String {
    if random.flag() {
        text += &(action(random, "else") + &body(random, scope, depth - 1));
    }
    text + &action(random, "end")
}

/// Returns a scope in which the dot is something else.
fn other_dot(scope: &Scope) -> Scope {
    let mut inside = scope.clone();
    if inside.root == Root::Dot {
        inside.root = Root::Dollar;
    }
    inside
}

fn with(random: &mut Random, scope: &mut Scope, depth: usize) -> String {
    let mut inside = other_dot(scope);
    let declares = random.one_in(4);
    let value = pipeline(random, scope, Sort::Any, 1);
    let first = if declares {
        inside.variables.push(("$w".to_owned(), Sort::Any));
        format!("with $w := {value}")
    } else {
        format!("with {value}")
    };
    let text = action(random, &first) + &body(random, &mut inside, depth - 1);
    finish(random, scope, depth, text)
}

fn range(random: &mut Random, scope: &mut Scope, depth: usize) -> String {
    let mut inside = other_dot(scope);
    inside.in_loop = true;
    let sort = *random.pick(&[Sort::List, Sort::Dict, Sort::Small, Sort::List]);
    let declares: &[&str] = match random.below(3) {
        0 => &[],
        // Integers have no keys.
        2 if sort != Sort::Small => &["$k", "$v"],
        _ => &["$v"],
    };
    let over = match sort {
        Sort::Small => operand(random, scope, sort, 0),
        sort => pipeline(random, scope, sort, 1),
    };
    let first = if declares.is_empty() {
        format!("range {over}")
    } else {
        format!("range {} := {over}", declares.join(", "))
    };
    inside
        .variables
        .extend(declares.iter().map(|name| ((*name).to_owned(), Sort::Any)));
    let text = action(random, &first) + &body(random, &mut inside, depth - 1);
    finish(random, scope, depth, text)
}
