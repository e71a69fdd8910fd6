//! Random templates, rendered by this crate and by Helm: both must give the same output, or fail with the same message.
//!
//! `make test` tries a fixed set of templates; `WEIR_FUZZ_TEMPLATES` asks for more, with new ones, and
//! `WEIR_FUZZ_DIFFERENCES` for more than the first difference. Each is reduced to a minimal case.

mod expression;
mod oracle;
mod table;
mod template;
mod words;

use std::{
    rc::Rc,
    time::{Duration, SystemTime},
};

use helm::{
    HelmVersion, Value,
    functions::{Environment, Standard},
    template::{Error, Executor, Functions as _, ParseBuffers, Set},
};
use serde_json::Value as Json;
use testkit::fuzz::{Comparison, Tally};
use tree::{Budget, Limits, on_deep_stack};

use crate::options::Fixed;
use oracle::Oracle;

/// Number of templates by default.
const FEW: u64 = 600;
const NAME: &str = "c/templates/t.yaml";

/// Timeout of this crate for one template.
const LONGEST: Duration = Duration::from_secs(5);

/// Marks of output that is expected to differ: bytes and other line ends in YAML (see docs/differences.md), and the dot of a
/// whole chart, which has only values here.
const DOCUMENTED: &[&str] = &["!!binary", "\u{2028} ", "Capabilities"];

type Outcome = Result<String, String>;

struct Today(Fixed);

impl Environment for Today {
    fn now(&self) -> (i64, u32) {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        (now.as_secs() as i64, now.subsec_nanos())
    }

    fn fill(&self, bytes: &mut [u8]) {
        self.0.fill(bytes);
    }
}

/// Renders a template with this crate. Returns `None` if the budget is exceeded.
fn ours(template: &str, values: &Json) -> Option<Outcome> {
    let budget = Budget::new(Limits::default()).with_timeout(LONGEST);
    let outcome = render(template, values, &budget);
    let spent = [budget.check(), budget.step(0), budget.output(0)];
    spent.iter().all(Result::is_ok).then_some(outcome)
}

fn render(template: &str, values: &Json, budget: &Budget) -> Outcome {
    let environment = Today(Fixed::default());
    let functions = Standard::new(&environment, HelmVersion::V3);
    let mut set = Set::new();
    set.parse(NAME, template, &functions, &mut ParseBuffers::default(), budget)
        .map_err(|error| parse_error(&error))?;
    let values = Value::from_yaml(&yaml::Value::from_json(values.clone()));
    // The other data is not compared, but templates can count it.
    let beside = [
        "Capabilities",
        "Chart",
        "Files",
        "Release",
        "Subcharts",
        "Template",
    ];
    let beside = beside.map(|key| (key, Value::dict::<&str>([])));
    let data = Value::dict([("Values", values)].into_iter().chain(beside));
    let mut executor = Executor::new(Rc::new(set), &functions, budget, false);
    let made = executor.execute(NAME, data);
    made.map(|text| text.replace("<no value>", ""))
        .map_err(|error| message_only(error.to_string()))
}

/// Removes the position and the last part of a syntax error, which Helm omits.
fn parse_error(error: &Error) -> String {
    let words = error.to_string();
    let parts: Vec<&str> = words.split(": ").collect();
    match parts.as_slice() {
        [_, position, .., last] => format!("parse error at ({position}): {last}"),
        _ => words,
    }
}

/// Reduces an error to the message of `fail` and `required`, as Helm does.
fn message_only(error: String) -> String {
    let position = error.split(": ").nth(1).unwrap_or_default();
    let words = error
        .split_once(helm::functions::WARNING_START)
        .and_then(|(_, rest)| rest.rsplit_once(helm::functions::WARNING_END));
    match words {
        Some((words, _)) => format!("execution error at ({position}): {words}"),
        None => error,
    }
}

/// Formats a string as the oracle does: invalid bytes become replacement characters.
fn printed(text: &str) -> String {
    let mut bytes = Vec::new();
    for c in text.chars() {
        match u32::from(c).checked_sub(0x10_FF00) {
            Some(byte @ 0x80..) => bytes.push(byte as u8),
            _ => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '\u{fffd}'));
    }
    text
}

/// Returns true if both outcomes are the same as the oracle prints them.
fn same(ours: &Outcome, theirs: &Outcome) -> bool {
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => printed(ours) == *theirs,
        (Err(ours), Err(theirs)) => printed(ours) == *theirs,
        _ => false,
    }
}

/// Returns true if the output of the original has parts that are not compared.
fn is_documented(theirs: &Outcome) -> bool {
    theirs
        .as_ref()
        .is_ok_and(|theirs| DOCUMENTED.iter().any(|words| theirs.contains(words)))
}

#[test]
fn random_templates_render_as_in_the_original() {
    let comparison = Comparison::from_environment("WEIR_FUZZ_TEMPLATES", FEW);
    let mut tally = Tally::default();
    let differences = on_deep_stack(|| {
        let mut oracle = Oracle::start();
        comparison.differences("templates", |random| {
            let (values, template) = (words::values(random), template::whole(random));
            random.note("template", &template);
            random.note("values", &values.to_string());
            let (ours, theirs) = (ours(&template, &values), oracle.render(&template, &values));
            tally.compare(
                ours.as_ref(),
                theirs.as_ref(),
                |_, theirs| is_documented(theirs),
                same,
            );
        })
    })
    .unwrap();
    comparison.conclude("helm-fuzz", &tally, &differences);
    // Nearly all are compared, and many of them succeed.
    let count = comparison.count;
    assert!(
        tally.skipped() * 100 <= count && tally.made * 2 >= count,
        "too few templates are compared, or can be rendered"
    );
}

#[test]
fn all_functions_of_sprig_are_there_and_tried() {
    let environment = Fixed::default();
    let functions = Standard::new(&environment, HelmVersion::V3);
    let mut wrong = Vec::new();
    for name in Oracle::start().names() {
        let refused = table::REFUSED.contains(&name.as_str());
        let tried = table::FUNCTIONS.iter().any(|function| function.name == name);
        let left_out = refused || table::LEFT_OUT.contains(&name.as_str());
        if functions.find(&name).is_some() == refused || tried == left_out {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
