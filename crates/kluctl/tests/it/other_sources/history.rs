//! The commits of the project.

use tree::TreePath;

use super::*;

#[derive(Debug)]
struct Commits;

impl kluctl::History for Commits {
    fn latest_commit(&self, path: &TreePath) -> Result<Option<String>, kluctl::HistoryError> {
        match path.as_str() {
            "app/m.yaml" | "v.txt" => Ok(Some("c0ffee00".to_owned())),
            "app/new" => Ok(None),
            other => Err(kluctl::HistoryError::new(format!("{other} is none"))),
        }
    }
}

#[test]
fn templates_read_the_commits_of_their_project() {
    let render = |asks: &str, known: bool| {
        let map = MAP.replace("{{ v }}", &format!("{{{{ load_latest_git_commit({asks}) }}}}"));
        let files = [
            ("deployment.yaml", "deployments: [{path: app}]"),
            ("app/m.yaml", &*map),
            ("app/new", "x"),
            ("v.txt", ""),
        ];
        let mut asked = request(Repositories(Vec::new()));
        asked.history = known.then(|| Arc::new(Commits) as _);
        match render_files(&files, &asked) {
            Ok(rendered) => values(&rendered).join(","),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(render("'m.yaml'", true), "c0ffee00");
    assert_eq!(render("'./v.txt', sha_len=4", true), "c0ff");
    for (asks, known, expected) in [
        ("'new'", true, "No commits found for path: app/new"),
        ("'nope'", true, "FileNotFoundError: nope not found"),
        ("'m.yaml'", false, "isn't given to this render"),
    ] {
        let error = render(asks, known);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn included_repositories_cannot_read_the_project_history() {
    let asking = "{{ load_latest_git_commit('m.yaml') }}";
    let map: &'static str = MAP.replace("{{ v }}", asking).leak();
    let include = vec![
        ("deployment.yaml", "deployments: [{path: app}]"),
        ("app/m.yaml", map),
    ];
    let mut asked = request(Repositories(vec![("https://x/a", GitReference::Head, include)]));
    asked.history = Some(Arc::new(Commits));
    let files = [
        ("deployment.yaml", "deployments: [{git: https://x/a}]"),
        ("app/m.yaml", MAP),
    ];
    let error = render_files(&files, &asked).unwrap_err().to_string();
    assert!(
        error.starts_with("https://x/a: ") && error.contains("isn't given to this render"),
        "{error}"
    );
}
