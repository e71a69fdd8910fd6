//! Helm charts: passes the entries of a kustomization to the callback that inflates them.

use std::sync::Arc;

use tree::TreePath;
use yaml::Map;

use crate::{
    Chart, Error,
    error::{Context as _, Step},
    generate::Generator,
    read,
    resmap::ResMap,
    target::Target,
    transform::PluginContext,
};

pub(crate) struct Inflation {
    config: Map,
    file: Arc<TreePath>,
    line: u32,
}

impl Inflation {
    /// Reads an entry of `helmCharts`. A chart without a namespace gets the kustomization's, or its parents'.
    pub(crate) fn from_entry(entry: &Map, target: &Target<'_>) -> Self {
        let kustomization = &target.kustomization;
        let fields = &kustomization.fields;
        let mut config = entry.clone();
        for (key, value) in fields.helm_globals.iter().flatten() {
            config.insert(key, value.clone());
        }
        let namespace = if fields.namespace.is_empty() {
            &target.helm_namespace
        } else {
            &fields.namespace
        };
        if config.get_str("namespace").unwrap_or_default().is_empty() && !namespace.is_empty() {
            config.insert("namespace", namespace.as_str());
        }
        Self {
            config,
            file: Arc::new(kustomization.file.clone()),
            line: kustomization.line("helmCharts"),
        }
    }

    /// Reads a `HelmChartInflationGenerator` of its own.
    pub(crate) fn from_config(config: &Map, file: Arc<TreePath>, line: u32) -> Self {
        let mut config = config.clone();
        for own in ["apiVersion", "kind", "metadata"] {
            config.remove(own);
        }
        Self { config, file, line }
    }
}

impl Generator for Inflation {
    fn generate(&self, ctx: &PluginContext<'_>) -> Result<ResMap, Error> {
        let run = ctx.run;
        let Some(helm) = run.options.helm else {
            let problem =
                "trouble configuring builtin HelmChartInflationGenerator: must specify --enable-helm";
            return Err(Error::new(Step::Helm, problem));
        };
        let config = self.config.clone().into();
        let (chart, loader) = (Chart { config }, ctx.loader);
        let manifests = helm
            .inflate(&chart, loader.tree(), loader.root(), run.budget)
            .map_err(|problem| Error::new(Step::Helm, problem))?;
        run.took(manifests.len(), loader.root())?;
        let made = read::resources(manifests.as_bytes(), &self.file, run);
        let mut resources = ResMap::new();
        for mut resource in made.context(|| "reading the manifests of a Helm chart")? {
            resource.line = self.line;
            resource.history.from_helm = true;
            resources.append(resource)?;
        }
        Ok(resources)
    }
}

#[cfg(test)]
mod tests {
    use tree::{Budget, Mem, Tree};

    use super::*;
    use crate::{CallbackError, InflateChart, Options, build};

    /// Inflates one object, named after the request.
    struct Charts;

    impl InflateChart for Charts {
        fn inflate(
            &self,
            chart: &Chart,
            _: &dyn Tree,
            dir: &TreePath,
            _: &Budget,
        ) -> Result<String, CallbackError> {
            let text = |key: &str| {
                chart
                    .config
                    .get(key)
                    .and_then(yaml::Value::as_str)
                    .unwrap_or("none")
            };
            if text("name") == "broken" {
                return Err(CallbackError::new("no such chart"));
            }
            let (name, home, namespace) = (text("name"), text("chartHome"), text("namespace"));
            Ok(format!(
                "kind: Chart\nmetadata: {{name: {name}, namespace: {namespace}}}\nfrom: {dir}/{home}\n"
            ))
        }
    }

    fn built(charts: &str, options: &Options<'_>) -> String {
        let base = format!("namespace: base\nhelmGlobals: {{chartHome: home}}\n{charts}");
        let files = [
            ("top/kustomization.yaml", "namespace: top\nresources: [../base]\n"),
            ("base/kustomization.yaml", base.as_str()),
            (
                "base/config.yaml",
                "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: c}\nname: own\n",
            ),
        ];
        let tree = Mem::from_files(files.map(|(path, text)| (path, text.to_owned()))).unwrap();
        match build(
            &tree,
            &TreePath::parse("top").unwrap(),
            options,
            &Budget::default(),
        ) {
            Ok(built) => built.to_yaml(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn charts_are_inflated_by_the_callback_and_keep_their_namespace() {
        let options = Options {
            helm: Some(&Charts),
            ..Options::default()
        };
        let entry = built("helmCharts: [{name: a}]\n", &options);
        assert_eq!(
            entry,
            "from: base/home\nkind: Chart\nmetadata:\n  name: a\n  namespace: base\n"
        );
        let own = built("generators: [config.yaml]\n", &options);
        assert_eq!(
            own,
            "from: base/none\nkind: Chart\nmetadata:\n  name: own\n  namespace: none\n"
        );
        assert!(built("helmCharts: [{name: broken}]\n", &options).ends_with("no such chart"));
    }

    #[test]
    fn charts_are_refused_without_the_callback() {
        let error = built("helmCharts: [{name: a}]\n", &Options::default());
        assert!(error.ends_with("must specify --enable-helm"), "{error}");
    }
}
