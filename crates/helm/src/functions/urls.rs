//! URLs as Go parses and prints them.

use go::strconv::quote;

use go::bytes;

use super::{
    arguments::{dict, text},
    context::Context,
    table::{Answer, Entry, fixed},
};
use crate::template::FunctionError;
use crate::{
    Value,
    template::{Type, kind_name},
};

pub(super) const TABLE: &[Entry] = &[
    fixed("urlParse", &[Type::String], parse),
    fixed("urlJoin", &[Type::Dict], join),
];

/// The components of a URL, decoded as Go does.
#[derive(Default)]
struct Url {
    scheme: String,
    opaque: String,
    user: Option<(String, Option<String>)>,
    host: String,
    path: String,
    /// The path as written, if encoding it again would differ.
    raw_path: String,
    force_query: bool,
    query: String,
    fragment: String,
    raw_fragment: String,
}

/// A component of a URL; each has its own unescaped characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UrlPart {
    Path,
    Host,
    User,
    Fragment,
}

fn parse(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let given = text(arguments, 0);
    context.text(given.len().saturating_mul(16))?;
    let url = Url::parse(given).map_err(|error| format!("unable to parse url: {error}"))?;
    let userinfo = url.user.as_ref().map(userinfo).unwrap_or_default();
    let hostname = hostname(&url.host).to_owned();
    Ok(Value::dict([
        ("scheme", Value::string(url.scheme)),
        ("host", Value::string(url.host)),
        ("hostname", Value::string(hostname)),
        ("path", Value::string(url.path)),
        ("query", Value::string(url.query)),
        ("opaque", Value::string(url.opaque)),
        ("fragment", Value::string(url.fragment)),
        ("userinfo", Value::string(userinfo)),
    ]))
}

fn hostname(host: &str) -> &str {
    let host = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

fn userinfo((name, password): &(String, Option<String>)) -> String {
    let name = escape(name, UrlPart::User);
    match password {
        Some(password) => format!("{name}:{}", escape(password, UrlPart::User)),
        None => name,
    }
}

fn join(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let map = dict(arguments, 0);
    let get = |key: &str| match map.borrow().get(key) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.to_string()),
        Some(Value::Nil | Value::Missing) => Err(super::arguments::NIL_POINTER.into()),
        Some(other) => Err(format!(
            "unable to parse {key} key, must be of type string, but {} found",
            kind_name(other)
        )),
    };
    let mut url = Url {
        scheme: get("scheme")?,
        host: get("host")?,
        path: get("path")?,
        query: get("query")?,
        opaque: get("opaque")?,
        fragment: get("fragment")?,
        ..Url::default()
    };
    let given = get("userinfo")?;
    if !given.is_empty() {
        let whole = format!("proto://{given}@host");
        let parsed =
            Url::parse(&whole).map_err(|error| format!("unable to parse userinfo in dict: {error}"))?;
        url.user = parsed.user;
    }
    let made = url.print();
    context.text(made.len())?;
    Ok(Value::string(made))
}

/// Returns true if a byte needs no escape in a component.
fn is_plain(byte: u8, component: UrlPart) -> bool {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => true,
        b'!' | b'\'' | b'(' | b')' | b'*' if component == UrlPart::Fragment => byte != b'\'',
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match component {
            UrlPart::Path => byte != b'?',
            UrlPart::User => !matches!(byte, b'@' | b'/' | b'?' | b':'),
            UrlPart::Fragment => true,
            UrlPart::Host => matches!(byte, b'$' | b'&' | b'+' | b',' | b':' | b';' | b'='),
        },
        b'!' | b'\'' | b'(' | b')' | b'*' | b'[' | b']' | b'<' | b'>' | b'"' => component == UrlPart::Host,
        _ => false,
    }
}

