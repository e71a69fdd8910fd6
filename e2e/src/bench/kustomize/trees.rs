//! The measured kustomizations: Deployments, and ConfigMaps that they refer to.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;

pub(crate) const TOP: &str = "top";
const PER_FILE: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layer {
    Plain,
    /// One strategic merge patch of one of them.
    Patch,
    /// A layer with prefix, namespace, labels and images.
    All,
}

impl Layer {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Patch => "one patch",
            Self::All => "prefix, namespace, labels, images",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) objects: usize,
    pub(crate) layer: Layer,
}

impl Shape {
    pub(crate) fn name(self) -> String {
        let layer = match self.layer {
            Layer::All => "with a layer",
            other => other.name(),
        };
        format!("{} objects, {layer}", self.objects)
    }
}

fn pair(n: usize) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-{n}
  labels: {{part: app}}
spec:
  replicas: 2
  selector:
    matchLabels: {{app: app-{n}}}
  template:
    metadata:
      labels: {{app: app-{n}}}
    spec:
      containers:
      - name: main
        image: nginx:1.25
        ports:
        - containerPort: 8080
          name: http
        envFrom:
        - configMapRef:
            name: settings-{n}
        resources:
          limits: {{cpu: 500m, memory: 256Mi}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings-{n}
data:
  NUMBER: \"{n}\"
  LEVEL: info
"
    )
}

const PATCH: &str = "patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata:
      name: app-0
    spec:
      template:
        spec:
          containers:
          - name: main
            env:
            - name: MODE
              value: fast
";
const ALL: &str = "namePrefix: shop-
namespace: shop
labels:
- pairs: {team: shop}
  includeSelectors: true
images:
- name: nginx
  newTag: \"1.27\"
";

/// Returns the files of a tree: a base, and the overlay `top`.
pub(crate) fn files(shape: Shape) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut resources = String::from("resources:\n");
    let pairs: Vec<usize> = (0..shape.objects / 2).collect();
    for (n, numbers) in pairs.chunks(PER_FILE / 2).enumerate() {
        let documents: Vec<String> = numbers.iter().map(|n| pair(*n)).collect();
        files.push((format!("base/{n}.yaml"), documents.join("---\n")));
        let _ = writeln!(resources, "- {n}.yaml");
    }
    files.push(("base/kustomization.yaml".to_owned(), resources));
    let layer = match shape.layer {
        Layer::Plain => "",
        Layer::Patch => PATCH,
        Layer::All => ALL,
    };
    let top = format!("resources:\n- ../base\n{layer}");
    files.push((format!("{TOP}/kustomization.yaml"), top));
    files
}

pub(crate) fn write(dir: &Path, shape: Shape) -> Result<PathBuf> {
    for (path, text) in files(shape) {
        let path = dir.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(dir.join(TOP))
}
