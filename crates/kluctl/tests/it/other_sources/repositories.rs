//! Projects, clusters, targets and files of other repositories.

use super::*;

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
fn includes_fetch_git_and_oci_projects() {
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
fn git_files_loads_values_from_matching_branches() {
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
    let template = "{% for m in g %}{{ m.ref.branch }}={{ m.filesByPath['envs/a.yaml'].parsed.num }}\
        {{ m.filesTree.envs['b.txt'].content }}{{ m.files | length }} {% endfor %}";
    let map = MAP.replace("{{ v }}", template);
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
fn legacy_projects_load_external_targets_and_clusters() {
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
    // The other branch sets a forbidden argument.
    assert!(
        rendered.warnings[0].contains("arg other is not allowed for target"),
        "{:?}",
        rendered.warnings
    );
}
