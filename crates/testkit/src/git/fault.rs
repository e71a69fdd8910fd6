//! Faults of Git servers.

/// A fault of all requests to a repository, until it is healed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Every request is answered with this status; 401 comes with a challenge.
    Status(u16),
    /// The connection is accepted, and nothing is ever answered.
    Hang,
    /// Half of a pack is sent, and then nothing more.
    HangMidPack,
    /// Half of a pack is sent, and then one byte every 50 ms.
    DripPack,
    /// Half of a pack is sent, and then the connection is cut.
    CutMidPack,
    /// The connection is cut after half of any answer.
    Cut,
    /// Redirects to the same path below this URL of a repository, with this status (301, 302, 307 or 308).
    Redirect(String, u16),
    /// Every answer is this text, with status 200: a portal in between, or no Git server at all.
    Page(String),
    /// Every pack is replaced by these bytes.
    Pack(Vec<u8>),
    /// Every list of refs is replaced by one without an end.
    EndlessRefs,
}
