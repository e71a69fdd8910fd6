//! The measured charts: recorded ones, if they exist beside this project, and a generated one with many subcharts.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;

use super::Render;

fn shared() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared")
}

pub(crate) fn redis() -> Option<PathBuf> {
    let dir = shared().join(
        "examples/kluctl-examples/microservices-demo/3-templating-and-multi-env/.helm-charts/\
         https_charts.bitnami.com/bitnami/redis/17.4.0",
    );
    dir.canonicalize()
        .ok()
        .filter(|dir| dir.join("Chart.yaml").exists())
}

pub(crate) fn recorded(count: usize) -> Vec<Render> {
    let cases = shared().join("conformance/helm/cases");
    let mut dirs: Vec<PathBuf> = fs::read_dir(cases)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.path().canonicalize().ok())
        .collect();
    dirs.sort();
    let small = |dir: &Path| {
        dir.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("micro-"))
    };
    let render = |dir: PathBuf| {
        let run = dir.join("renders/default");
        let arguments = fs::read_to_string(run.join("args.txt")).ok()?;
        run.join("expected.yaml").exists().then(|| Render {
            arguments: arguments.lines().map(str::to_owned).collect(),
            dir,
        })
    };
    let large = dirs.into_iter().filter(|dir| !small(dir));
    large.filter_map(render).take(count).collect()
}

const HELPERS: &str = r#"{{- define "part.name" -}}
{{- printf "%s-%s" .Release.Name (default .Chart.Name .Values.nameOverride) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- define "part.labels" -}}
app.kubernetes.io/name: {{ include "part.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.global.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}
"#;

const TEMPLATE: &str = r#"{{- if .Values.enabled }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "part.name" . }}-NUMBER
  labels:
    {{- include "part.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas | int }}
  template:
    metadata:
      annotations:
        checksum/values: {{ toJson .Values | sha256sum }}
    spec:
      containers:
        {{- range $name, $container := .Values.containers }}
        - name: {{ $name }}
          image: {{ printf "%s/%s:%s" $.Values.global.registry $container.image ($container.tag | toString) | quote }}
          {{- if regexMatch "^v?[0-9]+" ($container.tag | toString) }}
          imagePullPolicy: IfNotPresent
          {{- end }}
          resources: {{- toYaml $container.resources | nindent 12 }}
          env: {{- tpl (toYaml $container.env) $ | nindent 12 }}
        {{- end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "part.name" . }}-NUMBER
  labels: {{- include "part.labels" . | nindent 4 }}
spec: {{- merge (dict "type" "ClusterIP") .Values.service | toYaml | nindent 2 }}
{{- end }}
"#;

const VALUES: &str = "enabled: true
replicas: 3
containers:
  app: {image: app, tag: 1.2.3, resources: {limits: {cpu: 1, memory: 1Gi}}, env: [{name: A, value: '{{ .Release.Name }}'}]}
  side: {image: side, tag: latest, resources: {}, env: [{name: B, value: b}]}
service: {ports: [{port: 80, name: http}], selector: {app: a}}
";

pub(crate) fn umbrella(dir: &Path, charts: usize, templates: usize) -> Result<()> {
    let meta = |name: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
    fs::create_dir_all(dir)?;
    fs::write(dir.join("Chart.yaml"), meta("umbrella"))?;
    fs::write(
        dir.join("values.yaml"),
        "global: {registry: registry.example, labels: {team: a, tier: b}}\n",
    )?;
    for chart in 0..charts {
        let dir = dir.join(format!("charts/part-{chart}"));
        fs::create_dir_all(dir.join("templates"))?;
        fs::write(dir.join("Chart.yaml"), meta(&format!("part-{chart}")))?;
        fs::write(dir.join("values.yaml"), VALUES)?;
        fs::write(dir.join("templates/_helpers.tpl"), HELPERS)?;
        for number in 0..templates {
            let text = TEMPLATE.replace("NUMBER", &number.to_string());
            fs::write(dir.join(format!("templates/part-{number}.yaml")), text)?;
        }
    }
    Ok(())
}
