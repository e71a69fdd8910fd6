//! Tests of the skeleton with a kind that needs no server: its revision is the URL of the spec.

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use api::{
    Artifact, condition_type as types, conditions,
    source::{GitRepository, GitRepositorySpec, GitRepositoryStatus, GitRepositoryVerification},
};
use artifact::{
    Algorithm,
    pack::{self, Item, Packed, PathKind},
    storage::Retention,
};
use runtime::{Requeue, WorkSlot};
use tree::TreePath;

use super::*;
use crate::{
    blocking::Job,
    source_kind::{
        BuildError, Details, Identity, Inputs, KindSettings, Named, Pack, PackOptions, Resolve, SourceObject,
        SourceSecrets, SourceSpec, Verification, Verify, Words,
    },
};

#[derive(Default)]
struct UrlKind {
    fetches: AtomicUsize,
    verifications: AtomicUsize,
}

impl SourceObject for UrlKind {
    type Object = GitRepository;
    type Status = GitRepositoryStatus;

    const DIRECTORY: &'static str = "url";

    fn spec(object: &GitRepository) -> SourceSpec<'_> {
        SourceSpec {
            interval: object.spec.interval.as_duration(),
            timeout: Duration::from_secs(60),
            suspend: object.spec.suspend,
            ignore: object.spec.ignore.as_deref(),
        }
    }

    fn secrets(_: &GitRepository) -> Named<'_> {
        Named::new()
    }

    fn validate(_: &GitRepository) -> Result<(), Fault> {
        Ok(())
    }
}

impl Identity for UrlKind {}

impl Resolve for UrlKind {
    type Request = String;
    type Resolved = String;

    fn request(object: &GitRepository, _: &SourceSecrets) -> Result<String, Fault> {
        Ok(object.spec.url.expose().to_owned())
    }

    fn server(request: &String) -> String {
        request.clone()
    }

    fn resolve(&self, request: &String, _: &Job) -> Result<String, Fault> {
        Ok(request.clone())
    }

    fn revision(resolved: &String, _: Style) -> String {
        resolved.clone()
    }

    fn file_name(resolved: &String) -> String {
        format!("{resolved}.tar.gz")
    }
}

impl Inputs for UrlKind {}

impl Pack for UrlKind {
    type Fetched = String;

    fn fetch(&self, _: &String, resolved: &String, _: &Job, dir: &Path) -> Result<String, Fault> {
        assert!(dir.is_dir());
        self.fetches.fetch_add(1, Ordering::Relaxed);
        match resolved.as_str() {
            "broken" => Err(Fault::retry(Reason::GitOperationFailed, "no route")),
            "panic" => panic!("on purpose"),
            _ => Ok(resolved.clone()),
        }
    }

    fn pack(
        fetched: &String,
        options: &PackOptions,
        out: &mut artifact::storage::ArtifactWriter<'_>,
    ) -> Result<Packed, BuildError> {
        let item = Item {
            path: TreePath::parse("file").unwrap(),
            kind: PathKind::File { executable: false },
            content: fetched.clone(),
        };
        let read = |item: &Item<String>, buffer: &mut Vec<u8>| {
            buffer.extend_from_slice(item.content.as_bytes());
            buffer.extend_from_slice(options.ignore.as_deref().unwrap_or_default().as_bytes());
            Ok::<_, BuildError>(())
        };
        pack::pack(&[item], read, options.algorithm, 1 << 20, out)
    }

    fn details(fetched: &String) -> Details {
        Details {
            description: Some(format!("fetched {fetched}")),
            ..Details::default()
        }
    }
}

impl Verify for UrlKind {
    fn verifies(object: &GitRepository) -> bool {
        object.spec.verify.is_some()
    }

    fn verify(&self, request: &String, _: &String, _: &Job) -> Result<Option<Verification>, Fault> {
        self.verifications.fetch_add(1, Ordering::Relaxed);
        match request.as_str() {
            "unsigned" => Err(Fault::retry(Reason::VerificationError, "no signature")),
            _ => Ok(Some(Verification {
                message: (request != "accepted").then(|| format!("verified {request}")),
                fingerprint: None,
            })),
        }
    }
}

impl Words for UrlKind {
    const LEGACY_READY: Reason = Reason::Succeeded;

    fn event_message(_: &String, artifact: &Artifact, description: Option<&str>) -> String {
        let revision = &artifact.revision;
        format!("{revision}: {description:?}")
    }
}

impl SourceKind for UrlKind {
    fn new(_: KindSettings) -> Self {
        Self {
            fetches: AtomicUsize::new(0),
            verifications: AtomicUsize::new(0),
        }
    }
}

