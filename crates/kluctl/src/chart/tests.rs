use super::*;

fn read(fields: &str) -> Result<HelmChart, String> {
    let indented: String = fields.lines().map(|line| format!("  {line}\n")).collect();
    let file = TreePath::parse("app/helm-chart.yaml").unwrap();
    HelmChart::read(
        &file,
        format!("helmChart:\n{indented}").as_bytes(),
        &Budget::default(),
    )
    .map_err(|error| error.to_string())
}

#[test]
fn helm_chart_yaml_reads_all_fields() {
    let fields = "repo: https://charts.example.com/stable\nchartName: redis\nchartVersion: 17.4.0\n\
                  updateConstraints: ~17\nreleaseName: cache\nnamespace: caching\noutput: out.yaml\n\
                  skipCRDs: true\nskipUpdate: true\nskipPrePull: true\ncredentialsId: stable\nhelmVersion: 3\n";
    let expected = HelmChart {
        source: ChartSource::Repo {
            url: "https://charts.example.com/stable".to_owned(),
            chart: "redis".to_owned(),
            version: "17.4.0".to_owned(),
            credentials_id: Some("stable".to_owned()),
        },
        update_constraints: Some("~17".to_owned()),
        release_name: "cache".to_owned(),
        namespace: Some("caching".to_owned()),
        output: "out.yaml".to_owned(),
        skip_crds: true,
        skip_update: true,
        skip_pre_pull: true,
        helm_version: HelmVersion::V3,
    };
    assert_eq!(read(fields), Ok(expected));
    let least = read("path: ../chart\nreleaseName: r\n").unwrap();
    assert_eq!(least.output, "helm-rendered.yaml");
    assert_eq!((least.namespace, least.skip_crds), (None, false));
    assert_eq!(least.helm_version, HelmVersion::V4);
}

#[test]
fn conflicting_chart_fields_are_refused() {
    let repo = "repo: https://a.b/c\n";
    for (fields, expected) in [
        ("", "helmChart is a map"),
        (
            "releaseName: r",
            "app/helm-chart.yaml:2: either repo, path or git must be specified",
        ),
        (
            "repo: x\npath: y",
            "app/helm-chart.yaml:2: only one of repo, path and git can be specified",
        ),
        (repo, "chartVersion must be specified when repo is specified"),
        (
            "repo: https://a.b/c\nchartVersion: 1.0.0",
            "chartName must be specified when repo is normal Helm repo",
        ),
        (
            "repo: oci://a.b/c\nchartVersion: 1.0.0\nchartName: c",
            "app/helm-chart.yaml:4: chartName can not be specified when repo is a OCI url",
        ),
        (
            "path: x\nchartName: y",
            "chartName can not be specified for local Helm charts",
        ),
        (
            "path: x\nchartVersion: 1.0.0",
            "chartVersion can not be specified for local Helm charts",
        ),
        (
            "path: x\nupdateConstraints: ~1",
            "updateConstraints can not be specified for local Helm charts",
        ),
        ("path: /x", "absolute path is not allowed in helm-chart.yaml"),
        (
            "git: {url: https://a.b/c}\nchartVersion: 1.0.0",
            "chartVersion can not be specified for git Helm charts",
        ),
        ("git: {ref: {tag: x}}", "helmChart.git.url is required"),
        (
            "git: {url: https://a.b/c, ref: {tag: x, branch: y}}",
            "only one of branch, tag and commit",
        ),
        (
            "git: {url: https://a.b/c, ref: main}",
            "must be given as a map with branch, tag or commit",
        ),
        ("path: x", "helmChart.releaseName is required"),
        (
            "path: x\nreleaseName: r\nhelmVersion: '2'",
            "app/helm-chart.yaml:4: helmChart.helmVersion: \"2\" is not a supported version of Helm: use \"3\" or \"4\"",
        ),
        ("path: x\nrelName: y", "unknown field \"helmChart.relName\""),
    ] {
        let error = read(fields).unwrap_err();
        assert!(error.contains(expected), "{fields}: {error}");
    }
}

#[test]
fn credentials_id_is_a_problem_of_oci_charts_only() {
    for (fields, is_problem) in [
        (
            "repo: oci://a.b/c\nchartVersion: '1'\nreleaseName: r\ncredentialsId: y",
            true,
        ),
        ("repo: oci://a.b/c\nchartVersion: '1'\nreleaseName: r", false),
        (
            "repo: https://a.b\nchartName: c\nchartVersion: '1'\nreleaseName: r\ncredentialsId: y",
            false,
        ),
    ] {
        let chart = read(fields).unwrap();
        assert_eq!(chart.source.login_problem().is_some(), is_problem, "{fields}");
    }
}

#[test]
fn pulled_chart_paths_follow_their_urls() {
    for (fields, name, dir) in [
        (
            "repo: https://Charts.example.com:443/Stable/\nchartName: redis\nchartVersion: 1.2.3",
            "redis",
            "https_charts.example.com/stable/redis/1.2.3",
        ),
        (
            "repo: http://u:p@charts.example.com:8080\nchartName: a\nchartVersion: 1.2.3",
            "a",
            "http_8080_charts.example.com/a/1.2.3",
        ),
        (
            "repo: oci://ghcr.io/Org/charts/podinfo\nchartVersion: 6.0.0",
            "podinfo",
            "oci_ghcr.io/org/charts/podinfo/6.0.0",
        ),
        (
            "git: {url: 'https://Git.example.com/Org/Charts.git', subDir: Small, ref: {tag: v1}}",
            "Small",
            "git_https_git.example.com/org/charts/small/refs/tags/v1",
        ),
        (
            "git: 'git@git.example.com:org/charts.git'",
            "charts",
            "git_ssh_git.example.com/org/charts/HEAD",
        ),
        (
            "git: {url: 'ssh://git@git.example.com:2222/org/charts', ref: {ref: refs/heads/main}}",
            "charts",
            "git_ssh_2222_git.example.com/org/charts/refs/heads/main",
        ),
    ] {
        let chart = read(&format!("{fields}\nreleaseName: r\n")).unwrap();
        assert_eq!(chart.source.name(), Some(name), "{fields}");
        let found = chart.source.versioned_dir().unwrap().unwrap();
        assert_eq!(found.as_str(), dir, "{fields}");
    }
    let local = read("path: x\nreleaseName: r").unwrap().source;
    assert_eq!(
        (local.name(), local.version(), local.dir().unwrap()),
        (None, None, None)
    );
}

#[test]
fn chart_urls_with_parent_paths_are_refused() {
    for fields in [
        "repo: https://a.b/c\nchartName: ../../x\nchartVersion: 1.0.0",
        "repo: https://a.b/c\nchartName: x\nchartVersion: ../1.0.0",
        "repo: ftp://u:secret@a.b/c\nchartName: x\nchartVersion: 1.0.0",
        "repo: a.b/c\nchartName: x\nchartVersion: 1.0.0",
        "git: {url: https://a.b/c, subDir: a/../../b}",
    ] {
        let found = read(&format!("{fields}\nreleaseName: r\n"));
        let found = found.and_then(|chart| chart.source.versioned_dir().map_err(|error| error.to_string()));
        let error = found.unwrap_err();
        assert!(!error.contains("secret"), "{error}");
    }
}
