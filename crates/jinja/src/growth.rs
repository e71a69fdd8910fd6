//! The work and the memory of templates: they grow with the text, last as long as they are needed, and come out of the shared memory.

use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tree::{Budget, Exceeded, Limits, Mem, SharedMemory, TreePath, on_deep_stack};
use yaml::{Map, Value};

use crate::{Error, Renderer, Vars, meter::Meter, parser, renderer::LANGUAGE};

/// Statements and expressions; `N` is a number of its own in each.
const CONSTRUCTS: &[&str] = &[
    "{% set aN = 1 %}",
    "{% set aN, bN = 1, 2 %}",
    "{% set sN %}x{% endset %}",
    "{{ aN.b | e }}",
    "{{ f(a, b=[1, 2]) }}",
    "{% include 'q' %}",
    "{% import 'q' as iN with context %}",
    "{% from 'q' import xN with context %}",
    "{% block bN %}{% endblock %}",
    "{% block cN scoped %}{{ aN }}{% endblock %}",
    "{% macro mN(a, b=1) %}{{ a }}{{ aN }}{% endmacro %}",
    "{% macro nN() %}{% include 'q' %}{% endmacro %}",
    "{% call m() %}{% set aN = 1 %}{% endcall %}",
    "{% for x in y %}{{ loop }}{% endfor %}",
    "{% for x in y %}{% set aN = 1 %}{% include 'q' %}{% endfor %}",
    "{% if xN %}{% set aN = 1 %}{% else %}{{ aN }}{% endif %}",
    "{% with aN = 1 %}{% include 'q' %}{% endwith %}",
    "{% filter upper %}{% include 'q' %}{% endfilter %}",
    "{% autoescape true %}{{ aN }}{% endautoescape %}",
];

/// Returns the steps and bytes of parsing.
fn parsed(text: &str) -> (u64, u64) {
    let meter = Meter::default();
    meter.start(&Budget::default()).unwrap();
    let tree = parser::parse(text, &LANGUAGE, &meter);
    assert!(tree.is_ok(), "{text:.200}: {:?}", tree.err());
    (meter.steps(), meter.bytes())
}

fn repeated(construct: &str, count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        // Of the same length for all numbers.
        let number = (10_000 + number).to_string();
        let _ = text.write_str(&construct.replace('N', &number));
    }
    text
}

#[test]
fn parsing_grows_with_the_text_whatever_is_combined() {
    let all = || {
        for first in CONSTRUCTS {
            for second in CONSTRUCTS.iter().filter(|second| *second != first) {
                let document = |count| {
                    let (first, second) = (repeated(first, count), repeated(second, count));
                    format!("{first}{{% if 0 %}}{second}{{% endif %}}")
                };
                let (steps, bytes) = parsed(&document(60));
                let (more_steps, more_bytes) = parsed(&document(120));
                assert!(
                    more_steps * 10 <= steps * 21 && more_bytes * 10 <= bytes * 21,
                    "{first} {second}: {steps} to {more_steps} steps, {bytes} to {more_bytes} bytes"
                );
            }
        }
    };
    on_deep_stack(all).unwrap();
}

#[test]
fn many_variables_times_many_includes_are_refused_by_the_small_limits_of_alerts() {
    let limits = Limits {
        steps: 200_000,
        bytes: 4 << 20,
        ..Limits::default()
    };
    let text = "{% set s = '{%set aX=1%}' * 8000 ~ '{%if 0%}' ~ '{%include q%}' * 8000 ~ '{%endif%}' %}{{ render(s) }}";
    let error = render(&[], text, &Budget::new(limits)).unwrap_err();
    assert!(is_limit(&error), "{error}");
}

#[test]
fn templates_that_include_themselves_pay_for_the_variables_of_each_level() {
    let text = repeated("{% set aN = 1 %}", 5000) + "{% include 'f' %}";
    let budget = Budget::new(Limits {
        bytes: 16 << 20,
        ..Limits::default()
    });
    let error = render(&[("f", &text)], "{% include 'f' %}", &budget).unwrap_err();
    assert!(error.to_string().contains("bytes of all values"), "{error}");
}

#[test]
fn repeated_contexts_and_texts_are_free_again() {
    let text = repeated("{% set aN = 'x' * 10 %}", 200) + "{{ a10000 }}";
    let main =
        "{% for i in range(2000) %}{% include 'f' %}{{ render('{{ [1, 2, 3] | length }}') }}{% endfor %}";
    let budget = Budget::new(Limits {
        bytes: 4 << 20,
        ..Limits::default()
    });
    render(&[("f", &text)], main, &budget).unwrap();
}

