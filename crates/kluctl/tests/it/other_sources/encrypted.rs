//! Encrypted files of several repositories.

use bytes::Bytes;
use kluctl::{CallbackError, Decrypt, Encrypted};

use super::*;

/// Decrypts a file to the content at its path in its repository.
struct Origin;

impl Decrypt for Origin {
    fn decrypt(&self, file: Encrypted<'_>) -> Result<Option<Bytes>, CallbackError> {
        Ok(Some(match file.sources.read(file.path) {
            Ok(bytes) => bytes,
            Err(_) => "made: true".into(),
        }))
    }
}

#[test]
fn encrypted_files_are_compared_with_their_own_repository() {
    let sops = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: REPO}\nsops: \"{{ who }}\"\n";
    let (own, other) = (sops.replace("REPO", "own"), sops.replace("REPO", "other"));
    let other: &'static str = other.leak();
    let include = vec![
        ("deployment.yaml", "deployments: [{path: app}]"),
        ("app/m.yaml", other),
    ];
    let git = || Repositories(vec![("https://x/a", GitReference::Head, include.clone())]);
    // The second time, the files of an item go to another directory.
    let deployment =
        "vars: [{values: {who: me}}]\ndeployments: [{path: app}, {git: https://x/a}, {path: app}]";
    let files = [("deployment.yaml", deployment), ("app/m.yaml", &own)];
    let mut asked = request(git());
    asked.decrypt = Some(Arc::new(Origin));
    let rendered = render_files(&files, &asked).unwrap();
    assert_eq!(
        crate::support::names(&rendered),
        ["ConfigMap/-/own", "ConfigMap/-/other", "ConfigMap/-/own"]
    );
}

#[test]
fn encrypted_git_files_are_rendered_first_and_sensitive() {
    let files = vec![("a.yaml", "sops: {{ who }}"), ("b.yaml", "b: {{ who }}")];
    let git = Repositories(vec![("https://x/a", GitReference::Head, files)]);
    let text = |glob: &str| {
        format!(
            "vars:\n- values: {{who: me}}\n- gitFiles: {{url: https://x/a, files: [{{glob: {glob}, render: true}}]}}\n  targetPath: g\n\
             - values: {{v: '{{% raw %}}{{{{ g[0].files[0].content | length }}}}{{% endraw %}}'}}\ndeployments: [{{path: app}}]\n"
        )
    };
    let mut asked = request(git);
    asked.decrypt = Some(Arc::new(Origin));
    for (glob, shown, secret) in [("a.yaml", "15", true), ("b.yaml", "5", false)] {
        let deployment = text(glob);
        let files = [("deployment.yaml", deployment.as_str()), ("app/m.yaml", MAP)];
        let rendered = render_files(&files, &asked).unwrap();
        assert_eq!(values(&rendered), [shown]);
        let outline = format!("{:?}", rendered.outline);
        assert_eq!(outline.contains("renderedSensitive"), secret, "{outline}");
    }
}
