//! Random templates, rendered by this crate and by Jinja2: both must give the same text, or fail in the same way.
//!
//! Where a Python with the pinned packages can be had, `make test` tries a number of templates that are always the same;
//! `WEIR_FUZZ_TEMPLATES` asks for more, with new ones, and `WEIR_FUZZ_DIFFERENCES` for more than the first difference. Each is
//! made as small as possible.

mod containers;
mod expression;
mod oracle;
mod table;
mod template;
mod words;

use std::{
    env, fmt,
    io::Write as _,
    sync::Arc,
    time::{Duration, SystemTime},
};

use jinja::{Error, Renderer, Surroundings, Vars};
use serde_json::Value as Json;
use testkit::fuzz;
use tree::{Budget, Limits, Mem, TreePath, on_deep_stack};
use yaml::Value;

use oracle::Oracle;
use template::Case;

/// A template that is also rendered when it holds no braces, as Jinja2 does it; kluctl leaves such files as they are.
pub(crate) fn always_rendered(template: &str) -> String {
    if template.contains('{') {
        template.to_owned()
    } else {
        format!("{{##}}{template}")
    }
}

/// How many templates are tried when nobody asked for more.
const FEW: u64 = 300;
const NAME: &str = "t";
/// How long this crate may take for a template.
const LONGEST: Duration = Duration::from_secs(5);

/// What is not compared: depths and sizes that are limits of the interpreter or of this crate, and copies of objects.
const TOLD: &[&str] = &["RecursionError", "MemoryError", "NotImplementedError", "Error"];

/// Exceptions whose words are those of Jinja2, not of the version of Python.
const WORDED: &[&str] = &[
    "UndefinedError",
    "TemplateSyntaxError",
    "TemplateAssertionError",
    "TemplateRuntimeError",
    "TemplateError",
    "FilterArgumentError",
    "TemplateNotFound",
];

/// How a template failed.
#[derive(Debug, Clone, PartialEq)]
struct Failed {
    class: String,
    message: String,
    file: String,
    line: u64,
}

/// What came of a template: a text, or an error.
type Outcome = Result<String, Failed>;

/// What this crate makes of a template; nothing if that is more than the budget allows.
fn ours(case: &Case, vars: &Vars) -> Option<Outcome> {
    let budget = Budget::new(Limits::default()).with_timeout(LONGEST);
    let files = case
        .files
        .iter()
        .map(|(name, text)| (name.as_str(), text.clone()));
    let files = files.chain([(NAME, always_rendered(&case.template))]);
    let tree = Arc::new(Mem::from_files(files).unwrap());
    let surroundings = Surroundings {
        now: None,
        seed: Some(1),
        ..Surroundings::default()
    };
    let mut renderer = Renderer::new(tree, &[TreePath::root()], vars).with_surroundings(surroundings);
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

/// Whether the outcomes are the same, as far as they are to be.
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
                && same_place(ours, theirs)
        }
        _ => false,
    }
}

/// The original does not always know the file, nor the place of what it finds while it compiles.
fn same_place(ours: &Failed, theirs: &Failed) -> bool {
    theirs.line == 0 || ours.line == theirs.line && (ours.file == theirs.file || theirs.file == "<unknown>")
}

/// How many templates had which outcome.
#[derive(Debug, Default)]
struct Tally {
    rendered: u64,
    failed: u64,
    /// Which the original did not render in the time and memory that it has.
    endless: u64,
    /// Which went over the limits that this crate has.
    limited: u64,
    /// Which hold what differs on purpose, see [`TOLD`].
    told: u64,
}

impl Tally {
    fn compare(&mut self, ours: Option<&Outcome>, theirs: Option<&Outcome>) {
        let told =
            |outcome: &Outcome| matches!(outcome, Err(failed) if TOLD.contains(&failed.class.as_str()));
        let count = match (ours, theirs) {
            (_, None) => &mut self.endless,
            (None, _) => &mut self.limited,
            (Some(ours), Some(theirs)) if told(ours) || told(theirs) => &mut self.told,
            (Some(ours), Some(theirs)) => {
                assert!(
                    same(ours, theirs),
                    "\n  ours:     {ours:?}\n  original: {theirs:?}"
                );
                match theirs {
                    Ok(_) => &mut self.rendered,
                    Err(_) => &mut self.failed,
                }
            }
        };
        *count += 1;
    }

    /// Whether nearly all were compared, and many of them are no mistakes.
    fn says_enough(&self, count: u64) -> bool {
        (self.endless + self.limited + self.told) * 50 <= count && self.rendered * 4 >= count
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rendered,
            failed,
            endless,
            limited,
            told,
        } = self;
        write!(
            f,
            "{rendered} gave the same, {failed} failed in the same way, {} were not compared \
             ({endless} endless for the original, {limited} over our limits, {told} known to differ)",
            endless + limited + told
        )
    }
}

fn variables(json: &Json) -> Vars {
    match Value::from_json(json.clone()) {
        Value::Map(map) => Vars::new(&map),
        _ => Vars::default(),
    }
}

#[test]
fn random_templates_give_what_the_original_gives() {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let asked = number("WEIR_FUZZ_TEMPLATES");
    let python = match testkit::oracle::jinja() {
        Ok(python) => python,
        Err(error) if asked.is_none() => return println!("not compared with Jinja2: {error:#}"),
        Err(error) => panic!("{error:#}"),
    };
    let now = || SystemTime::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_secs());
    let seed = number("WEIR_FUZZ_SEED").unwrap_or_else(|| if asked.is_some() { now() } else { 0 });
    let (count, most) = (asked.unwrap_or(FEW), number("WEIR_FUZZ_DIFFERENCES").unwrap_or(1));
    let mut tally = Tally::default();
    let differences = on_deep_stack(|| {
        let mut oracle = Oracle::start(python);
        fuzz::failures("templates", seed, count, most as usize, |random| {
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
            tally.compare(ours.as_ref(), theirs.as_ref());
        })
    })
    .unwrap();
    let line = format!(
        "jinja-fuzz: {count} templates from WEIR_FUZZ_SEED={seed} on: {tally}, {} differ",
        differences.len()
    );
    if asked.is_some() {
        let _ = writeln!(std::io::stderr(), "{line}");
    } else {
        println!("{line}");
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(
        tally.says_enough(count),
        "too few templates are compared, or can be rendered"
    );
}