fn is_limit(error: &Error) -> bool {
    matches!(
        error,
        Error::Budget {
            source: Exceeded::Limit { .. },
            ..
        }
    )
}

fn render(files: &[(&str, &str)], text: &str, budget: &Budget) -> Result<String, Error> {
    let files = files.iter().map(|(path, text)| (*path, (*text).to_owned()));
    let tree = Arc::new(Mem::from_files(files).unwrap());
    on_deep_stack(|| {
        let mut renderer = Renderer::new(tree, &[TreePath::root()], &variables());
        renderer.render_str(text, budget)
    })
    .unwrap()
}

fn variables() -> Vars {
    let mut vars = Map::new();
    vars.insert("l", Value::Seq(Vec::new()));
    vars.insert("d", Map::new());
    vars.insert("t", "text");
    Vars::new(&vars)
}

fn small() -> Budget {
    Budget::new(Limits {
        bytes: 1 << 20,
        ..Limits::default()
    })
}

/// Templates after which a value can still be reached.
const LASTING: &[&str] = &[
    "{% if l.append('a' * 500000) %}{% endif %}",
    "{% set x = l %}{% if x.append(['a' * 500000]) %}{% endif %}",
    "{% if d.update({t ~ d | length: 'a' * 500000}) %}{% endif %}",
    "{% set x = [] %}{% if l.append(x) %}{% endif %}{% if x.append('a' * 500000) %}{% endif %}",
    "{% if l | length == 0 %}{% for i in range(20) %}{% for j in [1] %}{% if l.append(loop) %}{% endif %}{% endfor %}\
     {% endfor %}{% endif %}{% if l['FILE'[1:] | int].changed('a' * 500000) %}{% endif %}",
    "{% macro m() %}{{ x }}{% endmacro %}{% set x = 'a' * 500000 %}{% if l.append(m) %}{% endif %}",
    "{% import 'FILE' as f %}",
    "{% if debug_print('a' * 300000) %}{% endif %}",
];

#[test]
fn values_that_outlive_a_template_count_in_the_next_ones() {
    let module = "{% set x = 'a' * 500000 %}";
    let names: Vec<String> = (0..20).map(|number| format!("f{number}")).collect();
    let files = names.iter().map(|name| (name.clone(), module.to_owned()));
    let tree = Arc::new(Mem::from_files(files).unwrap());
    let all = || {
        for template in LASTING {
            let mut renderer = Renderer::new(tree.clone(), &[TreePath::root()], &variables());
            let mut rendered = names
                .iter()
                .map(|name| renderer.render_str(&template.replace("FILE", name), &small()));
            let error = rendered.find_map(Result::err);
            assert!(
                error.as_ref().is_some_and(is_limit),
                "{template}: {:?}",
                error.map(|error| error.to_string())
            );
        }
    };
    on_deep_stack(all).unwrap();
}

#[test]
fn values_of_thousands_of_templates_are_free_at_the_end_of_each() {
    let tree =
        Arc::new(Mem::from_files([("lib", "{% macro m(x) %}{{ x }}{% endmacro %}{% set y = 1 %}")]).unwrap());
    let template = "{% import 'lib' as lib %}{% from 'lib' import m %}{% include 'lib' %}{% set x = 'a' * 500000 %}\
                    {% set own = [] %}{% if own.append([x, {'k': x}]) %}{% endif %}{% set ns = namespace(a=x) %}\
                    {% set ns.a = own %}{{ m(1) }}{{ lib.m(2) }}";
    let with_macro = "{% macro own() %}{{ x }}{% endmacro %}{% set x = 'a' * 500000 %}{% if [].append(x) %}{% endif %}\
                      {{ own() | length }}";
    let failing = "{% macro own() %}{{ x }}{% endmacro %}{% set x = 'a' * 500000 %}{{ nothing }}";
    let all = || {
        let mut renderer = Renderer::new(tree, &[TreePath::root()], &variables());
        let mut lasting = None;
        for _ in 0..3000 {
            assert_eq!(renderer.render_str(template, &small()).unwrap(), "12");
            assert_eq!(renderer.render_str(with_macro, &small()).unwrap(), "500000");
            assert!(renderer.render_str(failing, &small()).is_err());
            let bytes = renderer.bytes();
            assert_eq!(*lasting.get_or_insert(bytes), bytes);
        }
    };
    on_deep_stack(all).unwrap();
}

