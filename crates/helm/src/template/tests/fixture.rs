//! Data and functions of the test cases.

use std::rc::Rc;

use serde_json::Value as Json;
use tree::{Budget, Limits};

use crate::{
    IntKind, Object, Value,
    template::{Executor, FormatError, FunctionError, Functions, ParseBuffers, Set, Signature, Type},
};

/// Runs on a stack that is deep enough for all limits.
pub(super) fn deep(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 20).spawn(work);
    thread.unwrap().join().unwrap();
}

pub(super) fn render(template: &str, strict: bool) -> Result<String, String> {
    render_within(template, strict, &Budget::default())
}

pub(super) fn render_within(template: &str, strict: bool, budget: &Budget) -> Result<String, String> {
    let mut set = Set::new();
    set.parse("c/t.yaml", template, &Tests, &mut ParseBuffers::default(), budget)
        .map_err(|error| error.to_string())?;
    let mut executor = Executor::new(Rc::new(set), &Tests, budget, strict);
    executor
        .execute("c/t.yaml", data())
        .map_err(|error| error.to_string())
}

/// Describes the difference of a case's result from Go's, if any.
pub(super) fn difference(line: &str) -> Option<String> {
    let case: Json = serde_json::from_str(line).unwrap();
    let template = case["template"].as_str().unwrap();
    let budget = Budget::new(Limits {
        steps: 1_000_000,
        ..Limits::default()
    });
    let result = render_within(template, case["strict"].as_bool().unwrap_or_default(), &budget);
    let expected = match (&case["output"], &case["error"]) {
        (Json::String(output), _) => Ok(output.clone()),
        (_, error) => Err(error.as_str().unwrap().to_owned()),
    };
    (result != expected).then(|| format!("{template:?}\n  got  {result:?}\n  want {expected:?}"))
}

const NAMES: &[&str] = &[
    "fail", "upper", "list", "dict", "default", "add1", "repeat", "half", "flip", "keys", "size", "join",
    "nothing", "include", "tpl",
];

pub(super) struct Tests;

impl Functions for Tests {
    fn find(&self, name: &str) -> Option<u16> {
        let id = NAMES.iter().position(|known| *known == name)?;
        u16::try_from(id).ok()
    }

    fn signature(&self, function: u16) -> Signature {
        match NAMES[usize::from(function)] {
            "fail" | "upper" => Signature::fixed(&[Type::String]),
            "list" | "dict" => Signature::variadic(&[Type::Any]),
            "default" => Signature::variadic(&[Type::Any, Type::Any]),
            "add1" => Signature::fixed(&[Type::Int64]),
            "repeat" => Signature::fixed(&[Type::Int, Type::String]),
            "half" => Signature::fixed(&[Type::Float]),
            "flip" => Signature::fixed(&[Type::Bool]),
            "keys" => Signature::fixed(&[Type::Dict]),
            "size" => Signature::fixed(&[Type::List]),
            "join" => Signature::fixed(&[Type::String, Type::Strings]),
            "nothing" => Signature::fixed(&[]),
            "include" | "tpl" => Signature::fixed(&[Type::String, Type::Any]),
            other => panic!("{other} has no signature"),
        }
    }

