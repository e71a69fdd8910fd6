//! The sender against a receiver on a socket.

use kube::api::ApiResource;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use super::*;

/// Sends the namespace of each event to `seen`. Answers 202 for all namespaces but `greedy`, whose events get `answer`.
async fn receive(listener: TcpListener, answer: &'static str, seen: mpsc::UnboundedSender<String>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let Some(event) = read(&mut stream).await else {
            continue;
        };
        let namespace = event["involvedObject"]["namespace"].as_str().unwrap().to_owned();
        let answer = match namespace.as_str() {
            "greedy" => answer,
            _ => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        };
        seen.send(namespace).unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

async fn read(stream: &mut TcpStream) -> Option<Value> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((_, body)) = text.split_once("\r\n\r\n")
            && let Ok(event) = serde_json::from_str(body)
        {
            return Some(event);
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

fn push(outbox: &Outbox, namespace: &str, name: &str) {
    let event = serde_json::from_value(json!({
        "involvedObject": {"kind": "ConfigMap", "name": name, "namespace": namespace, "uid": format!("{namespace}-{name}")},
        "severity": "info", "message": name, "reason": "r", "reportingController": "c",
    }));
    let resource = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
    outbox.push(event.unwrap(), resource, false);
}

#[tokio::test]
async fn events_of_a_namespace_that_fail_pause_no_others() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let busy = "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\nretry-after: 60\r\n\r\n";
    for answer in [busy, ""] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        let (seen, mut posts) = mpsc::unbounded_channel();
        tokio::spawn(receive(listener, answer, seen));
        let metrics = Metrics::new("c").unwrap();
        let outbox = Arc::new(Outbox::new(metrics.clone()));
        for number in 0..100 {
            push(&outbox, "greedy", &number.to_string());
        }
        for number in 0..2 {
            push(&outbox, "victim", &number.to_string());
        }
        let end = CancellationToken::new();
        let poster = Poster::new(url, None).unwrap();
        let sender = tokio::spawn(Sender::new(poster, Arc::clone(&outbox), end.clone(), metrics).run());
        assert_eq!(posts.recv().await.unwrap(), "greedy");
        for _ in 0..2 {
            assert_eq!(posts.recv().await.unwrap(), "victim", "{answer:?}");
        }
        end.cancel();
        sender.await.unwrap();
        assert!(outbox.len() >= 99, "what fails is not lost");
    }
}
