//! Prometheus.

use std::time::Duration;

use testkit::Prometheus;

#[tokio::test]
async fn prometheus_scrapes_and_answers_queries() {
    let configuration = |target: &str| {
        format!(
            "global: {{scrape_interval: 200ms}}\n\
             scrape_configs: [{{job_name: own, static_configs: [{{targets: [\"{target}\"]}}]}}]\n"
        )
    };
    let prometheus = Prometheus::start(&configuration("127.0.0.1:1"))
        .await
        .expect("starts");
    let up = prometheus
        .wait_for("up", Duration::from_secs(30))
        .await
        .expect("tries the target");
    assert_eq!((up[0].0["job"].as_str(), up[0].1), ("own", 0.0));
    prometheus.query("up{").await.expect_err("is no expression");
    let refused = Prometheus::start("scrape_configs: 7")
        .await
        .expect_err("is no configuration");
    assert!(format!("{refused:#}").contains("cannot unmarshal"), "{refused:#}");
}
