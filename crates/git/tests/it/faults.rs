//! Servers that refuse, lie, hang and break off.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use git::{Auth, Call, Error, Limits, Pace, Remote};
use testkit::{Fault, GitServer, Repo};

use super::{branch, call, fetch, timed};

fn repo(server: &GitServer) -> Repo {
    let repo = server.repo("faulty").unwrap();
    let noise: String = (0_u64..4000)
        .map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_string())
        .collect();
    repo.change("first").write("noise", noise).push().unwrap();
    repo
}

#[test]
fn failures_of_the_server_have_distinct_errors() {
    let server = GitServer::start().unwrap();
    let repo = repo(&server);
    let remote = Remote::new(&repo.url()).unwrap();
    let page = Fault::Page("<html>please log in</html>".to_owned());
    for (fault, expected) in [
        (Fault::Status(401), "authentication failed"),
        (Fault::Status(403), "authentication failed"),
        (Fault::Status(404), "repository not found"),
        (Fault::Status(429), "too many requests"),
        (Fault::Status(500), "HTTP status 500"),
        (Fault::Status(503), "HTTP status 503"),
        (page, "does not answer as a Git server"),
    ] {
        repo.fail(fault.clone());
        let error = fetch(&remote, &branch("main"), &call())
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains(expected) && error.contains(&repo.url()),
            "{fault:?}: {error}"
        );
    }
    repo.heal();
    fetch(&remote, &branch("main"), &call()).unwrap();
}

#[test]
fn interrupted_responses_are_errors() {
    let server = GitServer::start().unwrap();
    let repo = repo(&server);
    let remote = Remote::new(&repo.url()).unwrap();
    for fault in [Fault::Cut, Fault::CutMidPack] {
        repo.fail(fault.clone());
        let error = fetch(&remote, &branch("main"), &call()).err().unwrap();
        assert!(
            matches!(error, Error::Network { .. } | Error::Protocol { .. }),
            "{fault:?}: {error}"
        );
    }
    let nobody = Remote::new("http://127.0.0.1:1/repo").unwrap();
    let error = fetch(&nobody, &branch("main"), &call()).err().unwrap();
    assert!(matches!(error, Error::Network { .. }), "{error}");
    let unknown = Remote::new("http://no-such-host.invalid/repo").unwrap();
    let error = fetch(&unknown, &branch("main"), &call()).err().unwrap();
    assert!(matches!(error, Error::Network { .. }), "{error}");
}

#[test]
fn hanging_servers_meet_the_deadline() {
    let server = GitServer::start().unwrap();
    let repo = repo(&server);
    let remote = Remote::new(&repo.url()).unwrap();
    for fault in [Fault::Hang, Fault::HangMidPack] {
        repo.fail(fault.clone());
        let call = Call::new(Duration::from_secs(1));
        let (result, took) = timed(|| fetch(&remote, &branch("main"), &call));
        let error = result.err().unwrap();
        assert!(matches!(error, Error::Timeout { .. }), "{fault:?}: {error}");
        assert!(took < Duration::from_secs(10), "{fault:?}: {took:?}");
    }
}

#[test]
fn silent_servers_are_given_up_long_before_the_deadline() {
    let server = GitServer::start().unwrap();
    let repo = repo(&server);
    let remote = Remote::new(&repo.url()).unwrap();
    for fault in [Fault::Hang, Fault::HangMidPack] {
        repo.fail(fault.clone());
        let call = Call {
            limits: Limits {
                silence: Duration::from_millis(500),
                ..Limits::default()
            },
            ..Call::new(Duration::from_secs(3600))
        };
        let (result, took) = timed(|| fetch(&remote, &branch("main"), &call));
        let error = result.err().unwrap().to_string();
        assert!(
            error.contains("the server sent nothing for 0.5 s"),
            "{fault:?}: {error}"
        );
        assert!(took < Duration::from_secs(20), "{fault:?}: {took:?}");
    }
}

