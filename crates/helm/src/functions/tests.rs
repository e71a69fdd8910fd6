//! Functions of sprig and Helm: `cases.jsonl` holds templates, and their output of Helm 3.19.4 with the values below;
//! `cases4.jsonl` of Helm 4.3.1.

use std::rc::Rc;

use tree::Budget;

use super::{Environment, Standard};
use crate::{
    HelmVersion, Value,
    template::{Executor, ParseBuffers, Set},
};

mod bounds;
mod keys;
mod memory;

const VALUES: &str = r#"
list: [3, 1, 2, 1]
none: []
empty: {}
map: {a: 1, b: {c: text, d: null, e: [1, {f: 2.5}]}}
text: "Hello, World"
zero: 0
float: 2.75
big: 123456789
"#;

const NAME: &str = "c/templates/_t.tpl";

struct Still;

impl Environment for Still {
    fn now(&self) -> (i64, u32) {
        (1_700_000_000, 0)
    }

    fn fill(&self, bytes: &mut [u8]) {
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = (index * 37 + 11) as u8;
        }
    }
}

fn render(text: &str, budget: &Budget) -> Result<String, String> {
    render_in(text, budget, || Still)
}

fn render_in<E: Environment>(
    text: &str,
    budget: &Budget,
    environment: impl FnOnce() -> E + Send,
) -> Result<String, String> {
    render_as(HelmVersion::V3, text, budget, environment)
}

fn render_as<E: Environment>(
    helm: HelmVersion,
    text: &str,
    budget: &Budget,
    environment: impl FnOnce() -> E + Send,
) -> Result<String, String> {
    tree::on_deep_stack(|| {
        let environment = environment();
        let functions = Standard::new(&environment, helm);
        let mut set = Set::new();
        set.parse(NAME, text, &functions, &mut ParseBuffers::default(), budget)
            .map_err(|error| error.to_string())?;
        let values = yaml::read::goyaml(VALUES, budget).unwrap().value;
        let data = Value::dict([("Values", Value::from_yaml(&values))]);
        let mut executor = Executor::new(Rc::new(set), &functions, budget, false);
        executor.execute(NAME, data).map_err(|error| error.to_string())
    })
    .unwrap()
}

/// Compares the output of templates, one case a line, with Helm's.
fn check_cases(helm: HelmVersion, cases: &str) {
    let mut wrong = Vec::new();
    for line in cases.lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| case.get(key).and_then(|value| value.as_str()).map(str::to_owned);
        let template = text("template").unwrap();
        let wanted = text("output").ok_or_else(|| text("error").unwrap_or_default());
        let found = render_as(helm, &template, &Budget::default(), || Still);
        if found != wanted {
            wrong.push(format!("{template}\n  wanted {wanted:?}\n  found  {found:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differences\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn functions_give_the_output_of_helm_3() {
    check_cases(HelmVersion::V3, include_str!("tests/cases.jsonl"));
}

#[test]
fn functions_give_the_output_of_helm_4() {
    check_cases(HelmVersion::V4, include_str!("tests/cases4.jsonl"));
}
