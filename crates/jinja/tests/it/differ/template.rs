//! Random templates: text, outputs, statements.

use std::collections::BTreeMap;

use testkit::fuzz::Random;

use super::expression::{Scope, expression};

const TEXT: &[&str] = &[
    "", "x", " ", "\n", "\n  y: ", "z\n", " é ", "\t", "}", "\n\n", "- ", "{", "  \n", "%}", "a }} b", "#",
    "-",
];
const NAMES: &[&str] = &["v1", "v2", "v3", "i1", "l1"];
/// Filters that return strings, as filtered blocks must.
const TEXT_FILTERS: &[&str] = &[
    "upper",
    "lower",
    "title",
    "trim",
    "string",
    "e",
    "to_json",
    "capitalize",
    "indent(2)",
    "wordwrap(8)",
    "replace('a', 'b')",
];
const FILES: &[&str] = &["f1", "sub/f2", "m1", "base"];

/// A template with the files that it can include, import and extend.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) template: String,
    pub(super) files: BTreeMap<String, String>,
}

pub(super) fn whole(random: &mut Random) -> Case {
    let mut files = BTreeMap::new();
    let alone = random.below(3) > 0;
    if !alone {
        let scope = &mut Scope::new();
        files.insert("f1".to_owned(), body(random, scope, 1, false));
        files.insert("sub/f2".to_owned(), body(random, scope, 1, false));
        files.insert("m1".to_owned(), module(random));
        files.insert("base".to_owned(), base(random));
    }
    let scope = &mut Scope::new();
    let mut template = match random.below(12) {
        _ if alone && random.flag() => {
            let sort = *random.pick(&['a', 's', 'l', 'd', 'n', 'b', 'i']);
            format!("{{{{ {} }}}}", expression(random, scope, sort, 3))
        }
        0 if !alone => child(random),
        _ => body(random, scope, 2, false),
    };
    if random.one_in(30) {
        let damage = *random.pick(&[
            "{{",
            "}}",
            "(",
            ")",
            "|",
            "\"",
            "{% endif %}",
            "{% end %}",
            "{% else %}",
            "{%",
            "%}",
            "{#",
            "#}",
            "1",
            " ",
            "\\",
            "-",
            ".",
            ",",
            "=",
            "{% endfor %}",
            "in",
            "is",
            "not",
            "if",
            "]",
            "~",
            "!",
            "$",
        ]);
        let at = template.floor_char_boundary(random.below(template.len() + 1));
        template.insert_str(at, damage);
    }
    Case { template, files }
}

/// Generates the template of a string that is rendered.
pub(super) fn inner(random: &mut Random, scope: &Scope) -> String {
    let sort = *random.pick(&['s', 'a']);
    format!("x {{{{ {} }}}}", expression(random, scope, sort, 0))
}

fn module(random: &mut Random) -> String {
    let scope = &mut Scope::new();
    let (value, inside) = (
        expression(random, scope, 'a', 1),
        body(random, &mut vec![("p".to_owned(), 'a')], 1, false),
    );
    format!(
        "{{% set e1 = {value} %}}{{% set _h = 1 %}}{{% macro mac(p, q={value}) %}}{inside}{{{{ q }}}}{{% endmacro %}}text{}",
        body(random, scope, 1, false)
    )
}

fn base(random: &mut Random) -> String {
    let scope = &mut Scope::new();
    let mut out = body(random, scope, 0, false);
    for name in ["b1", "b2"] {
        let scoped = *random.pick(&["", " scoped", " required"]);
        let inside = body(random, scope, 1, false);
        let inside = if scoped == " required" {
            String::new()
        } else {
            inside
        };
        out.push_str(&format!(
            "{{% block {name}{scoped} %}}{inside}{{% endblock {name} %}}|{{{{ self.b1() }}}}"
        ));
    }
    out
}

