//! Settings that projects repeat for each item, include, object and image are charged as a product.

use std::sync::Arc;

use testkit::fuzz::{self, Random};
use tree::{Budget, Limits, Mem};

use crate::{Error, Inclusion, Rendered, Request, render};

fn limits() -> Limits {
    Limits {
        steps: 5_000_000,
        bytes: 8 << 20,
        objects: 1000,
        ..Limits::default()
    }
}

fn rendered(files: &[(&str, String)], inclusion: Inclusion) -> Result<Rendered, Error> {
    let files = files.iter().map(|(path, text)| (*path, text.clone()));
    let tree = Arc::new(Mem::from_files(files).unwrap());
    let request = Request {
        inclusion,
        ..Request::default()
    };
    render(tree, &request, &Budget::new(limits()))
}

fn refused(files: &[(&str, String)], expected: &str) {
    let error = rendered(files, Inclusion::default())
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(expected),
        "{expected}: {}",
        &error[..error.len().min(500)]
    );
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

#[test]
fn tags_times_items_are_charged_before_they_are_joined() {
    let tags = lines(20_000, |number| format!("- t{number}\n"));
    let deployment = |items| format!("tags:\n{tags}deployments:\n{}", "- path: a\n".repeat(items));
    let other = Inclusion {
        include_tags: vec!["other".to_owned()],
        ..Inclusion::default()
    };
    let with = |items| {
        rendered(
            &[("deployment.yaml", deployment(items)), ("a/x", String::new())],
            other.clone(),
        )
    };
    assert!(with(10).is_ok());
    let error = with(2000).map(drop).unwrap_err().to_string();
    assert!(error.contains("the tags of an item in"), "{error}");
}

#[test]
fn inherited_settings_times_includes_are_charged_before_they_are_copied() {
    let inner = "commonLabels: {own: x}\ncommonAnnotations: {own: x}\nignoreForDiff: [{fieldPath: spec.x}]\ntags: [a]\n";
    let include = |settings: &str, includes| {
        let deployment = format!("{settings}deployments:\n{}", "- include: b\n".repeat(includes));
        [
            ("deployment.yaml", deployment),
            ("b/deployment.yaml", inner.to_owned()),
        ]
    };
    let label = |number| format!("  label{number}: {}\n", "v".repeat(50));
    let rule = |number| format!("- fieldPath: spec.x{number}\n");
    for settings in [
        format!("commonLabels:\n{}", lines(1000, label)),
        format!("commonAnnotations:\n{}", lines(1000, label)),
        format!("ignoreForDiff:\n{}", lines(1000, rule)),
    ] {
        assert!(rendered(&include(&settings, 5), Inclusion::default()).is_ok());
        refused(&include(&settings, 300), "that the project in b inherits");
    }
}

#[test]
fn sources_of_variables_times_their_size_are_charged() {
    let values = lines(5000, |number| format!("      key{number}: {}\n", "v".repeat(50)));
    let sources = |more| {
        let vars = format!(
            "vars:\n  - values:\n{values}{}",
            "  - values: {a: 1}\n".repeat(more)
        );
        [("deployment.yaml", vars)]
    };
    assert!(rendered(&sources(10), Inclusion::default()).is_ok());
    refused(&sources(2000), "deployment.yaml: vars");
}

