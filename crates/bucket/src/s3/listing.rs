//! Documents of S3: listings and errors. Pure.

use crate::{Entry, ListPage, encode, listing::Entries, xml};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) code: String,
    pub(super) message: String,
    /// Region that the request should have been signed for.
    pub(super) region: Option<String>,
}

/// Parses the description of an error; missing parts are empty.
pub(super) fn error(document: &[u8]) -> Words {
    let mut words = Words::default();
    // The part before an invalid one is used.
    let _ = xml::read(document, |path, text| match path {
        "Error/Code" => text.clone_into(&mut words.code),
        "Error/Message" => text.clone_into(&mut words.message),
        "Error/Region" => words.region = Some(text.to_owned()),
        _ => {}
    });
    words
}

/// Parses a page of a listing. Listings of the first version continue after the last name, `by_marker`.
pub(crate) fn page(document: &[u8], by_marker: bool) -> Result<ListPage, &'static str> {
    let mut found = Listing::default();
    xml::read(document, |path, text| found.element(path, text)).map_err(|_| "the listing is not XML")?;
    if !found.is_listing {
        return Err("it is not a listing");
    }
    let mut entries = found.contents.finish("an object in the listing has no name")?;
    if found.is_encoded {
        for entry in &mut entries {
            entry.key = encode::decoded(&entry.key).ok_or("a name in the listing is not encoded as UTF-8")?;
        }
    }
    let next = match (found.is_truncated, by_marker) {
        (false, _) => None,
        (true, true) => entries.last().map(|entry: &Entry| entry.key.clone()),
        (true, false) => found.next,
    };
    if found.is_truncated && next.is_none() {
        return Err("the listing is incomplete, and doesn't say how it goes on");
    }
    Ok(ListPage { entries, next })
}

#[derive(Default)]
struct Listing {
    is_listing: bool,
    is_truncated: bool,
    is_encoded: bool,
    next: Option<String>,
    contents: Entries,
    current: Option<Entry>,
}

impl Listing {
    fn element(&mut self, path: &str, text: &str) {
        let Some(of_object) = path.strip_prefix("ListBucketResult/Contents") else {
            match path {
                "ListBucketResult" => self.is_listing = true,
                "ListBucketResult/IsTruncated" => self.is_truncated = text.trim() == "true",
                "ListBucketResult/EncodingType" => self.is_encoded = text.trim() == "url",
                "ListBucketResult/NextContinuationToken" if !text.is_empty() => {
                    self.next = Some(text.to_owned());
                }
                _ => {}
            }
            return;
        };
        let current = self.current.get_or_insert_with(|| Entry::named(""));
        match of_object {
            "/Key" => text.clone_into(&mut current.key),
            "/ETag" => current.etag = encode::etag(text.trim()),
            "/Size" => current.size = text.trim().parse().unwrap_or(0),
            "" => {
                if let Some(done) = self.current.take() {
                    self.contents.push(done);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_are_read_with_names_of_all_kinds() {
        let document = r#"<?xml version="1.0" encoding="UTF-8"?>
            <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix/>
            <EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b</NextContinuationToken>
            <Contents><Key>a%2Fb+c</Key><LastModified>2026-01-01T00:00:00Z</LastModified><ETag>&quot;098f&quot;</ETag>
            <Size>4</Size><Owner><ID>x</ID></Owner></Contents>
            <Contents><Key>%C3%BC</Key><ETag>"1"</ETag></Contents></ListBucketResult>"#;
        let found = page(document.as_bytes(), false).unwrap();
        let entry = |key: &str, etag: &str, size| Entry {
            key: key.to_owned(),
            etag: etag.to_owned(),
            size,
            version: None,
        };
        assert_eq!(found.entries, [entry("a/b c", "098f", 4), entry("ü", "1", 0)]);
        assert_eq!(found.next.as_deref(), Some("a&b"));
        assert_eq!(
            page(document.as_bytes(), true).unwrap().next.as_deref(),
            Some("ü")
        );
        let empty = page(b"<ListBucketResult/>", false).unwrap();
        assert_eq!(empty, ListPage::default());
    }

    #[test]
    fn invalid_listings_are_errors() {
        for (document, expected) in [
            ("", "the listing is not XML"),
            ("<html></html>", "it is not a listing"),
            (
                "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
                "the listing is incomplete, and doesn't say how it goes on",
            ),
            (
                "<ListBucketResult><Contents><Key/></Contents></ListBucketResult>",
                "an object in the listing has no name",
            ),
            (
                "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%ff</Key></Contents></ListBucketResult>",
                "a name in the listing is not encoded as UTF-8",
            ),
        ] {
            assert_eq!(page(document.as_bytes(), false), Err(expected), "{document}");
        }
    }

    #[test]
    fn errors_have_the_words_of_the_service() {
        let document = b"<Error><Code>AccessDenied</Code><Message>Access Denied.</Message><Region>eu-west-1</Region></Error>";
        let words = error(document);
        assert_eq!(
            (
                words.code.as_str(),
                words.message.as_str(),
                words.region.as_deref()
            ),
            ("AccessDenied", "Access Denied.", Some("eu-west-1"))
        );
        assert_eq!(error(b"nothing"), Words::default());
    }
}