fn child(random: &mut Random) -> String {
    let scope = &mut Scope::new();
    let name = *random.pick(&["'base'", "'base'", "['nope', 'base']", "'nope'", "'./base'"]);
    let mut out = format!(
        "{}{{% extends {name} %}}{}",
        body(random, scope, 0, false),
        body(random, scope, 1, false)
    );
    for block in ["b1", "b2"] {
        if random.below(3) > 0 {
            let inside = body(random, scope, 1, false);
            let above = *random.pick(&["", "{{ super() }}", "{{ self.b2() }}"]);
            out.push_str(&format!("{{% block {block} %}}{inside}{above}{{% endblock %}}"));
        }
    }
    out
}

fn open(random: &mut Random) -> &'static str {
    random.pick::<&str>(&["{% ", "{% ", "{% ", "{%- ", "{%+ ", "{%"])
}

fn close(random: &mut Random) -> &'static str {
    random.pick::<&str>(&[" %}", " %}", " %}", " -%}", " +%}", "%}"])
}

fn tag(random: &mut Random, words: impl AsRef<str>) -> String {
    let words = words.as_ref();
    format!("{}{words}{}", open(random), close(random))
}

fn body(random: &mut Random, scope: &mut Scope, depth: usize, in_loop: bool) -> String {
    let parts = random.below(if depth == 0 { 3 } else { 4 }) + 1;
    let known = scope.len();
    let mut out = String::new();
    for _ in 0..parts {
        out.push_str(random.pick::<&str>(TEXT));
        out.push_str(&part(random, scope, depth, in_loop));
    }
    out.push_str(random.pick::<&str>(TEXT));
    scope.truncate(known);
    out
}

fn output(random: &mut Random, scope: &Scope, depth: usize) -> String {
    let sort = *random.pick(&['s', 'a', 'a', 'n', 'b', 'l', 'd']);
    let value = expression(random, scope, sort, depth);
    let (open, close) = (
        *random.pick(&["{{ ", "{{ ", "{{- ", "{{"]),
        *random.pick(&[" }}", " }}", " -}}", "}}"]),
    );
    let value = if value.starts_with('{') && open == "{{" {
        format!(" {value}")
    } else {
        value
    };
    let value = if value.ends_with('}') && close == "}}" {
        format!("{value} ")
    } else {
        value
    };
    format!("{open}{value}{close}")
}

fn part(random: &mut Random, scope: &mut Scope, depth: usize, in_loop: bool) -> String {
    if depth == 0 {
        return output(random, scope, 1);
    }
    match random.below(24) {
        0..5 => output(random, scope, 2),
        5..8 => looped(random, scope, depth),
        8..10 => condition(random, scope, depth, in_loop),
        10..13 => assignment(random, scope, depth, in_loop),
        13 | 14 => macros(random, scope, depth),
        15 => {
            let (name, inside) = (
                *random.pick(TEXT_FILTERS),
                body(random, scope, depth - 1, in_loop),
            );
            format!(
                "{}{inside}{}",
                tag(random, format!("filter {name}")),
                tag(random, "endfilter")
            )
        }
        16 => {
            let (name, value) = (*random.pick(NAMES), expression(random, scope, 'a', 0));
            scope.push((name.to_owned(), 'a'));
            let inside = body(random, scope, depth - 1, in_loop);
            scope.pop();
            format!(
                "{}{inside}{}",
                tag(random, format!("with {name} = {value}, w = 1")),
                tag(random, "endwith")
            )
        }
        17 => include(random, depth > 1),
        18 => import(random, scope),
        19 => {
            let inside = *random.pick(&[" a {{ b }} {% c %} ", "{#", "\n x \n", "{{ '{% endraw' }}", ""]);
            format!("{}{inside}{}", tag(random, "raw"), tag(random, "endraw"))
        }
        20 => random
            .pick(&[
                "{# c #}",
                "{#- c -#}",
                "{#- c #}\n",
                "{# {{ x }} -#}\n ",
                "\n {#+ c +#} ",
            ])
            .to_string(),
        21 if in_loop => {
            let word = *random.pick(&["break", "continue"]);
            format!(
                "{{% if {} %}}{}{{% endif %}}",
                expression(random, scope, 'b', 1),
                tag(random, word)
            )
        }
        22 => {
            let inside = body(random, scope, depth - 1, false);
            format!("{{% block q{} %}}{inside}{{% endblock %}}", random.below(1000))
        }
        _ => output(random, scope, 3),
    }
}

