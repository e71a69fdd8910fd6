//! Archives of charts, and clients to download them.

use api::Secret;
use oci::{Access, Client, Credentials, Limits};
use testkit::archive::tar_gz;
use tree::{Tree as _, TreePath};

pub(crate) fn chart(name: &str, version: &str) -> Vec<u8> {
    let metadata = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    let (first, second) = (format!("{name}/Chart.yaml"), format!("{name}/templates/a.yaml"));
    tar_gz(&[(&first, metadata.as_bytes()), (&second, b"kind: A\n")])
}

pub(crate) fn version_of(archive: &oci::Archive) -> String {
    let tree = archive.tree(&tree::Budget::default()).unwrap();
    let bytes = tree.read(&TreePath::parse("Chart.yaml").unwrap()).unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    text.rsplit_once("version: ").unwrap().1.trim().to_owned()
}

pub(crate) fn basic(user: &str, password: &str) -> Option<Credentials> {
    Some(Credentials::Basic {
        username: user.to_owned(),
        password: Secret::new(password.to_owned()),
    })
}

pub(crate) fn client(access: Access) -> Client {
    client_with(access, Limits::default())
}

pub(crate) fn client_with(access: Access, limits: Limits) -> Client {
    Client::new(access, limits, net::AddressPolicy::command_line()).unwrap()
}

#[track_caller]
pub(crate) fn said<T: std::fmt::Debug>(result: Result<T, oci::Error>) -> String {
    let error = result.unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(!text.contains("s3cret") && !text.contains("wr0ng"), "{text}");
    error.to_string()
}
