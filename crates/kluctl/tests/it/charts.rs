//! Helm charts in the items of a project.

use std::sync::{Arc, Mutex};

use kluctl::{CallbackError, ChartSource, Charts, ClusterView, PullChart, Request};
use tree::{Budget, Mem, Tree};
use yaml::Value;

use crate::support::{charts, names, render_files};

const CHART: &str = "apiVersion: v2\nname: small\nversion: 1.2.3\n";
const MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-{{ .Values.name }}\n";
const CRD: &str =
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: foos.x.io}\n";
const PULLED: &str = "repo: https://charts.example.com/stable\n  chartName: small\n  chartVersion: 1.2.3";
const AT: &str = ".helm-charts/https_charts.example.com/stable/small/1.2.3";

struct Project {
    files: Vec<(String, String)>,
    request: Request,
}

impl Project {
    fn new(chart_dir: &str, source: &str) -> Self {
        let mut project = Self {
            files: Vec::new(),
            request: Request {
                charts: charts(),
                ..Request::default()
            },
        };
        project.add("deployment.yaml", "deployments:\n- path: app\n");
        project.add(
            "app/helm-chart.yaml",
            &format!("helmChart:\n  {source}\n  releaseName: rel\n"),
        );
        for (path, text) in [
            ("Chart.yaml", CHART),
            ("values.yaml", "name: a\n"),
            ("crds/c.yaml", CRD),
            ("templates/map.yaml", MAP),
        ] {
            project.add(&format!("{chart_dir}/{path}"), text);
        }
        project
    }

    fn add(&mut self, path: &str, text: &str) {
        self.files.retain(|(known, _)| known != path);
        self.files.push((path.to_owned(), text.to_owned()));
    }

    fn with(mut self, path: &str, text: &str) -> Self {
        self.add(path, text);
        self
    }

    fn render(&self) -> Result<kluctl::Rendered, String> {
        let files: Vec<(&str, &str)> = self
            .files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        render_files(&files, &self.request).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn names(&self) -> Vec<String> {
        names(&self.render().unwrap())
    }
}

const BOTH: [&str; 2] = ["CustomResourceDefinition/-/foos.x.io", "ConfigMap/-/rel-a"];

#[test]
fn local_chart_renders_with_templated_values() {
    let local = || Project::new("charts/small", "path: ../charts/small");
    assert_eq!(local().names(), BOTH);
    let values = "name: {{ 'b' | upper }}\n";
    assert_eq!(
        local().with("app/helm-values.yml", values).names()[1],
        "ConfigMap/-/rel-B"
    );
    let skipped = "helmChart: {path: ../charts/small, releaseName: rel, skipCRDs: true}\n";
    assert_eq!(local().with("app/helm-chart.yaml", skipped).names(), [BOTH[1]]);
}

#[test]
fn chart_output_must_be_listed_in_the_kustomization() {
    let chart = "helmChart: {path: chart, releaseName: rel, output: out.yaml}\n";
    let project = || Project::new("app/chart", "path: chart").with("app/helm-chart.yaml", chart);
    let listed = "resources: [out.yaml]\nnamePrefix: x-\n";
    assert_eq!(
        project().with("app/kustomization.yaml", listed).names(),
        ["CustomResourceDefinition/-/foos.x.io", "ConfigMap/-/x-rel-a"]
    );
    let error = project()
        .with("app/kustomization.yml", "resources: []\n")
        .render()
        .unwrap_err();
    assert_eq!(
        error,
        "app/kustomization.yml does not include the rendered helm chart: out.yaml"
    );
    for output in ["sub/out.yaml", "out.txt"] {
        let chart = chart.replace("out.yaml", output);
        assert_eq!(
            project().with("app/helm-chart.yaml", &chart).names(),
            BOTH,
            "{output}"
        );
    }
    for output in ["../out.yaml", ".", "/out.yaml"] {
        let chart = chart.replace("out.yaml", &format!("'{output}'"));
        let error = project()
            .with("app/helm-chart.yaml", &chart)
            .render()
            .unwrap_err();
        assert!(error.contains("is not a file next to it"), "{error}");
    }
}

#[test]
fn chart_hooks_come_last_and_tests_are_skipped() {
    let hook = |event: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: t, annotations: {{helm.sh/hook: '{event}'}}}}\n"
        )
    };
    let project = |event: &str| {
        Project::new("app/chart", "path: chart").with("app/chart/templates/hook.yaml", &hook(event))
    };
    assert_eq!(project("test").names(), BOTH);
    let mut all = BOTH.to_vec();
    all.push("Pod/-/t");
    assert_eq!(project("pre-install,post-delete").names(), all);
}

