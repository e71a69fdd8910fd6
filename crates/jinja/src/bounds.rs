//! No call of the library takes more than its budget, whatever its arguments: work is counted before it is done.

use std::sync::{Arc, atomic::AtomicBool};

use testkit::fuzz::{self, Random};
use tree::{Budget, Exceeded, Limits, Mem, TreePath, on_deep_stack};
use yaml::Map;

use crate::{Error, Renderer, Vars, checks, filters, functions, value::members};

/// Values at the limits: long, repeated, deep, shared and numerous.
const VALUES: &[&str] = &[
    "a",
    "b * 9999",
    "t",
    "(a ~ 'b')",
    "n",
    "u",
    "words",
    "amps",
    "lines",
    "digits",
    "('{0}' * 30000)",
    "('{k}' * 30000)",
    "('%s' * 30000)",
    "('%.0s' * 30000)",
    "('a-b' * 30000)",
    "('<' * 100000)",
    "'(a?){40}(a?){40}b$'",
    "'a.*z|a'",
    "'(((a{100}){100}){100})'",
    "'{:0200000,}'",
    "'%.70000f'",
    "'%0200000d'",
    "1",
    "-1",
    "0",
    "3",
    "70000",
    "10 ** 4000",
    "big",
    "-big",
    "1.5",
    "none",
    "true",
    "[a] * 300",
    "[t, a] * 300",
    "[[a, a]] * 300",
    "(a,) * 300",
    "(a ~ 'b',) * 300",
    "range(30000) | list",
    "range(10 ** 12)",
    "{a: a, t: [a] * 50}",
    "dict(k=a, a=1)",
    "deep",
    "a.encode()",
    "a | escape",
    "[(a, t)] * 300",
    "[{'k': a}] * 300",
    "'k'",
    "'*,*,*,*'",
    "'$..*'",
    "'$[?@.k =~ \\'(a?){40}b$\\']'",
];

const OPERATORS: &[&str] = &[
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "~",
    "==",
    "<",
    "in",
    "not in",
    "and",
    "is sameas",
    "| attr",
];

fn variables() -> Vars {
    let mut vars = Map::new();
    vars.insert("a", "a".repeat(100_000));
    vars.insert("b", "b");
    vars.insert("t", "b".repeat(100_000) + "a");
    vars.insert("u", "\u{fdfa}".repeat(20_000));
    vars.insert("words", "a ".repeat(50_000));
    vars.insert("amps", "&".repeat(100_000));
    vars.insert("lines", "a\n".repeat(50_000));
    vars.insert("digits", "9".repeat(100_000));
    Vars::new(&vars)
}

fn value(random: &mut Random) -> &'static str {
    let value: &&'static str = random.pick(VALUES);
    value
}

fn arguments(random: &mut Random) -> String {
    let count = random.below(4);
    let arguments: Vec<&str> = (0..count).map(|_| value(random)).collect();
    arguments.join(", ")
}

/// Returns the names of everything that templates can call.
fn callables() -> Vec<String> {
    let filters = filters::NAMES.iter().map(|name| format!("V | {name}(A)"));
    let tests = checks::NAMES.iter().map(|name| format!("V is {name}(A)"));
    let methods = members::ALL.iter().copied().flatten();
    let methods = methods.map(|name| format!("(V).{name}(A)"));
    let functions = functions::names().map(|name| format!("{name}(A)"));
    let operators = OPERATORS.iter().map(|operator| format!("(V) {operator} (V)"));
    let others = ["(V)[V]", "(V)[V:V]", "{V: 1}", "-(V)", "V", "regex(V, V)"].map(str::to_owned);
    let all = filters
        .chain(tests)
        .chain(methods)
        .chain(functions)
        .chain(operators)
        .chain(others);
    all.filter(|call| {
        !call.contains(" is ==")
            && !call.contains(" is !")
            && !call.contains(" is <")
            && !call.contains(" is >")
    })
    .collect()
}

fn filled(random: &mut Random, call: &str) -> String {
    let mut filled = String::new();
    for letter in call.chars() {
        match letter {
            'V' => filled.push_str(value(random)),
            'A' => filled.push_str(&arguments(random)),
            letter => filled.push(letter),
        }
    }
    let used: &&str = random.pick(&["{{ X }}", "{{ X | list }}", "{% set x = X %}", "{{ X | length }}"]);
    let start = "{% set big = 7 ** 30000 %}{% set deep = [a] %}{% set s = namespace(d=deep) %}{% for i in range(60) %}{% set s.d = [s.d] %}\
                 {% endfor %}{% set deep = s.d %}{% set n = a ~ t %}";
    format!("{start}{}", used.replace('X', &filled))
}

fn limits() -> Limits {
    Limits {
        bytes: 4 << 20,
        ..Limits::default()
    }
}

/// Renders a template, and returns its steps.
fn steps(template: &str, vars: &Vars, budget: &Budget) -> (u64, Result<String, Error>) {
    let tree = Arc::new(Mem::from_files([("f", "{{ n }}")]).unwrap());
    let mut renderer = Renderer::new(tree, &[TreePath::root()], vars);
    let rendered = renderer.render_str(template, budget);
    (renderer.steps(), rendered)
}

