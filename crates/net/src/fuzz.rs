//! Random URLs, addresses and redirects.

use std::net::{IpAddr, Ipv4Addr};

use reqwest::{Method, Request, StatusCode, header::HeaderMap};
use testkit::fuzz::{self, Random};
use url::Url;

use crate::{AddressPolicy, ClusterServices, Exception, Proxy, redirect};

const PIECES: &[&str] = &[
    "http://",
    "https://",
    "ftp://",
    "socks5://",
    "//",
    "/",
    "user",
    ":",
    "@",
    "[",
    "]",
    "::",
    "::ffff:",
    "64:ff9b::",
    "127.0.0.1",
    "0x7f.1",
    "2130706433",
    "017700000001",
    "169.254.169.254",
    "10.0.0.0",
    "localhost",
    "kubernetes.default.svc",
    ".",
    "*.",
    "%",
    "%2f",
    "é",
    "\u{3002}",
    "?",
    "#",
    "0",
    "10250",
    "/8",
    "/33",
    " ",
    "\t",
    "\\",
];

/// Returns one of the spellings of an IPv4 address in URLs.
fn spelled(random: &mut Random, ip: Ipv4Addr) -> String {
    let number = u32::from(ip);
    let [a, b, c, d] = ip.octets();
    match random.below(8) {
        0 => number.to_string(),
        1 => format!("0x{number:x}"),
        2 => format!("0{number:o}"),
        3 => format!("{a}.{}", number & 0x00ff_ffff),
        4 => format!("{a}.{b}.{}", number & 0xffff),
        5 => format!("[::ffff:{a}.{b}.{c}.{d}]"),
        6 => format!("[64:ff9b::{:x}:{:x}]", number >> 16, number & 0xffff),
        _ => format!("0x{a:x}.0{b:o}.{c}.{d}"),
    }
}

#[test]
fn fuzz_spellings_of_an_address_get_the_same_answer() {
    fuzz::run("spellings of addresses", |random| {
        let policy = AddressPolicy::controller(ClusterServices::default());
        let own = [[10, 244, 0, 5], [10, 96, 0, 7]].map(Ipv4Addr::from);
        policy.own_addresses().set_services(own.map(IpAddr::from));
        let known = [
            [127, 0, 0, 1],
            [169, 254, 169, 254],
            [10, 244, 0, 5],
            [10, 96, 0, 7],
            [192, 0, 2, 1],
            [10, 0, 0, 1],
        ];
        let ip = match random.flag() {
            true => Ipv4Addr::from(*random.pick(&known)),
            false => Ipv4Addr::from(u32::try_from(random.bits() >> 32).unwrap_or_default()),
        };
        let port = *random.pick(&[80_u16, 9090, 10250, 443]);
        let url = format!("http://{}:{port}/", spelled(random, ip));
        random.note("url", &url);
        let expected = policy.check_address(ip.into(), Some(port));
        assert_eq!(policy.check_url(&Url::parse(&url).unwrap()), expected);
    });
}

#[test]
fn fuzz_texts_of_urls_proxies_and_exceptions_end_in_an_answer() {
    fuzz::run("URLs, proxies and exceptions", |random| {
        let mut text = random.text(PIECES, 0..12);
        if random.one_in(20) && !text.is_empty() {
            text = text.repeat(100_000 / text.len());
        }
        random.note("text", &text);
        let policy = AddressPolicy::controller(ClusterServices {
            own_namespace: "flux-system".to_owned(),
            ..ClusterServices::default()
        });
        if let Ok(url) = Url::parse(&text) {
            let checked = policy.check_url(&url);
            assert!(checked.is_err() || matches!(url.scheme(), "http" | "https"));
        }
        let _ = Proxy::parse(&text, None, None).map(|proxy| policy.check_url(&proxy.url));
        if let Ok(exception) = text.parse::<Exception>() {
            let _ = policy
                .allowing([exception])
                .check_url(&Url::parse("http://127.0.0.1/").unwrap());
        }
    });
}

#[test]
fn fuzz_redirects_carry_no_credentials_to_other_origins() {
    fuzz::run("redirects", |random| {
        let location = random.text(PIECES, 0..10);
        let status = StatusCode::from_u16(*random.pick(&[301, 302, 303, 307, 308])).unwrap();
        random.note("location", &location);
        let mut request = Request::new(Method::GET, "https://a.test/x".parse().unwrap());
        request
            .headers_mut()
            .insert("authorization", "Bearer s3cret".parse().unwrap());
        let mut headers = HeaderMap::new();
        let Ok(value) = location.parse() else { return };
        headers.insert("location", value);
        let from = request.url().origin();
        if let Ok(Some(next)) = redirect::next(request, status, &headers, random.below(12), random.flag()) {
            let carries = next.headers().contains_key("authorization");
            assert!(!carries || next.url().origin() == from, "{}", next.url());
            assert!(next.url().username().is_empty() && next.url().password().is_none());
        }
    });
}
