//! A real Prometheus, for tests of the metrics that the controllers expose.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::{
    gobuild::{Recipe, program},
    http,
    ports::free_address,
    process::{Group, Identity},
    wait::{WAIT_TIMEOUT, eventually},
};

static RECIPE: Recipe = Recipe {
    module: "prometheus",
    packages: &["github.com/prometheus/prometheus/cmd/prometheus"],
    programs: &["prometheus"],
    // Of all service discoveries, the one that is tested.
    tags: "remove_all_sd,enable_kubernetes_sd",
    seconds: 150,
};

pub type Sample = (BTreeMap<String, String>, f64);

#[derive(Debug)]
pub struct Prometheus {
    address: SocketAddr,
    _group: Group,
}

impl Prometheus {
    /// Finds Prometheus in the cache, or builds it. Blocks for minutes when it builds.
    pub fn resolve() -> Result<PathBuf> {
        program("prometheus", &RECIPE, "github.com/prometheus/prometheus")
    }

    /// Starts Prometheus with this configuration (the YAML of prometheus.yml) and waits until it is ready.
    pub async fn start(configuration: &str) -> Result<Self> {
        Self::start_with_rules(configuration, "groups: []").await
    }

    /// Starts Prometheus as [`Prometheus::start`] does. The configuration may name the file `rules.yml`, which has these groups of rules.
    pub async fn start_with_rules(configuration: &str, rules: &str) -> Result<Self> {
        let program = tokio::task::spawn_blocking(Self::resolve).await??;
        let group = Group::create("prometheus", Identity::current())?;
        let file = group.write("prometheus.yml", configuration)?;
        group.write("rules.yml", rules)?;
        let address = free_address()?;
        let mut command = Command::new(program);
        command
            .arg(format!("--config.file={file}"))
            .arg(format!(
                "--storage.tsdb.path={}",
                group.dir().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .current_dir(group.dir());
        group.spawn("prometheus", &mut command)?;
        let client = http::client(None)?;
        let url = format!("http://{address}/-/ready");
        group
            .eventually("Prometheus to be ready", WAIT_TIMEOUT, || async {
                client.get(&url).send().await?.error_for_status()?;
                Ok(())
            })
            .await?;
        Ok(Self {
            address,
            _group: group,
        })
    }

    pub async fn query(&self, expression: &str) -> Result<Vec<Sample>> {
        let mut url = reqwest::Url::parse(&format!("http://{}/api/v1/query", self.address))?;
        url.query_pairs_mut().append_pair("query", expression);
        let answer: Value = http::client(None)?.get(url).send().await?.json().await?;
        let results = answer.pointer("/data/result").and_then(Value::as_array);
        let results = results.with_context(|| format!("Prometheus refuses {expression}: {answer}"))?;
        Ok(results.iter().map(sample).collect())
    }

    /// Waits until a PromQL expression yields something.
    pub async fn wait_for(&self, expression: &str, at_most: Duration) -> Result<Vec<Sample>> {
        let what = format!("Prometheus to know {expression}");
        eventually(&what, at_most, || async {
            let samples = self.query(expression).await?;
            if samples.is_empty() {
                bail!(
                    "there is no such series; the targets are {}",
                    self.targets().await?
                );
            }
            Ok(samples)
        })
        .await
    }

    pub async fn targets(&self) -> Result<Value> {
        self.read("targets?state=active", "/data/activeTargets").await
    }

    /// Returns the groups of rules with their health and the alerts that fire.
    pub async fn rule_groups(&self) -> Result<Value> {
        self.read("rules", "/data/groups").await
    }

    async fn read(&self, path: &str, pointer: &str) -> Result<Value> {
        let url = format!("http://{}/api/v1/{path}", self.address);
        let answer: Value = http::client(None)?.get(url).send().await?.json().await?;
        Ok(answer.pointer(pointer).cloned().unwrap_or_default())
    }
}

fn sample(result: &Value) -> Sample {
    let labels = result
        .get("metric")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let labels = labels.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()));
    let value = result
        .pointer("/value/1")
        .and_then(Value::as_str)
        .and_then(|value| value.parse().ok());
    (labels.collect(), value.unwrap_or(f64::NAN))
}