fn looped(random: &mut Random, scope: &mut Scope, depth: usize) -> String {
    let known = scope.len();
    let recursive = random.one_in(8);
    let (target, over) = match random.below(6) {
        0 => {
            scope.extend([("k".to_owned(), 's'), ("v".to_owned(), 'a')]);
            ("k, v", format!("({}).items()", expression(random, scope, 'd', 1)))
        }
        1 => {
            scope.extend([("x".to_owned(), 'a'), ("y".to_owned(), 'a')]);
            ("x, y", "l5".to_owned())
        }
        2 => {
            scope.push(("x".to_owned(), 'i'));
            ("x", format!("range({})", random.below(5)))
        }
        _ => {
            scope.push(("x".to_owned(), 'a'));
            ("x", expression(random, scope, 'l', 1))
        }
    };
    let test = if random.one_in(4) {
        format!(" if {}", expression(random, scope, 'b', 1))
    } else {
        String::new()
    };
    let loops = *random.pick(&[
        "",
        "",
        "{{ loop.index }}",
        "{{ loop.index0 }}/{{ loop.length }}",
        "{{ loop.first }}{{ loop.last }}",
        "{{ loop.revindex }}{{ loop.revindex0 }}",
        "{{ loop.previtem is defined }}",
        "{{ loop.nextitem | default('-') }}",
        "{{ loop.cycle('a', 'b') }}",
        "{{ loop.changed(x) }}",
        "{{ loop.depth }}{{ loop.depth0 }}",
        "{{ loop }}",
        "{{ loop.nope }}",
        "{{ loop.previtem }}",
        "{{ loop.cycle() }}",
        "{% if not loop.last %}, {% endif %}",
    ]);
    let inside = body(random, scope, depth - 1, true);
    let again = if recursive {
        *random.pick(&[
            "{{ loop([]) }}",
            "{% if x is sequence and x is not string %}{{ loop(x) }}{% endif %}",
            "{{ loop(l4) }}",
        ])
    } else {
        ""
    };
    scope.truncate(known);
    let otherwise = if random.one_in(4) {
        format!("{}{}", tag(random, "else"), body(random, scope, depth - 1, false))
    } else {
        String::new()
    };
    let word = if recursive { " recursive" } else { "" };
    format!(
        "{}{loops}{inside}{again}{otherwise}{}",
        tag(random, format!("for {target} in {over}{test}{word}")),
        tag(random, "endfor")
    )
}

fn condition(random: &mut Random, scope: &mut Scope, depth: usize, in_loop: bool) -> String {
    let test = expression(random, scope, 'b', 2);
    let mut out = tag(random, format!("if {test}"));
    out.push_str(&body(random, scope, depth - 1, in_loop));
    if random.one_in(3) {
        let test = expression(random, scope, 'a', 1);
        out.push_str(&tag(random, format!("elif {test}")));
        out.push_str(&body(random, scope, depth - 1, in_loop));
    }
    if random.flag() {
        out.push_str(&tag(random, "else"));
        out.push_str(&body(random, scope, depth - 1, in_loop));
    }
    out + &tag(random, "endif")
}