struct Fixture {
    _dir: tempfile::TempDir,
    root: std::path::PathBuf,
    reconciler: SourceReconciler<UrlKind>,
    object: GitRepository,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let spec = GitRepositorySpec {
            interval: api::GoDuration::from_secs(60),
            ..GitRepositorySpec::default()
        };
        let mut object = GitRepository::new("repo", spec);
        object.metadata.generation = Some(1);
        Self {
            root: dir.path().join("storage"),
            reconciler: Self::at(dir.path()),
            _dir: dir,
            object,
        }
    }

    fn at(dir: &Path) -> SourceReconciler<UrlKind> {
        let storage = Storage::open(&dir.join("storage"), "host", Retention::default());
        let storage = Arc::new(storage.unwrap());
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let shared = Shared {
            client: Client::try_from(config).unwrap(),
            builder: Builder::new(Arc::clone(&storage), dir.to_owned(), Algorithm::Sha256),
            storage,
            shared_store: None,
            style: Style::Rfc5,
            ssh: git::SshAlgorithms::default(),
            trusted_root: None,
            helm: crate::flags::HelmLimits {
                index: 1 << 20,
                chart: 1 << 20,
                chart_file: 1 << 20,
            },
            scratch: dir.to_owned(),
            disk: limits::ByteBudget::new(1 << 20),
            identities: Arc::new(Identities::new(
                net::AddressPolicy::command_line(),
                cloud::Ambient::default(),
                runtime::accounts::ServiceAccounts::default(),
                limits::CacheBounds {
                    max_entries: 0,
                    max_age: Duration::ZERO,
                },
            )),
        };
        SourceReconciler::new(UrlKind::default(), Arc::new(shared))
    }

    /// Makes a pass over the object with this URL, and stores the status.
    async fn pass(&mut self, url: &str) -> Outcome<GitRepositoryStatus> {
        self.object.spec.url = url.into();
        let cancel = CancellationToken::new();
        let input = Input {
            object: &self.object,
            namespace: "ns",
            name: "repo",
            cancel: &cancel,
            slot: &WorkSlot::alone(),
        };
        let outcome = self.reconciler.pass(&input).await;
        self.object.status = Some(outcome.status.clone());
        outcome
    }

    /// Starts a new process with the files on disk.
    fn restart(&mut self) {
        self.reconciler = Self::at(self.root.parent().unwrap());
    }

    fn served(&self, path: &str) -> Option<String> {
        let content = std::fs::read(self.root.join(path)).ok()?;
        let digest = <sha2::Sha256 as sha2::Digest>::digest(content);
        Some(format!("sha256:{}", hex::encode(digest)))
    }

    fn fetches(&self) -> usize {
        self.reconciler.kind.fetches.load(Ordering::Relaxed)
    }
}

fn artifact(outcome: &Outcome<GitRepositoryStatus>) -> Artifact {
    outcome.status.artifact.clone().unwrap()
}

#[tokio::test]
async fn artifact_is_built_once_for_each_revision() {
    let mut fixture = Fixture::new();
    let first = fixture.pass("one").await;
    assert_eq!(artifact(&first).url, "http://host/url/ns/repo/one.tar.gz");
    assert_eq!(first.requeue, Requeue::Interval(Duration::from_secs(60)));
    assert_eq!(first.events[0].message, "one: Some(\"fetched one\")");
    assert!(fixture.root.join("url/ns/repo/one.tar.gz").is_file());
    let again = fixture.pass("one").await;
    assert_eq!(
        (&again.status, again.events.len(), fixture.fetches()),
        (&first.status, 0, 1)
    );
    let second = fixture.pass("two").await;
    assert_eq!(
        (artifact(&second).revision.as_str(), fixture.fetches()),
        ("two", 2)
    );
}

#[tokio::test]
async fn corrupt_artifact_is_replaced_and_reported() {
    let mut fixture = Fixture::new();
    let first = fixture.pass("one").await;
    let file = fixture.root.join("url/ns/repo/one.tar.gz");
    let good = std::fs::read(&file).unwrap();
    std::fs::write(&file, "corrupt").unwrap();
    let outcome = fixture.pass("one").await;
    assert_eq!(artifact(&outcome).digest, artifact(&first).digest);
    assert_eq!(outcome.events[0].reason, Reason::ArtifactVerificationFailed);
    assert_eq!(std::fs::read(&file).unwrap(), good);
}

#[tokio::test]
async fn crash_before_the_status_is_written_is_no_corruption() {
    let mut fixture = Fixture::new();
    let first = fixture.pass("one").await;
    for ends in [true, false] {
        // The status of this pass is lost.
        fixture.object.spec.ignore = Some("b".to_owned());
        let lost = fixture.pass("one").await;
        fixture.object.status = Some(first.status.clone());
        fixture.restart();
        // The object may have its old rules again.
        fixture.object.spec.ignore = ends.then(|| "b".to_owned());
        let next = fixture.pass("one").await;
        let reasons: Vec<_> = next.events.iter().map(|event| event.reason).collect();
        let (wanted, expected): (_, &[Reason]) = match ends {
            true => (&lost, &[Reason::NewArtifact]),
            false => (&first, &[]),
        };
        assert_eq!(reasons, expected);
        for outcome in [&first, &lost] {
            assert_eq!(fixture.served(&artifact(outcome).path), artifact(outcome).digest);
        }
        for path in [artifact(&next).path, "url/ns/repo/latest.tar.gz".to_owned()] {
            assert_eq!(fixture.served(&path), artifact(wanted).digest, "{path}");
        }
        fixture.object.status = Some(first.status.clone());
    }
}

