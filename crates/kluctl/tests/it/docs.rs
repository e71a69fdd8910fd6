//! The examples of `docs/kluctl` are projects that render as documented.
//!
//! A comment `<!-- example: target=T args=a=b objects=Kind/name,... -->` starts an example; each following block that names
//! a file is one of its files, up to the next comment.

use std::fs;

use kluctl::{ArgumentError, Request, add_argument};
use tree::Budget;
use yaml::Value;

use crate::support::{charts, render_files, workspace};

#[derive(Default)]
struct Example {
    line: usize,
    options: String,
    files: Vec<(String, String)>,
}

fn examples(page: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let mut open: Option<(String, String)> = None;
    for (number, line) in page.lines().enumerate() {
        if let Some((_, text)) = &mut open {
            if line == "```" {
                let file = open.take().unwrap();
                found
                    .last_mut()
                    .expect("an example begins with a comment")
                    .files
                    .push(file);
            } else {
                text.push_str(line);
                text.push('\n');
            }
        } else if let Some(options) = line.strip_prefix("<!-- example: ") {
            found.push(Example {
                line: number + 1,
                options: options.trim_end_matches("-->").trim().to_owned(),
                files: Vec::new(),
            });
        } else if let Some((_, file)) = line
            .strip_prefix("```")
            .and_then(|info| info.split_once(" file="))
        {
            open = Some((file.to_owned(), String::new()));
        }
    }
    found
}

fn name(object: &Value) -> String {
    let text = |path: &[&str]| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}", text(&["kind"]), text(&["metadata", "name"]))
}

fn check(page: &str, example: &Example) {
    let position = format!("{page}:{}", example.line);
    let mut request = Request {
        charts: charts(),
        ..Request::default()
    };
    let mut expected = Vec::new();
    for option in example.options.split_whitespace() {
        match option.split_once('=').unwrap() {
            ("target", target) => request.target = Some(target.to_owned()),
            ("args", argument) => {
                let read = |file: &str| Err(ArgumentError::new(format!("no {file}")));
                add_argument(&mut request.args, argument, &read, &Budget::default()).unwrap();
            }
            ("objects", objects) => expected.extend(objects.split(',')),
            other => panic!("{position}: {other:?} is no option"),
        }
    }
    let files: Vec<(&str, &str)> = example
        .files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let rendered = render_files(&files, &request).unwrap_or_else(|error| panic!("{position}: {error}"));
    let names: Vec<String> = rendered.objects().map(name).collect();
    assert_eq!(names, expected, "{position}");
}

#[test]
fn examples_of_the_docs_render_as_documented() {
    let mut checked = 0;
    for entry in fs::read_dir(workspace().join("docs/kluctl")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for example in examples(&text) {
            check(&path.display().to_string(), &example);
            checked += 1;
        }
    }
    assert!(checked >= 8, "only {checked} examples were found");
}
