//! Logs of Pods.

use bytes::{Buf as _, BytesMut};
use http_body_util::BodyExt as _;
use kube::client::Body;
use objects::ObjectRef;
use tokio::time;

use crate::{
    Cluster, Error,
    connection::send::{Answer, Call},
    path,
};

/// Maximum size of a line, in bytes; longer ones are cut.
const LINE: usize = 1 << 20;
const ERROR: usize = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogOptions {
    /// May be empty if there is only one.
    pub container: String,
    /// Age of the oldest line, in seconds; 0 means all lines.
    pub since_seconds: u64,
    /// Time of the oldest line (RFC 3339), instead of `since_seconds`.
    pub since_time: Option<String>,
    /// Maximum number of lines, the last ones.
    pub tail: Option<u64>,
    pub follow: bool,
}

/// The lines of a log, each with its time.
pub struct LogLines {
    body: Body,
    what: String,
    read: BytesMut,
    /// True while the rest of a line that was too long is skipped.
    skips: bool,
    ended: bool,
}

impl std::fmt::Debug for LogLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogLines")
            .field("what", &self.what)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    pub time: String,
    /// Without the line break; invalid UTF-8 is replaced.
    pub text: String,
}

impl Cluster {
    pub async fn pod_log(&self, pod: &ObjectRef, options: &LogOptions) -> Result<LogLines, Error> {
        let what = format!("log of {pod}");
        let kind = self.kind("", "v1", "Pod").await?;
        let mut url = format!("{}/log?timestamps=true", path::object(&kind, pod)?);
        if options.follow {
            url.push_str("&follow=true");
        }
        match &options.since_time {
            Some(time) => url.push_str(&format!("&sinceTime={}", path::encode(time))),
            None if options.since_seconds > 0 => {
                url.push_str(&format!("&sinceSeconds={}", options.since_seconds));
            }
            None => {}
        }
        if let Some(tail) = options.tail {
            url.push_str(&format!("&tailLines={tail}"));
        }
        if !options.container.is_empty() {
            url.push_str(&format!("&container={}", path::encode(&options.container)));
        }
        let call = Call {
            accept: "*/*",
            ..Call::get(url)
        };
        let (status, body) = self.open(&what, &call).await?;
        let mut lines = LogLines {
            body,
            what,
            read: BytesMut::new(),
            skips: false,
            ended: false,
        };
        if status >= 400 {
            return Err(lines.refused(status, self).await);
        }
        Ok(lines)
    }
}

impl LogLines {
    /// Returns the next line; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<LogLine>, Error> {
        loop {
            if let Some(line) = self.taken() {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(None);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.read.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => {
                    return Err(Error::Unreachable {
                        what: self.what.clone(),
                        reason: api::redact(&error.to_string()),
                    });
                }
                None => self.ended = true,
            }
        }
    }

    fn taken(&mut self) -> Option<LogLine> {
        loop {
            let end = self.read.iter().position(|byte| *byte == b'\n');
            let length = match end {
                Some(end) => end,
                None if self.ended && !self.read.is_empty() => self.read.len(),
                None if self.read.len() > LINE => LINE,
                None => return None,
            };
            let bytes = self.read.split_to(length);
            if end.is_some() {
                self.read.advance(1);
            }
            let skipped = std::mem::replace(&mut self.skips, end.is_none());
            if skipped {
                continue;
            }
            let text = String::from_utf8_lossy(bytes.get(..LINE).unwrap_or(&bytes));
            let text = text.trim_end_matches('\r');
            let (time, text) = text.split_once(' ').unwrap_or((text, ""));
            return Some(LogLine {
                time: time.to_owned(),
                text: text.to_owned(),
            });
        }
    }

    async fn refused(&mut self, status: u16, cluster: &Cluster) -> Error {
        let mut bytes = BytesMut::new();
        let read = async {
            while let Some(Ok(frame)) = self.body.frame().await {
                if let Ok(data) = frame.into_data() {
                    let rest = ERROR.saturating_sub(bytes.len()).min(data.len());
                    bytes.extend_from_slice(data.get(..rest).unwrap_or_default());
                }
            }
        };
        // The part that arrived in time is the message.
        let _ = time::timeout(cluster.request_timeout(), read).await;
        let answer = Answer {
            status,
            warnings: Vec::new(),
            body: bytes.freeze(),
            share: cluster.no_memory(),
        };
        match answer.success(None) {
            Err(error) => error,
            Ok(_) => Error::Unreachable {
                what: self.what.clone(),
                reason: format!("status {status}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(bytes: Vec<u8>) -> Vec<LogLine> {
        let mut lines = LogLines {
            body: Body::from(bytes),
            what: "log".to_owned(),
            read: BytesMut::new(),
            skips: false,
            ended: false,
        };
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            all.push(line);
        }
        all
    }

    #[tokio::test]
    async fn log_is_split_into_lines_with_their_times() {
        let line = |time: &str, text: &str| LogLine {
            time: time.to_owned(),
            text: text.to_owned(),
        };
        assert_eq!(
            lines(b"t1 a b\r\nt2 \n\nt3 {\"x\":\xff}".to_vec()).await,
            [
                line("t1", "a b"),
                line("t2", ""),
                line("", ""),
                line("t3", "{\"x\":\u{fffd}}")
            ]
        );
        let mut long = b"t1 ".to_vec();
        long.resize(3 * LINE, b'x');
        long.extend(b"\nt2 y\n");
        let read = lines(long).await;
        assert_eq!(
            (read.len(), read[0].text.len(), &*read[1].text),
            (2, LINE - 3, "y")
        );
    }
}