fn assignment(random: &mut Random, scope: &mut Scope, depth: usize, in_loop: bool) -> String {
    let name = (*random.pick(NAMES)).to_owned();
    match random.below(6) {
        0 => {
            let inside = body(random, scope, depth - 1, in_loop);
            let filter = *random.pick(&["", " | upper", " | trim | length", " | indent(2)"]);
            scope.push((name.clone(), 's'));
            format!(
                "{}{inside}{}",
                tag(random, format!("set {name}{filter}")),
                tag(random, "endset")
            )
        }
        1 => {
            let (first, second) = (
                expression(random, scope, 'a', 1),
                expression(random, scope, 'a', 1),
            );
            scope.push((name.clone(), 'a'));
            tag(random, format!("set {name}, v9 = {first}, {second}"))
        }
        2 => {
            let value = expression(random, scope, 'a', 1);
            scope.push(("ns.x".to_owned(), 'a'));
            format!(
                "{{% set ns = namespace(x={value}) %}}{}",
                tag(random, format!("set ns.x = ({value}, ns.x)"))
            )
        }
        _ => {
            let sort = *random.pick(&['a', 's', 'l', 'd', 'n']);
            let value = expression(random, scope, sort, 2);
            scope.push((name.clone(), sort));
            tag(random, format!("set {name} = {value}"))
        }
    }
}

fn macros(random: &mut Random, scope: &mut Scope, depth: usize) -> String {
    let known = scope.len();
    let signature = *random.pick(&["p", "p, q=1", "p=2, q=p", "", "p, q='d', r=none"]);
    scope.extend([("p".to_owned(), 'a'), ("q".to_owned(), 'a')]);
    let inside = body(random, scope, depth - 1, false);
    let extra = *random.pick(&[
        "",
        "",
        "{{ varargs }}",
        "{{ kwargs }}",
        "{{ caller() }}",
        "{{ caller(1, 2) }}",
        "{{ caller is defined }}",
        "{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}",
    ]);
    scope.truncate(known);
    let arguments = match random.below(6) {
        0 => String::new(),
        1 => expression(random, scope, 'a', 1),
        2 => format!(
            "{}, q={}",
            expression(random, scope, 'a', 1),
            expression(random, scope, 'a', 0)
        ),
        3 => "1, 2, 3, 4".to_owned(),
        4 => format!(
            "*{}, **{}",
            expression(random, scope, 'l', 0),
            expression(random, scope, 'd', 0)
        ),
        _ => format!("z={}", expression(random, scope, 'a', 0)),
    };
    let define = format!(
        "{}{inside}{extra}{}",
        tag(random, format!("macro m({signature})")),
        tag(random, "endmacro")
    );
    let call = match random.below(3) {
        0 => {
            let params = *random.pick(&["", "(u)", "(u, w=1)"]);
            let inside = body(random, scope, depth - 1, false);
            format!(
                "{}{inside}{}",
                tag(random, format!("call{params} m({arguments})")),
                tag(random, "endcall")
            )
        }
        _ => format!("{{{{ m({arguments}) }}}}"),
    };
    format!("{define}{call}")
}

/// In a macro, an include without context makes it a generator.
fn include(random: &mut Random, anyhow: bool) -> String {
    let name = *random.pick(FILES);
    let extra = *random.pick(&[
        "",
        "",
        " ignore missing",
        " with context",
        " without context",
        " ignore missing without context",
    ]);
    let extra = if anyhow {
        extra
    } else {
        extra.trim_end_matches(" without context")
    };
    let name = match random.below(6) {
        0 => format!("'./{name}'"),
        1 => format!("['nope', '{name}']"),
        2 => "'nope'".to_owned(),
        _ => format!("'{name}'"),
    };
    tag(random, format!("include {name}{extra}"))
}

fn import(random: &mut Random, scope: &mut Scope) -> String {
    let context = *random.pick(&["", " with context", " without context"]);
    let value = expression(random, scope, 'a', 1);
    match random.below(3) {
        0 => format!(
            "{}{{{{ mac({value}) }}}}{{{{ e1 }}}}",
            tag(random, format!("from 'm1' import mac, e1{context}"))
        ),
        1 => format!(
            "{}{{{{ other }}}}",
            tag(random, format!("from 'm1' import nope as other{context}"))
        ),
        _ => {
            let used = *random.pick(&["im.mac(1)", "im.e1", "im._h", "im.nope", "im", "im.mac"]);
            format!(
                "{}{{{{ {used} }}}}",
                tag(random, format!("import 'm1' as im{context}"))
            )
        }
    }
}
