//! The filters of Jinja2 and of kluctl.

#![allow(
    clippy::needless_pass_by_value,
    reason = "all filters have the same signature"
)]

pub(crate) mod attributes;
mod basic;
mod encode;
mod lists;
mod markup;
pub(crate) mod numbers;
mod select;
mod slug;
pub(crate) mod sorting;
mod urlize;
mod words;
mod wrap;
pub(crate) mod yaml;

use crate::{eval::context::Filter, functions, table::table};

table! {
    Filter;
    "default" | "d" => basic::default;
    "string" => basic::string;
    "upper" => basic::upper;
    "lower" => basic::lower;
    "capitalize" => basic::capitalize;
    "title" => words::title;
    "trim" => basic::trim;
    "length" | "count" => basic::length;
    "list" => basic::list;
    "first" => basic::first;
    "last" => basic::last;
    "join" => basic::join;
    "reverse" => basic::reverse;
    "replace" => basic::replace;
    "format" => basic::format;
    "attr" => basic::attr;
    "items" => basic::items;
    "random" => basic::random;
    "pprint" => basic::pprint;
    "map" => select::map;
    "select" => select::select;
    "reject" => select::reject;
    "selectattr" => select::selectattr;
    "rejectattr" => select::rejectattr;
    "sort" => sorting::sort;
    "dictsort" => sorting::dictsort;
    "groupby" => sorting::groupby;
    "unique" => sorting::unique;
    "min" => |cx, value, args| sorting::extreme(cx, value, args, false);
    "max" => |cx, value, args| sorting::extreme(cx, value, args, true);
    "sum" => lists::sum;
    "batch" => lists::batch;
    "slice" => lists::slice;
    "abs" => numbers::abs;
    "int" => numbers::int;
    "float" => numbers::float;
    "round" => numbers::round;
    "filesizeformat" => numbers::filesizeformat;
    "indent" => words::indent;
    "truncate" => words::truncate;
    "wordcount" => words::wordcount;
    "center" => words::center;
    "wordwrap" => wrap::wordwrap;
    "e" | "escape" => markup::escape;
    "forceescape" => markup::forceescape;
    "safe" => markup::safe;
    "striptags" => markup::striptags;
    "urlencode" => markup::urlencode;
    "xmlattr" => markup::xmlattr;
    "urlize" => urlize::urlize;
    "tojson" => encode::tojson;
    "to_json" => encode::to_json;
    "b64encode" => encode::b64encode;
    "b64decode" => encode::b64decode;
    "sha256" => encode::sha256;
    "to_yaml" => yaml::to_yaml;
    "from_yaml" => yaml::from_yaml;
    "slugify" => slug::slugify;
    "render" => |cx, value, args| {
        args.none("render")?;
        functions::rendering::render_text(cx, &value)
    };
}