#[test]
fn dripping_server_is_given_up_long_before_the_deadline() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("drip").unwrap();
    // Enough that the rest of the pack takes minutes.
    let noise: String = (0..20_000_u32)
        .map(|i| char::from(b'a' + (i.wrapping_mul(2_654_435_761) >> 24) as u8 % 26))
        .collect();
    repo.commit("first", &[("noise", &noise)]).unwrap();
    repo.fail(Fault::DripPack);
    let call = Call {
        limits: Limits {
            slowest: Pace {
                bytes: 1 << 20,
                time: Duration::from_secs(1),
            },
            ..Limits::default()
        },
        ..Call::new(Duration::from_secs(3600))
    };
    let remote = Remote::new(&repo.url()).unwrap();
    let (result, took) = timed(|| fetch(&remote, &branch("main"), &call));
    let error = result.err().unwrap().to_string();
    assert!(error.contains("the server is too slow: it sent "), "{error}");
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn cancellation_ends_a_session_long_before_its_deadline() {
    let server = GitServer::start().unwrap();
    let repo = repo(&server);
    repo.fail(Fault::HangMidPack);
    let remote = Remote::new(&repo.url()).unwrap();
    let cancelled = Arc::new(AtomicBool::new(false));
    let call = Call {
        cancelled: Arc::clone(&cancelled),
        ..Call::new(Duration::from_secs(3600))
    };
    let fetching = thread::spawn(move || fetch(&remote, &branch("main"), &call).err().unwrap());
    while repo.requests().len() < 3 {
        thread::yield_now();
    }
    cancelled.store(true, Ordering::Relaxed);
    let (error, took) = timed(|| fetching.join().unwrap());
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn redirects_are_followed_without_taking_credentials_elsewhere() {
    let (here, there) = (GitServer::start().unwrap(), GitServer::start().unwrap());
    let moved = repo(&here);
    let auth = Auth {
        username: "me".to_owned(),
        password: "canary".to_owned().into(),
    };
    let remote = Remote::new(&moved.url()).unwrap().with_auth(auth);

    let same_host = here.repo("new").unwrap();
    same_host.commit("first", &[("a", "here")]).unwrap();
    same_host.require_basic_auth("me", "canary");
    moved.fail(Fault::Redirect(same_host.url(), 301));
    assert_eq!(
        fetch(&remote, &branch("main"), &call()).unwrap().read("a"),
        "here"
    );

    let elsewhere = there.repo("new").unwrap();
    elsewhere.commit("first", &[("a", "there")]).unwrap();
    moved.fail(Fault::Redirect(elsewhere.url(), 302));
    assert_eq!(
        fetch(&remote, &branch("main"), &call()).unwrap().read("a"),
        "there"
    );
    elsewhere.require_basic_auth("me", "canary");
    let error = fetch(&remote, &branch("main"), &call()).err().unwrap();
    assert!(error.to_string().contains("credentials are not sent"), "{error}");
    let sent: Vec<_> = elsewhere
        .requests()
        .into_iter()
        .filter_map(|request| request.authorization)
        .collect();
    assert_eq!(sent, Vec::<String>::new());
}

#[test]
fn some_redirects_are_refused() {
    let plain = GitServer::start().unwrap();
    let target = plain.repo("plain").unwrap();
    target.commit("first", &[("a", "b")]).unwrap();
    let secure = GitServer::start_tls().unwrap();
    let moved = secure.repo("moved").unwrap();
    let remote = Remote::new(&moved.url())
        .unwrap()
        .with_ca(secure.ca_pem().as_bytes().to_vec());
    for to in [
        target.url(),
        moved.url(),
        "http://169.254.169.254/latest".to_owned(),
        "https://169.254.169.254/latest".to_owned(),
        "file:///etc".to_owned(),
    ] {
        moved.fail(Fault::Redirect(to.clone(), 302));
        let error = fetch(&remote, &branch("main"), &call()).err().unwrap();
        let refused = matches!(error, Error::Redirect { .. } | Error::InvalidUrl { .. });
        assert!(refused, "{to}: {error}");
    }
    assert_eq!(target.requests().len(), 0);
}