#[test]
fn fuzz_no_call_takes_more_than_its_budget() {
    let vars = variables();
    let calls = callables();
    let mut next = 0;
    let search = || {
        fuzz::run("bounds", |random| {
            next = (next + 1) % calls.len();
            let call = if random.below(2) == 0 {
                &calls[next]
            } else {
                random.pick(&calls)
            };
            let template = filled(random, call);
            random.note("template", &template);
            let (taken, _) = steps(&template, &vars, &Budget::new(limits()));
            // All work is counted, so a limit of fewer steps ends the template.
            if taken > 16_384 {
                let fewer = Limits {
                    steps: taken / 2,
                    ..limits()
                };
                let (_, ended) = steps(&template, &vars, &Budget::new(fewer));
                assert!(
                    matches!(ended, Err(Error::Budget { .. })),
                    "{taken} steps: {ended:?}"
                );
            }
        });
    };
    on_deep_stack(search).unwrap();
}

#[test]
fn cancelled_templates_end_at_their_first_poll() {
    let vars = variables();
    let budget = Budget::new(limits()).with_cancellation(Arc::new(AtomicBool::new(true)));
    let (taken, ended) = steps("{{ a | trim(t) }}", &vars, &budget);
    assert_eq!(taken, 0);
    assert!(matches!(
        ended,
        Err(Error::Budget {
            source: Exceeded::Cancelled,
            ..
        })
    ));
}

/// Calls that took the product of two arguments.
#[test]
fn products_of_arguments_are_counted_or_avoided() {
    let vars = variables();
    let mut wide = limits();
    wide.bytes = 64 << 20;
    for (template, expected) in [
        ("{{ (a * 20) | trim(t * 20) | length }}", "0"),
        ("{{ (a * 20).strip(t * 20) | length }}", "0"),
        ("{{ ((a * 20) ~ 'c').lstrip(t * 20) }}", "c"),
        ("{{ ('c' ~ (a * 20)).rstrip(t * 20) }}", "c"),
        ("{{ a | wordwrap(1) | length }}", "199999"),
        ("{{ '{:09999999,}'.format(1) | length }}", "9999999"),
        (
            "{{ '{:012,}|{:011,}|{:04,}|{:03,}|{:08_x}'.format(1, 1, 1, 1, 255) }}",
            "0,000,000,001|000,000,001|0,001|001|000_00ff",
        ),
        (
            "{{ ('%.70000f' % 1.5) | length }} {{ ('%.70000e' % 1.5) | length }} {{ '{:.70000g}'.format(1.5) }}",
            "70002 70006 1.5",
        ),
        ("{{ amps | striptags | length }}", "100000"),
        ("{{ digits | int(7) }} {{ (digits ~ 'x') | int(8) }}", "7 8"),
        (
            "{{ ('a-' * 50000) | slugify(max_length=99998, word_boundary=true) | length }}",
            "99997",
        ),
        ("{{ [1, 2] | tojson(indent=2) | length }}", "12"),
    ] {
        let (_, rendered) = steps(template, &vars, &Budget::new(wide.clone()));
        assert_eq!(
            rendered.map_err(|error| error.to_string()).as_deref(),
            Ok(expected),
            "{template}"
        );
    }
    let small = Limits {
        steps: 2_000_000,
        ..wide
    };
    let ended = [
        "{{ a.startswith((t,) * 200000) }}{{ (a * 9).startswith((a * 9 ~ 'b',) * 200000) }}",
        "{{ words | urlize(extra_schemes=['ab:'] * 100000) }}",
        "{{ deep([1]) | tojson(indent=a * 20) }}",
        "{{ ([a] * 9) | map('slugify', replacements=[(a * 20, a * 20)] * 100000) | list }}",
        "{{ 'x' | slugify(stopwords=[a * 100] * 100000) }}",
        "{% set big = 7 ** 30000 %}{% set l = [] %}{% for i in range(1000000) %}{{ l.append(-big) or '' }}{% endfor %}",
        "{% set l = [] %}{% for i in range(100000) %}{{ l.append({}[a ~ i]) or '' }}{% endfor %}",
        "{% for i in range(1000000) %}{% set x = {}[a * 20] %}{% endfor %}",
        "{% for i in range(1000000) %}{% set x = (a * 20) | length %}{% endfor %}",
        "{{ ([a * 100] * 1000000) | unique(case_sensitive=true) | list | length }}",
    ];
    for template in ended {
        let template = template.replace("deep([1])", "[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]");
        let (taken, rendered) = steps(&template, &vars, &Budget::new(small.clone()));
        let limited = matches!(
            &rendered,
            Err(Error::Budget {
                source: Exceeded::Limit { .. },
                ..
            })
        );
        assert!(
            limited,
            "{template}: {taken} steps, {:?}",
            rendered.map(|text| text.len())
        );
    }
}

#[test]
fn parts_of_attribute_paths_are_counted_for_each_item() {
    let vars = variables();
    let template = "{{ range(10) | map(attribute='a.' * 1000, default='b') | list | length }}";
    let (taken, rendered) = steps(template, &vars, &Budget::default());
    assert_eq!(rendered.unwrap(), "10");
    assert!(taken >= 10_000, "{taken}");
}

#[test]
fn integers_have_the_digits_of_python() {
    let vars = variables();
    let digits = "9".repeat(4300);
    let template = |digits: &str| format!("{{{{ ({digits}) % 10 }}}}");
    let budget = Budget::default();
    assert_eq!(steps(&template(&digits), &vars, &budget).1.unwrap(), "9");
    let error = steps(&template(&(digits + "9")), &vars, &budget).1.unwrap_err();
    assert!(
        error.to_string().contains("Exceeds the limit (4300 digits)"),
        "{error}"
    );
    let hex = format!("0x{}", "f".repeat(5000));
    assert_eq!(steps(&template(&hex), &vars, &budget).1.unwrap(), "5");
}