#[test]
fn chart_objects_default_to_the_release_namespace() {
    let chart = "helmChart: {path: chart, releaseName: rel, namespace: '{{ \"n\" }}s'}\n";
    let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n";
    let own = "apiVersion: v1\nkind: Secret\nmetadata: {name: own, namespace: x}\n";
    let mut rendered = Project::new("app/chart", "path: chart")
        .with("app/helm-chart.yaml", chart)
        .with("app/chart/templates/list.yaml", list)
        .with("app/chart/templates/own.yaml", own)
        .with(
            "app/plain.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\n",
        )
        .render()
        .unwrap();
    kluctl::fix_namespaces(
        &mut rendered,
        &|_, kind| {
            Some(match kind {
                "CustomResourceDefinition" => kluctl::Scope::Cluster,
                _ => kluctl::Scope::Namespaced,
            })
        },
        "default",
    );
    let mut found = names(&rendered);
    found.sort();
    assert_eq!(
        found,
        [
            "ConfigMap/ns/rel-a",
            "CustomResourceDefinition/-/foos.x.io",
            "Secret/default/plain",
            "Secret/ns/s",
            "Secret/x/own",
        ]
    );
    let marked =
        |object: &Value| objects::meta::annotation(object, "kluctl.io/helm-install-namespace").is_some();
    assert!(!rendered.objects().any(marked));
}

#[test]
fn pulled_charts_are_found_in_parent_directories() {
    assert_eq!(Project::new(AT, PULLED).names(), BOTH);
    assert_eq!(Project::new(&format!("app/{AT}"), PULLED).names(), BOTH);
    // The nearest directory counts.
    let error = Project::new(AT, PULLED)
        .with("app/.helm-charts/x", "")
        .render()
        .unwrap_err();
    assert!(
        error.starts_with(
            "rendering helm chart small for release rel has failed: Helm Chart small has not been pre-pulled, which is \
             not allowed when skipPrePull is not enabled. Run 'weir helm-pull'"
        ),
        "{error}"
    );
    let other = CHART.replace("1.2.3", "1.2.4");
    let error = Project::new(AT, PULLED)
        .with(&format!("{AT}/Chart.yaml"), &other)
        .render()
        .unwrap_err();
    assert!(
        error.contains(
            "pre-pulled Helm Chart small need to be pulled (call 'weir helm-pull'). Desired version is 1.2.3 while \
             pre-pulled version is 1.2.4"
        ),
        "{error}"
    );
    let git = "git: {url: 'https://git.example.com/org/charts.git', subDir: small, ref: {tag: v1}}";
    let at = ".helm-charts/git_https_git.example.com/org/charts/small/refs/tags/v1";
    assert_eq!(Project::new(at, git).names(), BOTH);
}

struct Puller(Mutex<Vec<ChartSource>>);

impl PullChart for Puller {
    fn pull(&self, source: &ChartSource, _: &Budget) -> Result<Arc<dyn Tree>, CallbackError> {
        self.0.lock().unwrap().push(source.clone());
        let files = [
            ("Chart.yaml", CHART),
            ("templates/map.yaml", &MAP.replace(".Values.name", "\"p\"")),
        ];
        Ok(Arc::new(
            Mem::from_files(files.map(|(path, text)| (path, text.to_owned()))).unwrap(),
        ))
    }
}

#[test]
fn skip_pre_pull_is_refused_without_a_puller() {
    let mut project = Project::new("unused", &format!("{PULLED}\n  skipPrePull: true"));
    let error = project.render().unwrap_err();
    assert!(
        error.contains("Helm Chart small has skipPrePull, and charts are not pulled here"),
        "{error}"
    );
    let puller = Arc::new(Puller(Mutex::default()));
    project.request.charts.pull = Some(puller.clone());
    assert_eq!(project.names(), ["ConfigMap/-/rel-p"]);
    assert_eq!(
        puller.0.lock().unwrap().first().and_then(ChartSource::name),
        Some("small")
    );
}

struct TestCluster;

impl ClusterView for TestCluster {
    fn version(&self) -> Result<String, CallbackError> {
        Ok("v1.33.4+k3s1".to_owned())
    }

    fn api_versions(&self) -> Result<Vec<String>, CallbackError> {
        Ok(vec!["v1".to_owned(), "x.io/v1/Foo".to_owned()])
    }

    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, CallbackError> {
        let text = format!("{{asked: {api_version} {kind} {namespace} {name}, count: 3}}");
        match name {
            "nothing" => Ok(None),
            "broken" => Err(CallbackError::new("forbidden")),
            _ => Ok(Some(yaml::read::goyaml(text, &Budget::default()).unwrap().value)),
        }
    }
}

