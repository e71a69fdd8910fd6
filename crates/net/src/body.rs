//! Bodies of responses, read up to a limit.

use reqwest::Response;

use crate::Error;

/// Reads a body of at most `limit` bytes.
pub async fn read_body(response: &mut Response, limit: u64) -> Result<Vec<u8>, Error> {
    let too_large = || Error::TooLarge { limit };
    if response.content_length().is_some_and(|len| len > limit) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if (body.len() + chunk.len()) as u64 > limit {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