#[tokio::test]
async fn other_bytes_of_a_revision_never_take_the_path_of_a_status() {
    let mut fixture = Fixture::new();
    let first = fixture.pass("one").await;
    // A lost volume, and a build that makes other bytes.
    std::fs::remove_dir_all(fixture.root.join("url")).unwrap();
    fixture.object.spec.ignore = Some("b".to_owned());
    let second = fixture.pass("one").await;
    assert_ne!(artifact(&second).path, artifact(&first).path);
    let again = fixture.pass("one").await;
    assert_eq!((artifact(&again), fixture.fetches()), (artifact(&second), 2));
    // The usual name is free again.
    fixture.object.spec.ignore = Some("c".to_owned());
    let third = fixture.pass("one").await;
    assert_eq!(artifact(&third).path, "url/ns/repo/one.tar.gz");
}

#[tokio::test]
async fn failed_fetch_keeps_the_last_artifact() {
    let mut fixture = Fixture::new();
    let first = fixture.pass("one").await;
    let failed = fixture.pass("broken").await;
    assert_eq!(failed.status.artifact, first.status.artifact);
    let outdated = conditions::get(&failed.status.conditions, types::ARTIFACT_OUTDATED).unwrap();
    assert_eq!(outdated.message, "new upstream revision 'broken'");
    let panicked = fixture.pass("panic").await;
    assert_eq!(panicked.status.artifact, first.status.artifact);
    assert_eq!(panicked.fault.unwrap().reason, Reason::InternalError);
}

#[tokio::test]
async fn removal_deletes_the_artifacts_of_the_object_alone() {
    let mut fixture = Fixture::new();
    fixture.pass("one").await;
    fixture.reconciler.remove("ns", "other").await.unwrap();
    assert!(fixture.root.join("url/ns/repo").is_dir());
    fixture.reconciler.remove("ns", "repo").await.unwrap();
    fixture.reconciler.remove("ns", "repo").await.unwrap();
    assert!(!fixture.root.join("url/ns/repo").exists());
}

#[tokio::test]
async fn revision_is_verified_once_for_each_generation() {
    let mut fixture = Fixture::new();
    let verify = Some(GitRepositoryVerification::default());
    let verified = |outcome: &Outcome<GitRepositoryStatus>| {
        let found = conditions::get(&outcome.status.conditions, types::SOURCE_VERIFIED);
        found.map(|found| (found.is_true(), found.message.clone()))
    };
    let yes = |url: &str| Some((true, format!("verified {url}")));
    let count = |fixture: &Fixture| fixture.reconciler.kind.verifications.load(Ordering::Relaxed);
    let first = fixture.pass("one").await;
    assert_eq!((verified(&first), count(&fixture)), (None, 0));
    fixture.object.spec.verify = verify;
    fixture.object.metadata.generation = Some(2);
    for _ in 0..2 {
        let same = fixture.pass("one").await;
        assert_eq!((verified(&same), count(&fixture)), (yes("one"), 1));
    }
    fixture.object.metadata.generation = Some(3);
    let changed = fixture.pass("one").await;
    assert_eq!((verified(&changed), count(&fixture)), (yes("one"), 2));
    let next = fixture.pass("two").await;
    assert_eq!(
        (verified(&next), count(&fixture), fixture.fetches()),
        (yes("two"), 3, 2)
    );
    let unsigned = fixture.pass("unsigned").await;
    assert_eq!(verified(&unsigned), Some((false, "no signature".to_owned())));
    assert_eq!(unsigned.status.artifact, next.status.artifact);
    assert_eq!(fixture.fetches(), 2, "it was fetched");
    let ready = conditions::get(&unsigned.status.conditions, types::READY).unwrap();
    assert!(
        ready.is_false() && ready.reason == "VerificationError",
        "{ready:?}"
    );
    // A revision that a policy accepts without a signature is not called verified, and asked for again.
    let before = fixture.pass("two").await;
    assert_eq!(verified(&before), yes("two"));
    let count_before = count(&fixture);
    for more in 1..3 {
        let accepted = fixture.pass("accepted").await;
        assert_eq!(
            (verified(&accepted), count(&fixture)),
            (None, count_before + more)
        );
    }
    fixture.object.spec.verify = None;
    assert_eq!(verified(&fixture.pass("two").await), None);
}