/// Renders a template in a chart, with or without a cluster.
fn seen(template: &str, cluster: Option<Arc<dyn ClusterView>>) -> Result<String, String> {
    let text = format!("{MAP}data:\n  seen: {{{{ {template} | quote }}}}\n");
    let mut project = Project::new("app/chart", "path: chart").with("app/chart/templates/map.yaml", &text);
    project.request.charts = Charts { cluster, ..charts() };
    let rendered = project.render()?;
    let object = rendered.objects().last().unwrap();
    Ok(object
        .pointer(&["data", "seen"])
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned())
}

#[test]
fn chart_templates_read_capabilities_and_lookup() {
    let cluster = || Some(Arc::new(TestCluster) as Arc<dyn ClusterView>);
    for (template, expected, offline) in [
        (".Capabilities.KubeVersion.Version", "v1.33.4+k3s1", "v1.36.0"),
        (".Capabilities.HelmVersion.Version", "v4.3.1", "v4.3.1"),
        (".Capabilities.APIVersions.Has \"x.io/v1/Foo\"", "true", "false"),
        (".Capabilities.APIVersions.Has \"apps/v1\"", "false", "true"),
        ("(lookup \"v1\" \"Pod\" \"n\" \"p\").asked", "v1 Pod n p", ""),
        (
            "kindOf (lookup \"v1\" \"Pod\" \"n\" \"p\").count",
            "int64",
            "invalid",
        ),
        ("lookup \"v1\" \"Pod\" \"n\" \"nothing\" | empty", "true", "true"),
        ("now.Unix", "1760000000", "1760000000"),
    ] {
        assert_eq!(seen(template, cluster()).as_deref(), Ok(expected), "{template}");
        assert_eq!(seen(template, None).as_deref(), Ok(offline), "{template}");
    }
    let error = seen("lookup \"v1\" \"Pod\" \"n\" \"broken\"", cluster()).unwrap_err();
    assert!(
        error.contains("small/templates/map.yaml:6") && error.contains("forbidden"),
        "{error}"
    );
    let often = "range $i := until 1001 }}{{ $_ := lookup \"v1\" \"Pod\" \"n\" \"p\" }}{{ end }}{{ 1";
    assert!(
        seen(often, cluster())
            .unwrap_err()
            .contains("may look up 1000 things")
    );
    assert_ne!(seen("randAlpha 8", None), Ok(String::new()));
}

#[test]
fn chart_errors_name_the_chart() {
    let project = || Project::new("app/chart", "path: chart");
    let chart = |more: &str| format!("{CHART}{more}\n");
    for (path, text, expected) in [
        (
            "app/chart/templates/f.yaml",
            "{{ fail \"chart says no\" }}",
            "rendering helm chart small for release rel has failed: execution error at (small/templates/f.yaml:1:3): chart \
             says no",
        ),
        (
            "app/chart/Chart.yaml",
            &chart("type: library"),
            "rendering helm chart small for release rel has failed: library charts are not installable",
        ),
        ("app/chart/templates/l.yaml", "[1]", "has failed: "),
        (
            "app/helm-chart.yaml",
            "helmChart: {path: gone, releaseName: r}",
            "app/helm-chart.yaml:1: helmChart.path: app/gone/Chart.yaml does not exist",
        ),
        (
            "app/helm-chart.yaml",
            "helmChart: {path: ../../x, releaseName: r}",
            "app/helm-chart.yaml:1: helmChart.path \"../../x\" leads outside of the source",
        ),
        ("app/helm-values.yaml", "a: {{ nope }}", "app/helm-values.yaml"),
        (
            "app/helm-values.yaml",
            "[1]",
            "failed to parse app/helm-values.yaml",
        ),
    ] {
        let error = project().with(path, text).render().unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let rendered = project()
        .with("app/chart/Chart.yaml", &chart("deprecated: true"))
        .render();
    assert_eq!(rendered.unwrap().warnings, ["Chart small is deprecated"]);
    let mut timeless = project();
    timeless.request.charts.moment = None;
    assert!(timeless.render().unwrap_err().contains("this render has none"));
}

#[test]
fn endless_chart_hits_a_limit() {
    let endless = "{{ range $i := until 10000 }}{{ range $j := until 10000 }}{{ $i }}{{ end }}{{ end }}";
    let files = Project::new("app/chart", "path: chart").with("app/chart/templates/e.yaml", endless);
    let tree = Mem::from_files(files.files).unwrap();
    let budget = Budget::new(tree::Limits {
        steps: 1_000_000,
        ..tree::Limits::default()
    });
    let error = kluctl::render(Arc::new(tree), &files.request, &budget).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the limit of 1000000 steps was reached"),
        "{error}"
    );
}
