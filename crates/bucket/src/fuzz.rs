//! Documents of hostile services.

use testkit::fuzz;

use crate::{azure, gcs, s3};

const PIECES: &[&str] = &[
    "<ListBucketResult>",
    "</ListBucketResult>",
    "<EncodingType>url</EncodingType>",
    "<IsTruncated>true</IsTruncated>",
    "<NextContinuationToken>t</NextContinuationToken>",
    "<Contents>",
    "</Contents>",
    "<Key>a%20b</Key>",
    "<Key>%ff</Key>",
    "<ETag>&quot;1&quot;</ETag>",
    "<Size>-1</Size>",
    "<EnumerationResults>",
    "</EnumerationResults>",
    "<Blobs>",
    "</Blobs>",
    "<Blob>",
    "</Blob>",
    "<Name>a</Name>",
    "<NextMarker>m</NextMarker>",
    "<![CDATA[",
    "]]>",
    "<!--",
    "<!DOCTYPE a [<!ENTITY x \"y\">]>",
    "&x;",
    "&#0;",
    "&#x10ffff;",
    "{\"items\":[{\"name\":\"a\"}]}",
    "{\"nextPageToken\":1}",
    "<",
    ">",
    "/",
    "é",
];

#[test]
fn fuzz_listings_end_in_an_answer() {
    fuzz::run("listings of buckets", |random| {
        let text = random.text(PIECES, 0..24);
        random.note("listing", &text);
        let document = text.as_bytes();
        for page in [
            s3::page(document, false),
            s3::page(document, true),
            azure::page(document),
            gcs::page(document),
        ] {
            let Ok(page) = page else { continue };
            assert!(page.entries.iter().all(|entry| !entry.key.is_empty()));
        }
    });
}

#[test]
fn pages_have_a_bounded_number_of_objects_and_names_of_a_bounded_length() {
    let s3 = |key: &str, count: usize| {
        let entries = format!("<Contents><Key>{key}</Key></Contents>").repeat(count);
        s3::page(
            format!("<ListBucketResult>{entries}</ListBucketResult>").as_bytes(),
            false,
        )
    };
    let azure = |key: &str, count: usize| {
        let entries = format!("<Blob><Name>{key}</Name></Blob>").repeat(count);
        let text = format!("<EnumerationResults><Blobs>{entries}</Blobs></EnumerationResults>");
        azure::page(text.as_bytes())
    };
    let gcs = |key: &str, count: usize| {
        let entries = vec![format!("{{\"name\":\"{key}\"}}"); count].join(",");
        gcs::page(format!("{{\"items\":[{entries}]}}").as_bytes())
    };
    type Page<'a> = &'a dyn Fn(&str, usize) -> Result<crate::ListPage, &'static str>;
    let pages: [Page<'_>; 3] = [&s3, &azure, &gcs];
    for page in pages {
        assert_eq!(page("a", 10_000).unwrap().entries.len(), 10_000);
        let error = page("a", 100_000).unwrap_err();
        assert_eq!(error, "a page of the listing has more than 10000 objects");
        assert!(page(&"a".repeat(4096), 1).is_ok());
        let error = page(&"a".repeat(4097), 1).unwrap_err();
        assert_eq!(error, "the listing has a name of more than 4096 bytes");
    }
}

#[test]
fn fuzz_long_listings_take_bounded_memory() {
    fuzz::run("long listings", |random| {
        let text = random.text(PIECES, 0..6).repeat(1 + random.below(5000));
        random.note("listing", &text);
        for page in [
            s3::page(text.as_bytes(), false),
            azure::page(text.as_bytes()),
            gcs::page(text.as_bytes()),
        ] {
            assert!(page.is_err() || page.is_ok_and(|page| page.entries.len() <= 10_000));
        }
    });
}
