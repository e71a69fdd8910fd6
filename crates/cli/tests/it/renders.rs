//! Behaviour of kluctl that renders must have, and its errors.

use anyhow::Result;
use tempfile::TempDir;

use crate::{
    commands::{printed, stderr, weir},
    program::files,
};

const RENDER: &str = "render --print-all --offline-kubernetes";

fn map(value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\ndata: {{a: '{value}'}}\n")
}

/// Creates a project with one item that has these manifests.
fn project(manifests: &[(&str, &str)]) -> TempDir {
    let mut all = vec![("deployment.yaml", "deployments: [{path: app}]")];
    all.extend(manifests);
    files(&all)
}

fn refused(dir: &TempDir, words: &str) -> Result<String> {
    let output = weir(dir.path(), words).output()?;
    assert_eq!(output.status.code(), Some(1), "{words}");
    Ok(stderr(&output))
}

#[test]
fn all_failing_manifests_are_named() -> Result<()> {
    let (one, two) = (map("{{ one }}"), map("{{ two }}"));
    let dir = project(&[
        ("app/1.yaml", &one),
        ("app/sub/2.yaml", &two),
        ("app/3.yaml", &map("x")),
    ]);
    let error = refused(&dir, RENDER)?;
    for part in [
        "2 errors: ",
        "'app/1.yaml'",
        "'one' is undefined",
        "'app/sub/2.yaml'",
        "'two' is undefined",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    Ok(())
}

#[test]
fn failing_condition_is_quoted() -> Result<()> {
    for project in [
        "deployments: [{path: app, when: 1 +}]",
        "vars: [{values: {a: 1}, when: 1 +}]\ndeployments: [{path: app}]",
        "deployments: [{include: sub}]",
    ] {
        let dir = files(&[
            ("deployment.yaml", project),
            ("app/m.yaml", &map("x")),
            ("sub/deployment.yaml", "when: 1 +"),
        ]);
        let error = refused(&dir, RENDER)?;
        assert!(
            error.contains("unable to render conditional '1 +'"),
            "{project}: {error}"
        );
    }
    Ok(())
}

#[test]
fn all_failing_includes_are_named() -> Result<()> {
    let dir = files(&[
        (
            "deployment.yaml",
            "deployments: [{include: one}, {path: app, when: 1 +}, {include: gone}, {path: app}]",
        ),
        (
            "one/deployment.yaml",
            "deployments: [{path: '{{ undefined_one }}'}]",
        ),
        ("app/m.yaml", &map("x")),
    ]);
    let error = refused(&dir, RENDER)?;
    for part in [
        "3 errors: ",
        "'undefined_one' is undefined",
        "conditional '1 +'",
        "gone does not exist",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    Ok(())
}

#[test]
fn image_behind_text_is_refused() -> Result<()> {
    let words = format!("{RENDER} -F i=one:1");
    let dir = project(&[("app/m.yaml", &map("{{ images.get_image(\"i\") }}-x"))]);
    assert!(printed(weir(dir.path(), &words))?.contains("a: one:1-x"));
    let dir = project(&[("app/m.yaml", &map("x-{{ images.get_image(\"i\") }}"))]);
    let error = refused(&dir, &words)?;
    let expected = "postprocessing kustomize objects for app failed: ConfigMap/m: data[\"a\"]: ";
    assert!(error.contains(expected), "{error}");
    Ok(())
}

#[test]
fn get_image_accepts_latest_version() -> Result<()> {
    let image = "{{ images.get_image(\"i\", latest_version=version.semver()) }}";
    let dir = project(&[("app/m.yaml", &map(image))]);
    let output = weir(dir.path(), &format!("{RENDER} -F i=one:1")).output()?;
    assert!(String::from_utf8_lossy(&output.stdout).contains("a: one:1"));
    let messages = stderr(&output);
    assert!(messages.contains("latest_version is deprecated"), "{messages}");
    Ok(())
}

#[test]
fn tags_of_an_included_project_come_before_those_of_its_include() -> Result<()> {
    let dir = files(&[
        (
            "deployment.yaml",
            "tags: [root]\ndeployments: [{include: sub, tags: [outer]}]",
        ),
        (
            "sub/deployment.yaml",
            "tags: [inner, outer]\ndeployments: [{path: app, tags: [item, root]}]",
        ),
        ("sub/app/m.yaml", &map("x")),
    ]);
    let text = printed(weir(dir.path(), RENDER))?;
    for (number, tag) in ["inner", "outer", "root", "item"].iter().enumerate() {
        assert!(
            text.contains(&format!("kluctl.io/tag-{number}: {tag}\n")),
            "{text}"
        );
    }
    Ok(())
}

#[test]
fn arguments_of_flags_environment_and_files_are_merged() -> Result<()> {
    let value = "{{ args.flag }} {{ args.both }} {{ args.first }} {{ args.second }} {{ args.nested.a }}{{ args.nested.b }}";
    let dir = project(&[
        ("app/m.yaml", &map(value)),
        ("one.yaml", "nested: {a: file}\nboth: file\n"),
    ]);
    let mut command = weir(
        dir.path(),
        &format!(
            "{RENDER} -a flag=flag -a second=flag -a both=flag -a nested.b=flag --args-from-file one.yaml"
        ),
    );
    command
        .env("KLUCTL_ARG", "flag=environment")
        .env("KLUCTL_ARG_1", "first=environment")
        .env("KLUCTL_ARG_2", "second=environment");
    let text = printed(command)?;
    assert!(text.contains("a: flag file environment flag fileflag"), "{text}");
    let error = refused(&dir, &format!("{RENDER} -a f=@gone.yaml"))?;
    assert!(
        error.contains("open gone.yaml: no such file or directory"),
        "{error}"
    );
    let error = refused(&dir, &format!("{RENDER} --args-from-file gone.yaml"))?;
    assert!(error.contains("gone.yaml does not exist"), "{error}");
    Ok(())
}
