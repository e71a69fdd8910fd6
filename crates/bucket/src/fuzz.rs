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
