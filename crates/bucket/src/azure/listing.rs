//! Documents of Azure Blob Storage: listings and errors. Pure.

use crate::{Entry, ListPage, encode, listing::Entries, xml};

pub(super) fn error(document: &[u8]) -> (String, String) {
    let (mut code, mut message) = (String::new(), String::new());
    // The service begins its documents with a byte order mark.
    let document = document.strip_prefix(b"\xef\xbb\xbf").unwrap_or(document);
    let _ = xml::read(document, |path, text| match path {
        "Error/Code" => text.clone_into(&mut code),
        "Error/Message" => text.clone_into(&mut message),
        _ => {}
    });
    (code, message)
}

/// Parses a page of a listing. Directories of hierarchical namespaces are left out.
pub(crate) fn page(document: &[u8]) -> Result<ListPage, &'static str> {
    let document = document.strip_prefix(b"\xef\xbb\xbf").unwrap_or(document);
    let mut found = Listing::default();
    xml::read(document, |path, text| found.element(path, text)).map_err(|_| "the listing is not XML")?;
    if !found.is_listing {
        return Err("it is not a listing");
    }
    Ok(ListPage {
        entries: found.entries.finish("a blob in the listing has no name")?,
        next: found.next,
    })
}

#[derive(Default)]
struct Listing {
    is_listing: bool,
    next: Option<String>,
    entries: Entries,
    current: Option<Entry>,
    is_directory: bool,
}

impl Listing {
    fn element(&mut self, path: &str, text: &str) {
        let Some(of_blob) = path.strip_prefix("EnumerationResults/Blobs/Blob") else {
            match path {
                "EnumerationResults" => self.is_listing = true,
                "EnumerationResults/NextMarker" if !text.is_empty() => self.next = Some(text.to_owned()),
                _ => {}
            }
            return;
        };
        let current = self.current.get_or_insert_with(|| Entry::named(""));
        match of_blob {
            "/Name" => text.clone_into(&mut current.key),
            "/Properties/Etag" => current.etag = encode::etag(text.trim()),
            "/Properties/Content-Length" => current.size = text.trim().parse().unwrap_or(0),
            "/Properties/ResourceType" => self.is_directory = text.trim() == "directory",
            "" => {
                if let Some(done) = self.current.take().filter(|_| !self.is_directory) {
                    self.entries.push(done);
                }
                self.is_directory = false;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_are_read_without_directories() {
        let document = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ContainerName=\"c\"><Blobs>\
            <Blob><Name>a</Name><Properties><ResourceType>directory</ResourceType></Properties></Blob>\
            <Blob><Name>a/b &amp; c</Name><Properties><Etag>0x8D</Etag><Content-Length>4</Content-Length></Properties></Blob>\
            </Blobs><NextMarker>m</NextMarker></EnumerationResults>";
        let found = page(document.as_bytes()).unwrap();
        assert_eq!(found.next.as_deref(), Some("m"));
        let expected = Entry {
            etag: "0x8D".to_owned(),
            size: 4,
            ..Entry::named("a/b & c")
        };
        assert_eq!(found.entries, [expected]);
        assert_eq!(page(b"<Error/>"), Err("it is not a listing"));
        assert_eq!(
            page(b"<EnumerationResults><Blobs><Blob/></Blobs></EnumerationResults>"),
            Err("a blob in the listing has no name")
        );
    }

    #[test]
    fn errors_have_the_words_of_the_service() {
        let document =
            b"\xef\xbb\xbf<Error><Code>ContainerNotFound</Code><Message>Gone.\nRequestId:1</Message></Error>";
        assert_eq!(
            error(document),
            ("ContainerNotFound".to_owned(), "Gone.\nRequestId:1".to_owned())
        );
    }
}