#[test]
fn variables_of_failed_templates_are_dropped_with_the_renderer() {
    let mut vars = Map::new();
    vars.insert("t", "text");
    let vars = Vars::new(&vars);
    let uses = || match vars.values.get("t") {
        Some(crate::value::frozen::Frozen::Str(text)) => Arc::strong_count(text),
        _ => 0,
    };
    for template in [
        "{% macro m() %}{% endmacro %}{% set x = t %}{{ nothing }}",
        "{% block b %}{% macro m() %}{% endmacro %}{% set x = t %}{{ nothing }}{% endblock %}",
        "{% macro n() %}{% macro m() %}{% endmacro %}{% set x = t %}{{ nothing }}{% endmacro %}{{ n() }}",
        "{% for i in [1] recursive %}{% macro m() %}{% endmacro %}{% set x = t %}{{ nothing }}{% endfor %}",
    ] {
        let mut renderer = Renderer::new(Arc::new(Mem::default()), &[], &vars);
        assert!(renderer.render_str(template, &small()).is_err());
        drop(renderer);
        assert_eq!(uses(), 1, "{template}");
    }
}

#[test]
fn syntax_trees_are_counted_before_they_are_made_and_as_long_as_they_last() {
    for dense in [
        "{{ [DENSE] | length }}",
        "{% if 0 %}{{ f(DENSE) }}{% endif %}",
        "{% if 0 %}{{ {'a': [DENSE]} }}{% endif %}",
    ] {
        let text = dense.replace("DENSE", &"1,".repeat(12_000));
        let (_, bytes) = parsed(&text);
        assert!(bytes > 100 * 12_000, "{bytes}");
        let budget = Budget::new(Limits {
            bytes: 8 << 20,
            ..Limits::default()
        });
        let names: Vec<String> = (0..8).map(|number| format!("f{number}")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), text.as_str())).collect();
        let includes: String = names
            .iter()
            .map(|name| format!("{{% include '{name}' %}}"))
            .collect();
        let main = format!(
            "{{% if 0 %}}{includes}{{% endif %}}{}",
            includes
                .replace("include '", "import '")
                .replace("' %}", "' as x %}")
        );
        let error = render(&files, &main, &budget).unwrap_err();
        assert!(is_limit(&error), "{dense}: {error}");
    }
}

/// Memory of a fixed size, which counts the taken bytes.
#[derive(Debug)]
struct Fixed {
    size: u64,
    taken: AtomicU64,
    most: AtomicU64,
}

impl SharedMemory for Fixed {
    fn is_revoked(&self) -> bool {
        false
    }

    fn take(&self, bytes: u64) -> bool {
        let taken = self.taken.load(Ordering::Relaxed) + bytes;
        if taken > self.size {
            return false;
        }
        self.taken.store(taken, Ordering::Relaxed);
        self.most.fetch_max(taken, Ordering::Relaxed);
        true
    }

    fn give_back(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[test]
fn memory_of_templates_is_taken_from_the_shared_memory_and_given_back() {
    let memory = Arc::new(Fixed {
        size: 64 << 20,
        taken: AtomicU64::new(0),
        most: AtomicU64::new(0),
    });
    let budget = Budget::default().with_memory(memory.clone());
    let taken = || memory.taken.load(Ordering::Relaxed);
    let work = || {
        let mut renderer = Renderer::new(Arc::new(Mem::default()), &[], &variables());
        let text = "{% set x = 'a' * 30000000 %}{{ x | length }}";
        assert_eq!(renderer.render_str(text, &budget).unwrap(), "30000000");
        assert!(memory.most.load(Ordering::Relaxed) >= 30_000_000);
        assert!(taken() < 8 << 20, "{}", taken());
        renderer
            .render_str("{% if l.append('a' * 30000000) %}{% endif %}", &budget)
            .unwrap();
        assert!(taken() >= 30_000_000);
        let error = renderer
            .render_str("{% set x = 'a' * 50000000 %}", &budget)
            .unwrap_err();
        assert!(
            matches!(
                error,
                Error::Budget {
                    source: Exceeded::Busy,
                    ..
                }
            ),
            "{error}"
        );
        drop(renderer);
        // Only the output is left, which belongs to the operation.
        assert!(taken() < 1 << 20, "{}", taken());
    };
    on_deep_stack(work).unwrap();
}
