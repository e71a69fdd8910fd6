//! Malicious Git servers: their answers are refused within bounds, and the others are on time.

use std::{fs, time::Duration};

use serde_json::json;
use testkit::{
    GitServer,
    git::{Fault, pack_bomb, padded_pack},
};

use super::{TestNamespace, revision};

/// Bytes of memory that the controller may take while it is attacked.
const MEMORY: u64 = 192 << 20;
/// Time in which an object of a good server is ready while others are attacked.
const ON_TIME: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn hostile_git_servers_are_refused_within_bounds_and_delay_no_other() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let elsewhere = git.repo("elsewhere").unwrap();
    elsewhere.commit("other", &[("other", "content")]).unwrap();
    elsewhere.git(&["repack", "-a", "-d"]).unwrap();
    let packs = fs::read_dir(elsewhere.path().join("objects/pack")).unwrap();
    let mut packs = packs.map(|entry| entry.unwrap().path());
    let pack = packs.find(|path| path.extension().is_some_and(|end| end == "pack"));
    let wrong = fs::read(pack.unwrap()).unwrap();
    let announced = [b"PACK\0\0\0\x02".as_slice(), &u32::MAX.to_be_bytes()].concat();
    let attacks = [
        // 16 GiB of zeros in a file of 100 bytes.
        (
            "bomb",
            Fault::Pack(pack_bomb(100, 16 << 10)),
            "has more than the 100 bytes that it announces",
        ),
        (
            "huge",
            Fault::Pack(pack_bomb(10 << 30, 64)),
            "bytes of a file was reached",
        ),
        (
            "padded",
            Fault::Pack(padded_pack(100, 64)),
            "is compressed to more than",
        ),
        ("number", Fault::Pack(announced), "objects of a pack was reached"),
        ("wrong", Fault::Pack(wrong), "the server did not send it"),
        ("refs", Fault::EndlessRefs, "bytes of a list of refs was reached"),
    ];
    for (name, fault, _) in &attacks {
        let repo = git.repo(name).unwrap();
        repo.commit("first", &[("a", "1")]).unwrap();
        repo.fail(fault.clone());
        setup.apply(name, &repo.url(), json!({"timeout": "20s"})).await;
    }
    let good = git.repo("good").unwrap();
    let commit = good.commit("first", &[("a", "1")]).unwrap();
    setup.apply("good", &good.url(), json!({})).await;
    let ready = tokio::time::timeout(ON_TIME, setup.wait_ready("good")).await;
    assert_eq!(revision(&ready.expect("on time")), format!("main@sha1:{commit}"));
    for (name, _, message) in &attacks {
        setup.wait_failed(name, "GitOperationFailed", message).await;
    }
    let usage = setup.controller.usage().unwrap();
    assert!(usage.peak < MEMORY, "{usage:?}");
}
