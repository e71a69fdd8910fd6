//! Random templates, rendered by this crate and by Jinja2: both must give the same output, or fail in the same way.
//!
//! If a Python with the pinned packages is available, `make test` tries a fixed set of templates; `WEIR_FUZZ_TEMPLATES` asks
//! for more, with new ones, and `WEIR_FUZZ_DIFFERENCES` for more than the first difference. Each is reduced to a minimal case.

mod containers;
mod expression;
mod oracle;
mod table;
mod template;
mod words;

use std::{env, sync::Arc, time::Duration};

use jinja::{Environment, Error, Renderer, Vars};
use serde_json::Value as Json;
use testkit::fuzz::{Comparison, Tally};
use tree::{Budget, Limits, Mem, TreePath, on_deep_stack};
use yaml::Value;

use oracle::Oracle;
use template::Case;

/// Returns a template that is also rendered without braces, as Jinja2 does; kluctl leaves such files unchanged.
pub(crate) fn always_rendered(template: &str) -> String {
    if template.contains('{') {
        template.to_owned()
    } else {
        format!("{{##}}{template}")
    }
}

/// The number of templates by default.
const FEW: u64 = 300;
const NAME: &str = "t";
/// Timeout of this crate for one template.
const LONGEST: Duration = Duration::from_secs(5);

/// Errors that are not compared: depth and size limits of the interpreter or of this crate, and copies of objects.
const DOCUMENTED: &[&str] = &["RecursionError", "MemoryError", "NotImplementedError", "Error"];

/// Exceptions with messages of Jinja2, which don't depend on the version of Python.
const WORDED: &[&str] = &[
    "UndefinedError",
    "TemplateSyntaxError",
    "TemplateAssertionError",
    "TemplateRuntimeError",
    "TemplateError",
    "FilterArgumentError",
    "TemplateNotFound",
];

#[derive(Debug, Clone, PartialEq)]
struct Failed {
    class: String,
    message: String,
    file: String,
    line: u64,
}

type Outcome = Result<String, Failed>;

/// Renders a template with this crate; `None` if the budget is exceeded.
fn ours(case: &Case, vars: &Vars) -> Option<Outcome> {
    let budget = Budget::new(Limits::default()).with_timeout(LONGEST);
    let files = case
        .files
        .iter()
        .map(|(name, text)| (name.as_str(), text.clone()));
    let files = files.chain([(NAME, always_rendered(&case.template))]);
    let tree = Arc::new(Mem::from_files(files).unwrap());
    let environment = Environment {
        now: None,
        seed: Some(1),
        ..Environment::default()
    };
    let mut renderer = Renderer::new(tree, &[TreePath::root()], vars).with_environment(environment);
    match renderer.render_file(&TreePath::parse(NAME).unwrap(), &budget) {
        Ok(bytes) => Some(Ok(String::from_utf8(bytes.to_vec()).unwrap())),
        Err(Error::Budget { .. }) => None,
        Err(Error::Template(failure)) => {
            let (class, message) = failure.message.split_once(": ").unwrap_or((&failure.message, ""));
            Some(Err(Failed {
                class: class.to_owned(),
                message: message.to_owned(),
                file: failure.file,
                line: failure.line as u64,
            }))
        }
        Err(Error::NotFound(name)) => Some(Err(Failed {
            class: "TemplateNotFound".to_owned(),
            message: name,
            file: String::new(),
            line: 0,
        })),
        Err(other) => Some(Err(Failed {
            class: "other".to_owned(),
            message: other.to_string(),
            file: String::new(),
            line: 0,
        })),
    }
}

/// Returns true if the compared parts of the outcomes are the same.
fn same(ours: &Outcome, theirs: &Outcome) -> bool {
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => ours == theirs,
        (Err(ours), Err(theirs))
            if theirs.class == "TemplateNotFound" || theirs.class == "TemplatesNotFound" =>
        {
            ours.class == "TemplateNotFound"
        }
        (Err(ours), Err(theirs)) => {
            let worded = WORDED.contains(&theirs.class.as_str()) || env::var_os("WEIR_FUZZ_WORDS").is_some();
            let class = |failed: &Failed| failed.class.replace("Parser", "Scanner");
            class(ours) == class(theirs)
                && (!worded || ours.message == theirs.message)
                && same_position(ours, theirs)
        }
        _ => false,
    }
}

/// The original does not always know the file, nor the position of errors at compile time.
fn same_position(ours: &Failed, theirs: &Failed) -> bool {
    theirs.line == 0 || ours.line == theirs.line && (ours.file == theirs.file || theirs.file == "<unknown>")
}

/// Returns true if an outcome contains parts that are not compared.
fn is_documented(outcome: &Outcome) -> bool {
    matches!(outcome, Err(failed) if DOCUMENTED.contains(&failed.class.as_str()))
}

fn variables(json: &Json) -> Vars {
    match Value::from_json(json.clone()) {
        Value::Map(map) => Vars::new(&map),
        _ => Vars::default(),
    }
}

#[test]
fn random_templates_render_as_in_the_original() {
    let comparison = Comparison::from_environment("WEIR_FUZZ_TEMPLATES", FEW);
    let python = match testkit::oracle::jinja() {
        Ok(python) => python,
        Err(error) if !comparison.asked => {
            return testkit::skipped::note("random templates of Jinja2", &format!("{error:#}"));
        }
        Err(error) => panic!("{error:#}"),
    };
    let mut tally = Tally::default();
    let differences = on_deep_stack(|| {
        let mut oracle = Oracle::start(python);
        comparison.differences("templates", |random| {
            let (vars, case) = (words::variables(random), template::whole(random));
            random.note("template", &case.template);
            if !case.files.is_empty() {
                random.note("files", &case.files);
            }
            random.note(
                "i3, n3, s2, a1",
                &[&vars["i3"], &vars["n3"], &vars["s2"], &vars["a1"]],
            );
            let (ours, theirs) = (ours(&case, &variables(&vars)), oracle.render(&case, &vars));
            let documented = |ours: &Outcome, theirs: &Outcome| is_documented(ours) || is_documented(theirs);
            tally.compare(ours.as_ref(), theirs.as_ref(), documented, same);
        })
    })
    .unwrap();
    comparison.conclude("jinja-fuzz", &tally, &differences);
    // Nearly all are compared, and many of them succeed.
    let count = comparison.count;
    assert!(
        tally.skipped() * 50 <= count && tally.made * 4 >= count,
        "too few templates are compared, or can be rendered"
    );
}
