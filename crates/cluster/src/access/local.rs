//! The kubeconfig of the person who runs this process. It is trusted: its programs and files are used.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use super::Contexts;
use crate::Error;

/// A kubeconfig of this machine: one file, or the merged files of `$KUBECONFIG`, or `~/.kube/config`.
#[derive(Clone)]
pub struct LocalKubeconfig(Kubeconfig);

impl fmt::Debug for LocalKubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKubeconfig").finish_non_exhaustive()
    }
}

impl LocalKubeconfig {
    pub fn read(file: Option<&Path>) -> Result<Option<Self>, Error> {
        let files: Vec<PathBuf> = match file {
            Some(file) => vec![file.to_path_buf()],
            None => files().into_iter().filter(|file| file.is_file()).collect(),
        };
        let mut merged: Option<Kubeconfig> = None;
        for file in &files {
            // The parser's message may quote a token.
            let failed = |what: &str| Error::Kubeconfig(format!("{}: {what}", file.display()));
            let read = Kubeconfig::read_from(file).map_err(|error| match error {
                KubeconfigError::ReadConfig(error, _) => failed(&error.to_string()),
                KubeconfigError::Parse(_) => {
                    failed("it is no valid YAML, or has not the form of a kubeconfig")
                }
                other => failed(super::describe(&other)),
            })?;
            merged = Some(match merged {
                None => read,
                Some(first) => first
                    .merge(read)
                    .map_err(|error| failed(super::describe(&error)))?,
            });
        }
        Ok(merged.map(Self))
    }

    #[must_use]
    pub fn contexts(&self) -> Contexts {
        Contexts {
            current: self.0.current_context.clone().filter(|name| !name.is_empty()),
            names: self
                .0
                .contexts
                .iter()
                .map(|context| context.name.clone())
                .collect(),
        }
    }

    #[must_use]
    pub fn namespace(&self, context: Option<&str>) -> Option<String> {
        let name = context.or(self.0.current_context.as_deref())?;
        let found = self.0.contexts.iter().find(|context| context.name == name)?;
        found.context.as_ref()?.namespace.clone()
    }

    pub async fn config(&self, context: Option<&str>) -> Result<Config, Error> {
        if let Some(name) = context
            && !self.0.contexts.iter().any(|context| context.name == name)
        {
            return Err(Error::Kubeconfig(format!("context \"{name}\" does not exist")));
        }
        let options = KubeConfigOptions {
            context: context.map(str::to_owned),
            ..KubeConfigOptions::default()
        };
        Config::from_custom_kubeconfig(self.0.clone(), &options)
            .await
            .map_err(|error| Error::Kubeconfig(super::describe(&error).to_owned()))
    }
}

/// Returns the paths in `$KUBECONFIG`, or `~/.kube/config` if that variable is missing or empty.
fn files() -> Vec<PathBuf> {
    if let Some(paths) = std::env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty()) {
        return std::env::split_paths(&paths)
            .filter(|path| !path.as_os_str().is_empty())
            .collect();
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    home.into_iter().map(|home| home.join(".kube/config")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(dir: &Path, name: &str, current: &str) -> PathBuf {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {current}\ncontexts:\n- name: {name}\n  context: {{cluster: {name}, \
             user: {name}, namespace: ns-{name}}}\nclusters:\n- name: {name}\n  cluster: {{server: 'https://{name}.example.com'}}\nusers:\n- name: \
             {name}\n  user: {{token: secret-{name}}}\n"
        );
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    #[tokio::test]
    async fn local_kubeconfig_returns_its_contexts() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(dir.path(), "one", "one");
        let read = LocalKubeconfig::read(Some(&path)).unwrap().unwrap();
        assert_eq!(read.contexts().current.as_deref(), Some("one"));
        assert_eq!(read.contexts().names, ["one"]);
        assert_eq!(read.namespace(None).as_deref(), Some("ns-one"));
        let config = read.config(None).await.unwrap();
        assert_eq!(config.cluster_url.host(), Some("one.example.com"));
        let error = read.config(Some("two")).await.unwrap_err().to_string();
        assert!(error.contains("context \"two\" does not exist"), "{error}");
    }

    #[test]
    fn broken_kubeconfig_is_named_without_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("broken");
        std::fs::write(&path, "contexts: secret\n").unwrap();
        let error = LocalKubeconfig::read(Some(&path)).unwrap_err().to_string();
        assert!(error.contains("broken") && !error.contains("secret"), "{error}");
        let error = LocalKubeconfig::read(Some(&dir.path().join("none")))
            .unwrap_err()
            .to_string();
        assert!(error.contains("none"), "{error}");
    }
}