#[test]
fn regular_expressions_of_a_project_are_bounded_together() {
    let rules = |count| {
        let rule = |number| format!("- fieldPathRegex: 'spec.x{number}'\n");
        [(
            "deployment.yaml",
            format!("ignoreForDiff:\n{}", lines(count, rule)),
        )]
    };
    assert!(rendered(&rules(100), Inclusion::default()).is_ok());
    refused(&rules(300), "fieldPathRegex");
    let images = |count| {
        let image = |number| format!("    - {{imageRegex: '\\pL{{20}}x{number}', resultImage: r}}\n");
        let text = format!("vars:\n- values:\n    images:\n{}", lines(count, image));
        let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {i: \"{{ images.get_image('x') }}\"}\n";
        let deployments = "deployments: [{path: a}]\n".to_owned();
        [
            ("deployment.yaml", deployments + &text),
            ("a/m.yaml", object.to_owned()),
        ]
    };
    refused(&images(300), "the patterns are too many or too large together");
}

#[test]
fn tags_times_images_are_charged() {
    let tags = lines(500, |number| format!("- t{number}{}\n", "x".repeat(50)));
    let deployment = format!("tags:\n{tags}deployments: [{{path: a}}]\n");
    let image = |number| format!("  i{number}: \"{{{{ images.get_image('x{number}') }}}}\"\n");
    let object = |count| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\ndata:\n{}",
            lines(count, image)
        )
    };
    let files = |count| {
        [
            ("deployment.yaml", deployment.clone()),
            ("a/m.yaml", object(count)),
        ]
    };
    refused(&files(3), "failed to find fixed image");
    refused(&files(300), "images of ");
}

#[test]
fn arguments_times_targets_are_charged_before_they_are_copied() {
    let project = |targets| {
        let argument = |number| format!("- {{name: a{number}, default: {}}}\n", "v".repeat(50));
        let target = |number| format!("- name: t{number}\n");
        let text = format!(
            "args:\n{}targets:\n{}",
            lines(2000, argument),
            lines(targets, target)
        );
        [(".kluctl.yaml", text), ("deployment.yaml", String::new())]
    };
    let with = |targets| {
        let files = project(targets);
        let tree = Arc::new(Mem::from_files(files.iter().map(|(path, text)| (*path, text.clone()))).unwrap());
        let request = Request {
            target: Some("t0".to_owned()),
            ..Request::default()
        };
        render(tree, &request, &Budget::new(limits())).map(drop)
    };
    assert!(with(5).is_ok());
    let error = with(1000).unwrap_err().to_string();
    assert!(
        error.starts_with("target t") && error.contains("steps"),
        "{error}"
    );
}

const SIZES: &[usize] = &[0, 1, 30, 1000, 5000];

fn project(random: &mut Random) -> Vec<(&'static str, String)> {
    let mut count = || *random.pick(SIZES);
    let mut list = |head: &str, line: &dyn Fn(usize) -> String| match count() {
        0 => String::new(),
        count => format!("{head}:\n{}", lines(count, line)),
    };
    let label = |number| format!("  l{number}: v\n");
    let deployment = [
        list("tags", &|number| format!("- t{number}\n")),
        list("commonLabels", &label),
        list("commonAnnotations", &label),
        list("ignoreForDiff", &|number| format!("- fieldPath: x{number}\n")),
        list("vars", &|number| {
            format!("- values: {{v{number}: '{{{{ v{} }}}}x'}}\n", number / 2)
        }),
        list("deployments", &|number| {
            format!("- {}\n", ["path: a", "include: b", "include: c"][number % 3])
        }),
    ];
    let inner = [
        list("tags", &|number| format!("- u{number}\n")),
        list("commonLabels", &label),
        list("conflictResolution", &|number| {
            format!("- {{fieldPath: x{number}, action: ignore}}\n")
        }),
        list("deployments", &|number| {
            format!("- path: ../a\n  tags: [i{number}]\n")
        }),
    ];
    let items = list("items", &|_| "- {metadata: {}}\n".to_owned());
    vec![
        ("deployment.yaml", deployment.concat()),
        ("b/deployment.yaml", inner.concat()),
        (
            "c/deployment.yaml",
            "commonLabels: {c: c}\ndeployments: [{include: ../b}]\n".to_owned(),
        ),
        ("a/m.yaml", format!("apiVersion: v1\nkind: List\n{items}")),
    ]
}

#[test]
fn fuzz_large_projects_take_bounded_work() {
    fuzz::run("large projects", |random| {
        let files = project(random);
        random.note("files", &files);
        let inclusion = Inclusion {
            exclude_tags: (0..*random.pick(SIZES))
                .map(|number| format!("x{number}"))
                .collect(),
            ..Inclusion::default()
        };
        if let Ok(rendered) = rendered(&files, inclusion) {
            assert!(rendered.objects().count() <= 1000);
        }
    });
}