    fn call(
        &self,
        function: u16,
        arguments: Vec<Value>,
        executor: &mut Executor<'_>,
    ) -> Result<Value, FunctionError> {
        let name = NAMES[usize::from(function)];
        match (name, arguments.as_slice()) {
            ("fail", [Value::String(text)]) => Err(text.to_string().into()),
            ("upper", [Value::String(text)]) => Ok(Value::string(text.to_uppercase())),
            ("list", _) => Ok(Value::list(arguments)),
            ("dict", pairs) => Ok(Value::dict(pairs.chunks_exact(2).map(|pair| {
                let key = crate::template::print(&pair[..1], executor.budget()).unwrap();
                (key, pair[1].clone())
            }))),
            ("default", [fallback]) => Ok(fallback.clone()),
            ("default", [fallback, value, ..]) => Ok(match value {
                Value::Nil => fallback.clone(),
                Value::String(text) if text.is_empty() => fallback.clone(),
                _ => value.clone(),
            }),
            ("add1", [Value::Int(number, IntKind::Int64)]) => Ok(Value::int64(*number as i64 + 1)),
            ("repeat", [Value::Int(count, IntKind::Int), Value::String(text)]) => {
                let count = usize::try_from(*count).map_err(|_| "strings: negative Repeat count")?;
                Ok(Value::string(text.repeat(count.min(1000))))
            }
            ("half", [Value::Float(number)]) => Ok(Value::Float(number / 2.0)),
            ("flip", [Value::Bool(flag)]) => Ok(Value::Bool(!flag)),
            ("keys", [Value::Dict(map)]) => Ok(Value::int(map.borrow().len() as i64)),
            ("size", [Value::List(items)]) => Ok(Value::int(items.len() as i64)),
            ("join", [Value::String(between), Value::Strings(items)]) => {
                let items: Vec<_> = items.iter().map(text).collect();
                Ok(Value::string(items.join(between)))
            }
            ("nothing", []) => Ok(Value::Nil),
            ("include", [Value::String(name), data]) => {
                executor.include(name, data.clone()).map(Value::string)
            }
            ("tpl", [Value::String(text), data]) => executor.tpl(text, data.clone()).map(Value::string),
            _ => panic!("{name} got {arguments:?}"),
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        other => panic!("{other:?} is no string"),
    }
}

#[derive(Debug)]
struct Thing;

impl Object for Thing {
    fn type_name(&self) -> &str {
        "*main.Thing"
    }

    fn kind_name(&self) -> &'static str {
        "ptr"
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Name" => Some(Value::string("bob")),
            "Nums" => Some(strings(&["1"])),
            _ => None,
        }
    }

    fn signature(&self, name: &str) -> Option<Signature> {
        match name {
            "Get" | "Fails" => Some(Signature::fixed(&[Type::String])),
            "Greet" | "String" => Some(Signature::fixed(&[])),
            _ => None,
        }
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, FunctionError>> {
        match (name, arguments) {
            ("Get", [Value::String(key)]) => Some(Ok(Value::string(format!("<{key}>")))),
            ("Fails", [Value::String(what)]) => Some(Err(format!("no {what}").into())),
            ("Greet", []) => Some(Ok(Value::string("hi bob"))),
            ("String", []) => Some(Ok(Value::string("thing:bob"))),
            _ => None,
        }
    }

    fn print(&self, _: &Budget) -> Result<String, FormatError> {
        Ok("thing:bob".to_owned())
    }
}

fn strings(items: &[&str]) -> Value {
    Value::Strings(Rc::new(items.iter().map(|item| Value::string(*item)).collect()))
}

fn from_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => Value::Float(number.as_f64().unwrap()),
        Json::String(text) => Value::string(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(from_json).collect()),
        Json::Object(map) => Value::dict(map.iter().map(|(key, value)| (key.as_str(), from_json(value)))),
    }
}

pub(super) fn data() -> Value {
    let values = serde_json::json!({
        "name": "app", "count": 3.0, "big": 1_000_000.0, "float": 1.5, "flag": true, "off": false, "empty": "",
        "zero": 0.0, "null": null, "list": ["a", "b", "c"], "nums": [1.0, 2.0, 2.5],
        "mixed": ["x", 1.0, true, null, {"k": "v"}], "map": {"a": "1", "b": {"c": "deep"}, "n": null},
        "emptyList": [], "emptyMap": {}, "quote": "it's <\"q\">&=", "multi": "l1\nl2\t", "uni": "héllo ☃",
    });
    Value::dict([
        ("Values", from_json(&values)),
        ("strs", strings(&["p", "q"])),
        ("bytes", Value::Bytes(b"hi".as_slice().into())),
        ("i", Value::int(7)),
        ("i64", Value::int64(-8)),
        ("u8", Value::Int(200, IntKind::Uint8)),
        ("u64", Value::Int(u64::MAX.into(), IntKind::Uint64)),
        ("i32", Value::Int('x' as i128, IntKind::Int32)),
        ("thing", Value::Object(Rc::new(Thing))),
        ("small", Value::Float(0.000_001_234)),
        ("huge", Value::Float(1e21)),
        ("neg", Value::Float(-2.75)),
    ])
}
