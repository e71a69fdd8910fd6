//! `weir validate --offline`.

use tempfile::TempDir;

use crate::{
    commands::{stderr, weir},
    program::files,
};

const SOURCE: &str = "\
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: repo, namespace: apps}
spec: {interval: 5m, url: 'https://example.com/repo'}
";
const OTHER: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

fn validated(dir: &TempDir, words: &str) -> (Option<i32>, String, String) {
    let output = weir(dir.path(), &format!("validate --offline {words}"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), text, stderr(&output))
}

#[test]
fn valid_manifests_are_counted() {
    let dir = files(&[
        ("apps/repo.yaml", &format!("{OTHER}---\n{SOURCE}")),
        (
            "apps/deep/repo.json",
            "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": []}",
        ),
        ("apps/.git/broken.yaml", "a: ["),
        ("apps/notes.txt", "a: ["),
    ]);
    let (code, text, told) = validated(&dir, "apps");
    assert_eq!((code, text.as_str()), (Some(0), ""), "{told}");
    assert!(
        told.contains("objects that are valid: 1, of other kinds that were left out: 1"),
        "{told}"
    );
}

#[test]
fn findings_name_file_line_document_and_field() {
    let wrong = SOURCE.replace("interval: 5m", "interval: 5, branch: main");
    let dir = files(&[
        ("a.yaml", &format!("{OTHER}---\n{wrong}")),
        ("b.yaml", "a: [\n"),
        (
            "c.yaml",
            &SOURCE.replace("source.toolkit.fluxcd.io/v1", "source.toolkit.fluxcd.io/v7"),
        ),
        ("d.yaml", SOURCE),
    ]);
    let (code, text, told) = validated(&dir, "a.yaml b.yaml c.yaml d.yaml");
    assert_eq!(code, Some(1), "{text}");
    for part in [
        "a.yaml:5: document 2: GitRepository/apps/repo: spec.interval: Invalid value: ",
        "a.yaml:5: document 2: GitRepository/apps/repo: spec.branch: unknown field \"spec.branch\"\n",
        "b.yaml: ",
        "c.yaml:1: document 1: GitRepository/apps/repo: apiVersion: unknown version \"v7\": supported versions: v1",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains("d.yaml"), "{text}");
    assert!(told.contains("3 of 4 objects are invalid"), "{told}");
}

#[test]
fn paths_are_for_offline_alone() {
    let dir = files(&[("a.yaml", SOURCE)]);
    let (code, _, told) = validated(&dir, "");
    assert!(
        code == Some(1) && told.contains("--offline needs files or directories with manifests"),
        "{told}"
    );
    let (code, _, told) = validated(&dir, "missing.yaml");
    assert!(
        code == Some(1) && told.contains("missing.yaml: No such file"),
        "{told}"
    );
    let output = weir(dir.path(), "validate a.yaml").output().unwrap();
    assert!(
        stderr(&output).contains("paths of manifests need --offline"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn standard_input_is_checked_and_the_result_is_json_or_yaml() {
    let dir = files(&[("in.yaml", &SOURCE.replace("https://", "http//"))]);
    for format in ["json", "yaml"] {
        let input = std::fs::File::open(dir.path().join("in.yaml")).unwrap();
        let mut command = weir(dir.path(), &format!("validate --offline - -o {format}"));
        let output = command.stdin(input).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let result = match format {
            "json" => serde_json::from_str(&text).unwrap(),
            _ => {
                let budget = tree::Budget::new(tree::Limits::default());
                yaml::read::goyaml(&text, &budget).unwrap().value.to_json()
            }
        };
        assert_eq!(
            (&result["valid"], &result["invalid"], &result["others"]),
            (&0.into(), &1.into(), &0.into())
        );
        let finding = &result["findings"][0];
        for (field, expected) in [
            ("file", "stdin"),
            ("object", "GitRepository/apps/repo"),
            ("field", "spec.url"),
        ] {
            assert_eq!(finding[field], expected, "{text}");
        }
        assert_eq!(
            (&finding["line"], &finding["document"]),
            (&1.into(), &1.into()),
            "{text}"
        );
    }
}

#[test]
fn flags_of_projects_and_clusters_conflict_with_offline() {
    let dir = files(&[("a.yaml", SOURCE)]);
    for flag in ["-t prod", "--wait 5m", "--render-output-dir out", "--context x"] {
        let (code, _, told) = validated(&dir, &format!("a.yaml {flag}"));
        assert!(
            code == Some(1) && told.contains("--offline[=<BOOL>]' cannot be used with '--"),
            "{flag}: {told}"
        );
    }
    let (code, _, told) = validated(&dir, "a.yaml --no-color");
    assert_eq!(code, Some(0), "{told}");
}
