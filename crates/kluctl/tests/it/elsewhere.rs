//! What projects take from other repositories, the cluster, servers and stores.

use std::sync::Arc;

use bytes::Bytes;
use kluctl::{
    Decrypt, Encrypted, Error, Fetched, GitReference, HttpAnswer, HttpRequest, Lookup, ObjectQuery,
    RemoteRef, Rendered, Request, SecretQuery, SourceAddress, Sources, VarsSources, Which,
};
use tree::{Budget, Mem, TreePath};
use yaml::Value;

use crate::support::render_files;

/// Files that are written in a test.
type Files = Vec<(&'static str, &'static str)>;

/// Repositories that are written in a test: address, reference, files.
struct Repositories(Vec<(&'static str, GitReference, Files)>);

impl Sources for Repositories {
    fn fetch(&self, address: &SourceAddress, _: &Budget) -> Result<Fetched, String> {
        let wanted = match address {
            SourceAddress::Git { reference, .. } => reference.clone(),
            SourceAddress::Oci { tag, .. } => GitReference::Tag(tag.clone().unwrap_or_default()),
        };
        let found = self
            .0
            .iter()
            .find(|(url, reference, _)| *url == address.url() && *reference == wanted);
        let (.., files) = found.ok_or_else(|| format!("no {wanted}"))?;
        let files = files.iter().map(|(path, text)| (*path, (*text).to_owned()));
        Ok(Fetched {
            tree: Arc::new(Mem::from_files(files).unwrap()),
            commit: None,
        })
    }

    fn references(&self, url: &str, _: &Budget) -> Result<Vec<RemoteRef>, String> {
        let of_url = self.0.iter().filter(|(known, ..)| *known == url);
        Ok(of_url
            .map(|(_, reference, _)| RemoteRef {
                name: reference.to_string(),
                commit: "c0ffee".to_owned(),
                target: None,
            })
            .collect())
    }
}

/// A world with a few things in it.
struct World;

fn yaml(text: &str) -> Value {
    yaml::read::goyaml(text, &Budget::default()).unwrap().value
}

impl VarsSources for World {
    fn environment(&self, name: &str) -> Result<Option<String>, Lookup> {
        Ok(match name {
            "NUMBER" => Some("4".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    fn objects(&self, query: &ObjectQuery, _: &Budget) -> Result<Vec<Value>, Lookup> {
        let objects = [
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: ns, labels: {a: b, x: z}}, data: {v: '2'}}",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: ns, labels: {a: b}}, data: {v: '1', k: 'cm: \"{{ who }}\"', s: '42'}}",
            "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, data: {k: c2VjOiB5ZXM=}}",
        ];
        let matches = |object: &Value| {
            object.get("kind").and_then(Value::as_str) == Some(&query.kind)
                && match &query.which {
                    Which::Name(name) => {
                        object.pointer(&["metadata", "name"]).and_then(Value::as_str) == Some(name)
                    }
                    Which::Labels(labels) => labels.iter().all(|(key, value)| {
                        object
                            .pointer(&["metadata", "labels", key])
                            .and_then(Value::as_str)
                            == Some(value)
                    }),
                }
        };
        Ok(objects.into_iter().map(yaml).filter(matches).collect())
    }

    fn http(&self, request: &HttpRequest, _: &Budget) -> Result<HttpAnswer, Lookup> {
        let (status, body) = match request.url.as_str() {
            "https://x/v?key=s3cret" => (
                200,
                format!("{{\"m\": \"{}\", \"in\": \"{{a: 1}}\"}}", request.method),
            ),
            "https://x/gone" => (404, String::new()),
            _ => (500, String::new()),
        };
        Ok(HttpAnswer {
            status,
            body: body.into(),
        })
    }

    fn secret(&self, query: &SecretQuery, _: &Budget) -> Result<String, Lookup> {
        match query {
            SecretQuery::Aws { name, profile, .. } if name == "there" => Ok(format!(
                "aws: {} {{{{ who }}}}",
                profile.as_deref().unwrap_or_default()
            )),
            SecretQuery::Vault { path, .. } if path == "there" => Ok("{\"vault\": 1}".to_owned()),
            _ => Err(Lookup::Missing("no such secret".to_owned())),
        }
    }
}

fn request(repositories: Repositories) -> Request {
    Request {
        sources: Some(Arc::new(repositories)),
        vars: Some(Arc::new(World)),
        ..Request::default()
    }
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  v: \"{{ v }}\"\n";

/// Renders a deployment with one item `app`, whose ConfigMap shows `v`.
fn render(deployment: &str, repositories: Repositories) -> Result<Rendered, Error> {
    let files = [("deployment.yaml", deployment), ("app/m.yaml", MAP)];
    render_files(&files, &request(repositories))
}

fn values(rendered: &Rendered) -> Vec<&str> {
    let value = |object| Value::pointer(object, &["data", "v"]).and_then(Value::as_str);
    rendered.objects().filter_map(value).collect()
}

/// What an expression gives with these sources of variables.
fn v(sources: &str, expression: &str) -> String {
    let deployment = format!("vars:\n- values: {{who: me}}\n{sources}\ndeployments: [{{path: app}}]\n");
    let map = MAP.replace(" v ", &format!(" {expression} "));
    let files = [("deployment.yaml", deployment.as_str()), ("app/m.yaml", &map)];
    match render_files(&files, &request(Repositories(Vec::new()))) {
        Ok(rendered) => values(&rendered).join(","),
        Err(error) => {
            let error = error.to_string();
            assert!(!error.contains("s3cret"), "{error}");
            error
        }
    }
}

#[test]
fn variables_come_from_outside() {
    for (sources, expression, expected) in [
        (
            "- clusterConfigMap: {name: one, namespace: ns, key: k}",
            "cm",
            "me",
        ),
        (
            "- clusterConfigMap: {name: one, namespace: ns, key: s, targetPath: a.b}",
            "a.b + 1",
            "43",
        ),
        (
            "- clusterConfigMap: {labels: {x: z}, namespace: ns, key: v, targetPath: a}",
            "a",
            "2",
        ),
        ("- clusterSecret: {name: s, namespace: ns, key: k}", "sec", "True"),
        (
            "- clusterConfigMap: {name: nope, namespace: ns, key: k}\n  ignoreMissing: true",
            "cm | default('none')",
            "none",
        ),
        (
            "- clusterObject: {kind: ConfigMap, labels: {a: b}, list: true, path: metadata.name}\n  targetPath: found",
            "found | join('-')",
            "one-two",
        ),
        (
            "- clusterObject: {kind: ConfigMap, name: one, path: data.k, render: true, parseYaml: true}\n  targetPath: found",
            "found.cm",
            "me",
        ),
        (
            "- systemEnvVars: {a: {b: NUMBER}, c: 'NOPE:7', d: 'NOPE:', e: EMPTY}",
            "(a.b + c) ~ d ~ e",
            "11",
        ),
        (
            "- systemEnvVars: {a: NOPE}\n  ignoreMissing: true",
            "a | default('none')",
            "none",
        ),
        (
            "- http: {url: 'https://x/v?key=s3cret', method: POST}",
            "m",
            "POST",
        ),
        ("- http: {url: 'https://x/v?key=s3cret', jsonPath: in}", "a", "1"),
        (
            "- http: {url: https://x/gone}\n  ignoreMissing: true",
            "m | default('none')",
            "none",
        ),
        (
            "- awsSecretsManager: {secretName: there, region: r, profile: p}",
            "aws",
            "p me",
        ),
        ("- vault: {address: 'https://x', path: there}", "vault", "1"),
    ] {
        assert_eq!(v(sources, expression), expected, "{sources}");
    }
}

#[test]
fn what_is_not_there_is_told() {
    for (sources, expected) in [
        (
            "- clusterConfigMap: {name: nope, namespace: ns, key: k}",
            "vars[1]: configmaps \"nope\" not found",
        ),
        (
            "- clusterConfigMap: {name: one, namespace: ns, key: nope}",
            "key nope not found in ns/ConfigMap/one on cluster",
        ),
        (
            "- clusterConfigMap: {name: one, namespace: ns, key: s}",
            "from kubernetes object ns/ConfigMap/one and key s: value is not a YAML dictionary",
        ),
        (
            "- clusterSecret: {labels: {q: r}, namespace: ns, key: s}",
            "no object found with labels map[q:r]",
        ),
        (
            "- clusterConfigMap: {labels: {a: b}, namespace: ns, key: v}",
            "found more than one objects with labels map[a:b]",
        ),
        (
            "- clusterObject: {kind: ConfigMap, name: one, path: data.nope}\n  targetPath: found",
            "and json path data.nope: json path not found",
        ),
        (
            "- clusterObject: {kind: ConfigMap, name: one, path: data.*}\n  targetPath: found",
            "json path resulted in multiple matches",
        ),
        (
            "- systemEnvVars: {a: [NUMBER]}",
            "failed to set value for $[\"a\"][0]: key is not a string",
        ),
        ("- systemEnvVars: {a: 1}", "value at $[\"a\"] is not a string"),
        (
            "- http: {url: 'https://x/bad?key=s3cret'}",
            "failed with status code 500",
        ),
        ("- gcpSecretManager: {secretName: x}", "no such secret"),
        (
            "- git: {url: https://x/y, path: p}",
            "failed to fetch https://x/y: no HEAD",
        ),
    ] {
        let error = v(sources, "1");
        assert!(error.contains(expected), "{error}\nexpected {expected}");
    }
}

#[test]
fn results_tell_what_sources_gave_and_whether_it_is_secret() {
    let text = "vars:\n- clusterSecret: {name: s, namespace: ns, key: k}\n- values: {v: 1}\n- values: {v: 2}\n  when: 'false'\ndeployments:\n- path: app\n- path: app\n  when: v == 3\n- barrier: true\n";
    let rendered = render(text, Repositories(Vec::new())).unwrap();
    let expected = yaml(
        "vars:\n- {clusterSecret: {name: s, namespace: ns, key: k}, renderedVars: {sec: true}, renderedSensitive: true}\n\
         - {values: {v: 1}, renderedVars: {v: 1}}\n- {values: {v: 2}, when: 'false'}\n\
         deployments:\n- {path: app, tags: [app], renderedObjects: [{version: v1, kind: ConfigMap, name: m}]}\n\
         - {path: app, tags: [app], when: v == 3}\n- {barrier: true}\n",
    );
    assert_eq!(rendered.deployment(), expected);
}

fn library() -> Repositories {
    let files = vec![
        ("lib/.kluctl-library.yaml", "args: [{name: a, default: 1}]"),
        ("lib/deployment.yaml", "deployments: [{path: c}, {path: c}]"),
        (
            "lib/c/m.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  v: \"{{ args.a }}{{ v | default('-') }}{% include 'note' %}\"\n",
        ),
        ("lib/note", "own"),
        ("app/note", "own"),
        (
            "app/deployment.yaml",
            "deployments: [{path: ../lib/c, vars: [{values: {args: {a: 9}}}]}]",
        ),
    ];
    let first = ("https://x/lib.git", GitReference::Head, files.clone());
    let tagged = (
        "https://x/lib.git",
        GitReference::Tag("v1".to_owned()),
        files.clone(),
    );
    Repositories(vec![
        first,
        tagged,
        ("oci://r/lib", GitReference::Tag("t".to_owned()), files),
    ])
}

#[test]
fn projects_come_from_repositories_and_registries() {
    let text = "vars: [{values: {v: x}}]\ndeployments:\n- path: app\n- git: {url: https://x/lib.git, subDir: lib}\n  args: {a: 2}\n  tags: [t]\n- git: {url: https://x/lib.git, subDir: app, ref: {tag: v1}}\n- oci: {url: oci://r/lib, subDir: lib, ref: {tag: t}}\n  passVars: true\n";
    let mut asked = request(library());
    asked.keep_files = true;
    let files = [("deployment.yaml", text), ("app/m.yaml", MAP), ("note", "root")];
    let rendered = render_files(&files, &asked).unwrap();
    // Templates see the files of their own source.
    assert_eq!(
        values(&rendered),
        ["x", "2-own", "2-own", "9xown", "1xown", "1xown"]
    );
    let tags = |object: &Value| {
        object
            .pointer(&["metadata", "labels", "kluctl.io/tag-0"])
            .cloned()
    };
    let tags: Vec<_> = rendered
        .objects()
        .map(|object| tags(object).unwrap_or_default())
        .collect();
    assert_eq!(tags[1], Value::from("t"));
    let files = rendered.files.unwrap();
    let has = |path: &str| tree::Tree::is_file(&*files, &tree::TreePath::parse(path).unwrap());
    for path in [
        "0/app/m.yaml",
        "0/app/.rendered.yml",
        "1/lib/c/m.yaml",
        "1/lib/c-1/m.yaml",
        "3/lib/c-1/.rendered.yml",
    ] {
        assert!(has(path), "{path}");
    }
    let error = render(
        "deployments: [{git: {url: https://x/lib.git, subDir: nope}}]",
        library(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("has no directory nope"), "{error}");
    let broken = render("deployments: [{git: {url: https://x/lib.git}}]", library()).unwrap_err();
    assert!(
        broken
            .to_string()
            .starts_with("https://x/lib.git: deployment.yml not found"),
        "{broken}"
    );
}

#[test]
fn files_of_branches_become_values() {
    let branch = |name: &str, text| {
        let files = vec![("envs/a.yaml", text), ("envs/b.txt", "{{ who }}"), ("other", "x")];
        ("https://x/y", GitReference::Branch(name.to_owned()), files)
    };
    let repositories = || {
        Repositories(vec![
            branch("feat-2", "num: 2"),
            branch("feat-1", "num: 1"),
            branch("main", "num: 0"),
        ])
    };
    let text = "vars:\n- values: {who: me}\n- gitFiles:\n    url: https://x/y\n    ref: {branch: feat-.*}\n    files:\n    - {glob: envs/*.yaml, parseYaml: true}\n    - {glob: '**', render: true}\n  targetPath: g\ndeployments: [{path: app}]\n";
    let shown = "{% for m in g %}{{ m.ref.branch }}={{ m.filesByPath['envs/a.yaml'].parsed.num }}\
        {{ m.filesTree.envs['b.txt'].content }}{{ m.files | length }} {% endfor %}";
    let map = MAP.replace("{{ v }}", shown);
    let files = [("deployment.yaml", text), ("app/m.yaml", map.as_str())];
    let rendered = render_files(&files, &request(repositories())).unwrap();
    assert_eq!(values(&rendered), ["feat-1=1me3 feat-2=2me3 "]);
    let none = text.replace("feat-.*", "nope");
    let error = render(&none, repositories()).unwrap_err();
    assert!(
        error.to_string().contains("no ref of https://x/y matches"),
        "{error}"
    );
}

#[test]
fn older_projects_keep_targets_and_clusters_elsewhere() {
    let branch = |name: &str, text| {
        (
            "https://x/targets",
            GitReference::Branch(name.to_owned()),
            vec![("target-config.yml", text)],
        )
    };
    let clusters = vec![(
        "clusters/kind.yml",
        "cluster: {name: kind, context: ctx, dns: example.com}",
    )];
    let deployment = vec![
        ("d/deployment.yml", "deployments: [{path: app}]"),
        ("d/app/m.yaml", MAP),
    ];
    let repositories = || {
        Repositories(vec![
            branch("env-a", "args: {size: 1}\nimages: [{image: i, resultImage: i:1}]"),
            branch("env-b", "args: {other: 1}"),
            (
                "https://x/clusters",
                GitReference::Branch("main".to_owned()),
                clusters.clone(),
            ),
            ("https://x/deployment", GitReference::Head, deployment.clone()),
        ])
    };
    let project = "clusters: {project: {url: https://x/clusters, ref: main}}\ndeployment: {project: {url: https://x/deployment, subDir: d}}\n\
        targets:\n- name: \"t-{{ target.targetConfig.ref }}\"\n  cluster: kind\n  dynamicArgs: [{name: size, pattern: '[0-9]'}]\n  \
        targetConfig: {project: https://x/targets, refPattern: env-.*}\n";
    let files = [(".kluctl.yml", project)];
    let mut asked = request(repositories());
    asked.target = Some("t-env-a".to_owned());
    asked.args = yaml("{v: '{{ cluster.dns }}'}").as_map().unwrap().clone();
    let rendered = render_files(&files, &asked).unwrap_err();
    assert!(rendered.to_string().contains("'v' is undefined"), "{rendered}");
    let with_vars = vec![
        (
            "d/deployment.yml",
            "vars: [{values: {v: '{{ cluster.dns }} {{ args.size }}'}}]\ndeployments: [{path: app}]",
        ),
        ("d/app/m.yaml", MAP),
    ];
    let mut all = repositories();
    all.0.pop();
    all.0
        .push(("https://x/deployment", GitReference::Head, with_vars));
    asked.sources = Some(Arc::new(all));
    let rendered = render_files(&files, &asked).unwrap();
    assert_eq!(values(&rendered), ["example.com 1"]);
    assert_eq!(rendered.target.images.len(), 1);
    // The other branch sets what it may not set.
    assert!(
        rendered.warnings[0].contains("arg other is not allowed for target"),
        "{:?}",
        rendered.warnings
    );
}

/// Shows what lies in the repository that a file is of.
struct Origin;

impl Decrypt for Origin {
    fn decrypt(&self, file: Encrypted<'_>) -> Result<Option<Bytes>, String> {
        Ok(Some(match file.sources.read(file.path) {
            Ok(bytes) => bytes,
            Err(_) => "made: true".into(),
        }))
    }
}

#[test]
fn encrypted_files_are_of_their_own_repository() {
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
fn encrypted_files_of_branches_are_rendered_before_and_secret() {
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

/// Every file is of the same commit, but those that are new.
#[derive(Debug)]
struct Commits;

impl kluctl::History for Commits {
    fn latest_commit(&self, path: &TreePath) -> Result<Option<String>, String> {
        match path.as_str() {
            "app/m.yaml" | "v.txt" => Ok(Some("c0ffee00".to_owned())),
            "app/new" => Ok(None),
            other => Err(format!("{other} is none")),
        }
    }
}

#[test]
fn templates_ask_for_the_commits_of_their_project() {
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
fn included_repositories_do_not_see_the_history_of_the_project() {
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
