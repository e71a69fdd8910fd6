//! Values of files and settings, and their schemas.

use super::maker::Maker;

const KEYS: &str = "a¦b¦c¦enabled¦name¦list¦x¦global¦tags¦one¦two¦three¦al¦deep¦one¦two";
const CHARTS: &[&str] = &["one", "two", "three", "al", "deep"];
const SCALARS: &str = "1¦0¦true¦false¦\"text\"¦null¦1.5¦[]¦{}¦[1, two]¦{a: 1}¦{b: null}¦{a: {b: 1}}¦\"\"¦1e6¦0x10¦012¦yes¦~¦-1¦\
    9007199254740993¦\"{{ .Release.Name }}\"¦[{a: 1}]¦[null]¦1_000¦2001-01-01¦!!str 1";
/// Invalid and nearly valid files.
const ODD: &str = "¦# none\n¦null\n¦{}\n¦[]\n¦text\n¦a: [\n¦a: 1\na: 2\n¦---\na: 1\n---\nb: 2\n¦\u{feff}a: 1\n¦a: 1\r\nb: {c: 2}\r\n¦\
    a: &x {b: 1}\nc: *x\n¦a: &x {b: 1}\nc:\n  <<: *x\n  d: 2\n¦1: a\ntrue: b\n¦\"a.b\": 1\n¦a: .nan\n¦a: !!binary aGk=\n¦a: 2001-01-01\n";

fn map(maker: &mut Maker<'_>, depth: usize) -> String {
    let mut keys = Vec::new();
    let mut parts = Vec::new();
    for _ in 0..maker.below(if depth < 2 { 6 } else { 3 }) {
        let key = maker.of(KEYS);
        if keys.contains(&key) {
            continue;
        }
        keys.push(key);
        let is_deep = depth < 3 && (CHARTS.contains(&key) || key == "global");
        let value = match key {
            "tags" => {
                let one = maker.of_or(4, "true¦false", "null¦\"true\"¦1");
                let other = maker.of("true¦false");
                format!("{{t1: {one}, t2: {other}}}")
            }
            "enabled" => maker.of_or(4, "true¦false", "\"true\"¦null¦1¦{}").to_owned(),
            _ if is_deep && !maker.odd(6) || depth < 2 && maker.rare(4) => map(maker, depth + 1),
            _ => maker.of(SCALARS).to_owned(),
        };
        parts.push(format!("{key}: {value}"));
    }
    format!("{{{}}}", parts.join(", "))
}

pub(super) fn file(maker: &mut Maker<'_>) -> String {
    if maker.odd(12) {
        return maker.of(ODD).to_owned();
    }
    let made = map(maker, 0);
    if !maker.rare(4) {
        return made + "\n";
    }
    let inner = made.trim_end_matches('}');
    if inner.len() < 3 || inner.len() + 1 < made.len() {
        return made + "\n";
    }
    let (data, default) = (map(maker, 2), map(maker, 2));
    format!("{inner}, exports: {{data: {data}, default: {default}, a: {{b: {{c: 1}}}}}}}}\n")
}

/// Invalid settings of `--set`.
const WRONG: &str = "a.b=2¦=1¦a¦a.=1¦list[-1]=1¦list[99999]=1¦a={1,null,true}¦global=null¦global=1¦one=1¦one=null¦al=null¦a={¦\
    a[x]=1¦.a=1¦a..b=1¦a b=c¦list[0].a=1¦a[0][1]=x¦a.b[0]=1¦tags.t1=null¦list=";

pub(super) fn setting(maker: &mut Maker<'_>) -> &'static str {
    let fine = "a=1¦a=null¦one.a=x¦one.a=null¦global.a=g¦global.b.c=1¦global.a=null¦tags.t1=false¦tags.t2=true¦one.enabled=false¦\
        one.enabled=true¦two.one.a=1¦list={a,b}¦a\\.b=1¦one.two.enabled=true¦x=1,y=2¦a=true¦name=01¦al.a=1¦a=¦a=1\\,2¦al.enabled=true¦\
        one.global.a=5¦a=b=c¦a=1.5¦a=1e3¦list={}¦enabled=false¦two=null¦exports.data.a=null¦list[2]=y";
    maker.of_or(3, fine, WRONG)
}

pub(super) fn json(maker: &mut Maker<'_>) -> &'static str {
    let fine = "a={\"b\":1}¦a=[1,null]¦a=null¦one={\"a\":1}¦a=1.5¦global={\"a\":{\"b\":null}}¦a=\"x\",b=2¦a=¦a=1e3¦a=12345678901234567890";
    let wrong = "a={¦{\"global\":null}¦[1]¦list[1]={\"a\":1}¦{¦one=null¦a=tru¦{\"a\":1,\"one\":{\"a\":null}}";
    maker.of_or(3, fine, wrong)
}

pub(super) fn schema(maker: &mut Maker<'_>) -> &'static str {
    let strict = "{\"required\": [\"a\"]}¦{\"properties\": {\"a\": {\"type\": \"string\"}}}¦\
        {\"properties\": {\"a\": {\"type\": [\"integer\",\"null\"]}, \"b\": {\"minimum\": 1}}}¦{\"additionalProperties\": false}¦\
        {\"$schema\": \"http://json-schema.org/draft-07/schema#\", \"properties\": {\"global\": {\"type\": \"object\", \"properties\": \
        {\"a\": {\"type\": \"integer\"}}}, \"list\": {\"type\": \"array\"}}}¦{\"type\": \"array\"}¦true¦false¦\
        {\"properties\": {\"one\": {\"required\": [\"b\"]}, \"name\": {\"type\": \"string\"}}}¦{\"not\": {\"required\": [\"x\"]}}¦\
        {\"properties\": {\"enabled\": {\"type\": \"boolean\"}}}¦{\"minProperties\": 9}¦{\"propertyNames\": {\"pattern\": \"^[a-z]+$\"}}¦\
        {\"if\": {\"required\": [\"a\"]}, \"then\": {\"required\": [\"b\"]}, \"else\": {\"required\": [\"c\"]}}¦{¦{x}¦{} x¦ ";
    maker.of_or(
        2,
        "{}¦{\"type\": \"object\"}¦{\"properties\": {\"x-y\": {\"type\": \"string\"}}}",
        strict,
    )
}
