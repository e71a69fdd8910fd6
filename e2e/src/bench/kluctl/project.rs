//! Generates a kluctl project of any size: a namespace, and items of three objects each.

use std::{fs, path::Path};

use anyhow::Result;

pub(crate) fn objects(items: usize) -> usize {
    items * 3 + 1
}

/// Writes a project with this many items.
pub(crate) fn write(dir: &Path, items: usize) -> Result<()> {
    let project = "discriminator: 'bench-{{ target.name }}'\ntargets:\n- name: test\n  args: {replicas: 2}\nargs:\n- name: replicas\n  \
                   default: 1\n- name: namespace\n  default: bench\n";
    let deployment = "vars:\n- file: vars.yaml\ncommonLabels:\n  app.kubernetes.io/part-of: bench\ndeployments:\n- path: namespace\n  \
                      barrier: true\n- include: services\n";
    let services = format!(
        "deployments:\n{{% for n in range({items}) %}}\n- path: s{{{{ n }}}}\n  tags: [service, 'group-{{{{ n % 10 }}}}']\n{{% endfor %}}\n"
    );
    fs::create_dir_all(dir.join("namespace"))?;
    fs::create_dir_all(dir.join("services"))?;
    fs::write(dir.join(".kluctl.yaml"), project)?;
    fs::write(dir.join("deployment.yaml"), deployment)?;
    fs::write(dir.join("services/deployment.yaml"), services)?;
    fs::write(
        dir.join("vars.yaml"),
        "image: registry.example.com/shop\nports: [8080, 9090]\nlevels: {default: info, audit: debug}\n",
    )?;
    fs::write(
        dir.join("namespace/namespace.yaml"),
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {{ args.namespace }}\n",
    )?;
    for item in 0..items {
        let dir = dir.join(format!("services/s{item}"));
        fs::create_dir_all(&dir)?;
        fs::write(dir.join("config.yaml"), config(item))?;
        fs::write(dir.join("deployment.yaml"), workload(item))?;
        fs::write(dir.join("service.yaml"), service(item))?;
    }
    Ok(())
}

fn config(item: usize) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: s{item}\n  namespace: {{{{ args.namespace }}}}\ndata:\n  target: \
         {{{{ target.name }}}}\n{{% for name, level in levels.items() %}}\n  level-{{{{ name }}}}: {{{{ level | upper }}}}\n{{% endfor %}}\n  \
         number: \"{item}\"\n"
    )
}

fn workload(item: usize) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: s{item}\n  namespace: {{{{ args.namespace }}}}\n  labels: {{app: \
         s{item}}}\nspec:\n  replicas: {{{{ args.replicas }}}}\n  selector:\n    matchLabels: {{app: s{item}}}\n  template:\n    metadata:\n      \
         labels: {{app: s{item}}}\n    spec:\n      containers:\n      - name: main\n        image: {{{{ image }}}}:1.{item}\n        args: [--port, \
         \"{{{{ ports[0] }}}}\"]\n        envFrom:\n        - configMapRef: {{name: s{item}}}\n        ports:\n{{% for port in ports %}}\n        - \
         containerPort: {{{{ port }}}}\n          protocol: TCP\n{{% endfor %}}\n        resources:\n          requests: {{cpu: 10m, memory: 16Mi}}\n"
    )
}

fn service(item: usize) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: s{item}\n  namespace: {{{{ args.namespace }}}}\nspec:\n  selector: {{app: s{item}}}\n  \
         ports:\n{{% for port in ports %}}\n  - name: p{{{{ port }}}}\n    port: {{{{ port }}}}\n    targetPort: {{{{ port }}}}\n{{% endfor %}}\n"
    )
}