fn escape(text: &str, component: UrlPart) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in bytes::of_str(text).iter() {
        if is_plain(*byte, component) {
            out.push(char::from(*byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn unescape(text: &str, component: UrlPart) -> Result<String, FunctionError> {
    let (bytes, mut out) = (bytes::of_str(text), Vec::with_capacity(text.len()));
    let mut rest: &[u8] = &bytes;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'%' {
            let invalid_escape = || bytes::to_string(&[b"%", after.get(..2).unwrap_or(after)].concat());
            let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
            let value = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let value = value.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            let value = value.ok_or_else(|| format!("invalid URL escape {}", quote(&invalid_escape())))?;
            // In a host, only non-ASCII characters and the zone of an address are escaped.
            if component == UrlPart::Host && value < 0x80 && value != b'%' {
                return Err(format!("invalid URL escape {}", quote(&invalid_escape())).into());
            }
            out.push(value);
            rest = after.get(2..).unwrap_or_default();
            continue;
        }
        if component == UrlPart::Host && *byte < 0x80 && !is_plain(*byte, component) {
            return Err(format!(
                "invalid character {} in host name",
                quote(&char::from(*byte).to_string())
            )
            .into());
        }
        out.push(*byte);
    }
    Ok(bytes::to_string(&out))
}

fn scheme(text: &str) -> Result<(&str, &str), FunctionError> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme".into()),
            ':' => {
                return Ok((
                    text.get(..at).unwrap_or_default(),
                    text.get(at + 1..).unwrap_or_default(),
                ));
            }
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

impl Url {
    fn parse(given: &str) -> Result<Self, FunctionError> {
        let mut url = Self::default();
        let (text, fragment) = given.split_once('#').unwrap_or((given, ""));
        let failed =
            |part: &str, error: FunctionError| FunctionError::from(format!("parse {}: {error}", quote(part)));
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err(failed(text, "net/url: invalid control character in URL".into()));
        }
        url.rest(text).map_err(|error| failed(text, error))?;
        url.fragment = unescape(fragment, UrlPart::Fragment).map_err(|error| failed(given, error))?;
        if escape(&url.fragment, UrlPart::Fragment) != fragment {
            fragment.clone_into(&mut url.raw_fragment);
        }
        Ok(url)
    }

    fn rest(&mut self, text: &str) -> Result<(), FunctionError> {
        if text == "*" {
            self.path = "*".to_owned();
            return Ok(());
        }
        let (scheme, mut rest) = scheme(text)?;
        self.scheme = scheme.to_ascii_lowercase();
        if let Some(before) = rest.strip_suffix('?').filter(|before| !before.contains('?')) {
            self.force_query = true;
            rest = before;
        } else if let Some((before, query)) = rest.split_once('?') {
            query.clone_into(&mut self.query);
            rest = before;
        }
        if !rest.starts_with('/') {
            if !self.scheme.is_empty() {
                rest.clone_into(&mut self.opaque);
                return Ok(());
            }
            if rest
                .split('/')
                .next()
                .is_some_and(|segment| segment.contains(':'))
            {
                return Err("first path segment in URL cannot contain colon".into());
            }
        }
        if let Some(after) = rest
            .strip_prefix("//")
            .filter(|_| !self.scheme.is_empty() || !rest.starts_with("///"))
        {
            let end = after.find('/').unwrap_or(after.len());
            let (authority, path) = after.split_at(end);
            self.authority(authority)?;
            rest = path;
        }
        self.path = unescape(rest, UrlPart::Path)?;
        if escape(&self.path, UrlPart::Path) != rest {
            rest.clone_into(&mut self.raw_path);
        }
        Ok(())
    }

    fn authority(&mut self, authority: &str) -> Result<(), FunctionError> {
        let host = match authority.rsplit_once('@') {
            None => authority,
            Some((user, host)) => {
                let valid = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
                if !user.chars().all(valid) {
                    return Err("net/url: invalid userinfo".into());
                }
                let (name, password) = user
                    .split_once(':')
                    .map_or((user, None), |(name, word)| (name, Some(word)));
                let password = password.map(|word| unescape(word, UrlPart::User)).transpose()?;
                self.user = Some((unescape(name, UrlPart::User)?, password));
                host
            }
        };
        let port = match host.strip_prefix('[') {
            Some(inner) => inner.rsplit_once(']').ok_or("missing ']' in host")?.1,
            None => host.rfind(':').and_then(|at| host.get(at..)).unwrap_or_default(),
        };
        let digits = port.strip_prefix(':').unwrap_or(port);
        if !port.is_empty() && (!port.starts_with(':') || !digits.bytes().all(|byte| byte.is_ascii_digit())) {
            return Err(format!("invalid port {} after host", quote(port)).into());
        }
        self.host = unescape(host, UrlPart::Host)?;
        Ok(())
    }

    fn print(&self) -> String {
        let mut out = String::new();
        if !self.scheme.is_empty() {
            out.push_str(&self.scheme);
            out.push(':');
        }
        if self.opaque.is_empty() {
            self.print_location(&mut out);
        } else {
            out.push_str(&self.opaque);
        }
        if self.force_query || !self.query.is_empty() {
            out.push('?');
            out.push_str(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push('#');
            if self.raw_fragment.is_empty() {
                out.push_str(&escape(&self.fragment, UrlPart::Fragment));
            } else {
                out.push_str(&self.raw_fragment);
            }
        }
        out
    }

    fn print_location(&self, out: &mut String) {
        if !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some() {
            if !self.host.is_empty() || !self.path.is_empty() || self.user.is_some() {
                out.push_str("//");
            }
            if let Some(user) = &self.user {
                out.push_str(&userinfo(user));
                out.push('@');
            }
            out.push_str(&escape(&self.host, UrlPart::Host));
        }
        let path = if self.raw_path.is_empty() {
            escape(&self.path, UrlPart::Path)
        } else {
            self.raw_path.clone()
        };
        let path = if self.path == "*" { "*".to_owned() } else { path };
        if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
            out.push('/');
        }
        if out.is_empty()
            && path
                .split('/')
                .next()
                .is_some_and(|segment| segment.contains(':'))
        {
            out.push_str("./");
        }
        out.push_str(&path);
    }
}
