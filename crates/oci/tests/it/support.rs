//! Charts in archives, and who asks for them.

use std::io::Write as _;

use api::Secret;
use flate2::{Compression, write::GzEncoder};
use oci::{Access, Client, Credentials, Limits};
use tree::{Tree as _, TreePath};

pub(crate) fn packed(text: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(text).unwrap();
    packer.finish().unwrap()
}

/// An archive of files by their whole names.
pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, data) in files {
        let mut header = tar::Header::new_gnu();
        // As it is: also what no packer would write.
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, *data).unwrap();
    }
    packed(&builder.into_inner().unwrap())
}

pub(crate) fn chart(name: &str, version: &str) -> Vec<u8> {
    let metadata = format!("apiVersion: v2\nname: {name}\nversion: {version}\n");
    let (first, second) = (format!("{name}/Chart.yaml"), format!("{name}/templates/a.yaml"));
    archive(&[(&first, metadata.as_bytes()), (&second, b"kind: A\n")])
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
    Client::new(access, limits).unwrap()
}

/// What an error says, and that it tells no password.
#[track_caller]
pub(crate) fn said<T: std::fmt::Debug>(result: Result<T, oci::Error>) -> String {
    let error = result.unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(!text.contains("s3cret") && !text.contains("wr0ng"), "{text}");
    error.to_string()
}
